import pytest

from keraunos.backends import BACKENDS
from keraunos.cli import backends
from keraunos.errors import ModelError


@pytest.fixture
def only(monkeypatch):
    def install(*names):
        monkeypatch.setattr(backends, "installed_backends", lambda: [name for name in BACKENDS if name in names])

    return install


def test_the_first_installed_backend_is_taken(only):
    only("torch", "tensorflow")
    assert backends.choose_backend(None) == "tensorflow"
    assert backends.choose_backend("torch") == "torch"


def test_none_installed_says_what_to_install(only):
    only()
    with pytest.raises(ModelError, match=r"Received: none\. Install it with `pip install 'keraunos\[jax\]'`"):
        backends.choose_backend(None)


def test_a_backend_that_is_not_installed_is_named(only):
    only("jax")
    with pytest.raises(ModelError, match=r"Expected torch\. Received: jax\..*keraunos\[torch\]"):
        backends.choose_backend("torch")
