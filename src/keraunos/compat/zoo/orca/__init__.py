"""`zoo.orca`: the context of an Orca program. Orca's estimators and data are not here. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.zoo.orca.common import OrcaContext, init_orca_context, stop_orca_context

__all__ = ["OrcaContext", "init_orca_context", "stop_orca_context"]
