"""The Param that says what happens when training meets numbers that are not finite. Runs on the driver."""

from __future__ import annotations

from keraunos.job.training_job import DIVERGENCES
from keraunos.ml import conversion
from keraunos.ml.declaration import param
from keraunos.ml.params import Settings


class HasDivergence(Settings):
    """Infinite or NaN losses, gradients, updates and weights."""

    onDivergence, getOnDivergence, setOnDivergence = param(
        "What a fit does when a loss, or what a worker is about to share, is infinite or NaN: 'stop' (it ends with the "
        "last good parameters, a warning, and the reason in `history.ended`), 'skip' (that worker's round is left out "
        "and counted in `history.skipped_rows`) or 'ignore' (nothing is checked, as in plain Keras).",
        conversion.choice("onDivergence", DIVERGENCES),
        default="stop",
    )
