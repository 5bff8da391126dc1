"""Optimizers in numpy that several older systems have. Runs where the parameters live.

A front-end's class says where its system differs: in the names of options, first values, places of epsilon and orders
of rounding. Whatever lasts moves in place, because under `hogwild` another thread may be anywhere in the same step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from keraunos.exchange.rules.elementwise import Block, ElementwiseOptimizer
from keraunos.parameters import Vector


class Averaging(ElementwiseOptimizer):
    """An optimizer that keeps running means."""

    scratch_blocks = 2

    def average(self, mean: Vector, value: Vector, decay: float, space: Vector) -> None:
        """`mean = decay mean + (1 - decay) value`."""
        np.multiply(mean, decay, out=mean)
        add_product(mean, value, 1.0 - decay, space)

    def average_square(self, mean: Vector, value: Vector, decay: float, scratch: Sequence[Vector]) -> None:
        """The same of the square of the value."""
        square, space, *_ = scratch
        np.multiply(value, value, out=square)
        self.average(mean, square, decay, space)


class Adam(Averaging):
    """`m` and `v` are the means of g and g²; `w -= rate √(1 - beta2ᵗ) / (1 - beta1ᵗ) m / (√v + epsilon)` in step t."""

    def first_slots(self) -> Sequence[float]:
        """The two means."""
        return (0.0, 0.0)

    def move(self, block: Block) -> None:
        """Update both means and move by their quotient."""
        self.update_means(block)
        mean, squares = block.slots
        beta1, beta2 = self._option("beta1"), self._option("beta2")
        rate = block.rate * math.sqrt(1.0 - beta2**block.step) / (1.0 - beta1**block.step)
        subtract_over_root(block, mean, squares, rate, self._option("epsilon"))

    def update_means(self, block: Block) -> None:
        """Let both means take the gradient in."""
        mean, squares = block.slots
        # Without locks another thread may be between the two means. What it put into the first is then in the second
        # already: a first mean over a second one of zero would throw the parameters out of the world.
        self.average_square(squares, block.gradient, self._option("beta2"), block.scratch)
        self.average(mean, block.gradient, self._option("beta1"), block.scratch[0])


class Adadelta(Averaging):
    """`s` is the mean of g², `a` that of u², `u = √(a + epsilon) / √(s + epsilon) g`; `w -= rate u`.

    `decay_option` is the name of the option for how much of a mean stays; with `one_root` the root is of the quotient.
    """

    decay_option = "decayrate"
    one_root = False

    def first_slots(self) -> Sequence[float]:
        """The mean squares of gradients and of moves."""
        return (0.0, 0.0)

    def move(self, block: Block) -> None:
        """Scale the gradient, move by it, and remember its square."""
        gradient, (squares, moves), (above, below) = block.gradient, block.slots, block.scratch
        decay, epsilon = self._option(self.decay_option), self._option("epsilon")
        self.average_square(squares, gradient, decay, block.scratch)
        np.add(moves, epsilon, out=above)
        np.add(squares, epsilon, out=below)
        if self.one_root:
            np.divide(above, below, out=above)
        else:
            np.sqrt(below, out=below)
            np.divide(gradient, below, out=gradient)
        np.sqrt(above, out=above)
        np.multiply(gradient, above, out=gradient)
        np.multiply(gradient, block.rate, out=above)
        np.subtract(block.parameters, above, out=block.parameters)
        self.average_square(moves, gradient, decay, block.scratch)


class Adagrad(ElementwiseOptimizer):
    """`s += g²`, from the option `initial_accumulator_value` or 0; `w -= rate g / (√s + epsilon)`."""

    epsilon = 0.0

    def first_slots(self) -> Sequence[float]:
        """The sum of squares."""
        return (self.plan.rule.option("initial_accumulator_value", 0.0),)

    def move(self, block: Block) -> None:
        """Accumulate the square, and move by the scaled gradient."""
        (squares,), gradient = block.slots, block.gradient
        add_product(squares, gradient, gradient, block.scratch[0])
        subtract_over_root(block, gradient, squares, block.rate, self.epsilon)


def add_product(values: Vector, left: Vector, right: Vector | float, space: Vector) -> None:
    """`values += left right`."""
    np.multiply(left, right, out=space)
    np.add(values, space, out=values)


def subtract_over_root(block: Block, direction: Vector, squares: Vector, rate: float, epsilon: float) -> None:
    """`w -= rate direction / (√squares + epsilon)`; the gradient and the first scratch block are overwritten."""
    move, root = block.gradient, block.scratch[0]
    np.sqrt(squares, out=root)
    np.add(root, epsilon, out=root)
    np.multiply(direction, rate, out=move)
    np.divide(move, root, out=move)
    np.subtract(block.parameters, move, out=block.parameters)


def power(base: Vector, exponent: float, out: Vector) -> None:
    """`base` to the `exponent`; a root where that is what it is, which is faster and rounds better."""
    if exponent == 0.5:
        np.sqrt(base, out=out)
    else:
        np.power(base, exponent, out=out)
