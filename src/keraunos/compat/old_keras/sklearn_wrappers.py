"""`keras.wrappers.scikit_learn`: models as scikit-learn estimators. Runs on the driver."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from keraunos.compat.old_keras import accuracy, models, undecided
from keraunos.compat.old_keras.days import DAYS, Day
from keraunos.errors import JobError, one_of

_HALF = 0.5
_CALLS = ("fit", "predict", "evaluate")


class _Wrapper(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Common base: a function that builds a model, its arguments, and those of `fit`, `predict` and `evaluate`."""

    day: Day = DAYS["2"]

    def __init__(self, build_fn: Callable[..., Any] | None = None, **sk_params: Any) -> None:
        self.build_fn = build_fn
        self.sk_params = sk_params
        self.check_params(sk_params)

    def check_params(self, params: Mapping[str, Any]) -> None:
        """Refuse what neither the function nor a call of the model takes."""
        built = inspect.signature(self._builder()).parameters
        if any(each.kind is each.VAR_KEYWORD for each in built.values()):
            return
        known = {*built, *(name for call in _CALLS for name in models.arguments_of(call, self.day))}
        for name in params:
            if name not in known:
                raise JobError(one_of(f"parameter of {type(self).__name__}", name, sorted(known - {"x", "y"})))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the parameters, with `build_fn`; they are copies where the search may change them."""
        return {**(copy.deepcopy(self.sk_params) if deep else self.sk_params), "build_fn": self.build_fn}

    def set_params(self, **params: Any) -> _Wrapper:
        """Take other parameters."""
        self.build_fn = params.pop("build_fn", self.build_fn)
        self.check_params(params)
        self.sk_params.update(params)
        return self

    def filter_sk_params(self, fn: Any, override: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns those of the parameters that a function takes."""
        names = models.arguments_of(fn, self.day) if isinstance(fn, str) else inspect.signature(fn).parameters
        return {name: value for name, value in self.sk_params.items() if name in names} | dict(override or {})

    def fit(self, x: Any, y: Any, **named: Any) -> Any:
        """Build a model and train it; the history of its training."""
        builder = self._builder()
        self.model = builder(**self.filter_sk_params(builder))
        return self._call("fit", x, self._targets(np.asarray(y)), **named)

    def _call(self, call: str, *arguments: Any, **named: Any) -> Any:
        """Returns the model's own call, as on the day, with those of the parameters that it takes."""
        return models.called(self.model, self.day, call, *arguments, **self.filter_sk_params(call, named))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model")

    def _targets(self, y: Any) -> Any:
        loss = self.model.loss
        name = loss if isinstance(loss, str) else getattr(loss, "__name__", "")
        return keras.utils.to_categorical(y) if name == "categorical_crossentropy" and y.ndim == 1 else y

    def _builder(self) -> Callable[..., Any]:
        found = self.build_fn if self.build_fn is not None else getattr(self, "__call__", None)  # noqa: B004
        if found is None:
            raise JobError("`build_fn` must be a function that gives a compiled model. Received: None.")
        return found


class KerasClassifier(ClassifierMixin, _Wrapper):  # type: ignore[misc] # as above
    """A classifier of scikit-learn by a model."""

    def fit(self, x: Any, y: Any, sample_weight: Any = None, **named: Any) -> Any:
        """Build a model and train it on the classes."""
        y = np.asarray(y)
        self.classes_ = np.arange(y.shape[1]) if y.ndim > 1 and y.shape[1] > 1 else np.unique(y)
        self.n_classes_ = len(self.classes_)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return super().fit(x, self._numbers(y), **weights, **named)

    def predict(self, x: Any, **named: Any) -> Any:
        """Returns the class of each row."""
        found = np.asarray(self._call("predict", x, **named))
        numbers = found.argmax(-1) if found.shape[-1] > 1 else (found > _HALF).astype("int32")
        return self.classes_[numbers] if self.day.speaks_keras_2 else numbers

    def predict_proba(self, x: Any, **named: Any) -> Any:
        """Returns the share of each class for each row."""
        found = np.asarray(self._call("predict", x, **named))
        return np.hstack([1 - found, found]) if found.shape[1] == 1 and self.day.name != "0" else found

    def score(self, x: Any, y: Any, **named: Any) -> float:
        """Returns the accuracy that the model measures."""
        if self.day.name == "0":
            accuracy.measure(self.model)
        given = {**self.day.measure, **self.filter_sk_params("evaluate", named)}
        targets = self._targets(self._numbers(np.asarray(y)))
        found = keras.Model.evaluate(self.model, x, targets, return_dict=True, **given)
        for name in ("acc", "accuracy"):
            if name in found:
                return float(found[name])
        raise JobError(
            "The model of a KerasClassifier must measure the accuracy to be scored. Received: a model that measures "
            f"{sorted(found)}. Give metrics=['accuracy'] to its compile."
        )

    def _numbers(self, y: Any) -> Any:
        """Classes as their numbers, which they had to be before Keras 2."""
        one_hot = y.ndim > 1 and y.shape[1] > 1
        return y if one_hot or not self.day.speaks_keras_2 else np.searchsorted(self.classes_, y)


class KerasRegressor(RegressorMixin, _Wrapper):  # type: ignore[misc] # as above
    """A regressor of scikit-learn by a model."""

    def predict(self, x: Any, **named: Any) -> Any:
        """Returns a number for each row."""
        return np.squeeze(self._call("predict", x, **named))

    def score(self, x: Any, y: Any, **named: Any) -> float:
        """Returns the loss before Keras 2, and minus the loss in its later releases."""
        found = self._call("evaluate", x, y, **named)
        loss = float(found[0] if isinstance(found, (list, tuple)) else found)
        if self.day.name == "2":
            undecided.warn_once(
                "The score of a KerasRegressor was its loss in the first releases of Keras 2, and is minus its loss "
                "in the later ones, which is taken."
            )
        return -loss if self.day.speaks_keras_2 else loss


def wrappers(day: Day, module: str) -> dict[str, Any]:
    """Returns the names of the module on a day."""
    return {
        kind.__name__: type(kind.__name__, (kind,), {"day": day, "__module__": module})
        for kind in (KerasClassifier, KerasRegressor)
    }
