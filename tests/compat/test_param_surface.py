"""What users of older systems see of their Params is what it was; see `tests/ml/param_surface.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ml.param_surface import accessors, load, surface, written

WRITTEN = written(Path(__file__).with_name("param_surface.json"))


def _class(kind):
    if ".sparkflow." in kind:
        pytest.importorskip("tensorflow")
    return load(kind)


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_users_see_of_the_params_stays(kind):
    assert surface(_class(kind)) == WRITTEN[kind]


@pytest.mark.parametrize("kind", WRITTEN)
def test_every_setter_and_getter_has_a_text(kind):
    for name, method in accessors(_class(kind)).items():
        assert method.__name__ == name
        assert method.__doc__
