"""Trials as Hyperopt keeps them. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

STATUS_OK = "ok"
STATUS_FAIL = "fail"
JOB_STATE_DONE = 2
JOB_STATE_ERROR = 3


class Trials(Sequence[dict[str, Any]]):
    """Trials in the order in which they were started.

    Each is a dict: `tid` is its number; `result` has `loss`, `status` and what else the model function returned;
    `misc["vals"]` has a list of one value for each template, by its name. A trial that failed has infinity as its loss.
    """

    def __init__(self, trials: Iterable[dict[str, Any]] = ()) -> None:
        self.trials = list(trials)

    @property
    def results(self) -> list[dict[str, Any]]:
        """The result of each trial."""
        return [trial["result"] for trial in self.trials]

    @property
    def tids(self) -> list[int]:
        """The numbers of the trials."""
        return [trial["tid"] for trial in self.trials]

    @property
    def best_trial(self) -> dict[str, Any]:
        """The one with the lowest loss of those that ended well."""
        return min((each for each in self.trials if each["result"]["status"] == STATUS_OK), key=_loss)

    @property
    def argmin(self) -> dict[str, Any]:
        """The values of the best trial by their names."""
        return {name: values[0] for name, values in self.best_trial["misc"]["vals"].items()}

    def losses(self) -> list[float]:
        """Returns the loss of each trial."""
        return [_loss(trial) for trial in self.trials]

    def statuses(self) -> list[str]:
        """Returns the status of each trial."""
        return [result["status"] for result in self.results]

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.trials)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self.trials[index]


def _loss(trial: dict[str, Any]) -> float:
    return float(trial["result"]["loss"])
