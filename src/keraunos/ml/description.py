"""A fitted model in a few words, for whoever prints it. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.ml.signature import Port, Signature
from keraunos.telemetry.history import History


def described(kind: str, uid: str, model: str, backend: str, signature: Signature, history: History) -> str:
    """The class and uid, what model it holds, what that takes and gives, and what its training reached."""
    ports = f"{_ports(signature.inputs) or 'inputs by column'} -> {_ports(signature.outputs)}"
    return f"{kind}(uid={uid!r}, model={model} on {backend}, {ports}, {_reached(history)})"


def _ports(ports: tuple[Port, ...]) -> str:
    return ", ".join(f"{port.name}{_shape(port.shape)}" for port in ports)


def _shape(shape: tuple[Any, ...]) -> str:
    return f"({', '.join('any' if size is None else str(size) for size in shape)})"


def _reached(history: History) -> str:
    if not history.epochs:
        return "no epochs"
    length = f"{len(history.epochs)} epoch{'s' if len(history.epochs) > 1 else ''}"
    last = ", ".join(f"{name}={value:.4g}" for name, value in history.epochs[-1].items())
    return f"{length}: {last}" if last else length
