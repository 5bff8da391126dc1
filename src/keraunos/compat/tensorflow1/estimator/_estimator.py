"""`tf.estimator.Estimator`: a model function, and checkpoints of what it has learnt. Runs on the driver."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keraunos.compat.tensorflow1 import _mode
from keraunos.compat.tensorflow1._savers import Saver, latest_checkpoint, readable
from keraunos.compat.tensorflow1.estimator import _feeding
from keraunos.compat.tensorflow1.estimator._run_config import RunConfig, WarmStartSettings
from keraunos.compat.tensorflow1.estimator._saved_model import write_saved_model
from keraunos.compat.tensorflow1.estimator._specs import EstimatorSpec, ModeKeys

_v1 = _mode.tensorflow_1()


class Estimator:
    """Trains, measures and asks the model that a model function makes, in this process.

    Args:
        model_fn: a function of `features` and, optionally, `labels`, `mode`, `params` and `config`, that returns an
            `EstimatorSpec`.
        model_dir: where checkpoints are written, and where training continues from; by default `config.model_dir`, or
            a new folder.
        config: a `RunConfig`.
        params: values that `model_fn` is given.
        warm_start_from: a checkpoint, or `WarmStartSettings`, to begin with if `model_dir` has none.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        if not callable(model_fn):
            raise TypeError(f"`model_fn` must be a function that gives an EstimatorSpec. Received: {model_fn!r}.")
        if config is not None and not isinstance(config, RunConfig):
            raise TypeError(f"`config` must be a tf.estimator.RunConfig. Received: {config!r}.")
        _feeding.check_arguments(model_fn, params or {})
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})
        self._warm_start = _warm_start_settings(warm_start_from)
        self._config = _with_model_dir(config or RunConfig(), model_dir)
        self._model_dir = str(self._config.model_dir)

    @property
    def model_dir(self) -> str:
        """Where checkpoints are."""
        return self._model_dir

    @property
    def config(self) -> RunConfig:
        """The configuration, with `model_dir`."""
        return copy.deepcopy(self._config)

    @property
    def params(self) -> Any:
        """The `params` of the model function."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The model function with `params` bound."""

        def bound(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return bound

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> Estimator:
        """Train for `steps` more steps, or up to `max_steps` in all, or until the input ends. Returns itself."""
        if steps is not None and max_steps is not None:
            raise ValueError(f"`steps` and `max_steps` must not be given together. Received: {steps!r}, {max_steps!r}.")
        for name, value in (("steps", steps), ("max_steps", max_steps)):
            if value is not None and value <= 0:
                raise ValueError(f"`{name}` must be at least 1. Received: {value!r}.")
        with _v1.Graph().as_default() as graph:
            _v1.set_random_seed(self._config.tf_random_seed)
            counter = self._create_and_assert_global_step(graph)
            spec = self._spec(input_fn, ModeKeys.TRAIN)
            stops = [_v1.train.NanTensorHook(spec.loss)]
            if steps is not None or max_steps is not None:
                stops.append(_v1.train.StopAtStepHook(steps, max_steps))
            self._warm_start_variables()
            with _v1.train.MonitoredTrainingSession(
                is_chief=True,
                scaffold=self._scaffold(spec),
                hooks=[*stops, *(hooks or ()), *spec.training_hooks],
                chief_only_hooks=[*spec.training_chief_hooks, self._saver_hook(spec, saving_listeners)],
                config=self._config.session_config,
                checkpoint_dir=self._model_dir,
                save_checkpoint_secs=None,
                save_summaries_steps=self._config.save_summary_steps,
                log_step_count_steps=self._config.log_step_count_steps,
            ) as session:
                if max_steps is not None and session.run(counter) >= max_steps:
                    return self
                while not session.should_stop():
                    session.run([spec.train_op, spec.loss])
        return self

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Returns the mean loss of the batches and `eval_metric_ops`, over `steps` batches or all of them."""
        del name  # it only named the folder of a summary
        with _v1.Graph().as_default() as graph:
            counter = self._create_and_assert_global_step(graph)
            spec = self._spec(input_fn, ModeKeys.EVAL)
            mean, update = _v1.metrics.mean(spec.loss)
            values = {"loss": mean, **{key: value for key, (value, _) in spec.eval_metric_ops.items()}}
            updates = [update, *(each for _, each in spec.eval_metric_ops.values())]
            with self._reading(graph, spec, checkpoint_path, [*(hooks or ()), *spec.evaluation_hooks]) as session:
                done = 0
                while steps is None or done < steps:
                    try:
                        session.run(updates)
                    except _v1.errors.OutOfRangeError:
                        break
                    done += 1
                if not done:
                    raise ValueError("`input_fn` must give at least one batch to evaluate. Received: none.")
                return dict(session.run({**values, "global_step": counter}))

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields the predictions for each row, or for each batch."""
        with _v1.Graph().as_default() as graph:
            self._create_and_assert_global_step(graph)
            spec = self._spec(input_fn, ModeKeys.PREDICT)
            asked = _chosen(spec.predictions, predict_keys)
            with self._reading(graph, spec, checkpoint_path, [*(hooks or ()), *spec.prediction_hooks]) as session:
                while True:
                    try:
                        found = session.run(asked)
                    except _v1.errors.OutOfRangeError:
                        return
                    if not yield_single_examples:
                        yield found
                    elif isinstance(found, dict):
                        rows = len(next(iter(found.values())))
                        yield from ({key: each[row] for key, each in found.items()} for row in range(rows))
                    else:
                        yield from found
                    if not _has_end(graph):
                        return

    def latest_checkpoint(self) -> str | None:
        """Returns the newest checkpoint in `model_dir`."""
        return latest_checkpoint(self._model_dir)

    def get_variable_names(self) -> list[str]:
        """Returns the names of the variables in the newest checkpoint."""
        with readable(self._found_checkpoint(None)) as path:
            return [name for name, _ in _v1.train.list_variables(path)]

    def get_variable_value(self, name: str) -> Any:
        """Returns a variable's value in the newest checkpoint."""
        with readable(self._found_checkpoint(None)) as path:
            return _v1.train.load_variable(path, name)

    def eval_dir(self, name: str | None = None) -> str:
        """Returns where a program may put what it finds in an evaluation."""
        return str(Path(self._model_dir, f"eval_{name}" if name else "eval"))

    def export_saved_model(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], Any],
        checkpoint_path: str | None = None,
    ) -> bytes:
        """Write the model for serving into a new folder below `export_dir_base`. Returns its path."""
        with _v1.Graph().as_default() as graph:
            self._create_and_assert_global_step(graph)
            receiver = serving_input_receiver_fn()
            spec = self._call_model_fn(receiver.features, None, ModeKeys.PREDICT, self.config)
            with _v1.Session(config=self._config.session_config) as session:
                Saver().restore(session, self._found_checkpoint(checkpoint_path))
                return write_saved_model(session, export_dir_base, receiver, spec)

    export_savedmodel = export_saved_model

    def _create_and_assert_global_step(self, graph: Any) -> Any:
        return _v1.train.get_or_create_global_step(graph)

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        return _feeding.called(input_fn, {"mode": mode, "params": self.params, "config": self.config})

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        offered = {"labels": labels, "mode": mode, "params": self.params, "config": config}
        if labels is not None and "labels" not in _feeding.named_arguments(self._model_fn):
            raise ValueError("`model_fn` must take `labels` where `input_fn` gives some. Received: one without.")
        spec = _feeding.called(self._model_fn, offered, features)
        if not isinstance(spec, EstimatorSpec):
            raise TypeError(f"`model_fn` must return a tf.estimator.EstimatorSpec. Received: {spec!r}.")
        return spec

    def _spec(self, input_fn: Callable[..., Any], mode: str) -> EstimatorSpec:
        given = self._call_input_fn(input_fn, mode)
        features, labels = _feeding.features_and_labels(given, predicts=mode == ModeKeys.PREDICT)
        return self._call_model_fn(features, labels, mode, self.config)

    def _found_checkpoint(self, path: str | None) -> str:
        found = path or self.latest_checkpoint()
        if found is None:
            raise ValueError(f"There must be a checkpoint in `model_dir` first. Received: {self._model_dir!r}. Train.")
        return found

    def _warm_start_variables(self) -> None:
        """Initialize variables from another checkpoint, if `model_dir` has none."""
        if self._warm_start is not None and self.latest_checkpoint() is None:
            _v1.train.warm_start(*self._warm_start)

    def _scaffold(self, spec: EstimatorSpec) -> Any:
        if spec.scaffold.saver is None:
            spec.scaffold._saver = Saver(
                max_to_keep=self._config.keep_checkpoint_max,
                keep_checkpoint_every_n_hours=self._config.keep_checkpoint_every_n_hours,
                save_relative_paths=True,
            )
        return spec.scaffold

    def _saver_hook(self, spec: EstimatorSpec, listeners: Sequence[Any] | None) -> Any:
        steps, seconds = self._config.save_checkpoints_steps, self._config.save_checkpoints_secs
        return _v1.train.CheckpointSaverHook(
            self._model_dir,
            save_secs=600 if steps is None and seconds is None else seconds,
            save_steps=steps,
            scaffold=self._scaffold(spec),
            listeners=list(listeners or ()),
        )

    def _reading(self, graph: Any, spec: EstimatorSpec, path: str | None, hooks: Sequence[Any]) -> Any:
        """Returns a session with the values of a checkpoint, or with new ones if there is none."""
        del graph
        found = path or self.latest_checkpoint()
        if found is None:
            self._warm_start_variables()
        creator = _v1.train.ChiefSessionCreator(
            scaffold=spec.scaffold, config=self._config.session_config, checkpoint_filename_with_path=found
        )
        return _v1.train.MonitoredSession(session_creator=creator, hooks=list(hooks))


