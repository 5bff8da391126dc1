"""The cases of a matrix that only `make test-all` runs."""

import pytest


def extended(*values, id=None):  # noqa: A002 - pytest's own name
    """The values of one case; `make test` runs others that pair them in another way."""
    return pytest.param(*values, id=id, marks=pytest.mark.extended)
