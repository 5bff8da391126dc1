"""What Keras's own archive loses of a model, kept in a file beside it in the same archive. Runs on driver and workers.

Keras writes a LoRA layer with its adapters merged into the kernel, and reads adapters of zeros back, which never learn.
It forgets which single variables are frozen, which ones weight decay leaves out, the states of random layers, and the
optimizer's state where the flags change what is trained. All of that is written here, with a checksum of every
variable: a copy that is not the model that was given is refused by name, instead of training something else.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keraunos.errors import ModelError
from keraunos.learners.archive_optimizer import ARRAYS_FILE, OPTIMIZER
from keraunos.learners.archive_parts import arrays_in, json_of
from keraunos.learners.keras_variables import innermost, seed_variables

FACTS_FILE = "keraunos.json"

Arrays = dict[str, npt.NDArray[Any]]

# What a model may do in a way of its own, by its class: a method that was set on one model is not written anywhere.
STEPS = (
    "call",
    "compute_loss",
    "compute_loss_and_updates",
    "compute_metrics",
    "predict_step",
    "test_step",
    "train_step",
)


def check_methods(model: Any) -> None:
    """Refuse methods that were replaced on one object: no archive can hold them."""
    for owner in _owners(model):
        replaced = [name for name in STEPS if callable(vars(owner).get(name))]
        if replaced:
            kind = "model" if owner is model else "layer"
            raise ModelError(
                f"The {kind} {owner.name!r} has its own `{replaced[0]}`, set on the object, which is not written with "
                f"the model. Expected: a method of its class. Received: {vars(owner)[replaced[0]]!r}. Define it in a "
                f"subclass of {type(owner).__name__}."
            )


def write_extras(model: Any, archive: zipfile.ZipFile) -> None:
    """Add to an archive of the model what Keras has left out of it."""
    arrays: Arrays = {}
    facts: dict[str, Any] = {"version": 1, "lora": _lora(model, arrays), "variables": _inventory(model)}
    facts["trainable"] = [bool(variable.trainable) for variable in model.weights]
    facts["seeds"] = [_value(variable).tolist() for variable in seed_variables(model)]
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None:
        facts["no_decay"] = _no_decay(model, optimizer)
        if optimizer.built and _has_own_flags(model):
            arrays |= {f"{OPTIMIZER}/{i}": _value(each) for i, each in enumerate(optimizer.variables)}
    archive.writestr(FACTS_FILE, json.dumps(facts))
    if arrays:
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]  # numpy's stub takes `allow_pickle` for one of the arrays
        archive.writestr(ARRAYS_FILE, buffer.getvalue())


def apply_extras(model: Any, archive: zipfile.ZipFile) -> None:
    """Make a model that Keras has read from the archive the one that was written; raise where it is not."""
    if FACTS_FILE not in archive.namelist():
        return
    facts = json_of(archive, FACTS_FILE)
    arrays: Arrays = arrays_in(archive.read(ARRAYS_FILE)) if ARRAYS_FILE in archive.namelist() else {}
    _apply_lora(model, facts["lora"], arrays)
    _apply_flags(model, facts["trainable"])
    _compare(model, facts["variables"])
    for variable, state in zip(seed_variables(model), facts["seeds"], strict=False):
        variable.assign(np.array(state, dtype=keras.backend.standardize_dtype(variable.dtype)))
    if getattr(model, "optimizer", None) is not None:
        _apply_no_decay(model, facts.get("no_decay"))
        _apply_optimizer(model, arrays)


def description(model: Any) -> list[Any]:
    """All of this that a compiled step depends on besides the model's configuration, as plain data."""
    optimizer = getattr(model, "optimizer", None)
    return [
        [bool(variable.trainable) for variable in model.weights],
        [[layer.lora_rank, layer.lora_alpha] for _, layer in _lora_layers(model)],
        None if optimizer is None else _no_decay(model, optimizer),
    ]


def _owners(model: Any) -> list[Any]:
    return list(model._flatten_layers())


def _lora_layers(model: Any) -> Iterator[tuple[int, Any]]:
    for index, layer in enumerate(_owners(model)):
        if getattr(layer, "lora_enabled", False):
            yield index, layer


def _lora(model: Any, arrays: Arrays) -> list[Any]:
    """Which layers have adapters; every variable of those goes into `arrays`, as it is."""
    told = []
    for index, layer in _lora_layers(model):
        told.append([index, layer.lora_rank, layer.lora_alpha])
        arrays |= {f"lora/{index}/{i}": _value(variable) for i, variable in enumerate(_own(layer))}
    return told


