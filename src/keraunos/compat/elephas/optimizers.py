"""Elephas's optimizers: how the server turns what workers send into new parameters. Runs on the driver.

They are descriptions; what computes is Keras's optimizer of the same name, which lives beside the parameters and keeps
its state for the whole training. Arguments and defaults are those of Elephas and of the Keras of its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from keraunos.errors import JobError, one_of
from keraunos.job.rule_spec import KERAS_OBJECT, RuleSpec


class Optimizer:
    """An optimizer's name and arguments."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **arguments: Any) -> None:
        for name, value in arguments.items():
            if name in _CLIPPING:
                _check_number(self, name, value)
            elif name not in self._DEFAULTS:
                raise JobError(one_of("argument", name, (*self._DEFAULTS, *_CLIPPING)))
            elif name != "nesterov":
                _check_number(self, name, value)
        self._arguments = {**self._DEFAULTS, **arguments}

    def get_config(self) -> dict[str, Any]:
        """Returns the optimizer's name and arguments, from which `get` and `deserialize` make it again."""
        return {"name": type(self).__name__, **self._arguments}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._arguments.items())})"


class SGD(Optimizer):
    """Steps of `lr` times what was sent, with momentum if asked for."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"lr": 0.01, "momentum": 0.0, "decay": 0.0, "nesterov": False}

    def __init__(
        self, lr: float = 0.01, momentum: float = 0.0, decay: float = 0.0, nesterov: bool = False, **clipping: Any
    ) -> None:
        super().__init__(lr=lr, momentum=momentum, decay=decay, nesterov=nesterov, **clipping)


class RMSprop(Optimizer):
    """Steps divided by a running mean of their size."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"lr": 0.001, "rho": 0.9, "epsilon": 1e-6}

    def __init__(self, lr: float = 0.001, rho: float = 0.9, epsilon: float = 1e-6, **clipping: Any) -> None:
        super().__init__(lr=lr, rho=rho, epsilon=epsilon, **clipping)


class Adagrad(Optimizer):
    """Steps divided by the size of all that came before."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"lr": 0.01, "epsilon": 1e-6}

    def __init__(self, lr: float = 0.01, epsilon: float = 1e-6, **clipping: Any) -> None:
        super().__init__(lr=lr, epsilon=epsilon, **clipping)


class Adadelta(Optimizer):
    """Steps whose size follows from those before."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"lr": 1.0, "rho": 0.95, "epsilon": 1e-6}

    def __init__(self, lr: float = 1.0, rho: float = 0.95, epsilon: float = 1e-6, **clipping: Any) -> None:
        super().__init__(lr=lr, rho=rho, epsilon=epsilon, **clipping)


class Adam(Optimizer):
    """Steps by running means of what was sent and of its square."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {"lr": 0.001, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8}

    def __init__(
        self, lr: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-8, **clipping: Any
    ) -> None:
        super().__init__(lr=lr, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, **clipping)


def get(identifier: Any, kwargs: Mapping[str, Any] | None = None) -> Any:
    """Returns the optimizer: one of this module, its configuration, its name in any case, or a Keras optimizer."""
    if isinstance(identifier, Optimizer) or _is_keras(identifier):
        return identifier
    if isinstance(identifier, Mapping):
        return deserialize(identifier)
    known = {name.lower(): kind for name, kind in _KINDS.items()}
    if not isinstance(identifier, str) or identifier.lower() not in known:
        raise JobError(one_of("optimizer", identifier, known))
    return known[identifier.lower()](**(kwargs or {}))


def serialize(optimizer: Optimizer) -> dict[str, Any]:
    """Returns the optimizer as plain data."""
    return optimizer.get_config()


def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The optimizer that `serialize` described, with its arguments beside its name or, as in Keras, below it."""
    inner = config.get("config", config)
    name = str(config.get("class_name") or config.get("name"))
    kinds = {**_KINDS, **(custom_objects or {})}
    found = next((kind for known, kind in kinds.items() if known.lower() == name.lower()), None)
    if found is None:
        raise JobError(one_of("optimizer", name, kinds))
    return found(**{key: value for key, value in inner.items() if key not in {"name", "class_name"}})


def rule_of(optimizer: Any) -> RuleSpec | None:
    """Returns the server's rule; `None` if updates are only averaged or added."""
    if optimizer is None:
        return None
    found = get(optimizer)
    return _rule(found) if isinstance(found, Optimizer) else RuleSpec.of(found)


_KINDS: Mapping[str, type[Optimizer]] = {each.__name__: each for each in (SGD, RMSprop, Adagrad, Adadelta, Adam)}
_CLIPPING = ("clipnorm", "clipvalue")


def _rule(optimizer: Optimizer) -> RuleSpec:
    arguments = optimizer.get_config()
    name = arguments.pop("name")
    rate, decay = arguments.pop("lr"), arguments.pop("decay", 0.0)
    options = {key: value for key, value in arguments.items() if value is not None}
    if name == "Adagrad":
        options["initial_accumulator_value"] = 0.0
    if not decay:
        return RuleSpec(name.lower(), {"learning_rate": rate, **options})
    schedule = {
        "class_name": "InverseTimeDecay",
        "config": {"initial_learning_rate": rate, "decay_steps": 1, "decay_rate": decay},
        "module": "keras.optimizers.schedules",
        "registered_name": None,
    }
    config = {"name": name.lower(), "learning_rate": schedule, **options}
    return RuleSpec(
        KERAS_OBJECT, {"class_name": name, "module": "keras.optimizers", "registered_name": None, "config": config}
    )


def _is_keras(value: Any) -> bool:
    return callable(getattr(value, "get_config", None)) and hasattr(value, "apply_gradients")


def _check_number(optimizer: Optimizer, name: str, value: Any) -> None:
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise JobError(f"`{name}` of {type(optimizer).__name__} must be a number of at least 0. Received: {value!r}.")
