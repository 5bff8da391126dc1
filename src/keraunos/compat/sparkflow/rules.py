"""TensorFlow 1.x's ten optimizers as rules on the parameter server. Runs where the parameters live.

They compute what the kernels behind `tf.train` compute, which for several (RMSProp's mean square that starts from one,
Adam's epsilon, Ftrl's shrinkage, the proximal ones) is not what Keras's optimizers of the same name do. Their options
have TensorFlow's names; `optimizers.py` fills in the defaults, so that here every option is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keraunos.exchange.rules import elementwise_optimizers
from keraunos.exchange.rules.elementwise import Block, ElementwiseOptimizer
from keraunos.exchange.rules.elementwise_optimizers import add_product, power
from keraunos.parameters import Vector


class TensorFlowGradientDescent(ElementwiseOptimizer):
    """`w -= rate g`."""

    def move(self, block: Block) -> None:
        """Move against the gradient."""
        gradient = block.gradient
        np.multiply(gradient, block.rate, out=gradient)
        np.subtract(block.parameters, gradient, out=block.parameters)


class TensorFlowMomentum(ElementwiseOptimizer):
    """`a = momentum a + g; w -= rate a`, or with Nesterov `w -= rate g + rate momentum a`."""

    def first_slots(self) -> Sequence[float]:
        """Returns the accumulator."""
        return (0.0,)

    def move(self, block: Block) -> None:
        """Accumulate, and move by what was accumulated."""
        parameters, gradient, rate = block.parameters, block.gradient, block.rate
        (accumulator,) = block.slots
        momentum = self._option("momentum")
        np.multiply(accumulator, momentum, out=accumulator)
        np.add(accumulator, gradient, out=accumulator)
        if self._option("use_nesterov"):
            np.multiply(gradient, rate, out=gradient)
            np.subtract(parameters, gradient, out=parameters)
            np.multiply(accumulator, rate * momentum, out=gradient)
        else:
            np.multiply(accumulator, rate, out=gradient)
        np.subtract(parameters, gradient, out=parameters)


class Approaching(elementwise_optimizers.Averaging):
    """Running means as TensorFlow's kernels compute them."""

    def average(self, mean: Vector, value: Vector, decay: float, space: Vector) -> None:
        """`mean += (1 - decay) (value - mean)`."""
        np.subtract(value, mean, out=space)
        np.multiply(space, 1.0 - decay, out=space)
        np.add(mean, space, out=mean)


class TensorFlowAdam(Approaching, elementwise_optimizers.Adam):
    """Adam with epsilon beside the uncorrected second moment (the paper's "epsilon hat")."""


class TensorFlowRMSProp(Approaching):
    """RMSProp whose mean square starts from one; `centered` takes the squared mean gradient off it."""

    def first_slots(self) -> Sequence[float]:
        """Returns the mean square, the momentum and, where it is centered, the mean gradient."""
        return (1.0, 0.0, 0.0) if self._option("centered") else (1.0, 0.0)

    def move(self, block: Block) -> None:
        """Update the means, let the momentum take the scaled gradient in, and move by it."""
        gradient = block.gradient
        square, momentum, *means = block.slots
        space, other = block.scratch
        decay = self._option("decay")
        self.average_square(square, gradient, decay, block.scratch)
        np.copyto(space, square)
        for mean in means:
            self.average(mean, gradient, decay, other)
            np.multiply(mean, mean, out=other)
            np.subtract(space, other, out=space)
        np.add(space, self._option("epsilon"), out=space)
        np.sqrt(space, out=space)
        np.multiply(gradient, block.rate, out=gradient)
        np.divide(gradient, space, out=gradient)
        np.multiply(momentum, self._option("momentum"), out=momentum)
        np.add(momentum, gradient, out=momentum)
        np.subtract(block.parameters, momentum, out=block.parameters)


class TensorFlowAdadelta(Approaching, elementwise_optimizers.Adadelta):
    """The gradient, scaled by the root mean square of past moves over that of past gradients."""

    decay_option = "rho"
    one_root = True


class TensorFlowAdagrad(elementwise_optimizers.Adagrad):
    """`a += g²; w -= rate g / sqrt(a)`."""


