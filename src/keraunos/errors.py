"""The exceptions that Keraunos raises. Runs on the driver and on workers.

    KeraunosError
    ├── JobError (ValueError)        the job is invalid; raised on the driver before any work
    │   ├── ModelError               the model: not compiled, cannot be rebuilt on a worker, wrong output shape
    │   ├── ColumnError              a column: missing, or of a type that no model input takes
    │   └── PlanError                the exchange plan: unknown name, settings that contradict each other
    ├── DataError (ValueError)       a row: null, NaN, infinite, ragged, label out of range; or none
    ├── ClusterError                 the cluster: no Java, too few slots, a port in use, executors unlike the driver
    ├── WorkerError                  a worker failed: has its rank, its host and the end of its log
    ├── ExchangeError                the parameter exchange ended: stopped, superseded, server gone
    └── CheckpointError              a checkpoint: none complete, or one that cannot be written

Messages have one form: what is wrong with what; what was expected; what was received; what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class KeraunosError(Exception):
    """Base class of all exceptions of Keraunos."""


class JobError(KeraunosError, ValueError):
    """The training job is invalid."""


class ModelError(JobError):
    """The model cannot be trained or served this way."""


class ColumnError(JobError):
    """A column is missing or has a type that does not fit its use."""


class PlanError(JobError):
    """The exchange plan is unknown or contradicts itself."""


class DataError(KeraunosError, ValueError):
    """The rows are invalid; a retry cannot help."""


class ClusterError(KeraunosError, RuntimeError):
    """The cluster cannot run the job with its current settings."""


class WorkerError(KeraunosError, RuntimeError):
    """A worker failed. The message contains its error; see also `rank`, `host` and `log_lines`."""

    def __init__(self, message: str, *, rank: int | None = None, host: str = "", log_lines: Iterable[str] = ()) -> None:
        self.rank = rank
        self.host = host
        self.log_lines = tuple(log_lines)
        where = "" if rank is None else f"Worker {rank} on {host or 'an unknown host'} failed: "
        log = "".join(f"\n  | {line}" for line in self.log_lines)
        super().__init__(f"{where}{message}{f'{chr(10)}Its last log lines:{log}' if log else ''}")


class ExchangeError(KeraunosError, RuntimeError):
    """The exchange of parameters ended before the training did."""


class CheckpointError(KeraunosError, RuntimeError):
    """A checkpoint cannot be written, or no existing checkpoint is complete."""


def one_of(argument: str, value: object, known: Iterable[str]) -> str:
    """Returns the message for a value that is not among the known ones, with the nearest one as a hint."""
    names = list(known)
    close = difflib.get_close_matches(str(value), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"`{argument}` must be one of {', '.join(map(repr, names))}. Received: {value!r}.{hint}"
