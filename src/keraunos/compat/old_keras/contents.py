"""Which names the modules of a day have. Runs on the driver and on workers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import keras

from keraunos.compat.old_keras import (
    backend_names,
    layer_names,
    layers,
    layers_2,
    merging,
    models,
    optimizers,
    own_layers,
    own_metrics,
    own_models,
    tools,
    values,
)
from keraunos.compat.old_keras.days import Day
from keraunos.compat.old_keras.layer_table import LAYERS, REFUSED_LAYERS, REFUSED_LAYERS_2
from keraunos.compat.old_keras.names import OldName, refused
from keraunos.compat.old_keras.optimizer_table import OPTIMIZERS, REFUSED_OPTIMIZERS
from keraunos.compat.old_keras.value_tables import (
    ACTIVATIONS,
    CONSTRAINTS,
    CONSTRAINTS_2,
    LONG_NAMES,
    LOSSES,
    METRICS,
    REFUSED_REGULARIZERS,
    REGULARIZERS,
)
from keraunos.errors import JobError

Names = dict[str, Any]

# Keras 1 had these names too.
_SHORT = {
    "Conv1D": "Convolution1D",
    "Conv2D": "Convolution2D",
    "Conv3D": "Convolution3D",
    "Deconv2D": "Deconvolution2D",
    "AtrousConv1D": "AtrousConvolution1D",
    "AtrousConv2D": "AtrousConvolution2D",
    "SeparableConv2D": "SeparableConvolution2D",
}
# So did Keras 2, after its own names.
_LEGACY_2 = {
    "Deconvolution2D": "Conv2DTranspose",
    "Deconv2D": "Conv2DTranspose",
    "Deconvolution3D": "Conv3DTranspose",
    "Deconv3D": "Conv3DTranspose",
}
_OWN_LAYER = "Layers of one's own had other methods then: get_output_shape_for, and weights of the backend."
_WRITTEN_AS_NAME = "Initializers are given by name: init='uniform'."


layer_names.install()


def names_of(package: str, part: str, day: Day) -> Names:
    """Returns the names of a module, by its name below the package."""
    root, _, rest = part.partition(".")
    if root == "layers":
        # Every old module of layers has all of them: programs take what they name.
        return _layer_names(package, day)
    if root == "datasets" and rest:
        return _dataset(rest, day)
    found = _MAKERS.get(part)
    return found(package, day) if found is not None else {}


@functools.cache
def _layer_names_of(package: str, day_name: str) -> Names:
    from keraunos.compat.old_keras.days import DAYS

    day = DAYS[day_name]
    module = f"{package}.layers"
    return _layers_2(module, day) if day.speaks_keras_2 else _layers_1(module, day)


def _layer_names(package: str, day: Day) -> Names:
    return dict(_layer_names_of(package, day.name))


def _layers_1(module: str, day: Day) -> Names:
    found: Names = {}
    for name, entry in LAYERS.items():
        found[name] = OldName(module, name, _making(layers.make, name, day), layers.today_of(entry.today), _OWN_LAYER)
    for name, instead in REFUSED_LAYERS.items():
        found[name] = refused(module, name, instead)
    found.update({short: found[name] for short, name in _SHORT.items()})
    found["Layer"] = OldName(module, "Layer", _making(_no_plain_layer, "Layer", day), keras.layers.Layer, _OWN_LAYER)
    found["Merge"] = OldName(module, "Merge", functools.partial(merging.merge_layer, day), None, _OWN_LAYER)
    found["merge"] = _function(merging.merge, day)
    found["Input"] = _function(_input, day)
    found["InputLayer"], found["InputSpec"] = keras.layers.InputLayer, keras.layers.InputSpec
    if day.name == "0":
        found["Sequential"] = _sequential(f"{module}", day)
        del found["Input"], found["merge"]
    return found


def _layers_2(module: str, day: Day) -> Names:
    found: Names = {}
    for name, today in vars(keras.layers).items():
        if name.startswith("_"):
            continue
        if isinstance(today, type) and issubclass(today, keras.layers.Layer) and name not in {"Layer", "InputLayer"}:
            found[name] = OldName(module, name, _making(layers_2.make, name, day), today, today)
        else:
            found[name] = today
    for name, instead in REFUSED_LAYERS_2.items():
        found[name] = refused(module, name, instead)
    found["ThresholdedReLU"] = OldName(
        module, "ThresholdedReLU", _making(_thresholded, "", day), keras.layers.ReLU, None
    )
    found["Input"] = keras.Input
    if day.name == "2":
        found.update({name: found[today] for name, today in _LEGACY_2.items()})
        for name, today in (("AtrousConvolution1D", keras.layers.Conv1D), ("AtrousConvolution2D", keras.layers.Conv2D)):
            found[name] = OldName(module, name, _making(layers_2.make, name, day), today, None)
        found["merge"] = _function(merging.merge, day)
    return found


def _models(package: str, day: Day) -> Names:
    module = f"{package}.models"
    found: Names = {
        "Sequential": _sequential(module, day),
        "model_from_json": functools.partial(models.from_text, day),
        "model_from_yaml": functools.partial(models.from_text, day),
        "load_model": functools.partial(models.load_model, day),
        "save_model": functools.partial(models.save_model, day),
        "slice_X": tools.slice_X,
        "Graph": refused(module, "Graph", REFUSED_LAYERS["Graph"]),
    }
    found["Model"] = _model(module, "Model", models.functional, keras.Model, day)
    if day.name == "0":
        del found["Model"]
    if day.speaks_keras_2:
        found["clone_model"] = functools.partial(models.clone, day)
    return found


def _sequential(module: str, day: Day) -> OldName:
    return _model(module, "Sequential", models.sequential, keras.Sequential, day)


def _model(module: str, name: str, make: Callable[..., Any], today: Any, day: Day) -> OldName:
    base = own_models.bases(day.name, today) if day.speaks_keras_2 else _OWN_LAYER
    own = {"from_config": functools.partial(models.from_config, day, today)}
    return OldName(module, name, functools.partial(make, day), today, base, own)


def _optimizers(package: str, day: Day) -> Names:
    module = f"{package}.optimizers"
    found: Names = {
        name: OldName(module, name, _making(optimizers.make, name, day), getattr(keras.optimizers, name), None)
        for name in OPTIMIZERS
    }
    for name, made in found.items():
        made.from_config = functools.partial(optimizers.from_config, name, day)
    found.update({name: refused(module, name, instead) for name, instead in REFUSED_OPTIMIZERS.items()})
    found.update(
        Optimizer=keras.optimizers.Optimizer,
        get=lambda identifier: optimizers.get(identifier, day),
        serialize=keras.optimizers.serialize,
        deserialize=lambda config: optimizers.get(config, day),
    )
    return found


def _regularizers(package: str, day: Day) -> Names:
    if day.speaks_keras_2:
        return _public(keras.regularizers) | {
            "l1_l2": values.l1_l2,
            **_get(keras.regularizers, values.regularizer, day),
        }
    module = f"{package}.regularizers"
    found: Names = {name: functools.partial(values.named_regularizer, name, day) for name in REGULARIZERS}
    found.update(_get(keras.regularizers, values.regularizer, day))
    found.update({name: refused(module, name, instead) for name, instead in REFUSED_REGULARIZERS.items()})
    return found


def _constraints(_package: str, day: Day) -> Names:
    old: Names = {name: functools.partial(values.named_constraint, name, day) for name in CONSTRAINTS}
    if not day.speaks_keras_2:
        return old | _get(keras.constraints, values.constraint, day)
    found = _public(keras.constraints) | {was: getattr(keras.constraints, now) for was, now in CONSTRAINTS_2.items()}
    return found | {"max_norm": keras.constraints.MaxNorm}


def _activations(_package: str, day: Day) -> Names:
    found: Names = {name: getattr(keras.activations, name) for name in ACTIVATIONS}
    found.update(hard_sigmoid=own_layers.hard_sigmoid, **_get(keras.activations, values.activation, day))
    return (_public(keras.activations) if day.speaks_keras_2 else {}) | found


def _objectives(_package: str, day: Day) -> Names:
    found: Names = {name: getattr(keras.losses, name) for name in LOSSES if hasattr(keras.losses, name)}
    found["cosine_proximity"] = values.proximity(day)
    found.update({name: values.margins(name, day) for name in values.HINGES})
    found = (_public(keras.losses) if day.speaks_keras_2 else {}) | found
    found.update(_by_short_names(found))
    found["get"] = lambda name: keras.losses.get(values.loss(name, day))
    return found


def _metrics(_package: str, day: Day) -> Names:
    found: Names = {name: getattr(keras.metrics, name) for name in METRICS if hasattr(keras.metrics, name)}
    found["cosine_proximity"] = values.proximity(day)
    if day.name != "tf2":
        found.update(own_metrics.FUNCTIONS)
        del found["accuracy"]  # a name in `compile`, and no function of theirs
        found.update({name: values.margins(name, day) for name in values.HINGES})
    found = (_public(keras.metrics) if day.speaks_keras_2 else {}) | found
    return found | _by_short_names(found)


def _by_short_names(found: Names) -> Names:
    """Returns the names that losses and metrics have besides, as `mse`."""
    return {short: found[name] for short, name in LONG_NAMES.items() if name in found}


def _callbacks(package: str, day: Day) -> Names:
    module = f"{package}.callbacks"
    found = _public(keras.callbacks)
    for name, make in (
        ("EarlyStopping", tools.early_stopping),
        ("LearningRateScheduler", tools.scheduler),
        ("ModelCheckpoint", tools.model_checkpoint),
        ("ReduceLROnPlateau", tools.reduce_on_plateau),
    ):
        if day.name == "tf2" and name == "LearningRateScheduler":
            continue
        today = getattr(keras.callbacks, name)
        found[name] = OldName(module, name, functools.partial(make, day), today, today)
    return found


def _initializers(_package: str, day: Day) -> Names:
    if not day.speaks_keras_2:
        return {}
    found = _public(keras.initializers)
    found.update(zero=found["zeros"], one=found["ones"])
    found.update(uniform=found["random_uniform"], normal=found["random_normal"])
    return found | _get(keras.initializers, values.initializer, day)


def _initializations(package: str, _day: Day) -> Names:
    from keraunos.compat.old_keras.value_tables import INITIALIZERS

    return {name: refused(f"{package}.initializations", name, _WRITTEN_AS_NAME) for name in INITIALIZERS}


def _np_utils(_package: str, _day: Day) -> Names:
    return {
        "to_categorical": tools.to_categorical,
        "normalize": tools.normalize,
        "probas_to_classes": tools.probas_to_classes,
        "categorical_probas_to_classes": tools.categorical_probas_to_classes,
        "accuracy": tools.accuracy,
    }


def _utils(package: str, day: Day) -> Names:
    module = f"{package}.utils"
    gone = refused(
        module, "multi_gpu_model", "Keraunos trains on as many workers as Spark has; hand over the model itself."
    )
    if not day.speaks_keras_2:
        return {}
    return _public(keras.utils) | {"to_categorical": tools.to_categorical, "multi_gpu_model": gone}


def _generic_utils(_package: str, _day: Day) -> Names:
    return {"Progbar": keras.utils.Progbar, "CustomObjectScope": keras.utils.CustomObjectScope}


def _data_utils(_package: str, _day: Day) -> Names:
    return {"get_file": keras.utils.get_file}


def _plots(_package: str, _day: Day) -> Names:
    def plot(model: Any, to_file: str = "model.png", show_shapes: bool = False, show_layer_names: bool = True) -> None:
        keras.utils.plot_model(model, to_file, show_shapes=show_shapes, show_layer_names=show_layer_names)

    return {"plot": plot, "plot_model": plot}


def _layer_utils(_package: str, _day: Day) -> Names:
    return {"print_summary": lambda model, **_named: model.summary()}


def _engine(package: str, day: Day) -> Names:
    every = _layer_names(package, day)
    named = ("Layer", "Input", "InputSpec", "InputLayer", "Merge", "merge")
    found = {name: every[name] for name in named if name in every}
    return found | ({"Model": _models(package, day)["Model"], "slice_X": tools.slice_X} if day.name != "0" else {})


def _dataset(name: str, day: Day) -> Names:
    if name in {"imdb", "reuters"}:
        return {"load_data": lambda *given, **named: tools.word_lists(name, given, named)}
    if name in {"cifar10", "cifar100"} and not day.speaks_keras_2:
        return {"load_data": lambda *given, **named: tools.pictures(name, day, given, named)}
    return {"load_data": getattr(keras.datasets, name).load_data}


def _sequence(_package: str, day: Day) -> Names:
    from keraunos.compat.old_keras import texts

    return texts.of_sequences(day)


def _text(package: str, day: Day) -> Names:
    from keraunos.compat.old_keras import texts

    return texts.of_texts(day, f"{package}.preprocessing.text")


def _wrappers(package: str, day: Day) -> Names:
    try:
        from keraunos.compat.old_keras import sklearn_wrappers
    except ModuleNotFoundError as error:
        raise JobError(
            f"keras.wrappers.scikit_learn needs scikit-learn. Received: {error}. Install it with `pip install "
            "scikit-learn`."
        ) from error

    return sklearn_wrappers.wrappers(day, f"{package}.wrappers.scikit_learn")


def _image(package: str, day: Day) -> Names:
    from keras.src.legacy.preprocessing import image as legacy

    from keraunos.compat.old_keras import images

    found = images.tools(day) | _some(legacy, "Iterator", "NumpyArrayIterator", "DirectoryIterator")
    return found | {"ImageDataGenerator": images.generator_class(day, f"{package}.preprocessing.image")}


def _get(module: Any, convert: Callable[[Any, Day], Any], day: Day) -> Names:
    """`get` of a module, by the names of the day."""
    return {"get": lambda identifier: module.get(convert(identifier, day))}


def _applications(_package: str, day: Day) -> Names:
    """Networks of the day's own methods."""

    def of_day(make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **named: models.dressed(make(*arguments, **named), day)

    found = _public(keras.applications)
    return {name: of_day(value) if inspect.isfunction(value) else value for name, value in found.items()}


def _some(module: Any, *names: str) -> Names:
    return {name: getattr(module, name) for name in names if hasattr(module, name)}


def _public(module: Any) -> Names:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def _making(function: Callable[..., Any], name: str, day: Day) -> Callable[..., Any]:
    return functools.partial(_make, function, name, day)


def _make(function: Callable[..., Any], name: str, day: Day, arguments: Any, named: Any) -> Any:
    return function(name, day, arguments, named)


def _function(function: Callable[..., Any], day: Day) -> Callable[..., Any]:
    def called(*arguments: Any, **named: Any) -> Any:
        return function(day, arguments, named)

    return called


def _no_plain_layer(_name: str, _day: Day, arguments: Any, named: Any) -> Any:
    return layers.plain(arguments, named)


def _thresholded(_name: str, _day: Day, arguments: Any, named: Any) -> Any:
    given = {"theta": 1.0, **dict(zip(("theta",), arguments, strict=False)), **named}
    return keras.layers.ReLU(threshold=given.pop("theta"), **given)


def _input(_day: Day, arguments: Any, named: Mapping[str, Any]) -> Any:
    given = {
        **dict(zip(("shape", "batch_shape", "name", "dtype", "sparse", "tensor"), arguments, strict=False)),
        **named,
    }
    return keras.Input(**{name: value for name, value in given.items() if value is not None})


_MAKERS: Mapping[str, Callable[[str, Day], Names]] = {
    "activations": _activations,
    "applications": _applications,
    "backend": lambda _package, day: backend_names.functions(day),
    "callbacks": _callbacks,
    "constraints": _constraints,
    "engine": _engine,
    "engine.topology": _engine,
    "engine.training": _engine,
    "initializations": _initializations,
    "initializers": _initializers,
    "losses": _objectives,
    "metrics": _metrics,
    "models": _models,
    "objectives": _objectives,
    "optimizers": _optimizers,
    "preprocessing.image": _image,
    "preprocessing.sequence": _sequence,
    "preprocessing.text": _text,
    "regularizers": _regularizers,
    "utils": _utils,
    "utils.data_utils": _data_utils,
    "utils.generic_utils": _generic_utils,
    "utils.layer_utils": _layer_utils,
    "utils.np_utils": _np_utils,
    "utils.vis_utils": _plots,
    "utils.visualize_util": _plots,
    "wrappers.scikit_learn": _wrappers,
}
