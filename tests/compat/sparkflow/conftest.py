"""Ports for the tests of SparkFlow's servers."""

import socket

import pytest


@pytest.fixture
def free_port():
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.fixture
def busy_port():
    """A port that something listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found.getsockname()[1]
