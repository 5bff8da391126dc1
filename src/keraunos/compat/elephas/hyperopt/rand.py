"""Random search, by the name that programs import it by. Runs on the driver."""

from __future__ import annotations

from typing import Any, NoReturn

from keraunos.errors import JobError


def suggest(*arguments: Any, **named: Any) -> NoReturn:
    """Refused: Hyperopt's own loop would call it, and that is not here."""
    raise JobError(
        "`rand.suggest` is for Hyperopt's `fmin`, and Hyperopt is not installed. Received: a call with "
        f"{[*arguments, *named]!r}. Search with `HyperParamModel(sc).minimize(...)`, which draws with Optuna, or "
        "install Hyperopt."
    )
