"""Analytics Zoo's `TFEstimator`: a model function that is trained, measured and asked on Spark. Runs on the driver.

`TFEstimator(estimator)` and `TFEstimator.from_model_fn(model_fn)` are the last form: the model function makes its
`train_op` with a `ZooOptimizer`. `TFEstimator(model_fn, optimizer)` is the form before it: the function returns a
`TFEstimatorSpec` without a `train_op`, and the optimizer is the estimator's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keraunos.compat.zoo.bigdl.optim.methods import OptimMethod
from keraunos.compat.zoo.bigdl.optim.triggers import EveryEpoch, MaxIteration, SeveralIteration
from keraunos.compat.zoo.tfpark.estimator_measures import EstimatorResults, Measures
from keraunos.compat.zoo.tfpark.structure import flatten, pack
from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.compat.zoo.tfpark.tf_optimizer import TFOptimizer
from keraunos.compat.zoo.tfpark.tf_predictor import TFPredictor
from keraunos.compat.zoo.tfpark.zoo_optimizer import ClippingOptimizer, ZooOptimizer
from keraunos.errors import JobError, ModelError

logger = logging.getLogger(__name__)

_TRAIN, _EVAL, _PREDICT = "train", "eval", "infer"


class TFEstimatorSpec:
    """The result of a model function of the older form: predictions, and a loss in training and evaluation."""

    def __init__(self, mode: str, predictions: Any = None, loss: Any = None) -> None:
        self.mode = mode
        self.predictions = predictions
        self.loss = loss


class TFEstimator:
    """A model function on Spark, with its checkpoints in a folder.

    Args:
        estimator: a `tf.estimator.Estimator` whose `train_op` comes from a `ZooOptimizer`; or, in the older form, a
            model function that returns a `TFEstimatorSpec`.
        optimizer: the older form's optimizer, of `tf.train` or of `bigdl.optim.optimizer`.
        model_dir: the older form's folder of checkpoints; so are the arguments behind it what
            `tf.estimator.Estimator` takes.
    """

    def __init__(
        self,
        estimator: Any = None,
        optimizer: Any = None,
        model_dir: Any = None,
        config: Any = None,
        params: Any = None,
        warm_start_from: Any = None,
        *,
        model_fn: Callable[..., Any] | None = None,
    ) -> None:
        from keraunos.compat.tensorflow1.estimator._estimator import Estimator

        given: Any = estimator if model_fn is None else model_fn
        others = {
            "optimizer": optimizer, "model_dir": model_dir, "config": config, "params": params,
            "warm_start_from": warm_start_from,
        }  # fmt: skip
        self._old_form = not isinstance(given, Estimator)
        if not self._old_form:
            _check_alone(others)
            self.estimator = given
        elif callable(given):
            self.estimator = Estimator(given, model_dir, config, params, warm_start_from)
        else:
            raise ModelError(f"`estimator` must be a tf.estimator.Estimator or a model function. Received: {given!r}.")
        self._model_fn = given if self._old_form else self.estimator.model_fn
        self.optimizer = optimizer
        self.config = self.estimator.config
        self.params = self.estimator.params
        self.tf_optimizer: TFOptimizer | None = None
        self.gradient_clipping_norm: float | None = None
        self.gradient_clipping_constant: tuple[float, float] | None = None
        self.train_summary: Any = None
        self.val_summary: Any = None

    @classmethod
    def from_model_fn(
        cls,
        model_fn: Callable[..., Any],
        model_dir: Any = None,
        config: Any = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> TFEstimator:
        """Returns the estimator of a model function that returns a `tf.estimator.EstimatorSpec`."""
        from keraunos.compat.tensorflow1.estimator._estimator import Estimator

        return cls(Estimator(model_fn, model_dir, config, params, warm_start_from))

    def set_optimizer(self, optimizer: Any) -> None:
        """Train with another optimizer; for the older form."""
        self._check_old_form("set_optimizer")
        self.optimizer = optimizer

    def clear_gradient_clipping(self) -> None:
        """Clip gradients no more; for the older form."""
        self.gradient_clipping_norm = self.gradient_clipping_constant = None

    def set_constant_gradient_clipping(self, min: float, max: float) -> None:  # noqa: A002 - the names it had
        """Cut each element of the gradient of all workers to a range; for the older form."""
        self._check_old_form("set_constant_gradient_clipping")
        self.gradient_clipping_constant = (min, max)

    def set_gradient_clipping_by_l2_norm(self, clip_norm: float) -> None:
        """Scale a longer gradient of all workers down to this norm; for the older form."""
        self._check_old_form("set_gradient_clipping_by_l2_norm")
        self.gradient_clipping_norm = clip_norm

    def set_train_summary(self, summary: Any) -> None:
        """Note the loss of every step of later trainings."""
        self.train_summary = summary

    def set_val_summary(self, summary: Any) -> None:
        """Write the results of validations in later trainings."""
        self.val_summary = summary

    def train(self, input_fn: Callable[..., Any], steps: int | None = None, session_config: Any = None) -> TFEstimator:
        """Train for more steps, from the newest checkpoint in `model_dir`, and write a new one. Returns itself.

        If `input_fn` returns no `TFDataset`, `tf.estimator.Estimator` trains in this process.
        """
        import tensorflow as tf

        from keraunos.compat.tensorflow1._savers import save_in

        with tf.Graph().as_default() as graph:
            counter = self.estimator._create_and_assert_global_step(graph)
            dataset = self.estimator._call_input_fn(input_fn, _TRAIN)
            if not isinstance(dataset, TFDataset):
                self.estimator.train(input_fn, steps=steps)
                return self
            count = _checked_steps(dataset, steps)
            spec = self._spec(dataset, _TRAIN)
            train_op = self._train_op(spec)
            with self._session(graph, session_config=session_config) as session:
                start = int(session.run(counter))
                self._optimize(spec, train_op, dataset, session, count, session_config or self.config.session_config)
                done = int(session.run(counter))
                if done == start:  # the model function does not count its steps
                    done = start + count
                    session.run(counter.initializer, {counter.initializer.inputs[1]: done})
                save_in(self.estimator.model_dir, session, done)
        return self

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        eval_methods: Sequence[str],
        steps: int | None = None,
        checkpoint_path: str | None = None,
    ) -> Any:
        """Returns the results of validation methods over all rows, such as `acc Top1Accuracy`, and the mean `loss`.

        If `input_fn` returns no `TFDataset`, `tf.estimator.Estimator` measures what the model function asks for.

        Args:
            input_fn: returns a dataset of (features, labels).
            eval_methods: `"acc"`, `"top5acc"`, `"mae"`, `"auc"`, `"treennaccuracy"` or `"loss"`.
            steps: for the estimator in this process; on Spark all rows are measured.
            checkpoint_path: a checkpoint in place of the newest one in `model_dir`.
        """
        import tensorflow as tf

        if isinstance(eval_methods, str) or not all(isinstance(each, str) for each in eval_methods):
            raise JobError(
                f"All metrics should be string types, in a list such as ['acc']. Received: {eval_methods!r}."
            )
        with tf.Graph().as_default() as graph:
            self.estimator._create_and_assert_global_step(graph)
            dataset = self.estimator._call_input_fn(input_fn, _EVAL)
            if not isinstance(dataset, TFDataset):
                return self.estimator.evaluate(input_fn, steps, checkpoint_path=checkpoint_path)
            if steps is not None:
                logger.warning(
                    "`steps` of an evaluation on Spark has no meaning: all rows of the dataset are measured."
                )
            labels = _apart(dataset.tensors)[1]
            spec = self._spec(dataset, _EVAL)
            measures = Measures.of(eval_methods, spec.predictions, labels, spec.loss, dataset)
            with self._session(graph, checkpoint_path) as session:
                return EstimatorResults.of(measures.over(_measured(session, measures.tensors, dataset)))

    def predict(
        self, input_fn: Callable[..., Any], predict_keys: Any = None, checkpoint_path: str | None = None
    ) -> Any:
        """Returns an RDD of what the model function predicts for each record, in the records' order.

        Its elements are arrays, lists of them, or dicts where the predictions are one. If `input_fn` returns no
        `TFDataset`, it is a list from `tf.estimator.Estimator`.
        """
        import tensorflow as tf

        with tf.Graph().as_default() as graph:
            self.estimator._create_and_assert_global_step(graph)
            dataset = self.estimator._call_input_fn(input_fn, _PREDICT)
            if not isinstance(dataset, TFDataset):
                return list(self.estimator.predict(input_fn, predict_keys, checkpoint_path=checkpoint_path))
            predictions = self._spec(dataset, _PREDICT).predictions
            keys, outputs = _asked(predictions, predict_keys)
            with self._session(graph, checkpoint_path) as session:
                found = _predicted(session, outputs, dataset)
            return found if keys is None else found.map(lambda row: _by_key(keys, row))

    def _spec(self, dataset: TFDataset, mode: str) -> Any:
        """Returns the model function's result for the tensors of a dataset."""
        from keraunos.compat.tensorflow1.estimator._feeding import called

        features, labels = _parts(dataset)
        if mode == _PREDICT:
            labels = None
        offered = {"labels": labels, "mode": mode, "params": self.params, "config": self.config}
        spec = called(self._model_fn, offered, features)
        expected = TFEstimatorSpec if self._old_form else type(self)._spec_type()
        if not isinstance(spec, expected):
            raise ModelError(
                f"model_fn should return an {expected.__name__}. Received: {spec!r}. "
                + (
                    "With a tf.estimator.EstimatorSpec use TFEstimator.from_model_fn(model_fn)."
                    if self._old_form
                    else "For a TFEstimatorSpec give TFEstimator the model function and an optimizer."
                )
            )
        return spec

    @staticmethod
    def _spec_type() -> Any:
        from keraunos.compat.tensorflow1.estimator._specs import EstimatorSpec

        return EstimatorSpec

    def _train_op(self, spec: Any) -> Any:
        """Returns the operation that trains; `None` if an optim method of BigDL's does."""
        import tensorflow as tf

        if not self._old_form:
            return spec.train_op
        if isinstance(self.optimizer, OptimMethod):
            return None
        if not hasattr(self.optimizer, "apply_gradients") or not hasattr(self.optimizer, "get_slot_names"):
            raise ModelError(
                "optimizer should be set when used for training, to one of tf.train's optimizers or an optim method, "
                f"as in TFEstimator(model_fn, tf.train.AdamOptimizer()). Received: {self.optimizer!r}."
            )
        clipping = ClippingOptimizer(self.optimizer, self.gradient_clipping_norm, self.gradient_clipping_constant)
        return ZooOptimizer(clipping).minimize(spec.loss, global_step=tf.compat.v1.train.get_global_step())

    def _optimize(
        self, spec: Any, train_op: Any, dataset: TFDataset, session: Any, steps: int, configuration: Any
    ) -> None:
        every = self.config.save_checkpoints_steps
        where = self.estimator.model_dir
        folder = f"{where if '://' in where else Path(where).absolute().as_uri()}/analytics-zoo"
        if train_op is None:
            optimizer = TFOptimizer.from_loss(
                spec.loss,
                self.optimizer,
                session=session,
                dataset=dataset,
                clip_norm=self.gradient_clipping_norm,
                clip_value=self.gradient_clipping_constant,
                session_config=configuration,
                model_dir=folder,
            )
        else:
            optimizer = TFOptimizer.from_train_op(
                train_op, spec.loss, sess=session, dataset=dataset, session_config=configuration, model_dir=folder
            )
        if self.train_summary is not None:
            optimizer.set_train_summary(self.train_summary)
        if self.val_summary is not None:
            optimizer.set_val_summary(self.val_summary)
        optimizer.optimize(MaxIteration(steps), EveryEpoch() if every is None else SeveralIteration(every))
        self.tf_optimizer = optimizer

    @contextmanager
    def _session(self, graph: Any, path: str | None = None, session_config: Any = None) -> Iterator[Any]:
        """A session with the values of a checkpoint, or with new ones if there is none."""
        import tensorflow as tf

        from keraunos.compat.tensorflow1._savers import Saver

        v1 = tf.compat.v1
        found = path or self.estimator.latest_checkpoint()
        if found is None:
            self.estimator._warm_start_variables()
        with v1.Session(graph=graph, config=session_config or self.config.session_config) as session:
            session.run([v1.global_variables_initializer(), v1.local_variables_initializer(), v1.tables_initializer()])
            if found is not None and v1.global_variables():
                Saver().restore(session, found)
            yield session

    def _check_old_form(self, name: str) -> None:
        if not self._old_form:
            raise JobError(
                f"{name} must be left out if the model function makes its own train_op. Set the optimizer and clip "
                "gradients there, between compute_gradients and apply_gradients of the optimizer inside the "
                "ZooOptimizer."
            )


