"""The transport that a placement names, imported when it is asked for. Runs on workers; checks run on the driver.

A placement comes to a worker from the driver, over the job's own connection. The driver looks at the name before it
starts anything: what is not built in must be of a trusted module, because a saved pipeline may name it.
"""

from __future__ import annotations

import importlib

from keraunos.errors import JobError
from keraunos.exchange.client import Client
from keraunos.exchange.transports.transport import Transport
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.job.placement import Placement
from keraunos.trust import how_to_trust, is_trusted

_BUILT_IN = f"{__package__}."


def make_transport(
    client: Client, plan: ExchangePlan, placement: Placement, workers: int, ports: tuple[int, int] | None = None
) -> Transport:
    """A worker's transport, to be entered as a context."""
    found = transport_class(placement)
    found.check(plan)
    return found(client, plan, placement, workers, ports)


def check_transport(placement: Placement, plan: ExchangePlan) -> None:
    """Refuse, on the driver and before any work, a transport that is not trusted or does not fit the plan."""
    home = placement.transport
    module, _, name = home.partition(":")
    if not module.startswith(_BUILT_IN) and not is_trusted(module):
        raise JobError(
            f"The transport {name!r} is of the module {module!r}, which is not trusted. Expected: a transport that is "
            f"built in or of a trusted module. Received: servers={home!r}. {how_to_trust(module)}."
        )
    transport_class(placement).check(plan)


def transport_class(placement: Placement) -> type[Transport]:
    """The class that a placement names."""
    home = placement.transport
    module, _, name = home.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise JobError(
            f"A transport must be importable on the driver and on every worker. Expected: {home!r}. Received: {error}. "
            "Install its package on the executors."
        ) from error
    if not (isinstance(found, type) and issubclass(found, Transport)):
        raise JobError(f"A transport must be a subclass of Transport. Expected at: {home!r}. Received: {found!r}.")
    return found
