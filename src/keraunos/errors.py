"""Every exception Keraunos raises on purpose. Runs on the driver and on workers.

    KeraunosError
    ├── JobError (ValueError)        what was asked cannot be done; raised on the driver before any work
    │   ├── ModelError               the model: not compiled, cannot be rebuilt on a worker, wrong output shape
    │   ├── ColumnError              a column: missing, or of a type that no model input takes
    │   └── PlanError                the exchange plan: unknown name, answers that do not fit together
    ├── DataError (ValueError)       a row: null, NaN, infinite, ragged, label out of range; or none
    ├── ClusterError                 the cluster: no Java, too few slots, a port in use, executors unlike the driver
    ├── WorkerError                  a worker failed: carries its rank, its host and the end of its log
    ├── ExchangeError                the parameter exchange ended: stopped, superseded, server gone
    └── CheckpointError              a checkpoint: none whole, or one that cannot be written

Messages have one shape: what is wrong with what; what was expected; what was received; what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class KeraunosError(Exception):
    """Base of everything raised on purpose; catch this to catch them all."""


class JobError(KeraunosError, ValueError):
    """The training job cannot be carried out as it was asked for."""


class ModelError(JobError):
    """The model is not one that can be trained or served this way."""


class ColumnError(JobError):
    """A column is missing or has a type that does not fit its use."""


class PlanError(JobError):
    """The exchange plan is unknown or contradicts itself."""


class DataError(KeraunosError, ValueError):
    """The rows themselves are wrong; trying again cannot help."""


class ClusterError(KeraunosError, RuntimeError):
    """The cluster cannot run the job as it is set up now."""


class WorkerError(KeraunosError, RuntimeError):
    """A worker failed; the message holds its own error, `rank`, `host` and `log_lines` the rest."""

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
    """A checkpoint cannot be written, or of those that were none is whole."""


def one_of(argument: str, value: object, known: Iterable[str]) -> str:
    """The message for a value that is not among the known ones, with the nearest one as a hint."""
    names = list(known)
    close = difflib.get_close_matches(str(value), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"`{argument}` must be one of {', '.join(map(repr, names))}. Received: {value!r}.{hint}"
