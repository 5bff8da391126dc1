"""A real standalone Spark on one machine: a master and workers, each a process of its own, from the pip package.

    with StandaloneCluster(folder, on_loopback(2)) as cluster:
        ...  # a driver with cluster.environment and cluster.master

Ports are the system's choice. All that belongs to the cluster, and all that drivers with its environment start, carries
its mark; leaving the context ends every such process and raises where one cannot be ended.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyspark

from keraunos.worker.thread_name import server_name, worker_name
from tests.clusters import processes
from tests.clusters.hosts import Host, Hosts
from tests.clusters.processes import MARK, Process
from tests.java import SHORT_LIVED

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60.0

_HOME = Path(pyspark.__file__).parent
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = "CoarseGrainedExecutorBackend"
JAVA_OPTIONS = f"{SHORT_LIVED} -XX:-UsePerfData"


class StandaloneCluster:
    """One master and a worker on each host; `cores` are each worker's, `memory` is Spark's notation."""

    def __init__(self, folder: Path, hosts: Hosts, *, cores: int = 1, memory: str = "1g") -> None:
        self.folder = folder
        self.hosts = hosts
        self.mark = uuid.uuid4().hex
        self._cores = cores
        self._memory = memory
        self._started: list[subprocess.Popen[bytes]] = []
        self._logs: dict[str, Path] = {}

    def __enter__(self) -> Self:
        self.temporary.mkdir(parents=True, exist_ok=True)
        try:
            self._start_master()
            for host in self.hosts.workers:
                self._start_worker(host)
            processes.until(self._complete, START_SECONDS, f"{len(self.hosts.workers)} workers at {self.master}")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def temporary(self) -> Path:
        """Where everything that belongs to the cluster has its temporary files."""
        return self.folder / "temporary"

    @property
    def environment(self) -> dict[str, str]:
        """What a driver of this cluster needs in its environment, whatever else it has."""
        return self._environment(self.hosts.center)

    def close(self) -> None:
        """End every process of the cluster and of its drivers."""
        left = processes.end(processes.marked(self.mark))
        # Those that came about while the first were ending.
        left += processes.end(processes.marked(self.mark))
        for process in self._started:
            process.wait(timeout=START_SECONDS)
        self._started.clear()
        left = [each for each in left if each.lives]
        if left:
            raise RuntimeError("Processes of the cluster could not be ended: " + "; ".join(map(str, left)))

    def alive(self) -> bool:
        """Whether the master and all workers run and know each other."""
        return all(process.poll() is None for process in self._started) and self._complete() is not None

    def state(self) -> dict[str, Any]:
        """What the master tells of its workers and applications."""
        with urllib.request.urlopen(f"{self._page}/json/", timeout=10) as answer:
            told: dict[str, Any] = json.load(answer)
        return told

    def members(self) -> list[Process]:
        """All processes but the master and the workers: drivers, their JVMs, executors, Python workers."""
        daemons = {process.pid for process in self._started}
        return [each for each in processes.marked(self.mark) if each.pid not in daemons]

    def executors(self) -> list[Process]:
        """The JVMs that run tasks."""
        return [each for each in self.members() if _EXECUTOR in each.command and "java" in each.command]

    def python_workers(self, executor: Process) -> list[Process]:
        """An executor's Python processes: the daemon, then those that it has forked."""
        return processes.below(executor, self.members())

    def worker(self, rank: int) -> Process | None:
        """The Python process that trains a rank now; the newest, where Spark has started it again."""
        return self._named(worker_name(rank))

    def server(self, index: int) -> Process | None:
        """The Python process that serves a slice in a task of its own."""
        return self._named(server_name(index))

    def executor_of(self, process: Process) -> Process | None:
        """The JVM whose task a Python process runs."""
        found = [each for each in self.executors() if process in self.python_workers(each)]
        return found[0] if found else None

    def host_of(self, executor: Process) -> Host:
        """Where an executor runs."""
        found = re.search(r"--hostname (\S+)", executor.command)
        (host,) = [each for each in self.hosts.workers if found is not None and each.address == found.group(1)]
        return host

    def _named(self, name: str) -> Process | None:
        found = [each for each in self.members() if each.name == name]
        return found[-1] if found else None

    def _start_master(self) -> None:
        host = self.hosts.center
        log = self._start("master", host, (), _MASTER, "--host", host, "--port", "0", "--webui-port", "0")
        self.master = self._told(log, r"Starting Spark master at (spark://\S+)")
        self._page = self._told(log, r"MasterWebUI.*started at (http://\S+)")

    def _start_worker(self, host: Host) -> None:
        name = f"worker-{host.address}"
        options = {
            "--host": host.address,
            "--port": "0",
            "--webui-port": "0",
            "--cores": str(self._cores),
            "--memory": self._memory,
            "--work-dir": str(self.folder / name),
        }
        written = [text for option in options.items() for text in option]
        self._start(name, host.address, host.prefix, _WORKER, *written, self.master)

    def _start(self, name: str, address: str, prefix: tuple[str, ...], main: str, *arguments: str) -> Path:
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*prefix, str(_HOME / "bin" / "spark-class"), main, *arguments],
                cwd=self.folder,
                env=self._environment(address),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return log

    def _told(self, log: Path, pattern: str) -> str:
        """What a daemon writes into its log once it knows."""

        def found() -> str | None:
            match = re.search(pattern, log.read_text(errors="replace"))
            if match is None and self._started[-1].poll() is not None:
                raise RuntimeError(f"A part of the cluster ended at once:\n{log.read_text(errors='replace')[-2000:]}")
            return match.group(1) if match else None

        return processes.until(found, START_SECONDS, f"A line {pattern!r} in {log}")

    def _complete(self) -> bool | None:
        try:
            workers = self.state()["workers"]
        except (OSError, ValueError):
            return None
        alive = {each["host"] for each in workers if each["state"] == "ALIVE"}
        return True if {host.address for host in self.hosts.workers} <= alive else None

    def _environment(self, address: str) -> dict[str, str]:
        own = {
            MARK: self.mark,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_HOME": str(_HOME),
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "TMPDIR": str(self.temporary),
            "KERAS_BACKEND": "jax",
        }
        return {**_inherited(), **own}


def _inherited() -> Mapping[str, str]:
    """The environment of this process, without what would steer a Spark in another direction."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
