"""What another user of the machine tries against a running fit, as a program of that user's.

`python other_user.py PID FOLDER` prints what it could get at, as JSON: paths it could read with their content, sockets
that answered, processes it could look into.
"""

import contextlib
import json
import os
import socket
import sys
from pathlib import Path

MOST_BYTES = 1 << 20


def main():
    pids, folder = sys.argv[1].split(","), Path(sys.argv[2])
    found = {"user": os.geteuid(), "read": {}, "answered": [], "changed": [], "tried": 0}
    for path in [
        *(Path("/proc", pid, name) for pid in pids for name in ("environ", "mem", "maps")),
        *files(folder, pids),
    ]:
        found["tried"] += 1
        with contextlib.suppress(OSError), path.open("rb") as file:
            found["read"][str(path)] = file.read(MOST_BYTES).hex()
    for address in (folder, *sockets_in(folder)):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(address))
            found["answered"].append(str(address))
        with contextlib.suppress(OSError):
            address.rename(address.with_name("taken"))
            found["changed"].append(str(address))
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as impostor:
            impostor.bind(str(folder / "impostor"))
            found["changed"].append("impostor")
    print(json.dumps(found))


def files(folder, pids):
    """Whatever of a fit's may be opened by its path."""
    for place in (folder, folder.parent, Path("/dev/shm")):
        with contextlib.suppress(OSError):
            yield from (each for each in place.rglob("*keraunos*") if each.is_file())
    for pid in pids:
        yield from (Path("/proc", pid, name) for name in ("environ", "mem", "maps"))
        with contextlib.suppress(OSError):
            yield from Path("/proc", pid, "fd").iterdir()
        yield from (Path("/proc", pid, "fd", str(number)) for number in range(64))


def sockets_in(folder):
    try:
        return list(folder.iterdir())
    except OSError:
        return []


if __name__ == "__main__":
    main()
