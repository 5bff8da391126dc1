"""TensorFlow 1.x's ten optimizers as rules on the parameter server. Runs where the parameters live.

They compute what the kernels behind `tf.train` compute, which for several (RMSProp's mean square that starts from one,
Adam's epsilon, Ftrl's shrinkage, the proximal ones) is not what Keras's optimizers of the same name do. Their options
have TensorFlow's names; `optimizers.py` fills in the defaults, so that here every option is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from keraunos.exchange.rules.elementwise import Block, ElementwiseOptimizer
from keraunos.parameters import Vector


class GradientDescent(ElementwiseOptimizer):
    """`w -= rate g`."""

    def first_slots(self) -> Sequence[float]:
        """None."""
        return ()

    def move(self, block: Block) -> None:
        """Move against the gradient."""
        gradient = block.gradient
        np.multiply(gradient, block.rate, out=gradient)
        np.subtract(block.parameters, gradient, out=block.parameters)


class Momentum(ElementwiseOptimizer):
    """`a = momentum a + g; w -= rate a`, or with Nesterov `w -= rate g + rate momentum a`."""

    def first_slots(self) -> Sequence[float]:
        """The accumulator."""
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


class Adam(ElementwiseOptimizer):
    """Adam with epsilon beside the uncorrected second moment (the paper's "epsilon hat")."""

    scratch_blocks = 2

    def first_slots(self) -> Sequence[float]:
        """The two moments."""
        return (0.0, 0.0)

    def move(self, block: Block) -> None:
        """Update both moments and move by their quotient."""
        gradient = block.gradient
        first, second = block.slots
        space, squares = block.scratch
        beta1, beta2 = self._option("beta1"), self._option("beta2")
        corrected = block.rate * math.sqrt(1.0 - beta2**block.step) / (1.0 - beta1**block.step)
        # Without locks another thread may be between the two moments. What it put into the first is then in the second
        # already: a first moment over a second one of zero would throw the parameters out of the world.
        np.multiply(gradient, gradient, out=squares)
        _approach(second, squares, 1.0 - beta2, space)
        _approach(first, gradient, 1.0 - beta1, space)
        np.multiply(first, corrected, out=gradient)
        np.sqrt(second, out=space)
        np.add(space, self._option("epsilon"), out=space)
        np.divide(gradient, space, out=gradient)
        np.subtract(block.parameters, gradient, out=block.parameters)


class RMSProp(ElementwiseOptimizer):
    """RMSProp whose mean square starts from one; `centered` takes the squared mean gradient off it."""

    scratch_blocks = 2

    def first_slots(self) -> Sequence[float]:
        """The mean square, the momentum and, where it is centered, the mean gradient."""
        return (1.0, 0.0, 0.0) if self._option("centered") else (1.0, 0.0)

    def move(self, block: Block) -> None:
        """Update the means, let the momentum take the scaled gradient in, and move by it."""
        gradient = block.gradient
        square, momentum, *means = block.slots
        space, other = block.scratch
        decay = self._option("decay")
        np.multiply(gradient, gradient, out=space)
        _approach(square, space, 1.0 - decay, other)
        np.copyto(space, square)
        for mean in means:
            _approach(mean, gradient, 1.0 - decay, other)
            np.multiply(mean, mean, out=other)
            np.subtract(space, other, out=space)
        np.add(space, self._option("epsilon"), out=space)
        np.sqrt(space, out=space)
        np.multiply(gradient, block.rate, out=gradient)
        np.divide(gradient, space, out=gradient)
        np.multiply(momentum, self._option("momentum"), out=momentum)
        np.add(momentum, gradient, out=momentum)
        np.subtract(block.parameters, momentum, out=block.parameters)


class Adadelta(ElementwiseOptimizer):
    """The gradient, scaled by the root mean square of past moves over that of past gradients."""

    scratch_blocks = 2

    def first_slots(self) -> Sequence[float]:
        """The mean squares of gradients and of moves."""
        return (0.0, 0.0)

    def move(self, block: Block) -> None:
        """Scale the gradient, move by it, and remember its square."""
        gradient = block.gradient
        squares, moves = block.slots
        space, other = block.scratch
        rho, epsilon = self._option("rho"), self._option("epsilon")
        np.multiply(gradient, gradient, out=space)
        _approach(squares, space, 1.0 - rho, other)
        np.add(moves, epsilon, out=space)
        np.add(squares, epsilon, out=other)
        np.divide(space, other, out=space)
        np.sqrt(space, out=space)
        np.multiply(gradient, space, out=gradient)
        np.multiply(gradient, block.rate, out=space)
        np.subtract(block.parameters, space, out=block.parameters)
        np.multiply(gradient, gradient, out=gradient)
        _approach(moves, gradient, 1.0 - rho, other)


class Adagrad(ElementwiseOptimizer):
    """`a += g²; w -= rate g / sqrt(a)`."""

    def first_slots(self) -> Sequence[float]:
        """The accumulator."""
        return (self._option("initial_accumulator_value"),)

    def move(self, block: Block) -> None:
        """Accumulate the square, and move by the scaled gradient."""
        gradient = block.gradient
        (accumulator,), (space,) = block.slots, block.scratch
        _accumulate_square(accumulator, gradient, space)
        np.sqrt(accumulator, out=space)
        np.multiply(gradient, block.rate, out=gradient)
        np.divide(gradient, space, out=gradient)
        np.subtract(block.parameters, gradient, out=block.parameters)


class AdagradDA(ElementwiseOptimizer):
    """Dual averaging: the parameters follow from the sum of all gradients, whatever they started from."""

    scratch_blocks = 2

    def first_slots(self) -> Sequence[float]:
        """The sum of the gradients and that of their squares."""
        return (0.0, self._option("initial_gradient_squared_accumulator_value"))

    def move(self, block: Block) -> None:
        """Accumulate both sums, and set the parameters from them."""
        total, squares = block.slots
        space, shrunk = block.scratch
        l1, l2 = self._option("l1_regularization_strength"), self._option("l2_regularization_strength")
        np.add(total, block.gradient, out=total)
        _accumulate_square(squares, block.gradient, space)
        np.copyto(shrunk, total)
        if l1 > 0:
            _shrink(shrunk, l1 * block.step, space)
        np.sqrt(squares, out=space)
        np.add(space, l2 * block.step * block.rate, out=space)
        np.multiply(shrunk, -block.rate, out=shrunk)
        np.divide(shrunk, space, out=block.parameters)


class Ftrl(ElementwiseOptimizer):
    """Follow the regularised leader, with TensorFlow's shrinkage and `beta`."""

    scratch_blocks = 3

    def first_slots(self) -> Sequence[float]:
        """The sum of squares, and the linear term."""
        return (self._option("initial_accumulator_value"), 0.0)

    def move(self, block: Block) -> None:
        """Update the linear term, and set the parameters to what minimises it."""
        parameters, gradient, rate = block.parameters, block.gradient, block.rate
        squares, linear = block.slots
        root, space, before = block.scratch
        shrinkage = self._option("l2_shrinkage_regularization_strength")
        self._root(squares, before)
        _accumulate_square(squares, gradient, space)
        self._root(squares, root)
        if shrinkage:
            np.multiply(parameters, 2.0 * shrinkage, out=space)
            np.add(gradient, space, out=gradient)
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

    def _root(self, squares: Vector, out: Vector) -> None:
        power = self._option("learning_rate_power")
        if power == -0.5:
            np.sqrt(squares, out=out)
        else:
            np.power(squares, -power, out=out)


class ProximalGradientDescent(ElementwiseOptimizer):
    """A gradient step, then shrunk as the L1 and L2 strengths say."""

    def first_slots(self) -> Sequence[float]:
        """None."""
        return ()

    def move(self, block: Block) -> None:
        """Move against the gradient, and shrink."""
        parameters, gradient, rate = block.parameters, block.gradient, block.rate
        l1, l2 = self._option("l1_regularization_strength"), self._option("l2_regularization_strength")
        np.multiply(gradient, rate, out=gradient)
        np.subtract(parameters, gradient, out=parameters)
        if l1 > 0:
            _shrink(parameters, rate * l1, block.scratch[0])
        np.divide(parameters, 1.0 + rate * l2, out=parameters)


class ProximalAdagrad(ElementwiseOptimizer):
    """An Adagrad step, then shrunk as the L1 and L2 strengths say, by each element's own rate."""

    scratch_blocks = 2

    def first_slots(self) -> Sequence[float]:
        """The accumulator."""
        return (self._option("initial_accumulator_value"),)

    def move(self, block: Block) -> None:
        """Accumulate the square, move by the scaled gradient, and shrink."""
        parameters, gradient = block.parameters, block.gradient
        (accumulator,) = block.slots
        rates, space = block.scratch
        l1, l2 = self._option("l1_regularization_strength"), self._option("l2_regularization_strength")
        _accumulate_square(accumulator, gradient, space)
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


def _approach(value: Vector, target: Vector, weight: float, space: Vector) -> None:
    """`value += weight (target - value)`."""
    np.subtract(target, value, out=space)
    np.multiply(space, weight, out=space)
    np.add(value, space, out=value)


def _accumulate_square(accumulator: Vector, gradient: Vector, space: Vector) -> None:
    np.multiply(gradient, gradient, out=space)
    np.add(accumulator, space, out=accumulator)


def _shrink(values: Vector, by: Any, space: Vector) -> None:
    """Towards zero by `by`, and no further than zero."""
    np.abs(values, out=space)
    np.subtract(space, by, out=space)
    np.maximum(space, 0.0, out=space)
    np.copysign(space, values, out=values)
