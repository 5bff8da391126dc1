"""`.keras` archives that try to do more than a model may. Each is made here, by code, from plain parts."""

import base64
import io
import json
import marshal
import zipfile

import h5py
import numpy as np

MODULE = "a_module_that_marks"
CLASS = "Marking"


def write_module(folder, marker, name=MODULE):
    """A module on the path that leaves a marker when it is imported, with a layer that leaves one when it is made."""
    (folder / f"{name}.py").write_text(
        "import pathlib\n\nimport keras\n\n"
        f"MARKER = pathlib.Path({str(marker)!r})\nMARKER.touch()\n\n\n"
        "class Marking(keras.layers.Layer):\n"
        "    def __init__(self, **options):\n        MARKER.touch()\n        super().__init__(**options)\n\n"
        "    def call(self, inputs):\n        return inputs\n\n\n"
        "def mark(inputs):\n    MARKER.touch()\n    return inputs\n"
    )


def bytecode(marker):
    """What Keras 2 kept of a lambda: marshalled code, which leaves a marker when it is called."""
    source = f"lambda inputs: (__import__('pathlib').Path({str(marker)!r}).touch(), inputs)[1]"
    code = compile(source, "<model>", "eval").co_consts[0]
    return base64.b64encode(marshal.dumps(code)).decode("ascii") + "\n"


def sequential(*layers, **more):
    """The configuration of a Sequential model."""
    listed = [
        {
            "module": "keras.layers",
            "class_name": "InputLayer",
            "config": {"batch_shape": [None, 2], "dtype": "float32", "name": "input"},
            "registered_name": None,
        },
        *layers,
    ]
    config = {"name": "model", "trainable": True, "layers": listed, "build_input_shape": [None, 2]}
    return {"module": "keras", "class_name": "Sequential", "config": config, "registered_name": None, **more}


def keras_2(package, marker):
    """A model of an older Keras, whose Lambda layer runs the archive's own bytecode."""
    layers = [
        {"class_name": "InputLayer", "config": {"batch_input_shape": [None, 2], "dtype": "float32", "name": "input"}},
        {
            "class_name": "Lambda",
            "config": {
                "name": "run",
                "trainable": True,
                "dtype": "float32",
                "function": [bytecode(marker), None, None],
                "function_type": "lambda",
                "module": "keras",
                "output_shape": None,
                "output_shape_type": "raw",
                "output_shape_module": None,
                "arguments": {},
            },
        },
    ]
    inner = {"name": "model", "layers": layers}
    return {"module": package, "class_name": "Sequential", "config": inner, "registered_name": "Sequential"}


def layer(module, name, config=None, **more):
    """The configuration of a layer, or of anything else that is named by module and class."""
    return {
        "module": module,
        "class_name": name,
        "config": {"name": "run"} if config is None else config,
        "registered_name": name,
        **more,
    }


def function(module, name, registered=None):
    """The configuration of a function."""
    return {"module": module, "class_name": "function", "config": name, "registered_name": registered or name}


def dense(**options):
    """A layer of Keras's own, with these options."""
    config = {"name": "dense", "units": 2, "activation": "linear", "use_bias": False, **options}
    return {"module": "keras.layers", "class_name": "Dense", "config": config, "registered_name": None}


def archive(config, extra=None, weights=None, compression=zipfile.ZIP_STORED):
    """The bytes of an archive with this configuration; `extra` has more files by name."""
    held = io.BytesIO()
    if weights is None:
        with h5py.File(held, "w") as file:
            file.create_group("layers")
            file.create_group("vars")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as parts:
        parts.writestr("metadata.json", json.dumps({"keras_version": "3.15.1", "date_saved": "2026-01-01@00:00:00"}))
        parts.writestr("config.json", config if isinstance(config, bytes) else json.dumps(config))
        parts.writestr("model.weights.h5", held.getvalue() if weights is None else weights)
        for name, content in (extra or {}).items():
            parts.writestr(name, content)
    return buffer.getvalue()


