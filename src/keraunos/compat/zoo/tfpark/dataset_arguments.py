"""Checks of the arguments of a `TFDataset`. Runs on the driver."""

from __future__ import annotations

import re
from typing import Any

from keraunos.errors import JobError


def check_batches(batch_size: Any, batch_per_thread: Any) -> bool:
    """Returns whether one of the two was given.

    They are for training and for predictions, so both together are refused.
    """
    for name, value in (("batch_size", batch_size), ("batch_per_thread", batch_per_thread)):
        if isinstance(value, bool) or not isinstance(value, int) or (value < 1 and value != -1):
            raise JobError(f"`{name}` must be a whole number of at least 1, or -1 for none. Received: {value!r}.")
    if batch_size > 0 and batch_per_thread > 0:
        raise JobError(
            "`batch_size` and `batch_per_thread` must not be given together: the first is the rows of a training step "
            "over all workers, the second those that a task predicts for at once. Received: "
            f"batch_size={batch_size!r}, batch_per_thread={batch_per_thread!r}."
        )
    return bool(batch_size > 0 or batch_per_thread > 0)


def memory_budget_of(memory_type: Any) -> int | None:
    """Returns how many bytes of a worker's rows may be in memory; `None` for what the launcher thinks fit."""
    if memory_type == "DRAM":
        return None
    if isinstance(memory_type, str) and re.fullmatch(r"DISK_\d+|DISK_AND_DRAM(\(\d+\))?", memory_type):
        return 1
    raise JobError(
        "`memory_type` must be 'DRAM' (rows in memory while they fit, in mapped files beyond) or 'DISK_n' or "
        f"'DISK_AND_DRAM' (in mapped files from the start). Received: {memory_type!r}. For persistent memory, mount it "
        "and let spark.local.dir point there, with 'DISK_1'."
    )


def refused(name: str, what: str, instead: str) -> JobError:
    """Returns the error for an unsupported way to create a dataset."""
    return JobError(
        f"TFDataset.{name} must be replaced: there is no such thing here as {what}. {instead}, and use "
        "TFDataset.from_dataframe or TFDataset.from_rdd."
    )
