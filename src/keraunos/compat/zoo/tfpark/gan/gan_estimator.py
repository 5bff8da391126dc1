"""Analytics Zoo's `GANEstimator`: a generator and a discriminator that are trained in turns. Runs on the driver.

A step is one of the discriminator or one of the generator, by the number of the step. The gradients of the other one's
variables are zeros then, and its optimizer's step is taken back, so that its momentum stays what it was, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.compat.zoo.tfpark.tf_optimizer import TFOptimizer
from keraunos.compat.zoo.tfpark.zoo_optimizer import GRADIENT, ZooOptimizer, note_gradients
from keraunos.errors import JobError, ModelError

_GENERATOR, _DISCRIMINATOR = "Generator", "Discriminator"


class GANEstimator:
    """Two networks, each with a loss and an optimizer, and their checkpoints.

    The functions may take an argument `counter` beside the others: the number of the step.

    Args:
        generator_fn: from the generator's inputs to data.
        discriminator_fn: from data, real or not, and the generator's inputs to an opinion.
        generator_loss_fn: from the opinion on the generator's data to a scalar.
        discriminator_loss_fn: from the opinions on real and on the generator's data to a scalar.
        generator_optimizer: a `ZooOptimizer`.
        discriminator_optimizer: a `ZooOptimizer`.
        generator_steps: how many steps the generator takes at a time.
        discriminator_steps: how many the discriminator takes before them.
        model_dir: where checkpoints are written, and where training continues from; by default a new folder.
        session_config: the configuration of sessions.
    """

    def __init__(
        self,
        generator_fn: Callable[..., Any],
        discriminator_fn: Callable[..., Any],
        generator_loss_fn: Callable[..., Any],
        discriminator_loss_fn: Callable[..., Any],
        generator_optimizer: ZooOptimizer,
        discriminator_optimizer: ZooOptimizer,
        generator_steps: int = 1,
        discriminator_steps: int = 1,
        model_dir: str | None = None,
        session_config: Any = None,
    ) -> None:
        given = {"generator_optimizer": generator_optimizer, "discriminator_optimizer": discriminator_optimizer}
        for name, optimizer in given.items():
            if not isinstance(optimizer, ZooOptimizer):
                raise ModelError(
                    f"{name} should be a ZooOptimizer, as in ZooOptimizer(tf.train.AdamOptimizer(1e-4)). Received: "
                    f"{optimizer!r}."
                )
        for name, steps in {"generator_steps": generator_steps, "discriminator_steps": discriminator_steps}.items():
            if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
                raise JobError(f"`{name}` must be a whole number of at least 1. Received: {steps!r}.")
        self._generator_fn = generator_fn
        self._discriminator_fn = discriminator_fn
        self._generator_loss_fn = generator_loss_fn
        self._discriminator_loss_fn = discriminator_loss_fn
        self._generator_optimizer = generator_optimizer
        self._discriminator_optimizer = discriminator_optimizer
        self._generator_steps = generator_steps
        self._discriminator_steps = discriminator_steps
        self._session_config = session_config
        self.model_dir = tempfile.mkdtemp() if model_dir is None else str(model_dir)
        self.checkpoint_path = f"{self.model_dir}/model"

    def train(self, input_fn: Callable[[], TFDataset], end_trigger: Any) -> None:
        """Train from the newest checkpoint until the trigger fires, and write a new one.

        `input_fn` returns a dataset of (the generator's inputs, real data).
        """
        import tensorflow as tf

        from keraunos.compat.tensorflow1._savers import Saver, latest_checkpoint, save_in

        v1 = tf.compat.v1
        with tf.Graph().as_default() as graph:
            dataset = input_fn()
            if not isinstance(dataset, TFDataset) or not dataset.has_labels:
                raise JobError(
                    "`input_fn` must give a TFDataset of (the generator's inputs, real data). Received: "
                    f"{getattr(dataset, 'tensor_structure', dataset)!r}."
                )
            counter = v1.train.get_or_create_global_step()
            loss, train_op = self._step(dataset, counter)
            with v1.Session(graph=graph, config=self._session_config) as session:
                session.run(
                    [v1.global_variables_initializer(), v1.local_variables_initializer(), v1.tables_initializer()]
                )
                found = latest_checkpoint(self.model_dir)
                if found is not None:
                    Saver().restore(session, found)
                optimizer = TFOptimizer.from_train_op(
                    train_op, loss, sess=session, dataset=dataset, session_config=self._session_config
                )
                optimizer.optimize(end_trigger)
                save_in(self.model_dir, session, counter)

    def _step(self, dataset: TFDataset, counter: Any) -> tuple[Any, Any]:
        """Returns the loss of the network whose turn it is, and the operation that takes its step."""
        import tensorflow as tf

        v1 = tf.compat.v1
        discriminates = tf.less(
            tf.math.floormod(tf.identity(counter), self._discriminator_steps + self._generator_steps),
            self._discriminator_steps,
        )
        generator_loss, discriminator_loss = self._losses(dataset, counter)
        networks = [
            (_GENERATOR, self._generator_optimizer, generator_loss, tf.logical_not(discriminates)),
            (_DISCRIMINATOR, self._discriminator_optimizer, discriminator_loss, discriminates),
        ]
        gradients: dict[Any, Any] = {}
        applied = []
        for scope, optimizer, loss, turn in networks:
            variables = v1.trainable_variables(scope)
            marked = _gradients(optimizer, loss, variables, turn)
            gradients |= dict(zip(variables, marked, strict=True))
            applied.append(_apply_in_turn(optimizer, marked, variables, turn))
        with tf.control_dependencies([*applied, discriminates]):
            train_op = counter.assign_add(1).op
        note_gradients(train_op, gradients)
        return tf.where(discriminates, discriminator_loss, generator_loss), train_op

    def _losses(self, dataset: TFDataset, counter: Any) -> tuple[Any, Any]:
        import tensorflow as tf

        from keraunos.compat.tensorflow1.estimator._feeding import called

        v1 = tf.compat.v1
        inputs, real = dataset.tensors
        offered = {"counter": counter}
        with v1.variable_scope(_GENERATOR):
            made = called(self._generator_fn, offered, inputs)
        with v1.variable_scope(_DISCRIMINATOR):
            on_made = called(self._discriminator_fn, offered, made, inputs)
        with v1.variable_scope(_DISCRIMINATOR, reuse=True):
            on_real = called(self._discriminator_fn, offered, real, inputs)
        with tf.name_scope("Generator_loss"):
            generator = called(self._generator_loss_fn, offered, on_made)
            generator += v1.losses.get_regularization_loss(_GENERATOR)
        with tf.name_scope("Discriminator_loss"):
            discriminator = called(self._discriminator_loss_fn, offered, on_real, on_made)
            discriminator += v1.losses.get_regularization_loss(_DISCRIMINATOR)
        return generator, discriminator


def _gradients(optimizer: ZooOptimizer, loss: Any, variables: Sequence[Any], turn: Any) -> list[Any]:
    """Returns a network's gradients in its turn, and zeros otherwise; in their place come those of all workers."""
    import tensorflow as tf

    v1 = tf.compat.v1

    def compute() -> list[Any]:
        pairs = optimizer.compute_gradients(loss, var_list=list(variables))
        missing = [variable.op.name for gradient, variable in pairs if gradient is None]
        if missing:
            raise ModelError(f"A network's loss must depend on all of its variables. Received: not on {missing[0]!r}.")
        return [tf.convert_to_tensor(gradient) for gradient, _ in pairs]

    found = v1.cond(turn, compute, lambda: [tf.zeros_like(variable) for variable in variables], strict=True)
    marked = []
    for gradient, variable in zip(found, variables, strict=True):
        gradient.set_shape(variable.shape)
        marked.append(tf.identity(gradient, name=GRADIENT))
    return marked


def _apply_in_turn(optimizer: ZooOptimizer, gradients: Sequence[Any], variables: Sequence[Any], turn: Any) -> Any:
    """Apply gradients, and take that back unless it is the network's turn."""
    import tensorflow as tf

    v1 = tf.compat.v1
    inner = optimizer.inner
    before = {each.op.name for each in v1.global_variables()}
    # Makes the optimizer's own variables, which are copied below; nothing runs it.
    inner.apply_gradients(list(zip(gradients, variables, strict=True)))
    own = [*variables, *(each for each in v1.global_variables() if each.op.name not in before)]
    # Real copies: the identity of a variable may share its memory.
    kept = [tf.raw_ops.DeepCopy(x=tf.identity(each)) for each in own]
    with tf.control_dependencies(kept):
        given = [tf.identity(each) for each in gradients]
        applied = inner.apply_gradients(list(zip(given, variables, strict=True)))
    with tf.control_dependencies([applied]):
        pairs = zip(own, kept, strict=True)
        return tf.group(*(each.assign(tf.where(turn, each.read_value(), old)) for each, old in pairs))
