"""All that a member of a job waits for. Runs on workers, and on executors that host slices.

What it waits for is told with its signs of life, and named where it was waited for in vain.
"""

from __future__ import annotations

from enum import StrEnum


class Wait(StrEnum):
    """What a member waits for, and from whom."""

    # The coordinator's answers, each to one question: HELLO, FETCH, READY, ASK, FAILED, BYE.
    WELCOME = "WELCOME"
    BLOB = "BLOB"
    START = "START"
    HELD = "HELD"
    STOP = "STOP"
    GOOD_BYE = "the driver's good-bye"
    # What the driver decides when all workers are so far: after a lap; at the end, for those who hold something that
    # others may need; and where something is not finite.
    GO = "GO"
    RELEASE = "RELEASE"
    END = "the end of the training"
    # What the servers of all slices have: that this rank has joined, the parameters to begin with, a round's result.
    SLICES = "the slices"
    PARAMETERS = "the parameters"
    RESULT = "a round's result"
