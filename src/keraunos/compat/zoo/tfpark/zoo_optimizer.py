"""Analytics Zoo's `ZooOptimizer`: a TensorFlow optimizer that applies the gradient of all workers. Runs on the driver.

It puts an identity operation behind each gradient. That is where the gradient of a worker's batch is taken from, and
in whose place the gradient of all workers is put before it is applied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keraunos.errors import ModelError

GRADIENT = "zoo_identity_op_for_grad"
# An attribute and no collection: collections are written into every checkpoint.
_NOTE = "_keraunos_zoo_gradients"


class ZooOptimizer:
    """A TensorFlow 1.x optimizer around another one, whose `minimize` returns a `train_op` for `from_train_op`."""

    def __init__(self, optimizer: Any, name: str | None = None) -> None:
        if not hasattr(optimizer, "compute_gradients") or not hasattr(optimizer, "apply_gradients"):
            raise ModelError(
                "`optimizer` must be one of tf.train's optimizers. Received: "
                f"{optimizer!r}. For a Keras model use TFOptimizer.from_keras."
            )
        self._optimizer = optimizer
        self._name = name or f"Zoo{optimizer.get_name()}"

    @property
    def inner(self) -> Any:
        """The optimizer that applies gradients."""
        return self._optimizer

    def get_name(self) -> str:
        """Returns the name of this optimizer."""
        return self._name

    def compute_gradients(self, *arguments: Any, **named: Any) -> list[tuple[Any, Any]]:
        """Returns what the inner optimizer computes for a worker's batch."""
        pairs: list[tuple[Any, Any]] = self._optimizer.compute_gradients(*arguments, **named)
        return pairs

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]], *arguments: Any, **named: Any) -> Any:
        """The operation that applies gradients with the inner optimizer, once those of all workers are in place."""
        import tensorflow as tf

        pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        if not pairs:
            raise ModelError("There is no gradient to apply. Expected: a loss that depends on a trainable variable.")
        marked = [
            (tf.identity(tf.convert_to_tensor(gradient), name=GRADIENT), variable) for gradient, variable in pairs
        ]
        applied = self._optimizer.apply_gradients(marked, *arguments, **named)
        note_gradients(applied, {variable: gradient for gradient, variable in marked})
        return applied

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = 1,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Any:
        """Returns the operation that makes a loss smaller."""
        pairs = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def get_slot(self, *arguments: Any, **named: Any) -> Any:
        """Returns a slot of the inner optimizer."""
        return self._optimizer.get_slot(*arguments, **named)

    def get_slot_names(self, *arguments: Any, **named: Any) -> Any:
        """Returns the names of the inner optimizer's slots."""
        return self._optimizer.get_slot_names(*arguments, **named)

    def variables(self) -> Any:
        """Returns the inner optimizer's variables."""
        return self._optimizer.variables()


class ClippingOptimizer:
    """A TensorFlow 1.x optimizer that clips what it is given to apply: inside a `ZooOptimizer`, that of all workers."""

    def __init__(self, optimizer: Any, norm: float | None, bounds: tuple[float, float] | None) -> None:
        self._optimizer = optimizer
        self._norm = norm
        self._bounds = bounds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]], *arguments: Any, **named: Any) -> Any:
        """Returns the inner optimizer's, of clipped gradients: first each element, then the norm of all."""
        import tensorflow as tf

        gradients, variables = (list(each) for each in zip(*grads_and_vars, strict=True))
        if self._bounds is not None:
            gradients = [tf.clip_by_value(each, *self._bounds) for each in gradients]
        if self._norm is not None:
            gradients, _ = tf.clip_by_global_norm(gradients, self._norm)
        return self._optimizer.apply_gradients(list(zip(gradients, variables, strict=True)), *arguments, **named)


def note_gradients(train_op: Any, gradients: dict[Any, Any]) -> None:
    """Say which tensors an operation takes as the gradients of which variables."""
    notes: dict[str, dict[Any, Any]] = getattr(train_op.graph, _NOTE, {})
    notes[train_op.name] = dict(gradients)
    setattr(train_op.graph, _NOTE, notes)


def gradients_of(train_op: Any) -> dict[Any, Any]:
    """Returns the gradient tensors of a `train_op` by variable. The `train_op` must be from a ZooOptimizer."""
    operation = getattr(train_op, "op", train_op)
    graph = getattr(operation, "graph", None)
    notes: dict[str, dict[Any, Any]] = getattr(graph, _NOTE, {})
    waiting, seen = [operation] if graph is not None else [], set()
    while waiting:
        each = waiting.pop()
        if each.name in notes:
            return dict(notes[each.name])
        if each.name not in seen:
            seen.add(each.name)
            waiting += [*each.control_inputs, *(tensor.op for tensor in each.inputs)]
    raise ModelError(
        "`train_op` must come from a ZooOptimizer around a TensorFlow optimizer, as in "
        f"ZooOptimizer(tf.train.AdamOptimizer()).minimize(loss). Received: {train_op!r}."
    )
