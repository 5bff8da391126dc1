"""A pytest plugin that pairs crossed parameters: `make test` runs a part of a matrix, `make test-all` the whole.

Of a test that is marked `paired` and crosses three or more lists of parameters, the part has each value of one list
with each value of every other; of one that crosses two, it has each value of either. The rest is marked `extended`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import pytest

# What one case has of each list.
Case = tuple[Hashable, ...]


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: Any) -> Iterator[Any]:
    """All cases of a test are here together, whichever of them the command line asks for."""
    made = yield
    for items in _by_test(made if isinstance(made, list) else []):
        # One name for each list; there is no public way to them.
        for item, is_chosen in zip(items, covering([tuple(item.callspec._idlist) for item in items]), strict=True):
            if not is_chosen:
                item.add_marker(pytest.mark.extended)
    return made


def covering(cases: Sequence[Case]) -> list[bool]:
    """Which of the cases are enough for every value, or every pair of values where there are three lists or more."""
    size = 2 if cases and len(cases[0]) > 2 else 1
    parts = [set(itertools.combinations(enumerate(case), size)) for case in cases]
    missing = set().union(*parts)
    chosen = [False] * len(cases)
    taken: Counter[tuple[int, Hashable]] = Counter()
    while missing:
        # Of those that add the most, one whose values were taken least: a long list is dealt out over a short one.
        best = max(
            range(len(cases)),
            key=lambda index: (len(missing & parts[index]), -sum(taken[each] for each in enumerate(cases[index]))),
        )
        chosen[best] = True
        missing -= parts[best]
        taken.update(enumerate(cases[best]))
    return chosen


def _by_test(made: Iterable[Any]) -> Iterator[list[Any]]:
    items = [each for each in made if isinstance(each, pytest.Function) and each.get_closest_marker("paired")]
    for _, group in itertools.groupby(items, key=lambda item: item.originalname):
        yield list(group)
