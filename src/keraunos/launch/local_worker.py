"""The process of one local worker: `python -m keraunos.launch.local_worker`, fed through standard input.

It reads a header behind its length, then an Arrow stream with the rows; the job itself it fetches from the driver.
Secrets come through the pipe, never through the command line or the environment.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from functools import reduce
from typing import IO, Any

import pyarrow as pa

from keraunos.errors import ExchangeError
from keraunos.exchange import hosting
from keraunos.exchange.client import Stopped
from keraunos.worker import loop

_LOOK_SECONDS = 0.5


def main() -> int:
    """Train one rank; the exit code says whether it ended well."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    header = json.loads(_blob(sys.stdin.buffer))
    if header["slice"] is not None:
        return _serve(header)
    seat = loop.Seat(
        rank=header["rank"],
        incarnation=header["incarnation"],
        threads=header["threads"],
        workers_on_host=header["workers"],
    )
    custom_objects = {name: _imported(*reference) for name, reference in header["imports"].items()}
    try:
        loop.run(seat, header["connection"], pa.ipc.open_stream(sys.stdin.buffer), custom_objects)
    except ExchangeError:
        return 3
    return 0


def _end_with(parent: int) -> None:
    """End when the driver is gone: killed, it tells nobody."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(4)


def _serve(header: dict[str, Any]) -> int:
    try:
        hosting.host_slice(header["connection"], header["slice"], header["incarnation"], loop.versions())
    except Stopped:
        return 0
    except ExchangeError:
        return 3
    return 0


def _blob(pipe: IO[bytes]) -> bytes:
    length = int.from_bytes(pipe.read(8), "big")
    return pipe.read(length)


def _imported(module: str, name: str) -> Any:
    return reduce(getattr, name.split("."), importlib.import_module(module))


if __name__ == "__main__":
    sys.exit(main())
