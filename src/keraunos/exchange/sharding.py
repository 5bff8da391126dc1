"""Which part of the vector a server holds. Runs on the driver and on workers.

A vector is cut into as many slices as there are servers, of sizes as equal as the rule allows: a rule that treats
every element alone lets it be cut anywhere, others need whole variables.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keraunos.parameters import Layout, Vector


@dataclass(frozen=True)
class Piece:
    """What a slice holds of one variable: elements `start` to `stop` of the variable's own, flat."""

    name: str
    shape: tuple[int, ...]
    start: int
    stop: int
    trainable: bool

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.stop - self.start

    @property
    def whole(self) -> bool:
        """Whether it is all of the variable."""
        return self.start == 0 and self.stop == int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Slice:
    """Elements `start` to `stop` of a layout's vector."""

    layout: Layout
    start: int
    stop: int

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.stop - self.start

    @cached_property
    def trainable_size(self) -> int:
        """How many of the elements are trained; they come first."""
        return max(0, min(self.stop, self.layout.trainable_size) - self.start)

    @property
    def state_size(self) -> int:
        """How many of the elements are float state."""
        return self.size - self.trainable_size

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The variables that the slice holds something of, in order."""
        found = []
        layout = self.layout
        for index, (name, shape) in enumerate(zip(layout.names, layout.shapes, strict=True)):
            first, last = layout.offsets[index], layout.offsets[index + 1]
            start, stop = max(first, self.start), min(last, self.stop)
            if start < stop:
                found.append(Piece(name, shape, start - first, stop - first, index < layout.trainable))
        return tuple(found)

    def of_contribution(self, values: Vector, parts: int) -> list[Vector]:
        """The views of a whole contribution that belong to this slice, in the order in which they travel.

        A contribution of gradients is `parts` vectors of the trainable size and one of the float state; of updates or
        weights it is one vector of the layout, which is the case of one part.
        """
        trainable = self.layout.trainable_size
        if parts == 1:
            return [values[self.start : self.stop]]
        views = [
            values[part * trainable + self.start : part * trainable + self.start + self.trainable_size]
            for part in range(parts)
        ]
        behind = parts * trainable - trainable
        first_state = behind + max(self.start, trainable)
        return [*views, values[first_state : first_state + self.state_size]]

    def contribution_size(self, parts: int) -> int:
        """How many elements of a contribution belong to this slice."""
        return self.trainable_size * parts + self.state_size


def cut(layout: Layout, servers: int, *, anywhere: bool) -> list[Slice]:
    """The vector in `servers` slices that cover it; there may be empty ones where variables are fewer."""
    ideal = [round(layout.size * i / servers) for i in range(servers + 1)]
    bounds = ideal if anywhere else [min(layout.offsets, key=lambda end: (abs(end - place), end)) for place in ideal]
    return [Slice(layout, start, stop) for start, stop in itertools.pairwise(bounds)]
