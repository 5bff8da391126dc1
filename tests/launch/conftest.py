"""What the tests of a fit's start, course and end share."""

from tests.conformance.forked_workers import fork_server, forked_workers

__all__ = ["fork_server", "forked_workers"]
