"""`bigdl.optim.optimizer.Optimizer`: trains BigDL's modules on an RDD of Samples. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from keraunos.batch import Array
from keraunos.compat.zoo.bigdl.nn.criterion_losses import loss_for
from keraunos.compat.zoo.bigdl.nn.module import Layer
from keraunos.compat.zoo.bigdl.nn.running import input_shapes, measured
from keraunos.compat.zoo.bigdl.optim.methods import SGD, OptimMethod, RateFollower
from keraunos.compat.zoo.bigdl.optim.summaries import TrainSummary, ValidationSummary
from keraunos.compat.zoo.bigdl.optim.triggers import MaxEpoch, TrainingState, Trigger, TriggerOr, trigger_named
from keraunos.compat.zoo.bigdl.optim.validation import Top1Accuracy
from keraunos.compat.zoo.pipeline.api.keras import training
from keraunos.compat.zoo.pipeline.api.keras.training import Clipping, KerasHooks, Records
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.compat.zoo.tfpark.training_hooks import Plan
from keraunos.errors import JobError
from keraunos.launch import local, spark
from keraunos.learners.keras_archive import from_archive, to_archive
from keraunos.learners.keras_variables import write_vector
from keraunos.parameters import Layout, Vector
from keraunos.session.registry import session_of


class Optimizer:
    """Trains a module.

    Args:
        model: the module.
        training_rdd: Samples.
        criterion: what to make smaller, one of bigdl.nn.criterion's; classes are counted from 1.
        end_trigger: when to end.
        batch_size: rows of a step, over all workers.
        optim_method: one of bigdl.optim.optimizer's; SGD by default.
        bigdl_type: "float".
    """

    def __init__(
        self,
        model: Layer,
        training_rdd: Any,
        criterion: Any,
        end_trigger: Trigger,
        batch_size: int,
        optim_method: OptimMethod | None = None,
        bigdl_type: str = "float",
    ) -> None:
        del bigdl_type
        if not isinstance(model, Layer):
            raise JobError(
                f"`model` must be a module of bigdl.nn.layer. Received: {type(model).__name__}. Models of "
                "zoo.pipeline.api.keras have `compile` and `fit`."
            )
        self._module = model
        self._loss = loss_for(criterion)
        self._end = trigger_named(end_trigger)
        self._method = SGD() if optim_method is None else optim_method
        if not isinstance(self._method, OptimMethod):
            raise JobError(
                f"`optim_method` must be one of bigdl.optim.optimizer's methods. Received: {optim_method!r}. One "
                "method trains all modules."
            )
        self._clipping = Clipping()
        self._train_summary: TrainSummary | None = None
        self._val_summary: ValidationSummary | None = None
        self._validation: tuple[Trigger, int, Records, Sequence[Any]] | None = None
        self._checkpoint: tuple[Trigger, Path, bool] | None = None
        self._state = TrainingState()
        self.set_traindata(training_rdd, batch_size)

    @staticmethod
    def create(
        model: Layer,
        training_set: Any,
        criterion: Any,
        end_trigger: Trigger | None = None,
        batch_size: int = 32,
        optim_method: OptimMethod | None = None,
        cores: int | None = None,
        bigdl_type: str = "float",
    ) -> Optimizer:
        """An optimizer for an RDD of Samples, or for (features, labels) on the driver, whose machine trains then."""
        del cores  # one process uses all
        end = MaxEpoch(1) if end_trigger is None else end_trigger
        return Optimizer(model, training_set, criterion, end, batch_size, optim_method, bigdl_type)

    def set_traindata(self, training_rdd: Any, batch_size: int) -> None:
        """Train on other records."""
        self._records = _records(training_rdd, "training_rdd")
        self._batch_size = int(batch_size)

    def set_validation(
        self, batch_size: int, val_rdd: Any, trigger: Trigger, val_method: Any = None, *more: Any
    ) -> None:
        """Say when to validate, on which records, and by which methods.

        With arrays on the driver the arguments are the batch size, features, labels, the trigger and the methods.
        """
        if not isinstance(trigger, Trigger):
            val_rdd, trigger, val_method = (val_rdd, trigger), val_method, more[0] if more else None
        methods = [Top1Accuracy()] if val_method is None else val_method
        methods = list(methods) if isinstance(methods, (list, tuple)) else [methods]
        self._validation = (trigger_named(trigger), int(batch_size), _records(val_rdd, "val_rdd"), methods)

    def set_checkpoint(self, checkpoint_trigger: Trigger, checkpoint_path: str, isOverWrite: bool = True) -> None:
        """Say when to save the model, and in which folder: as `model.keras`, or with the steps in its name."""
        self._checkpoint = (trigger_named(checkpoint_trigger), Path(checkpoint_path), bool(isOverWrite))

    def set_train_summary(self, summary: TrainSummary) -> Self:
        """Note losses and speeds."""
        self._train_summary = summary
        return self

    def set_val_summary(self, summary: ValidationSummary) -> Self:
        """Note the results of validations."""
        self._val_summary = summary
        return self

    def set_end_when(self, end_when: Trigger) -> Self:
        """Say when to end."""
        self._end = trigger_named(end_when)
        return self

    def set_model(self, model: Layer) -> None:
        """Train another module."""
        self._module = model

    def set_criterion(self, criterion: Any) -> None:
        """Make something else smaller."""
        self._loss = loss_for(criterion)

    def set_gradclip_const(self, min_value: float, max_value: float) -> None:
        """Cut each element of the gradient to a range."""
        self._clipping = Clipping((min_value, max_value), self._clipping.norm)

    def set_gradclip_l2norm(self, clip_norm: float) -> None:
        """Scale a gradient whose norm is larger down to this norm."""
        self._clipping = Clipping(self._clipping.constant, clip_norm)

    def disable_gradclip(self) -> None:
        """Clip no more."""
        self._clipping = Clipping()

    @in_tensorflow_2
    def optimize(self) -> Layer:
        """Train to the end; the trained module."""
        records = self._records
        shapes = input_shapes(records.rdd) if records.rdd is not None else [e.shape[1:] for e in records.arrays[:-1]]
        model = self._module.lowered(shapes)
        model.compile("sgd", self._loss)  # the servers step by the optim method
        entries = len(shapes) + len(model.outputs)
        records.classes = training.classes_of(model, self._loss)
        validation = None if self._validation is None else self._validation[2].brought(entries)
        plan = self._plan(model)
        rule = training.rule_for(self._method, self._clipping)
        hooks = _Hooks(self, model, validation, plan, RateFollower.of(self._method))
        data = records.spread(entries) if records.rdd is not None else None
        workers = 1
        if data is not None:
            workers = max(1, min(data.getNumPartitions(), session_of(data).slots(), self._batch_size))
        job = training.job_for(
            model,
            self._method,
            rule,
            {**plan.schedule(self._state), "seed": self._state.neval - 1},
            batch_size=self._batch_size,
            workers=workers,
        )
        if data is None:
            result = local.fit(job, [records.table(job.columns)], hooks=[hooks])
        else:
            result = spark.fit(job, data, hooks=[hooks])
        model.set_weights(from_archive(result.archive, trusted=job.model.trusted).get_weights())
        self._state = hooks.state
        return self._module

    def _plan(self, model: Any) -> Plan:
        triggers = [each[0] for each in (self._validation, self._checkpoint) if each is not None]
        plan = Plan(self._end, train_summary=self._train_summary, val_summary=self._val_summary)
        if triggers:
            plan.checkpoint = TriggerOr(*triggers)
        return plan


class LocalOptimizer(Optimizer):
    """Trains a module on arrays of the driver, whose machine trains."""

    def __init__(
        self,
        X: Any,
        Y: Any,
        model: Layer,
        criterion: Any,
        end_trigger: Trigger,
        batch_size: int,
        optim_method: OptimMethod | None = None,
        cores: int | None = None,
        bigdl_type: str = "float",
    ) -> None:
        del cores  # one process uses all
        super().__init__(model, (X, Y), criterion, end_trigger, batch_size, optim_method, bigdl_type)

    def set_validation(  # type: ignore[override]  # BigDL's own arguments
        self, batch_size: int, X_val: Any, Y_val: Any, trigger: Trigger, val_method: Any = None
    ) -> None:
        """Say when to validate, on which arrays, and by which methods."""
        super().set_validation(batch_size, (X_val, Y_val), trigger, val_method)


class _Hooks(KerasHooks):
    """Validation and checkpoints, each by its own trigger."""

    def __init__(
        self,
        optimizer: Optimizer,
        model: Any,
        validation: Sequence[Array] | None,
        plan: Plan,
        follower: RateFollower | None,
    ) -> None:
        self._optimizer, self._model, self._validation = optimizer, model, validation
        plan.validate = self._measure if validation is not None else None
        plan.save = self._write if optimizer._checkpoint is not None else None
        super().__init__(plan, optimizer._state, {"": optimizer._method}, follower)

    def _validate(self, vector: Vector) -> None:
        given = self._optimizer._validation
        if given is not None and given[0].fires(self.state):
            super()._validate(vector)

    def _measure(self, vector: Vector) -> dict[str, float]:
        assert self._optimizer._validation is not None
        assert self._validation is not None
        _, batch_size, _, methods = self._optimizer._validation
        write_vector(self._model, vector)
        return {each.method: each.result for each in measured(self._model, self._validation, batch_size, methods)}

    def _write(self, state: TrainingState, layout: Layout, vector: Vector) -> None:
        assert self._optimizer._checkpoint is not None
        trigger, folder, over_write = self._optimizer._checkpoint
        if not trigger.fires(state):
            return
        folder.mkdir(parents=True, exist_ok=True)
        write_vector(self._model, vector)
        name = "model.keras" if over_write else f"model.{state.neval - 1}.keras"
        (folder / name).write_bytes(to_archive(self._model))


def _records(given: Any, argument: str) -> Records:
    if isinstance(given, tuple) and len(given) == 2:
        return Records(given[0], given[1], argument)
    if not hasattr(given, "mapPartitions"):
        raise JobError(
            f"`{argument}` must be an RDD of Samples, or (features, labels). Received: {type(given).__name__}."
        )
    return Records(given, None, argument)
