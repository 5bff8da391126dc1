"""The configuration language under the name that it has in Paddle's own package. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.paddle.config_parser import *  # noqa: F403 - the language is what its module exports
from keraunos.compat.paddle.config_parser import __all__  # noqa: F401 - and no more
