"""The values that Elephas's Params accept, and their conversion to plain data if possible. Runs on the driver."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from keraunos.compat.elephas import optimizers
from keraunos.compat.run_unchanged import era
from keraunos.errors import JobError, ModelError, one_of
from keraunos.ml.conversion import Converter


def model_config(value: Any) -> Any:
    """Returns the JSON of an architecture, as text or read."""
    if isinstance(value, Mapping):
        return dict(value)
    try:
        if isinstance(json.loads(value), Mapping):
            return str(value)
    except (TypeError, ValueError):
        pass
    old = isinstance(value, str) and "class_name:" in value
    raise ModelError(
        f"`keras_model_config` must be the JSON that `model.to_json()` gives. Received: "
        f"{'YAML, which Keras gave up' if old else repr(value)[:80]}. "
        f"{'Build the model again and use' if old else 'Use'} model.to_json(), or hand over the compiled model itself: "
        "ElephasEstimator(model=model, ...)."
    )


def name_of(name: str, known: Sequence[str]) -> Converter[str, str]:
    """Returns one of a few names, also of an enumeration."""

    def convert(value: str) -> str:
        if value not in known:
            raise JobError(one_of(name, value, known))
        return str(value)

    return convert


def optimizer_config(value: Any) -> Any:
    """Returns an optimizer for `keras.optimizers.get`, as plain data."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    import keras

    if isinstance(value, keras.optimizers.Optimizer):
        return keras.optimizers.serialize(value)
    raise JobError(
        "`optimizer_config` must be what `keras.optimizers.serialize(optimizer)` gives, or an optimizer's name. "
        f"Received: {value!r}."
    )


def is_servers(value: Any) -> bool:
    """Whether this is an optimizer of Elephas's own, or what its `get_config` returns: arguments beside a name."""
    if isinstance(value, optimizers.Optimizer):
        return True
    return (
        isinstance(value, Mapping) and "name" in value and "lr" in value and not {"class_name", "config"} & value.keys()
    )


def predicts_classes() -> bool:
    """Returns whether the program is of the time when an estimator predicted classes."""
    return era.predicts_classes()


def server_config(value: Any) -> Any:
    """Returns an optimizer of the server's, as plain data."""
    if isinstance(value, Mapping) and "module" in value:
        return dict(value)
    found = optimizers.get(value)
    if isinstance(found, optimizers.Optimizer):
        return optimizers.serialize(found)
    import keras

    return keras.optimizers.serialize(found)


def loss(value: Any) -> Any:
    """Anything that `compile` may take as a loss; whether it is one shows when the model is compiled."""
    if isinstance(value, str | Mapping | list | tuple) or callable(value):
        return value
    raise JobError(f"`loss` must be the name of a loss, a loss of Keras, or a function. Received: {value!r}.")


def metrics(value: Any) -> Any:
    """Anything that `compile` may take as metrics."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise JobError(f"`metrics` must be a list of names or metrics of Keras. Received: {value!r}.")


def to_plain(value: Any) -> Any:
    """Returns a loss or metrics, however nested, with Keras's objects and functions as their configurations."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return dict(value) if "class_name" in value else {name: to_plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    import keras

    return keras.saving.serialize_keras_object(value)


def from_plain(value: Any, custom_objects: Mapping[str, Any]) -> Any:
    """Returns what `to_plain` described, as `compile` takes it."""
    if isinstance(value, Mapping) and "class_name" in value:
        import keras

        from keraunos.learners.keras_files import checked_config

        known = checked_config(dict(value), custom_objects)
        return keras.saving.deserialize_keras_object(dict(value), custom_objects=known)
    if isinstance(value, Mapping):
        return {name: from_plain(each, custom_objects) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [from_plain(each, custom_objects) for each in value]
    return value


def own_functions(value: Any) -> dict[str, Any]:
    """The functions and classes in a loss or in metrics that are not Keras's, by the names that an archive has."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        found: dict[str, Any] = {}
        for each in value:
            found |= own_functions(each)
        return found
    if isinstance(value, str) or not callable(value):
        return {}
    code = value if hasattr(value, "__name__") else type(value)
    inner = getattr(value, "fn", None)
    own = code.__module__.split(".")[0] != "keras"
    return ({code.__name__: code} if own else {}) | (own_functions(inner) if inner is not None else {})
