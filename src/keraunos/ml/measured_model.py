"""What fitted models share that can be evaluated. Runs on the driver."""

from __future__ import annotations

from typing import Any, ClassVar

from keraunos.job.training_job import ModelSource
from keraunos.ml.datasets import check_dataset
from keraunos.ml.evaluation import measured_columns
from keraunos.ml.label_params import HasLabels
from keraunos.ml.live_models import LiveModels
from keraunos.ml.model import FittedModel
from keraunos.ml.one_row import features_in
from keraunos.ml.serving import is_case_sensitive


class MeasuredModel(FittedModel, HasLabels):
    """A fitted model that says a loss, so that it can be measured on rows with labels."""

    live: ClassVar[LiveModels]
    """How the model is checked before it is measured."""

    @property
    def numFeatures(self) -> int:
        """The length of the model's one flat input; -1 where it has another kind of input, or several."""
        return features_in(self._trained.signature)

    def evaluate(self, dataset: Any) -> dict[str, float]:
        """The model's compiled loss and metrics over all rows of a DataFrame, by name, as one Spark job.

        Labels are read from `labelCol`, weights from `weightCol`. Each task sends the state of the metrics, and the
        states are merged: the results do not depend on how the rows are cut. A null, a NaN or a label out of range is
        an error, as in a fit.
        """
        from keraunos.launch.evaluate import evaluate_frame

        check_dataset(dataset, "evaluate")
        slots = self._feature_slots(dataset)
        columns = measured_columns(
            self.live,
            self.model,
            dataset.schema,
            self._trained.signature,
            slots,
            label=self.getLabelCol(),
            weight=self.getWeightCol(),
            case_sensitive=is_case_sensitive(dataset.sparkSession),
            allow_nan=self.getAllowNaN(),
        )
        self._kind().check_portable(self._trained.archive, self.getCustomObjects())
        trained = self._trained
        source = ModelSource(trained.archive, self._backend(), trained.floatx, self.format, trained.trusted)
        return evaluate_frame(dataset, source, columns, self._batch_rows(slots), self.getCustomObjects())
