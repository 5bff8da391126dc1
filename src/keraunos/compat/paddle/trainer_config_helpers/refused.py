"""Words of Paddle that have no meaning here: step-by-step groups, generation, detection. On the driver.

Each exists so that a configuration that uses it fails with a specific error instead of an unknown name.
"""

from __future__ import annotations

from typing import Any, NoReturn

from keraunos.errors import ModelError

__all__ = [
    "BaseGeneratedInput",
    "GeneratedInput",
    "StaticInput",
    "SubsequenceInput",
    "beam_search",
    "gru_step_layer",
    "gru_step_naive_layer",
    "gru_unit",
    "lstm_step_layer",
    "lstmemory_unit",
    "memory",
    "priorbox_layer",
    "recurrent_group",
]

_WHOLE_SEQUENCES = (
    "Networks here run over whole sequences: use lstmemory, grumemory or recurrent_layer, or simple_lstm, simple_gru, "
    "lstmemory_group and gru_group, which put them together."
)
_GENERATION = f"Sequences are not generated here. {_WHOLE_SEQUENCES}"


def recurrent_group(*_: Any, **__: Any) -> NoReturn:
    """Refused: a network run step by step."""
    _refuse("recurrent_group", _WHOLE_SEQUENCES)


def memory(*_: Any, **__: Any) -> NoReturn:
    """Refused: the step before, inside a group."""
    _refuse("memory", _WHOLE_SEQUENCES)


def lstm_step_layer(*_: Any, **__: Any) -> NoReturn:
    """Refused: one step of an LSTM, inside a group."""
    _refuse("lstm_step_layer", _WHOLE_SEQUENCES)


def gru_step_layer(*_: Any, **__: Any) -> NoReturn:
    """Refused: one step of a GRU, inside a group."""
    _refuse("gru_step_layer", _WHOLE_SEQUENCES)


def gru_step_naive_layer(*_: Any, **__: Any) -> NoReturn:
    """Refused: one step of a GRU, inside a group."""
    _refuse("gru_step_naive_layer", _WHOLE_SEQUENCES)


def lstmemory_unit(*_: Any, **__: Any) -> NoReturn:
    """Refused: one step of an LSTM, inside a group."""
    _refuse("lstmemory_unit", _WHOLE_SEQUENCES)


def gru_unit(*_: Any, **__: Any) -> NoReturn:
    """Refused: one step of a GRU, inside a group."""
    _refuse("gru_unit", _WHOLE_SEQUENCES)


def beam_search(*_: Any, **__: Any) -> NoReturn:
    """Refused: the search for likely sequences."""
    _refuse("beam_search", _GENERATION)


def priorbox_layer(*_: Any, **__: Any) -> NoReturn:
    """Refused: boxes for object detection."""
    _refuse("priorbox_layer", "Layers of object detection are not lowered; img_conv_layer and its kin are.")


class StaticInput:
    """Refused: an input of a group that is the same at each step."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse(type(self).__name__, f"{_WHOLE_SEQUENCES} expand_layer repeats a row for each step of a sequence.")


class SubsequenceInput:
    """Refused: an input of a group that is a sequence of sequences."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse(type(self).__name__, _WHOLE_SEQUENCES)


class BaseGeneratedInput:
    """Refused: an input of a group that the group itself generates."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse(type(self).__name__, _GENERATION)


class GeneratedInput(BaseGeneratedInput):
    """Refused: an input of a group that the group itself generates."""


def _refuse(name: str, instead: str) -> NoReturn:
    raise ModelError(f"`{name}` is not supported. {instead} Received: a call of {name}.")
