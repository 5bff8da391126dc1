"""A worker's connection where no server can be reached."""

import socket
from contextlib import ExitStack

import pytest
import zmq

from keraunos.errors import ExchangeError
from keraunos.exchange.link import Link
from keraunos.exchange.security import Credentials


@pytest.fixture
def connected():
    """Makes links to ports of this machine."""
    with ExitStack() as stack:
        context = stack.enter_context(zmq.Context())

        def connect(port):
            address, credentials = f"tcp://127.0.0.1:{port}", Credentials.fresh(encrypted=True).for_client()
            return stack.enter_context(Link(context, {"address": address, "credentials": credentials}, 0, 1))

        yield connect


def test_a_server_that_was_never_reached_is_told_with_the_system_s_reason(connected):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ExchangeError, match=rf"tcp://127.0.0.1:{port} could not be reached from .*Connection refused"):
        connected(port).check_there()


def test_a_server_to_which_nothing_gets_through_is_tried_for_a_while(connected):
    with ExitStack() as stack:
        deaf = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = deaf.getsockname()[1]
        # Who comes while its queue is full gets no answer, as from a firewall.
        for _ in range(2):
            caller = stack.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(("127.0.0.1", port))
        link = connected(port)
        link.check_there(25.0)
        with pytest.raises(ExchangeError, match="could not be reached from .*: timed out"):
            link.check_there(30.0)
