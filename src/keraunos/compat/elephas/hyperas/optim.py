"""Hyperas's own search, which programs for Elephas import beside Elephas's. Runs on the driver."""

from __future__ import annotations

from typing import Any, NoReturn

from keraunos.errors import JobError


def minimize(model: Any, data: Any, *_arguments: Any, **_named: Any) -> NoReturn:
    """Refused: Hyperas searches in one process."""
    raise JobError(
        "hyperas.optim.minimize must be replaced by the search on Spark. Received: a call of it. Use "
        f"elephas.hyperparam.HyperParamModel(sc).minimize(model={getattr(model, '__name__', model)}, "
        f"data={getattr(data, '__name__', data)}, max_evals=...), or install hyperas."
    )
