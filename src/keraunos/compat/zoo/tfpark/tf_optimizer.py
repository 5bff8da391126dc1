"""Analytics Zoo's `TFOptimizer`: a loss made smaller on a dataset, by one of BigDL's optim methods. Runs on the driver.

Workers share the gradient of every step; each holds a part of the parameters and lets the optim method move it. The
trained values are in `sess` when `optimize` returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from keraunos.compat.zoo.bigdl.optim.methods import OptimMethod, RateFollower, combined_rule
from keraunos.compat.zoo.bigdl.optim.summaries import TrainSummary, ValidationSummary
from keraunos.compat.zoo.bigdl.optim.triggers import EveryEpoch, MaxEpoch, TrainingState, trigger_named
from keraunos.compat.zoo.tfpark.checkpoints import read_checkpoint, save_checkpoint
from keraunos.compat.zoo.tfpark.keras_graphs import is_in_graph, trained_keras_graph
from keraunos.compat.zoo.tfpark.row_sources import VALIDATION
from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.compat.zoo.tfpark.tf_model import TFModel
from keraunos.compat.zoo.tfpark.trained import Trainable
from keraunos.compat.zoo.tfpark.trained_graph import Measured, found_graph
from keraunos.compat.zoo.tfpark.trained_keras import TrainedKeras
from keraunos.compat.zoo.tfpark.training_hooks import Plan, TrainingHooks
from keraunos.compat.zoo.tfpark.zoo_optimizer import gradients_of
from keraunos.errors import JobError, ModelError
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.rule_spec import RuleSpec
from keraunos.job.schedule import Schedule
from keraunos.job.training_job import ModelSource, TrainingJob
from keraunos.launch import spark as launch
from keraunos.telemetry.history import History


class TFOptimizer:
    """Trains the variables that a loss depends on.

    Args:
        loss: a scalar, the mean over a batch's rows, built from the tensors of a `TFDataset`.
        optim_method: a method of `bigdl.optim.optimizer`, or a dict from the beginnings of variables' names to methods.
        sess: the session whose values training begins with and ends in; by default a new, initialised one.
        val_outputs: a tensor to validate, or a list of one.
        val_labels: what it is compared with.
        val_method: one of `bigdl.optim.optimizer`'s validation methods, or a list of them.
        inputs: placeholders for the dataset's tensors, if the loss was not built from them; with `dataset`.
        dataset: the records, if they are not to be found from the loss.
        clip_norm: the norm that longer gradients are scaled down to.
        clip_value: the range that each element of the gradient is cut to, as a pair, or as a number for both sides.
        metrics: scalars by name, means over a batch's rows, measured in training and validation.
        tensor_with_value: values of placeholders that are no dataset's, as one or as (in training, in validation).
        session_config: the configuration of a new session, and of those of the workers.
        model_dir: where checkpoints are written; any Hadoop path.
        updates: operations that run with each step; by default those in the collection UPDATE_OPS.
    """

    def __init__(
        self,
        loss: Any,
        optim_method: Any,
        sess: Any = None,
        val_outputs: Any = None,
        val_labels: Any = None,
        val_method: Any = None,
        *,
        inputs: Any = None,
        dataset: TFDataset | None = None,
        clip_norm: float | None = None,
        clip_value: float | tuple[float, float] | None = None,
        metrics: Mapping[str, Any] | None = None,
        tensor_with_value: Mapping[Any, Any] | None = None,
        session_config: Any = None,
        model_dir: str | None = None,
        updates: Sequence[Any] | None = None,
    ) -> None:
        graph = found_graph(
            _checked_loss(loss),
            sess,
            measured=Measured.of(val_outputs, val_labels, val_method, metrics, loss),
            dataset=dataset,
            inputs=inputs,
            tensor_with_value=tensor_with_value,
            session_config=session_config,
            updates=updates,
        )
        self._set_up(graph, optim_method, model_dir)
        if clip_norm is not None:
            self.set_gradient_clipping_by_l2_norm(clip_norm)
        if clip_value is not None:
            low, high = clip_value if isinstance(clip_value, (tuple, list)) else (-abs(clip_value), abs(clip_value))
            self.set_constant_gradient_clipping(low, high)

    @classmethod
    def from_loss(
        cls,
        loss: Any,
        optim_method: Any,
        session: Any = None,
        inputs: Any = None,
        dataset: TFDataset | None = None,
        val_outputs: Any = None,
        val_labels: Any = None,
        val_method: Any = None,
        clip_norm: float | None = None,
        clip_value: float | tuple[float, float] | None = None,
        metrics: Mapping[str, Any] | None = None,
        tensor_with_value: Mapping[Any, Any] | None = None,
        session_config: Any = None,
        model_dir: str | None = None,
        updates: Sequence[Any] | None = None,
    ) -> TFOptimizer:
        """Returns an optimizer of a loss; see the class."""
        return cls(
            loss,
            optim_method,
            session,
            val_outputs,
            val_labels,
            val_method,
            inputs=inputs,
            dataset=dataset,
            clip_norm=clip_norm,
            clip_value=clip_value,
            metrics=metrics,
            tensor_with_value=tensor_with_value,
            session_config=session_config,
            model_dir=model_dir,
            updates=updates,
        )

    @classmethod
    def from_train_op(
        cls,
        train_op: Any,
        loss: Any,
        *,
        inputs: Any = None,
        labels: Any = None,
        metrics: Mapping[str, Any] | None = None,
        updates: Sequence[Any] | None = None,
        sess: Any = None,
        dataset: TFDataset | None = None,
        tensor_with_value: Mapping[Any, Any] | None = None,
        session_config: Any = None,
        model_dir: str | None = None,
    ) -> TFOptimizer:
        """Returns an optimizer that applies the gradient of all workers with the graph's own `train_op`.

        `train_op` must come from a `ZooOptimizer` around a TensorFlow optimizer; that optimizer's state stays with
        the workers.
        """
        graph = found_graph(
            _checked_loss(loss),
            sess,
            measured=Measured.of(None, None, None, metrics),
            dataset=dataset,
            inputs=inputs if inputs is None or labels is None else [inputs, labels],
            tensor_with_value=tensor_with_value,
            session_config=session_config,
            updates=updates,
            train_op=train_op,
            gradients=gradients_of(train_op),
        )
        return cls._of(graph, None, model_dir)

    @classmethod
    def from_keras(
        cls,
        keras_model: Any,
        dataset: TFDataset,
        session_config: Any = None,
        model_dir: str | None = None,
        metrics: Mapping[str, Any] | None = None,
        optimizer: Any = None,
    ) -> TFOptimizer:
        """Returns an optimizer of a compiled Keras model: of Keras 2 in a TensorFlow graph, or of Keras 3.

        Args:
            keras_model: the model, which has the trained weights after `optimize`.
            dataset: records of (features, labels).
            session_config: a configuration for the workers' sessions; for Keras 2 only, whose own session stays.
            model_dir: where checkpoints are written; any Hadoop path.
            metrics: scalars by name, means over a batch's rows, beside the compiled metrics; for Keras 2 only.
            optimizer: an optim method to train with in place of the optimizer that the model was compiled with.
        """
        trained: Trainable
        if is_in_graph(keras_model):
            trained = trained_keras_graph(
                keras_model,
                dataset,
                own_optimizer=optimizer is None,
                metrics=metrics,
                session_config=session_config,
            )
        else:
            instead = {
                "metrics": (metrics, "Give them to model.compile(metrics=…)"),
                "session_config": (session_config, "It is for Keras 2 in a graph; workers use their share of the host"),
            }
            for name, (value, advice) in instead.items():
                if value is not None:
                    raise JobError(f"`{name}` must be left out for a Keras 3 model. Received: {value!r}. {advice}.")
            trained = TrainedKeras(keras_model, dataset, applies_itself=optimizer is None)
        return cls._of(trained, optimizer, model_dir)

    @staticmethod
    def export_training_model(*_: Any, **__: Any) -> NoReturn:
        """Refused: it wrote a graph for a training by BigDL's own Scala program."""
        raise JobError(
            "export_training_model must be replaced: there is no Scala program here that trains an exported graph. "
            "Train with TFOptimizer.from_loss, and export the trained graph with zoo.util.tf.export_tf."
        )

    @classmethod
    def _of(cls, graph: Trainable, optim_method: Any, model_dir: str | None) -> TFOptimizer:
        made = cls.__new__(cls)
        made._set_up(graph, optim_method, model_dir)
        return made

    def _set_up(self, graph: Trainable, optim_method: Any, model_dir: str | None) -> None:
        self._graph = graph
        self._method = None if graph.applies_itself else _checked_method(optim_method)
        self._model_dir = model_dir
        self._clip_norm: float | None = None
        self._clip_constant: tuple[float, float] | None = None
        self._train_summary: TrainSummary | None = None
        self._val_summary: ValidationSummary | None = None
        self._state = TrainingState()
        self.history: History | None = None
        self.scores: dict[str, float] = {}

    @property
    def sess(self) -> Any:
        """The TensorFlow session, which holds the trained values after `optimize`."""
        return self._graph.session

    @property
    def tf_model(self) -> TFModel:
        """The trained model; `tf_model.training_helper_layer.get_weights()` returns its weights."""
        return TFModel(self._graph)

    @property
    def dataset(self) -> TFDataset:
        """The records that are trained on."""
        return self._graph.dataset

    def set_train_summary(self, summary: TrainSummary) -> None:
        """Note the loss and the throughput of every step, and what else the summary asks for."""
        if not isinstance(summary, TrainSummary):
            raise JobError(f"`summary` must be a TrainSummary. Received: {summary!r}.")
        self._train_summary = summary

    def set_val_summary(self, summary: ValidationSummary) -> None:
        """Write the results of every validation."""
        if not isinstance(summary, ValidationSummary):
            raise JobError(f"`summary` must be a ValidationSummary. Received: {summary!r}.")
        self._val_summary = summary

    def set_constant_gradient_clipping(self, min_value: float, max_value: float) -> None:
        """Cut each element of the gradient to a range."""
        self._check_clipping("set_constant_gradient_clipping")
        self._clip_constant = (min_value, max_value)
        self._rule(())

    def set_gradient_clipping_by_l2_norm(self, clip_norm: float) -> None:
        """Scale a gradient whose norm over all variables is larger down to this norm."""
        self._check_clipping("set_gradient_clipping_by_l2_norm")
        self._clip_norm = clip_norm
        self._rule(())

    def load_checkpoint(self, path: str, version: int) -> None:
        """Continue from what was written in `model_dir` after `version` steps: values, steps and epochs."""
        read = read_checkpoint(path, version)
        source = self._graph.source()
        layout = self._graph.layout(source)
        missing = [name for name in layout.names if name not in read.values]
        if missing:
            raise ModelError(
                f"The checkpoint must have every variable that is trained. Expected: {missing[0]!r} among them. "
                f"Received: {', '.join(map(repr, sorted(read.values)))}."
            )
        vector = layout.join([np.asarray(read.values[name]).reshape(shape) for name, shape in _shapes(layout)])
        self._graph.take_vector(source, vector)
        self._state = read.state

    def optimize(self, end_trigger: Any = None, checkpoint_trigger: Any = None) -> None:
        """Train until `end_trigger` fires; the session then has the trained values.

        Steps and epochs are counted over all calls, so that a second call with the same trigger does nothing.

        Args:
            end_trigger: when to end; by default after one epoch.
            checkpoint_trigger: when to validate, and to save where there is a `model_dir`; by default every epoch.
        """
        end = MaxEpoch(1) if end_trigger is None else trigger_named(end_trigger)
        checkpoint = EveryEpoch() if checkpoint_trigger is None else trigger_named(checkpoint_trigger)
        if end.fires(self._state):
            return
        source = self._graph.source()
        layout = self._graph.layout(source)
        rule = self._rule(layout.names[: layout.trainable])
        plan = Plan(end, checkpoint, train_summary=self._train_summary, val_summary=self._val_summary)
        self._add_validation(plan, source)
        if self._model_dir is not None:
            folder = self._model_dir
            plan.save = lambda state, layout, vector: save_checkpoint(folder, state, layout, vector)
        follower = None if self._method is None else RateFollower.of(self._method)
        hooks = TrainingHooks(plan, self._state, self._rates(), follower)
        dataset = self._graph.dataset
        job = self._job(source, rule, plan)
        try:
            result = launch.fit(
                job,
                dataset.training_rows(job.columns, job.workers),
                custom_objects=self._graph.custom_objects(),
                hooks=[hooks],
            )
        finally:
            # They can be read, and take more in another file.
            for summary in (self._train_summary, self._val_summary):
                if summary is not None:
                    summary.close()
        self._graph.take(result.archive)
        self._graph.count_on(hooks.state.neval - self._state.neval)
        self._state, self.scores, self.history = hooks.state, hooks.scores, result.history

    def _job(self, source: ModelSource, rule: RuleSpec, plan: Plan) -> TrainingJob:
        dataset = self._graph.dataset
        return TrainingJob(
            model=source,
            columns=replace(self._graph.columns(), validation=VALIDATION if plan.scores else None),
            schedule=Schedule(
                **plan.schedule(self._state),
                batch_total=dataset.batch_size,
                shuffle=dataset.shuffle,
                seed=self._state.neval - 1,
                remainder="drop" if dataset.hard_code_batch_size else "join",
                # All rows are validated on; a graph that takes whole batches only fills up the last one.
                validation_remainder="keep" if dataset.hard_code_batch_size else "join",
            ),
            exchange=ExchangePlan("gradients", 1, "synchronous", rule),
            workers=dataset.workers,
            memory_budget=dataset.memory_budget,
            servers=getattr(self._method, "servers", None) or "workers",
        )

    def _rule(self, names: Sequence[str]) -> RuleSpec:
        if self._method is None:
            return RuleSpec("own")
        return combined_rule(
            self._method,
            clip_constant=self._clip_constant,
            clip_norm=self._clip_norm,
            names=names,
            steps_before=self._state.neval - 1,
        )

    def _rates(self) -> dict[str, OptimMethod]:
        if self._method is None:
            return {}
        return {"": self._method} if isinstance(self._method, OptimMethod) else dict(self._method)

    def _add_validation(self, plan: Plan, source: ModelSource) -> None:
        """Let workers measure the rows to validate on, or the driver what only it can."""
        graph = self._graph
        rows = graph.dataset.validation_source
        if graph.must_validate and rows is None:
            raise JobError(
                "`val_method` must come with rows to validate on. Received: a dataset without any. Give `val_rdd`, "
                "`val_tensors`, `validation_df` or the like when the dataset is made."
            )
        if rows is None or not graph.measures:
            if plan.end.needs().score:
                raise JobError(
                    f"An end by score must come with a validation. Received: {plan.end!r}, and nothing to validate. "
                    "Give the dataset rows to validate on, and `val_outputs`, `val_labels` and `val_method`."
                )
            return
        plan.tag = graph.tag
        measure = graph.driver_measure
        if measure is None:
            plan.scores = graph.scores
            return
        arrays = rows.arrays(graph.dataset.metas)

        def validate(vector: Any) -> dict[str, float]:
            graph.take_vector(source, vector)
            return measure(arrays)

        plan.validate = validate

    def _check_clipping(self, name: str) -> None:
        if self._method is None:
            raise JobError(
                f"{name} must be left out if the graph's own train_op applies gradients. Clip them in the graph, "
                "between compute_gradients and apply_gradients of the optimizer inside the ZooOptimizer."
            )


def _checked_method(method: Any) -> OptimMethod | Mapping[str, OptimMethod]:
    """Returns the method, or methods by beginnings of names; refuses what is neither."""
    combined_rule(method)
    checked: OptimMethod | Mapping[str, OptimMethod] = method
    return checked


def _checked_loss(loss: Any) -> Any:
    if not hasattr(loss, "graph") or not hasattr(loss, "op"):
        raise ModelError(f"`loss` must be a tensor of a TensorFlow graph. Received: {loss!r}.")
    return loss


def _shapes(layout: Any) -> list[tuple[str, tuple[int, ...]]]:
    return list(zip(layout.names, layout.shapes, strict=True))