def _check_alone(others: Mapping[str, Any]) -> None:
    for name, value in others.items():
        if value is not None:
            raise JobError(
                f"`{name}` must be left out if `estimator` is a tf.estimator.Estimator. Received: {value!r}. Give "
                "it to the Estimator, or use TFEstimator.from_model_fn."
            )


def _checked_steps(dataset: TFDataset, steps: Any) -> int:
    if not dataset.has_batch:
        raise JobError(
            "The batch_size of TFDataset must be specified when used for training. Received: neither `batch_size` nor "
            "`batch_per_thread`."
        )
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise JobError(f"`steps` must be a whole number of at least 1 in a training on Spark. Received: {steps!r}.")
    return steps


def _parts(dataset: TFDataset) -> tuple[Any, Any]:
    """Returns the tensors of features and of labels; a dataset without labels has only the first.

    Those of a dataset without any batch are of a single record.
    """
    tensors = dataset.tensors
    if not dataset.has_batch:
        ranks = [None if meta.shape is None else len(meta.shape) for meta in dataset.metas]
        leaves = [
            tensor[0] if rank is None or tensor.shape.ndims == rank + 1 else tensor
            for tensor, rank in zip(flatten(tensors), ranks, strict=True)
        ]
        tensors = pack(tensors, leaves)
    return _apart(tensors)