class TensorFlowAdagradDA(ElementwiseOptimizer):
    """Dual averaging: the parameters follow from the sum of all gradients, whatever they started from."""

    scratch_blocks = 2

    def first_slots(self) -> Sequence[float]:
        """Returns the sum of the gradients and that of their squares."""
        return (0.0, self._option("initial_gradient_squared_accumulator_value"))

    def move(self, block: Block) -> None:
        """Accumulate both sums, and set the parameters from them."""
        total, squares = block.slots
        space, shrunk = block.scratch
        l1, l2 = self._option("l1_regularization_strength"), self._option("l2_regularization_strength")
        np.add(total, block.gradient, out=total)
        add_product(squares, block.gradient, block.gradient, space)
        np.copyto(shrunk, total)
        if l1 > 0:
            _shrink(shrunk, l1 * block.step, space)
        np.sqrt(squares, out=space)
        np.add(space, l2 * block.step * block.rate, out=space)
        np.multiply(shrunk, -block.rate, out=shrunk)
        np.divide(shrunk, space, out=block.parameters)


class TensorFlowFtrl(ElementwiseOptimizer):
    """Follow the regularised leader, with TensorFlow's shrinkage and `beta`."""

    scratch_blocks = 3

    def first_slots(self) -> Sequence[float]:
        """Returns the sum of squares, and the linear term."""
        return (self._option("initial_accumulator_value"), 0.0)

    def move(self, block: Block) -> None:
        """Update the linear term, and set the parameters to what minimises it."""
        parameters, gradient, rate = block.parameters, block.gradient, block.rate
        squares, linear = block.slots
        root, space, before = block.scratch
        shrinkage = self._option("l2_shrinkage_regularization_strength")
        root_power = -self._option("learning_rate_power")
        power(squares, root_power, out=before)
        add_product(squares, gradient, gradient, space)
        power(squares, root_power, out=root)
        if shrinkage:
            add_product(gradient, parameters, 2.0 * shrinkage, space)
        np.subtract(root, before, out=space)
        np.divide(space, rate, out=space)
        np.multiply(space, parameters, out=space)
        np.add(linear, gradient, out=linear)
        np.subtract(linear, space, out=linear)
        l2 = self._option("l2_regularization_strength")
        np.divide(root, rate, out=root)
        np.add(root, 2.0 * l2 + self._option("beta") / max(rate, 1e-36), out=root)
        np.copyto(gradient, linear)
        _shrink(gradient, self._option("l1_regularization_strength"), space)
        np.divide(gradient, root, out=gradient)
        np.negative(gradient, out=parameters)


class TensorFlowProximalGradientDescent(TensorFlowGradientDescent):
    """A gradient step, then shrunk by the L1 and L2 strengths."""

    def move(self, block: Block) -> None:
        """Move against the gradient, and shrink."""
        super().move(block)
        parameters, rate = block.parameters, block.rate
        l1, l2 = self._option("l1_regularization_strength"), self._option("l2_regularization_strength")
        if l1 > 0:
            _shrink(parameters, rate * l1, block.scratch[0])
        np.divide(parameters, 1.0 + rate * l2, out=parameters)


class TensorFlowProximalAdagrad(TensorFlowAdagrad):
    """An Adagrad step, then shrunk by the L1 and L2 strengths with each element's own rate."""

    scratch_blocks = 2

    def move(self, block: Block) -> None:
        """Accumulate the square, move by the scaled gradient, and shrink."""
        parameters, gradient = block.parameters, block.gradient
        (accumulator,) = block.slots
        rates, space = block.scratch
        l1, l2 = self._option("l1_regularization_strength"), self._option("l2_regularization_strength")
        add_product(accumulator, gradient, gradient, space)
        np.sqrt(accumulator, out=rates)
        np.divide(block.rate, rates, out=rates)
        np.multiply(gradient, rates, out=gradient)
        np.subtract(parameters, gradient, out=parameters)
        if l1 > 0:
            np.multiply(rates, l1, out=gradient)
            _shrink(parameters, gradient, space)
        np.multiply(rates, l2, out=rates)
        np.add(rates, 1.0, out=rates)
        np.divide(parameters, rates, out=parameters)


def _shrink(values: Vector, by: Any, space: Vector) -> None:
    """Towards zero by `by`, and no further than zero."""
    np.abs(values, out=space)
    np.subtract(space, by, out=space)
    np.maximum(space, 0.0, out=space)
    np.copysign(space, values, out=values)
