"""The names that templates are written with. Runs on the driver and on executors.

`HyperParamModel` reads `{{uniform(0, 1)}}` in the source of a model function and draws a value instead, so none of
these is ever called from there.
"""

from __future__ import annotations

from typing import Any, NoReturn

from keraunos.errors import JobError


def choice(options: Any) -> NoReturn:
    """One of the options."""
    _only_in_templates("choice", options)


def pchoice(options: Any) -> NoReturn:
    """One of the options, given as pairs of a probability and a value."""
    _only_in_templates("pchoice", options)


def randint(low: Any, high: Any = None) -> NoReturn:
    """A whole number below the last argument, from 0 or `low` on."""
    _only_in_templates("randint", low, high)


def uniform(low: Any, high: Any) -> NoReturn:
    """A number between the two."""
    _only_in_templates("uniform", low, high)


def quniform(low: Any, high: Any, q: Any) -> NoReturn:
    """A multiple of q between the two."""
    _only_in_templates("quniform", low, high, q)


def loguniform(low: Any, high: Any) -> NoReturn:
    """A number whose logarithm is between the two."""
    _only_in_templates("loguniform", low, high)


def qloguniform(low: Any, high: Any, q: Any) -> NoReturn:
    """A multiple of q whose logarithm is between the two."""
    _only_in_templates("qloguniform", low, high, q)


def normal(mu: Any, sigma: Any) -> NoReturn:
    """A number of the normal distribution."""
    _only_in_templates("normal", mu, sigma)


def qnormal(mu: Any, sigma: Any, q: Any) -> NoReturn:
    """A multiple of q of the normal distribution."""
    _only_in_templates("qnormal", mu, sigma, q)


def lognormal(mu: Any, sigma: Any) -> NoReturn:
    """A number whose logarithm is normal."""
    _only_in_templates("lognormal", mu, sigma)


def qlognormal(mu: Any, sigma: Any, q: Any) -> NoReturn:
    """A multiple of q whose logarithm is normal."""
    _only_in_templates("qlognormal", mu, sigma, q)


def _only_in_templates(name: str, *arguments: Any) -> NoReturn:
    raise JobError(
        f"`{name}` must stand in a template, `{{{{{name}(...)}}}}`, within the function that HyperParamModel is given "
        f"as `model`. Received: a call with {arguments!r} from elsewhere, such as a function that `model` calls. Move "
        "the template into `model` and hand its value over."
    )