def _apply_lora(model: Any, told: list[Any], arrays: Arrays) -> None:
    layers = _owners(model)
    for index, rank, alpha in told:
        layer = layers[index]
        if not layer.lora_enabled:
            layer.enable_lora(rank)
        layer.lora_alpha = alpha
        for i, variable in enumerate(_own(layer)):
            variable.assign(arrays[f"lora/{index}/{i}"])


def _own(layer: Any) -> list[Any]:
    # A layer's own variables, without those of layers inside of it. There is no public list of them.
    return [*layer._trainable_variables, *layer._non_trainable_variables]


def _has_own_flags(model: Any) -> bool:
    """Whether a variable is frozen by itself, in a layer that is trained."""
    return any(
        layer.trainable and not variable.trainable
        for layer in _owners(model)
        for variable in layer._trainable_variables
    )


def _apply_flags(model: Any, flags: list[bool]) -> None:
    if len(flags) != len(model.weights):
        return
    changed = False
    for variable, flag in zip(model.weights, flags, strict=True):
        if variable.trainable != flag:
            variable.trainable = flag
            changed = True
    optimizer = getattr(model, "optimizer", None)
    if changed and optimizer is not None and optimizer.built:
        # It was built for what is not trained after all.
        model.optimizer = type(optimizer).from_config(optimizer.get_config())
        model.optimizer.build(model.trainable_variables)


def _inventory(model: Any) -> list[list[Any]]:
    return [
        [list(variable.shape), keras.backend.standardize_dtype(variable.dtype), _checksum(variable)]
        for variable in model.weights
    ]


def _compare(model: Any, inventory: list[list[Any]]) -> None:
    """Refuse a copy whose variables are not those that were written."""
    if len(inventory) != len(model.weights):
        raise ModelError(
            f"The model {model.name!r} does not come back from its archive as it was: it has {len(model.weights)} "
            f"variables. Expected: {len(inventory)}. Let `get_config` return all that the constructors take, and make "
            "variables in `__init__` or `build`."
        )
    for variable, (shape, dtype, checksum) in zip(model.weights, inventory, strict=True):
        kind = keras.backend.standardize_dtype(variable.dtype)
        if list(variable.shape) != shape or kind != dtype or _checksum(variable) != checksum:
            same = list(variable.shape) == shape and kind == dtype
            what = "other values" if same else f"{dtype} of shape {tuple(shape)} as {kind} of shape {variable.shape}"
            raise ModelError(
                f"The variable {variable.path!r} of the model {model.name!r} does not come back from the model's "
                f"archive as it was. Expected: the same values. Received: {what}. Look at `get_config`, "
                "`save_own_variables` and `load_own_variables` of its layer."
            )


def _no_decay(model: Any, optimizer: Any) -> dict[str, Any] | None:
    """What weight decay leaves out: a pattern of names, and places among the model's variables."""
    owner = innermost(optimizer)
    pattern = getattr(owner, "_exclude_from_weight_decay_pattern", None)
    keys = getattr(owner, "_exclude_from_weight_decay", None) or set()
    places = [i for i, variable in enumerate(model.weights) if owner._var_key(variable) in keys]
    return {"pattern": pattern.pattern if pattern else None, "variables": places} if pattern or places else None


def _apply_no_decay(model: Any, told: Mapping[str, Any] | None) -> None:
    if told is None:
        return
    owner = innermost(model.optimizer)
    owner._exclude_from_weight_decay_pattern = re.compile(told["pattern"]) if told["pattern"] else None
    owner._exclude_from_weight_decay = {owner._var_key(model.weights[i]) for i in told["variables"]}
    owner._exclude_from_weight_decay_cache = {}


def _apply_optimizer(model: Any, arrays: Arrays) -> None:
    state = [arrays[name] for name in sorted(arrays, key=_number) if name.startswith(f"{OPTIMIZER}/")]
    if state:
        for variable, value in zip(model.optimizer.variables, state, strict=True):
            variable.assign(value)


def _number(name: str) -> int:
    return int(name.rpartition("/")[2])


def _checksum(variable: Any) -> int:
    return zlib.crc32(np.ascontiguousarray(_value(variable)).data.cast("B"))


def _value(variable: Any) -> npt.NDArray[Any]:
    value: npt.NDArray[Any] = np.asarray(keras.ops.convert_to_numpy(variable.value))
    # Types that numpy does not know by itself, such as bfloat16, would come back without a name.
    return value.astype(np.float32) if value.dtype.kind == "V" else value
