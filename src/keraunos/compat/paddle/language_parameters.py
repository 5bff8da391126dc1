"""Parameters as a configuration defines them: defaults, sharing, rules. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from keraunos.compat.paddle.language_state import Configuration
from keraunos.compat.paddle.model_config import ParameterConfig
from keraunos.errors import ModelError


def define_parameter(
    state: Configuration, name: str, size: int, dims: Sequence[int], said: Mapping[str, Any], owner: str = ""
) -> ParameterConfig:
    """Returns the parameter of that name: a new one, or the one that a layer before has defined.

    For a shared parameter the first definition applies; its size and dimensions must be the same everywhere.
    """
    shape = tuple(int(each) for each in dims)
    if name in state.parameters:
        _check_shared(state.parameters[name], size, shape, owner)
        return state.parameters[name]
    attributes: dict[str, Any] = {**asdict(state.defaults), **said}
    if attributes["initial_smart"]:
        attributes["initial_mean"] = 0.0
        attributes["initial_std"] = float(shape[0] if shape else size) ** -0.5
    made = ParameterConfig(name=name, size=int(size), dims=shape, **_typed(name, owner, attributes))
    _check(made, owner)
    state.parameters[name] = made
    return made


def _typed(name: str, owner: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    typed = {}
    for each, value in attributes.items():
        kind: Any = type(ParameterConfig.__dataclass_fields__[each].default)
        if not isinstance(value, int | float) or (kind is int and value != int(value)):
            raise _wrong(name, owner, f"`{each}` must be a number", f"{each}={value!r}")
        typed[each] = kind(value)
    return typed


def _check(made: ParameterConfig, owner: str) -> None:
    if made.momentum and made.decay_rate_l1:
        raise _wrong(
            made.name,
            owner,
            "`momentum` and `decay_rate_l1` exclude each other",
            f"momentum={made.momentum}, decay_rate_l1={made.decay_rate_l1}",
            "Set one of them to 0",
        )
    if made.momentum and made.num_batches_regularization > 1:
        raise _wrong(
            made.name,
            owner,
            "`num_batches_regularization` above 1 needs a momentum of 0",
            f"momentum={made.momentum}, num_batches_regularization={made.num_batches_regularization}",
        )
    if made.sparse_remote_update and made.is_static:
        raise _wrong(
            made.name,
            owner,
            "a static parameter has no sparse updates",
            "sparse_remote_update=True, is_static=True",
            "Leave one of them out",
        )
    if made.initial_strategy not in (0, 1):
        raise _wrong(
            made.name,
            owner,
            "`initial_strategy` must be 0 (normal) or 1 (uniform)",
            f"initial_strategy={made.initial_strategy}",
        )
    if made.num_batches_regularization < 1:
        raise _wrong(
            made.name,
            owner,
            "`num_batches_regularization` must be at least 1",
            f"num_batches_regularization={made.num_batches_regularization}",
        )
    for each in ("initial_std", "gradient_clipping_threshold", "decay_rate_l1"):
        if getattr(made, each) < 0:
            raise _wrong(made.name, owner, f"`{each}` must not be negative", f"{each}={getattr(made, each)}")


def _check_shared(first: ParameterConfig, size: int, dims: tuple[int, ...], owner: str) -> None:
    if first.size != size or first.dims != dims:
        raise _wrong(
            first.name,
            owner,
            "a shared parameter must have the same size and dimensions in every layer",
            f"size {size}, dims {list(dims)}, where size {first.size}, dims {list(first.dims)} were defined",
            "Give one of them another `parameter_name`",
        )


def _wrong(name: str, owner: str, rule: str, received: str, advice: str = "") -> ModelError:
    where = f"Layer {owner!r}, parameter {name!r}" if owner else f"Parameter {name!r}"
    return ModelError(f"{where}: {rule}. Received: {received}.{f' {advice}.' if advice else ''}")
