"""Several classifiers that vote. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.errors import DataError, JobError, one_of

VOTINGS = ("hard", "soft")


class VotingModel:
    """Predicts the class that most of its Keras models predict, or that they find most probable together.

    Args:
        model_list: Keras models that return the probability of each class, or of the second of two.
        voting: "hard" for a vote for each model's class, "soft" for the mean of their probabilities.
        weights: how much each model counts; all the same without them.
        nb_classes: how many classes there are; the models' outputs are checked against it.

    If two classes are even, the lower one wins.
    """

    def __init__(
        self,
        model_list: Iterable[Any],
        voting: str = "hard",
        weights: Sequence[float] | npt.NDArray[Any] | None = None,
        nb_classes: int | None = None,
    ) -> None:
        self.model_list = list(model_list)
        self.voting = voting
        self.weights = weights
        self.nb_classes = nb_classes
        if not self.model_list:
            raise JobError("`model_list` must have at least one model. Received: none.")
        if voting not in VOTINGS:
            raise JobError(one_of("voting", voting, VOTINGS))
        self._shares = _shares(weights, len(self.model_list))

    def predict(self, X: Any, batch_size: int = 128, verbose: int = 0) -> npt.NDArray[np.int64]:
        """Returns the class of each row."""
        chosen: npt.NDArray[np.int64] = np.argmax(self.predict_proba(X, batch_size, verbose), axis=1)
        return chosen

    def predict_proba(self, X: Any, batch_size: int = 128, verbose: int = 0) -> npt.NDArray[np.float64]:
        """For each row, the share of the votes that each class has, or its mean probability with voting="soft"."""
        outputs = [model.predict(X, batch_size=batch_size, verbose=verbose) for model in self.model_list]
        return together(outputs, self._shares, self.voting, self.nb_classes)


def together(
    outputs: Sequence[Any], shares: npt.NDArray[np.float64], voting: str, nb_classes: int | None = None
) -> npt.NDArray[np.float64]:
    """Returns the weighted mean of several models' outputs; the weights, `shares`, add up to 1."""
    ballots = np.stack([_ballot(np.asarray(each), nb_classes) for each in outputs])
    if voting == "hard":
        ballots = np.eye(ballots.shape[2])[ballots.argmax(axis=2)]
    summed: npt.NDArray[np.float64] = np.einsum("m,mrc->rc", shares, ballots)
    return summed


def _ballot(output: npt.NDArray[Any], nb_classes: int | None) -> npt.NDArray[np.float64]:
    """Probabilities with a column for each class."""
    if output.ndim != 2 or nb_classes not in {None, max(2, output.shape[1])}:
        expected = "one column for each class" if nb_classes is None else f"{nb_classes} classes"
        raise DataError(
            f"Models that vote must give {expected} for each row. Received: an output of shape {output.shape}."
        )
    probabilities = output.astype(np.float64)
    return np.hstack([1 - probabilities, probabilities]) if output.shape[1] == 1 else probabilities


def _shares(weights: Any, models: int) -> npt.NDArray[np.float64]:
    if weights is None:
        return np.full(models, 1 / models)
    given = np.asarray(weights, np.float64)
    if given.shape != (models,) or not np.isfinite(given).all() or (given < 0).any() or given.sum() <= 0:
        raise JobError(
            f"`weights` must be a number for each of the {models} models, none below 0 and not all 0. Received: "
            f"{weights!r}."
        )
    shares: npt.NDArray[np.float64] = given / given.sum()
    return shares
