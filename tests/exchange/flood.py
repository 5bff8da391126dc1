"""Connections of a stranger, as a program: `python -m tests.exchange.flood PORT COUNT HEX PADDING`.

It opens COUNT connections, sends the bytes and some padding on each, and prints the most descriptors and most bytes of
memory that its parent had meanwhile: measuring from outside does not keep the parent's own threads from their work. It
holds the connections until its standard input ends.
"""

import os
import resource
import socket
import sys

from tests.exchange.footprint import Footprint


def main():
    port, count, says = int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3]) + bytes(int(sys.argv[4]))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    strangers, most = [], Footprint.of(os.getppid())
    for _ in range(count):
        stranger = socket.create_connection(("127.0.0.1", port), timeout=20)
        strangers.append(stranger)
        try:
            stranger.sendall(says)
        except OSError:
            continue
        finally:
            most = most.or_more(Footprint.of(os.getppid()))
    print(most.descriptors, most.resident, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
