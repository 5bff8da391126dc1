"""The part of a matrix that `make test` runs: small, and with all that it promises."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import paired
from tests.paired import covering

PROGRAM = """
import pytest

@pytest.mark.paired
@pytest.mark.parametrize("servers", ["driver", "workers", "tasks"])
@pytest.mark.parametrize(("plan", "every"), [("averaging", 3), ("downpour", 1)])
def test_crossed(plan, every, servers):
    pass

@pytest.mark.parametrize("servers", ["driver", "workers"])
def test_as_it_is(servers):
    pass
"""


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_every_value_comes_up_or_every_pair_of_three_lists(sizes):
    cases = list(itertools.product(*map(range, sizes)))
    chosen = [case for case, is_chosen in zip(cases, covering(cases), strict=True) if is_chosen]
    size = 2 if len(sizes) > 2 else 1
    for names in itertools.combinations(range(len(sizes)), size):
        wanted = set(itertools.product(*(range(sizes[name]) for name in names)))
        assert {tuple(case[name] for name in names) for case in chosen} == wanted
    if len(sizes) == 2:
        assert len(chosen) == max(sizes)


@pytest.fixture
def collected(pytester):
    def collected(*arguments):
        pytester.makepyfile(PROGRAM)
        pytester.makeini("[pytest]\nmarkers =\n  paired\n  extended")
        passed, *others = pytester.inline_run(*arguments, "-p", "no:cacheprovider", plugins=[paired]).listoutcomes()
        assert others == [[], []]
        return [each.nodeid.partition("::")[2] for each in passed]

    return collected


def test_the_rest_is_extended(collected):
    assert collected("-m", "extended") == [
        "test_crossed[averaging-3-workers]",
        "test_crossed[downpour-1-driver]",
        "test_crossed[downpour-1-tasks]",
    ]


def test_what_is_asked_for_by_name_is_what_it_was(collected):
    assert collected("-m", "extended", "-k", "averaging and workers") == ["test_crossed[averaging-3-workers]"]
    assert collected("-m", "not extended", "-k", "averaging and workers") == []
