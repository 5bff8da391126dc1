"""The time of get_parameters and update_parameters against Elephas 7.3's parameter servers; prints JSON.

    python benchmarks/peers/elephas_round.py --server http --sizes 1000000

Runs in the environment that elephas.sh makes. The server runs as Elephas runs it (Flask in a forked process, or a
thread of the driver), the one client in another process, as a worker would: two at once would only be slower. Prints
seconds per round and size.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time

os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def serve(kind, size, rounds, warm_up):
    """Seconds of every round between a server here and a client in a process of its own."""
    import keras
    from elephas.parameter.factory import ClientServerFactory
    from elephas.utils.serialization import model_to_dict

    model = keras.Sequential([keras.Input((size // 1000 - 1,)), keras.layers.Dense(1000)])
    model.compile("sgd", "mse")
    port = free_port()
    server = ClientServerFactory.get_factory(kind).create_server(
        model_to_dict(model), port=port, mode="asynchronous", custom_objects=None
    )
    server.start()
    try:
        command = [sys.executable, __file__, "--client", str(port), "--server", kind, "--warm-up", str(warm_up)]
        answer = subprocess.run([*command, "--rounds", str(rounds)], stdout=subprocess.PIPE, check=True)
    finally:
        if kind == "http":
            server.stop()
    return json.loads(answer.stdout.splitlines()[-1])


def call(kind, port, rounds, warm_up):
    """The client's side: get the parameters, send an update of the same shapes, again and again."""
    from elephas.parameter.client import BaseParameterClient

    client = BaseParameterClient.get_client(kind, port)
    delta = [0.0 * each for each in client.get_parameters()]
    taken = []
    for _ in range(warm_up + rounds):
        started = time.perf_counter()
        client.get_parameters()
        client.update_parameters(delta)
        taken.append(time.perf_counter() - started)
    return taken[warm_up:]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=["http", "socket"], required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000], help="multiples of 1000")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--client", type=int, default=None, metavar="PORT", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client is not None:
        print(json.dumps(call(arguments.server, arguments.client, arguments.rounds, arguments.warm_up)))
        return
    seconds = {
        str(size): serve(arguments.server, size, arguments.rounds, arguments.warm_up) for size in arguments.sizes
    }
    import importlib.metadata

    print(json.dumps({"seconds": seconds, "version": importlib.metadata.version("elephas")}), flush=True)
    # The socket server's threads wait for connections that are closed, and stopping it may wait for ever.
    os._exit(0)


if __name__ == "__main__":
    main()
