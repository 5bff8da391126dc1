"""The configuration that is being written while `parse_config` runs. Runs on the driver.

Paddle stored this in globals of a module, so one configuration saw the state of another. Here every parse has its own
`Configuration`, which a function of the language finds through `current`, and which is gone when the parse ends.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keraunos.compat.paddle.model_config import EvaluatorConfig, LayerConfig, ParameterConfig
from keraunos.errors import ModelError


@dataclass
class ParameterDefaults:
    """The values set by `default_initial_std(…)` and similar functions, for parameters that are defined afterwards."""

    initial_std: float = 0.01
    initial_mean: float = 0.0
    initial_strategy: int = 0
    initial_smart: bool = False
    momentum: float = 0.0
    decay_rate: float = 0.0
    num_batches_regularization: int = 1
    gradient_clipping_threshold: float = 0.0


@dataclass
class Configuration:
    """One configuration as far as it has been written.

    Attributes:
        args: what `get_config_arg` reads.
        folder: where files that `Import` names are looked for.
        images: height and width of what a layer returns, where that is known to be an image.
        inputs, outputs: what `Inputs` and `Outputs` named; `None` before they were called.
        extras: whatever another vocabulary keeps for this parse, by its own name.
    """

    args: dict[str, str] = field(default_factory=dict)
    folder: Path = field(default_factory=Path)
    settings: dict[str, Any] = field(default_factory=dict)
    defaults: ParameterDefaults = field(default_factory=ParameterDefaults)
    layers: dict[str, LayerConfig] = field(default_factory=dict)
    parameters: dict[str, ParameterConfig] = field(default_factory=dict)
    images: dict[str, tuple[int, int]] = field(default_factory=dict)
    evaluators: dict[str, EvaluatorConfig] = field(default_factory=dict)
    inputs: list[str] | None = None
    outputs: list[str] | None = None
    model_type: str = "nn"
    extras: dict[str, Any] = field(default_factory=dict)

    def flag(self, name: str) -> bool:
        """Returns a config arg as a boolean; `False` without it."""
        return truth(name, self.args[name]) if name in self.args else False


def truth(name: str, text: str) -> bool:
    """Returns a config arg as a boolean."""
    if text in ("True", "1", "true"):
        return True
    if text in ("False", "0", "false"):
        return False
    raise ModelError(f"The config arg `{name}` must be one of True, 1, true, False, 0, false. Received: {text!r}.")


def current(caller: str) -> Configuration:
    """Returns the configuration that is being written; `caller` is the function of the language that asks for it."""
    found = _CURRENT.get()
    if found is None:
        raise ModelError(
            f"`{caller}` was called while no configuration is being parsed. Expected a call from a configuration. "
            f"Received: a call from elsewhere. Write it in a function or a file and hand that to `parse_config`."
        )
    return found


@contextmanager
def writing(configuration: Configuration) -> Iterator[Configuration]:
    """Make it the current one of this thread for the while; the one before, if any, is current again afterwards."""
    token = _CURRENT.set(configuration)
    try:
        yield configuration
    finally:
        _CURRENT.reset(token)


_CURRENT: contextvars.ContextVar[Configuration | None] = contextvars.ContextVar("paddle_configuration", default=None)