def malicious(marker):
    """Every archive by what it tries, with what its error must name. The module is what `write_module` writes."""
    compiled = {"optimizer": layer(MODULE, CLASS, {}), "loss": "mse"}
    lambda_code = {"class_name": "__lambda__", "config": {"value": [bytecode(marker), None, None]}}
    lambda_config = {"name": "run", "function": lambda_code, "arguments": {}}
    old_lambda = {"name": "run", "function": [bytecode(marker), None, None], "function_type": "lambda"}
    spec = {
        "module": MODULE,
        "class_name": "__typespec__",
        "spec_name": CLASS,
        "config": [[1]],
        "registered_name": None,
    }
    nested = layer("keras.layers", "TimeDistributed", {"name": "t", "layer": layer(MODULE, CLASS)})
    tf = {"name": "run", "filepath": str(marker.parent)}
    return {
        "a layer of a module": (sequential(layer(MODULE, CLASS)), MODULE),
        "a model of a module": (layer(MODULE, CLASS), MODULE),
        "a layer without a registered name": (sequential({**layer(MODULE, CLASS), "registered_name": None}), MODULE),
        "a layer registered as one of Keras's": (
            sequential({**layer(MODULE, CLASS), "registered_name": "Dense"}),
            MODULE,
        ),
        "a layer in a wrapper": (sequential(nested), MODULE),
        "an initializer": (sequential(dense(kernel_initializer=layer(MODULE, CLASS, {}))), MODULE),
        "a policy of types": (sequential(dense(dtype=layer(MODULE, CLASS, {}))), MODULE),
        "an optimizer": (sequential(dense(), compile_config=compiled), MODULE),
        "what it was built with": (sequential({**dense(), "build_config": {"shape": layer(MODULE, CLASS)}}), MODULE),
        "a function of a module": (sequential(dense(activation=function(MODULE, "mark"))), "mark"),
        "a function with the name of Keras's": (sequential(dense(activation=function(MODULE, "relu"))), "relu"),
        "a function of Python": (sequential(dense(activation=function("builtins", "eval"))), "eval"),
        "a function of the system": (sequential(dense(activation=function("os", "system"))), "system"),
        "a function that downloads": (sequential(layer("keras.utils", "get_file", {"origin": "file:x"})), "get_file"),
        "a function that loads": (sequential(dense(activation=function("keras.saving", "load_model"))), "load_model"),
        "a function behind a dot": (sequential(layer("keras", "utils.get_file", {"origin": "file:x"})), "get_file"),
        "a function of a function's module": (
            sequential(dense(activation=function("keras.src.losses", "deserialize_keras_object"))),
            "deserialize_keras_object",
        ),
        "a function that looks functions up": (
            sequential(dense(activation=function("keras.activations", "deserialize"))),
            "deserialize",
        ),
        "a class inside of Keras": (sequential(layer("keras.src.utils.file_utils", "File")), "File"),
        "a SavedModel elsewhere": (sequential(layer("keras.layers", "TFSMLayer", tf)), "TFSMLayer"),
        "a torch module": (sequential(layer("keras.layers", "TorchModuleWrapper", {"module": "x"})), "TorchModule"),
        "a vocabulary elsewhere": (
            sequential(layer("keras.layers", "StringLookup", {"name": "run", "vocabulary": "/etc/hostname"})),
            "vocabulary",
        ),
        "a lambda": (sequential(layer("keras.layers", "Lambda", lambda_config)), "lambda"),
        "a lambda of old": (sequential(layer("keras.layers", "Lambda", old_lambda)), "Lambda"),
        "a lambda of old without a module": (
            sequential({"class_name": "Lambda", "config": old_lambda}),
            "Lambda",
        ),
        "a lambda as an activation": (sequential(dense(activation=lambda_code)), "lambda"),
        "a type": (sequential(dense(kernel_initializer=spec)), MODULE),
        "the main module": (sequential(layer("__main__", CLASS)), "__main__"),
        "an attribute of a module": (sequential(layer("os", "path.join")), "os"),
        "keras 2": (keras_2("tf_keras", marker), "Lambda"),
        "keras 2 inside of tensorflow": (keras_2("tensorflow.python.keras.models", marker), "Lambda"),
        "a model of keras 2": (layer("tf_keras", "Sequential", {"name": "model", "layers": []}), "tf_keras"),
    }


def external_weights(target):
    """Weights that lie in another file of this machine."""
    held = io.BytesIO()
    with h5py.File(held, "w") as file:
        group = file.create_group("layers/dense/vars")
        group.create_dataset("0", (2, 2), "float32", external=[(str(target), 0, 16)])
    return held.getvalue()


def linked_weights(target):
    """A link from the weights into another file of this machine."""
    held = io.BytesIO()
    with h5py.File(held, "w") as file:
        file["layers"] = h5py.ExternalLink(str(target), "/")
    return held.getvalue()


def empty_weights(elements):
    """Weights that claim a size of which nothing is stored."""
    held = io.BytesIO()
    with h5py.File(held, "w") as file:
        file.create_dataset("layers/dense/vars/0", (elements,), "float32", chunks=(1 << 20,), fillvalue=1.0)
    return held.getvalue()


def zeros_npz(megabytes):
    """A compressed npz file with an array of zeros."""
    held = io.BytesIO()
    np.savez_compressed(held, **{"lora/0/0": np.zeros(megabytes << 20, np.uint8)})
    return held.getvalue()
