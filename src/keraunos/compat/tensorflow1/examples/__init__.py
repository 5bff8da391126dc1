"""`tensorflow.examples`, as far as programs took their data from it. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.tensorflow1.examples import tutorials as tutorials
