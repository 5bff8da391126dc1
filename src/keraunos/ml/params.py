"""The Params that estimators and fitted models share: columns and serving. Runs on the driver.

A mixin declares a Param, with the text that a user reads in `explainParams()`, its getter and its setter. An optional
Param that was not set reads as `None`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from copy import copy, deepcopy
from typing import Any, ClassVar, Self

from pyspark.ml.param import Param

from keraunos.backends import BACKENDS
from keraunos.ml import conversion
from keraunos.ml.declaration import Declaring, param


class Settings(Declaring):
    """Keyword-only Params: what the constructor and `setParams` of every estimator and model do."""

    # Params of which `None` is a value as any other.
    _TAKES_NONE: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__signature__ = cls._signature()

    def setParams(self, **params: Any) -> Self:
        """Set any of the Params by name; `None` leaves one as it is, but for `labelCol`."""
        self._check_params(params)
        self._set(**{name: value for name, value in params.items() if value is not None or name in self._TAKES_NONE})
        return self

    def hasParam(self, paramName: str) -> bool:
        """Whether there is a Param of this name."""
        # Asked of the class: the `model` of a fitted model is a property that would be loaded by looking at it.
        return isinstance(getattr(type(self), paramName, None), Param)

    @classmethod
    def _check_params(cls, names: Iterable[str]) -> None:
        """Raise where one of them is the name of no Param."""
        known = cls._param_names()
        for name in names:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise TypeError(f"{cls.__name__} has no Param {name!r}.{hint} See explainParams().")

    def _put(self, name: str, value: Any) -> Self:
        return self.setParams(**{name: value})

    @classmethod
    def _param_names(cls) -> list[str]:
        return [name for name in dir(cls) if isinstance(getattr(cls, name, None), Param)]

    @classmethod
    def _signature(cls) -> inspect.Signature:
        """One keyword for each Param where the constructor takes them all, as notebooks and `help` show it."""
        written = list(inspect.signature(cls.__init__).parameters.values())[1:]
        if [each.kind for each in written] != [inspect.Parameter.VAR_KEYWORD]:
            return inspect.Signature(written)
        defaults = cls._all_defaults()
        names = cls._param_names()
        return inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name)) for name in names]
        )


class HasFeaturesCol(Settings):
    """Where a model's inputs come from."""

    featuresCol, getFeaturesCol, setFeaturesCol = param(
        "What the model reads: a column of numbers, arrays, vectors or images; a list of columns with one number each, "
        "which become one input; or, for a model with several inputs, a dict from input name to either.",
        conversion.columns("featuresCol"),
        default="features",
        read=deepcopy,
    )


class HasPredictionCol(Settings):
    """Where a single prediction goes."""

    predictionCol, getPredictionCol, setPredictionCol = param(
        "The column that `transform` adds with the prediction, a double. Empty: no such column.",
        conversion.column_name("predictionCol"),
        default="prediction",
    )


class HasPredictionCols(Settings):
    """Where the outputs of any model go."""

    predictionCol, getPredictionCol, setPredictionCol = param(
        "The column that `transform` adds with the model's output, a number or an array as the model gives it. A "
        "model with several outputs fills <predictionCol>_<output name> for each, or what a dict from output name to "
        "column says; outputs that the dict leaves out are dropped.",
        conversion.output_columns("predictionCol"),
        default="prediction",
        read=deepcopy,
    )


class HasProbabilityCol(Settings):
    """Where class probabilities go."""

    probabilityCol, getProbabilityCol, setProbabilityCol = param(
        "The column that `transform` adds with a vector of each class's probability. Empty: no such column.",
        conversion.column_name("probabilityCol"),
        default="probability",
    )


class HasRawPredictionCol(Settings):
    """Where a classifier's raw scores go."""

    rawPredictionCol, getRawPredictionCol, setRawPredictionCol = param(
        "The column that `transform` adds with a vector of each class's score: the logits of a model trained with "
        "from_logits=True, otherwise the probabilities. Spark's BinaryClassificationEvaluator reads it. Empty: no "
        "such column.",
        conversion.column_name("rawPredictionCol"),
        default="rawPrediction",
    )


class HasAllowNaN(Settings):
    """Whether values that are not finite are for the model to handle."""

    allowNaN, getAllowNaN, setAllowNaN = param(
        "Whether columns may hold NaN and infinite values, for models that handle them. Otherwise they end the fit "
        "with an error, and `transform` gives rows that have one in their features a null prediction. A value that is "
        "infinite in the model's float type, as 1e300 in float32, counts as infinite.",
        conversion.boolean("allowNaN"),
        default=False,
    )


class HasThresholds(Settings):
    """How easily each class is predicted."""

    thresholds, getThresholds, setThresholds = param(
        "One number for each class, none below 0 and at most one of them 0: the class with the largest probability "
        "divided by its threshold is predicted. Not set: the class with the largest probability.",
        conversion.thresholds("thresholds"),
        read=copy,
    )


class HasPadding(Settings):
    """What becomes of arrays of different lengths."""

    pad, getPad, setPad = param(
        "Whether arrays in the features that are shorter than others are filled with zeros at the end of their first "
        "dimension: up to the length that the model's Input has, to `maxLength`, or to the longest row. Embedding with "
        "mask_zero=True and Masking make the model pass over them.",
        conversion.boolean("pad"),
        default=False,
    )
    maxLength, getMaxLength, setMaxLength = param(
        "With `pad`, the length to which longer arrays are cut at their end. Not set: they are not cut.",
        conversion.whole_number("maxLength", at_least=1),
    )


class HasServing(HasFeaturesCol):
    """How a model runs wherever it runs: on which framework, with which custom code, in what portions."""

    backend, getBackend, setBackend = param(
        "The framework that runs the model: 'jax', 'tensorflow' or 'torch'. Not set: the Keras backend of the driver.",
        conversion.choice("backend", BACKENDS),
    )
    customObjects, getCustomObjects, setCustomObjects = param(
        "Custom layers, losses, metrics or functions to take for the names in the model, as a dict from name to class "
        "or function. What is not in it is imported, or, of a script or notebook, taken from the model itself.",
        conversion.custom_objects("customObjects"),
        empty={},
        read=copy,
    )
    pixels, getPixels, setPixels = param(
        "How images become numbers, as a dict of some of: 'scale', the factor on a pixel's 0 to 255 (1/255; None: as "
        "they are, in bytes); 'mean', one number a channel that is taken off before (None); 'order', of the channels "
        "('RGB', or 'BGR'); and 'layout' ('HWC', or 'CHW'). For columns of Spark's image struct.",
        conversion.pixels,
        read=deepcopy,
    )
    inferenceBatchSize, getInferenceBatchSize, setInferenceBatchSize = param(
        "Rows that `transform` gives to the model at once. Not set: 1024, and 64 where it reads images. The model is "
        "compiled once for this many rows and the last rows of a partition are padded to it: choose a small number for "
        "large models and small partitions.",
        conversion.whole_number("inferenceBatchSize", at_least=1),
        default=1024,
    )
