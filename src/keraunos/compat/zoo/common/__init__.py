"""Analytics Zoo's `zoo.common`: its context, and what its programs share. Runs on the driver and on executors."""

from __future__ import annotations

from keraunos.compat.zoo.common.utils import *  # noqa: F403 - as Analytics Zoo has it
