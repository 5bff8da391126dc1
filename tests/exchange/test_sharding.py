"""Cutting a vector: the slices cover it, and a contribution's parts find their slice."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keraunos.exchange.sharding import cut
from keraunos.parameters import Layout

shapes = st.lists(st.lists(st.integers(1, 4), max_size=3).map(tuple), min_size=1, max_size=6)


@st.composite
def layouts(draw):
    drawn = tuple(draw(shapes))
    names = tuple(f"v{i}" for i in range(len(drawn)))
    return Layout(names, drawn, draw(st.integers(0, len(drawn))))


@given(layouts(), st.integers(1, 9), st.booleans())
def test_slices_cover_the_vector_once(layout, servers, anywhere):
    slices = cut(layout, servers, anywhere=anywhere)
    assert len(slices) == servers
    assert slices[0].start == 0
    assert slices[-1].stop == layout.size
    assert all(left.stop == right.start for left, right in itertools.pairwise(slices))
    assert sum(each.trainable_size for each in slices) == layout.trainable_size
    assert sum(each.state_size for each in slices) == layout.state_size


@given(layouts(), st.integers(1, 9))
def test_slices_of_elementwise_rules_are_of_one_size(layout, servers):
    sizes = [each.size for each in cut(layout, servers, anywhere=True)]
    assert max(sizes) - min(sizes) <= 1


@given(layouts(), st.integers(1, 9))
def test_slices_of_other_rules_hold_whole_variables(layout, servers):
    slices = cut(layout, servers, anywhere=False)
    pieces = [piece for each in slices for piece in each.pieces]
    assert all(piece.whole for piece in pieces)
    assert [piece.name for piece in pieces] == list(layout.names)


@given(layouts(), st.integers(1, 9), st.booleans())
def test_pieces_lie_in_the_slice_one_behind_the_other(layout, servers, anywhere):
    variables = dict(zip(layout.names, layout.split(np.arange(layout.size)), strict=True))
    for part in cut(layout, servers, anywhere=anywhere):
        held = [variables[piece.name].ravel()[piece.start : piece.stop] for piece in part.pieces]
        np.testing.assert_array_equal(np.concatenate([*held, np.arange(0)]), np.arange(part.start, part.stop))
        assert sum(piece.size for piece in part.pieces if piece.trainable) == part.trainable_size


@given(layouts(), st.integers(1, 9), st.integers(1, 3))
def test_slices_take_all_of_a_contribution_and_each_element_once(layout, servers, parts):
    length = layout.trainable_size * parts + layout.state_size
    values = np.arange(length)
    taken = []
    for part in cut(layout, servers, anywhere=True):
        mine = np.concatenate(part.of_contribution(values, parts))
        assert mine.size == part.contribution_size(parts)
        taken.append(mine)
        # What a slice takes of each numerator is the same part of it.
        for i in range(parts):
            numerator = mine[i * part.trainable_size : (i + 1) * part.trainable_size]
            np.testing.assert_array_equal(
                numerator, np.arange(part.start, part.start + part.trainable_size) + i * layout.trainable_size
            )
    np.testing.assert_array_equal(np.sort(np.concatenate(taken)), values)
