"""How workers meet. Runs on the driver."""

from enum import StrEnum


class Mode(StrEnum):
    """`synchronous`: all wait for each other; `asynchronous`: one after the other; `hogwild`: without locks."""

    SYNCHRONOUS = "synchronous"
    ASYNCHRONOUS = "asynchronous"
    HOGWILD = "hogwild"
