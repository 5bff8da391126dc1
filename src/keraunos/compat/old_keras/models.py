"""Models as they were called: today's models whose methods take the arguments of that day. Runs on the driver.

A model is one of today's own classes; the methods of old are attributes of the one object. What is saved of it, and
what workers are sent, is a plain model.
"""

from __future__ import annotations

import functools
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keraunos.compat.old_keras import (
    accuracy,
    compiled,
    files,
    fitting,
    generators,
    layer_lists,
    older_files,
    optimizers,
    values,
)
from keraunos.compat.old_keras.days import DAYS, Day
from keraunos.compat.old_keras.layers import first_inputs
from keraunos.compat.old_keras.model_calls import OLDER, ORDERS, RENAMED
from keraunos.compat.run_unchanged.shadows import is_programs
from keraunos.errors import JobError, ModelError, one_of

_HALF = 0.5


def sequential(day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Returns an empty `Sequential`, or one of layers."""
    given = _by_name("Sequential", "layers name", arguments, named, ())
    model = dressed(keras.Sequential(name=given.get("name")), day)
    for layer in given.get("layers") or ():
        _add(model, day, layer)
    return model


def functional(day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Returns a model from tensors to tensors."""
    given = _by_name("Model", "inputs outputs name", arguments, named, ("input", "output"))
    given = {{"input": "inputs", "output": "outputs"}.get(name, name): value for name, value in given.items()}
    for name in ("inputs", "outputs"):
        if name not in given:
            raise JobError(f"`{name.removesuffix('s')}` of Model must be given. Received: {sorted(given)}.")
    return dressed(keras.Model(**given), day)


def dressed(model: Any, day: Day) -> Any:
    """Returns the model and those within it, with the methods of that day.

    Methods that the program's class has are its own.
    """
    for name, function in _METHODS.items():
        if _is_keras_own(model, name) and (name not in _OF_SEQUENTIALS or isinstance(model, keras.Sequential)):
            object.__setattr__(model, name, _method(model, day, name, function))
    object.__setattr__(model, "__reduce_ex__", functools.partial(_reduced, model, day))
    layer_lists.hand_out(model, day)
    return model


def _is_keras_own(model: Any, name: str) -> bool:
    for kind in type(model).__mro__:
        if name in vars(kind):
            return kind.__module__.partition(".")[0] == "keras"
    return True


def _again(model: Any, day: Day) -> Any:
    """Returns a model that was made from what another one left, with all that is within it."""
    for within in model._flatten_layers(include_self=True, recursive=True):
        if isinstance(within, keras.Model):
            dressed(within, day)
    return model


def from_config(day: Day, kind: Any, config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Returns the model of a configuration that `get_config` returned."""
    return _again(kind.from_config(config, custom_objects=dict(custom_objects or {})), day)


def clone(day: Day, *arguments: Any, **named: Any) -> Any:
    """Returns the result of today's `clone_model`."""
    return _again(keras.models.clone_model(*arguments, **named), day)


def _reduced(model: Any, day: Day, _protocol: Any) -> tuple[Any, ...]:
    """Returns the state of a model for `copy` and `pickle`."""
    (buffer,) = keras.Model.__reduce__(model)[1]
    return unpickled, (day.name, buffer.getvalue())


def unpickled(day: str, content: bytes) -> Any:
    """Returns the model again."""
    return _again(keras.Model._unpickle_model(io.BytesIO(content)), DAYS[day])


def from_text(day: Day, text: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Returns the model that `to_json` or `to_yaml` of here wrote."""
    try:
        config = json.loads(text)
    except (TypeError, ValueError) as error:
        raise ModelError(
            "The text of a model must be what `to_json` or `to_yaml` gave, which is JSON here. Received: "
            f"{str(text)[:60]!r}. A model that an older Keras wrote as YAML has to be built again."
        ) from error
    older_files.check_text(config, str(text), day)
    try:
        return _again(keras.models.model_from_json(text, custom_objects=dict(custom_objects or {})), day)
    except Exception as error:
        raise ModelError(
            "The text of a model must be one that today's Keras reads. Received: one that it does not: "
            f"{' '.join(str(error).split())[:300]} A model that an older Keras wrote has to be built again."
        ) from error


def load_model(day: Day, filepath: str, custom_objects: Mapping[str, Any] | None = None, compile: bool = True) -> Any:  # noqa: A002 - its name
    """Returns the model in a file that `save` wrote."""
    older_files.check_file(filepath, day)
    return _again(files.load_model(filepath, custom_objects or {}, compile=compile), day)


def save_model(day: Day, model: Any, filepath: str, overwrite: bool = True) -> None:
    """Write the model to a file."""
    _save(model, day, filepath, overwrite)


def called(model: Any, day: Day, name: str, *arguments: Any, **named: Any) -> Any:
    """Returns the result of a model's method on that day."""
    return _METHODS[name](model, day, *arguments, **named)


def arguments_of(name: str, day: Day) -> tuple[str, ...]:
    """Returns the names that the arguments of a method have on that day."""
    number = "2" if day.name == "tf2" else day.name
    orders = ORDERS[name]
    older = OLDER if day.speaks_keras_2 else {}
    return (*(orders.get(number) or orders[""]).split(), *older)


def _method(model: Any, day: Day, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the method as the program calls it; Keras, Keraunos and other packages that call it mean today's."""
    today = getattr(type(model), name, None)

    @functools.wraps(function if today is None else today)
    def called(*arguments: Any, **named: Any) -> Any:
        if today is not None and is_programs(sys._getframe(1).f_globals) is False:
            found = today(model, *arguments, **named)
            if name == "compile":
                compiled.note(model, day)
            return found
        return function(model, day, *arguments, **named)

    return called


def _add(model: Any, _day: Day, layer: Any) -> None:
    told = first_inputs.get(layer) if not isinstance(layer, type) else None
    if told is not None and not model._layers:
        shape, dtype = told
        keras.Sequential.add(model, keras.Input(batch_shape=tuple(shape), dtype=dtype))
    keras.Sequential.add(model, layer)


def _compile(model: Any, day: Day, *arguments: Any, **named: Any) -> None:
    given = _call("compile", model, day, arguments, named)
    for name in ("optimizer", "loss"):
        if name not in given:
            raise JobError(f"`{name}` of compile must be given. Received: {sorted(given)}.")
    if isinstance(given["optimizer"], str) and _is_loss(given["optimizer"]):
        raise JobError(
            "compile takes the optimizer first and then the loss. Received: "
            f"{given['optimizer']!r} first. Give both by name: compile(loss=..., optimizer=...)."
        )
    for name in ("sample_weight_mode", "theano_mode"):
        if given.pop(name, None) is not None:
            raise JobError(f"`{name}` of compile must be left out on today's Keras. Received: {named.get(name)!r}.")
    mode = given.pop("class_mode", None)
    if mode is not None:
        accuracy.say_mode(model, mode)
    given["optimizer"] = optimizers.for_compile(optimizers.get(given["optimizer"], day), day)
    loss = given["loss"] = values.loss(given["loss"], day)
    given["metrics"] = accuracy.measured(model, values.metrics(given.get("metrics") or [], day), loss, day)
    given["loss"] = accuracy.loss_of_outputs(model, loss, day)
    given["loss_weights"] = accuracy.weights_of_outputs(model, given.get("loss_weights"), given["loss"])
    keras.Model.compile(model, **{name: value for name, value in given.items() if value is not None})
    compiled.note(model, day)


def _fit(model: Any, day: Day, *arguments: Any, **named: Any) -> Any:
    called = _call("fit", model, day, arguments, named)
    if day.name == "2" and isinstance(model, keras.Sequential) and "epochs" not in called:
        raise JobError(
            "`fit` of a Sequential without `epochs` trained 10 until Keras 2.0 and 1 from 2.1 on, and nothing tells "
            "which is meant. Received: no `epochs`. Give it."
        )
    given = {**day.fit, **called}
    if given.pop("show_accuracy", False):
        accuracy.measure(model)
    with compiled.as_compiled(model):
        return fitting.fit(model, day, given)


def _evaluate(model: Any, day: Day, *arguments: Any, **named: Any) -> Any:
    given = {**day.measure, **_call("evaluate", model, day, arguments, named)}
    shown = given.pop("show_accuracy", False)
    if shown:
        accuracy.measure(model)
    found = _ordered(keras.Model.evaluate, model, given)
    # In Keras 0 it was the call that asked for the accuracy.
    return found[0] if day.name == "0" and not shown and isinstance(found, list) else found


def _predict(model: Any, day: Day, *arguments: Any, **named: Any) -> Any:
    given = {"verbose": 0, **day.measure, **_call("predict", model, day, arguments, named)}
    return keras.Model.predict(model, **given)


def _predict_classes(model: Any, day: Day, *arguments: Any, **named: Any) -> Any:
    found = _predict(model, day, *arguments, **named)
    mode = accuracy.mode_of(model)
    if mode == "categorical" or (mode is None and found.shape[-1] > 1):
        return found.argmax(axis=-1)
    return (found > _HALF).astype("int32")


def _train_on_batch(model: Any, day: Day, *arguments: Any, **named: Any) -> Any:
    return _on_batch("train_on_batch", model, day, arguments, named)


def _test_on_batch(model: Any, day: Day, *arguments: Any, **named: Any) -> Any:
    return _on_batch("test_on_batch", model, day, arguments, named)


def _on_batch(call: str, model: Any, day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    given = _call(call, model, day, arguments, named)
    shown = given.pop("accuracy", False)
    if shown:
        accuracy.measure(model)
    model.reset_metrics()  # what is returned is of this batch; today's would count those before it
    with compiled.as_compiled(model):
        found = _ordered(getattr(keras.Model, call), model, given)
    return found[0] if day.name == "0" and not shown and isinstance(found, (list, tuple)) else found


def _ordered(call: Callable[..., Any], model: Any, given: Mapping[str, Any]) -> Any:
    """Returns the results of a call, in the order of `metrics_names`."""
    if not accuracy.orders(model):
        return call(model, **given)
    return accuracy.in_order(model, call(model, **fitting.with_columns(given), return_dict=True))


def _fit_generator(model: Any, day: Day, *arguments: Any, **named: Any) -> Any:
    given = _call("fit_generator", model, day, arguments, named)
    if given.pop("show_accuracy", False):
        accuracy.measure(model)
    with compiled.as_compiled(model):
        return generators.fit_generator(model, day, given)


def _evaluate_generator(model: Any, day: Day, *arguments: Any, **named: Any) -> Any:
    given = _call("evaluate_generator", model, day, arguments, named)
    if given.pop("show_accuracy", False):
        accuracy.measure(model)
    return generators.evaluate_generator(given, functools.partial(_ordered, keras.Model.evaluate, model))


def _predict_generator(model: Any, day: Day, *arguments: Any, **named: Any) -> Any:
    return generators.predict_generator(model, _call("predict_generator", model, day, arguments, named))


def _reset_states(model: Any, _day: Day) -> None:
    """Forget what the layers that keep a state have seen."""
    for layer in model._flatten_layers(include_self=False, recursive=True):
        if getattr(layer, "stateful", False) and hasattr(layer, "reset_state"):
            layer.reset_state()


def _to_yaml(model: Any, _day: Day, **named: Any) -> str:
    """JSON, which is YAML as well."""
    return str(model.to_json(**named))


def _save_weights(model: Any, day: Day, filepath: str, overwrite: bool | None = None) -> None:
    """Write the weights to an HDF5 file of any name."""
    _check_free(filepath, overwrite if overwrite is not None else day.name != "0")
    files.save_weights(model, filepath)


def _load_weights(model: Any, _day: Day, filepath: str, by_name: bool = False, **named: Any) -> None:
    """Read the weights from a file of any name."""
    files.load_weights(model, filepath, **named, **({"by_name": True} if by_name else {}))


def _save(model: Any, day: Day, filepath: str, overwrite: bool = True, **named: Any) -> None:
    """Write the model to a file of any name; in TensorFlow the name determines the format."""
    if day.name == "tf2":
        keras.Model.save(model, filepath, overwrite=overwrite, **named)
        return
    _check_free(filepath, overwrite)
    files.save_model(model, filepath, **named)


def _check_free(filepath: str, overwrite: bool) -> None:
    if Path(filepath).exists() and not overwrite:
        raise JobError(f"There is a file {str(filepath)!r} already. Give overwrite=True to replace it.")


def _is_loss(name: str) -> bool:
    from keraunos.compat.old_keras.value_tables import LONG_NAMES, LOSSES

    return name in LONG_NAMES or name in LOSSES


def _call(name: str, model: Any, day: Day, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a method by today's names."""
    orders = ORDERS[name]
    number = "2" if day.name == "tf2" else day.name
    kind = f"{number} Sequential" if isinstance(model, keras.Sequential) else number
    order = orders.get(kind) or orders.get(number) or orders[""]
    older = OLDER if day.speaks_keras_2 else RENAMED
    return _by_name(name, order.replace("nb_epoch", "epochs"), arguments, named, older, renamed=older)


def _by_name(
    what: str,
    order: str,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    also: Any,
    renamed: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    names = order.split()
    if len(arguments) > len(names):
        raise JobError(f"`{what}` takes at most {len(names)} arguments without a name. Received: {len(arguments)}.")
    given = dict(zip(names, arguments, strict=False))
    for name, value in named.items():
        new = (renamed or {}).get(name, name)
        if new not in names and name not in also and name not in _OF_TODAY.get(what, ()):
            hint = _HINTS.get(name, "")
            raise JobError(f"{one_of(f'argument of {what}', name, names)}{hint}")
        if new in given:
            raise JobError(f"`{new}` of {what} must be given once. Received: {given[new]!r} and {value!r}.")
        given[new] = value
    return given


_OF_TODAY = {"compile": ("weighted_metrics",), "fit": (), "predict": ("steps",), "evaluate": ("steps",)}
_HINTS = {
    "show_accuracy": " Keras 1 took metrics=['accuracy'] in compile; if the program is older, say --keras 0.",
    "class_mode": " If the program was written for Keras 0, say --keras 0.",
}
_OF_SEQUENTIALS = ("add", "predict_classes", "predict_proba")
_METHODS: Mapping[str, Callable[..., Any]] = {
    "add": _add,
    "compile": _compile,
    "fit": _fit,
    "evaluate": _evaluate,
    "predict": _predict,
    "predict_classes": _predict_classes,
    "predict_proba": _predict,
    "train_on_batch": _train_on_batch,
    "test_on_batch": _test_on_batch,
    "fit_generator": _fit_generator,
    "evaluate_generator": _evaluate_generator,
    "predict_generator": _predict_generator,
    "reset_states": _reset_states,
    "to_yaml": _to_yaml,
    "save": _save,
    "save_weights": _save_weights,
    "load_weights": _load_weights,
}