def _warm_start_settings(given: Any) -> WarmStartSettings | None:
    if given is None or isinstance(given, WarmStartSettings):
        return given
    if isinstance(given, (str, bytes, Path)):
        return WarmStartSettings(str(given) if not isinstance(given, bytes) else given.decode())
    raise ValueError(
        f"`warm_start_from` must be the path of a checkpoint or tf.estimator.WarmStartSettings. Received: {given!r}."
    )


def _with_model_dir(config: RunConfig, model_dir: Any) -> RunConfig:
    if model_dir is not None and config.model_dir not in (None, str(model_dir)):
        raise ValueError(
            f"`model_dir` must be that of `config`, or one of the two left out. Received: {model_dir!r} and "
            f"{config.model_dir!r}."
        )
    if model_dir is None and config.model_dir is None:
        return config.replace(model_dir=tempfile.mkdtemp())
    return config.replace(model_dir=str(model_dir or config.model_dir))


def _chosen(predictions: Any, keys: Any) -> Any:
    if keys is None:
        return predictions
    wanted = [keys] if isinstance(keys, str) else list(keys)
    if not isinstance(predictions, Mapping):
        raise TypeError(f"`predict_keys` must be left out if the predictions are not a dict. Received: {keys!r}.")
    missing = [key for key in wanted if key not in predictions]
    if missing:
        raise ValueError(
            f"`predict_keys` must be keys of the predictions. Expected: some of {sorted(predictions)}. Received: "
            f"{missing[0]!r}."
        )
    return {key: predictions[key] for key in wanted}


def _has_end(graph: Any) -> bool:
    """Whether the input signals its end: an iterator or a queue does, plain tensors do not."""
    return any("IteratorGetNext" in each.type or "QueueDequeue" in each.type for each in graph.get_operations())
