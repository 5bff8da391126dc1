"""How often workers meet. Runs on the driver."""

from enum import StrEnum


class Frequency(StrEnum):
    """`epoch`: after a pass over a worker's rows; `batch`: after every batch."""

    EPOCH = "epoch"
    BATCH = "batch"