def _apart(tensors: Any) -> tuple[Any, Any]:
    if isinstance(tensors, tuple) and len(tensors) == 2:
        return tensors[0], tensors[1]
    return (tensors[0] if isinstance(tensors, tuple) and len(tensors) == 1 else tensors), None


def _predicted(session: Any, outputs: Any, dataset: TFDataset) -> Any:
    """Returns the values of tensors for each record, one record at a time if the graph requires it."""
    predictor = TFPredictor(session, outputs)
    return predictor.predict() if dataset.has_batch else predictor.predict_rows(1)


def _measured(session: Any, outputs: Any, dataset: TFDataset) -> Any:
    """Returns the same as an RDD, of images too."""
    return TFPredictor(session, outputs).predict_rows(None if dataset.has_batch else 1)


def _asked(predictions: Any, keys: Any) -> tuple[list[str] | None, list[Any]]:
    """Returns the keys of what is asked for, where the predictions are a dict, and its tensors."""
    if not isinstance(predictions, Mapping):
        if keys is not None:
            raise JobError(f"`predict_keys` must be left out if the predictions are not a dict. Received: {keys!r}.")
        return None, flatten(predictions)
    wanted = sorted(predictions) if not keys else [keys] if isinstance(keys, str) else list(keys)
    missing = [key for key in wanted if key not in predictions]
    if missing:
        raise JobError(
            f"`predict_keys` must be keys of the predictions. Expected: some of {sorted(predictions)}. Received: "
            f"{missing[0]!r}."
        )
    return wanted, [predictions[key] for key in wanted]


def _by_key(keys: Sequence[str], row: Any) -> dict[str, Any]:
    return dict(zip(keys, row if isinstance(row, list) else [row], strict=True))
