"""How a worker's weights become part of the shared ones: TensorSpark's combiners. Runs on the driver.

A combiner is given to `SparkSession.run(weight_combiner=...)` and can be called by itself. The three here run as rules
of the engine. Any other object with a `compute` method is called on the driver, once for every variable of every
contribution, one contribution at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from keraunos.errors import JobError

NOBODY = -1


class WeightCombiner:
    """The base of combiners: from the shared weight and a worker's, the new shared weight."""

    def compute(self, origin_weight: Any, new_weight: Any, worker_id: Any = NOBODY, name: str | None = None) -> Any:
        """Returns the new weight of the variable `name`, given the shared one and that of the worker."""
        raise NotImplementedError(f"{type(self).__name__} does not say how weights are combined: define `compute`")


class MeanWeightCombiner(WeightCombiner):
    """A moving average over `num` workers: ((num - 1) W + w) / num. This is the default, with one per partition."""

    def __init__(self, num: float) -> None:
        if isinstance(num, bool) or not isinstance(num, (int, float, np.number)) or not num >= 1:
            raise JobError(f"`num` must be a number of workers of at least 1. Received: {num!r}.")
        self.num = num

    def compute(self, origin_weight: Any, new_weight: Any, worker_id: Any = NOBODY, name: str | None = None) -> Any:
        """Returns the shared weight, moved by one part in `num` towards the worker's."""
        return ((self.num - 1) * np.asarray(origin_weight) + np.asarray(new_weight)) / self.num


class UpdateMeanWeightCombiner(WeightCombiner):
    """The worker's weight at first, then the middle between the shared weight and the worker's.

    Args:
        server: what tells how many contributions were taken so far, in its `_version`; left out, the combiner counts
            for itself, for each variable. In `SparkSession.run` the server that runs counts.
    """

    def __init__(self, server: Any = None) -> None:
        if server is not None and not hasattr(server, "_version"):
            raise JobError(
                "`server` must tell its version, the number of contributions so far, in `_version`. "
                f"Received: {server!r}. Leave it out and the combiner counts for itself."
            )
        self._server = server
        self._seen: set[str | None] = set()

    def compute(self, origin_weight: Any, new_weight: Any, worker_id: Any = NOBODY, name: str | None = None) -> Any:
        """Returns the worker's weight in version 0, the middle afterwards."""
        first = name not in self._seen if self._server is None else self._server._version == 0
        self._seen.add(name)
        if first:
            return np.asarray(new_weight)
        return (np.asarray(origin_weight) + np.asarray(new_weight)) / 2


class DeltaWeightCombiner(WeightCombiner):
    """Adds a worker's change to the shared weight: W + (pushed - pulled by that worker).

    Report the weight that a worker pulled with `pulled`. Until it is, a worker is taken to have what `compute` last
    gave for it, and before that what the shared weight was in the beginning.
    """

    def __init__(self) -> None:
        self.last_weight: dict[Any, dict[str | None, Any]] = {}
        self._first: dict[str | None, Any] = {}

    def pulled(self, weight: Any, worker_id: Any, name: str | None = None) -> None:
        """Note that a worker now has this weight, which its next change is counted from."""
        self.last_weight.setdefault(worker_id, {})[name] = np.array(weight)

    def compute(self, origin_weight: Any, new_weight: Any, worker_id: Any = NOBODY, name: str | None = None) -> Any:
        """Returns the shared weight moved as the worker has moved its own."""
        if worker_id == NOBODY:
            raise JobError(
                "`worker_id` must say whose weights they are: a change is counted from what that worker pulled. "
                f"Received: {worker_id!r}."
            )
        first = self._first.setdefault(name, np.array(origin_weight))
        base = self.last_weight.get(worker_id, {}).get(name, first)
        updated = np.asarray(origin_weight) + (np.asarray(new_weight) - base)
        self.pulled(updated, worker_id, name)
        return updated

    def reset_value(self) -> None:
        """Forget what the workers have."""
        self.last_weight.clear()
        self._first.clear()
