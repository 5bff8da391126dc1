"""What is checked, and worked out, before a single task runs. Runs on the driver."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from keraunos.errors import ClusterError, JobError
from keraunos.exchange.addresses import is_loopback
from keraunos.job.training_job import TrainingJob
from keraunos.learners.registry import check_installed
from keraunos.session.session import Session

logger = logging.getLogger(__name__)

# A cluster that has executors has them by then; with dynamic allocation Spark asks for them when tasks wait.
REGISTER_SECONDS = 15.0
_NEXT_SECONDS = 5.0
_LOOK_SECONDS = 0.2

JAVA_ADVICE = (
    "Install Java 17 or later: `apt-get install openjdk-17-jre-headless` on Debian and Ubuntu, "
    "`dnf install java-17-openjdk-headless` on Fedora, `brew install openjdk@17` on macOS; or set JAVA_HOME to one."
)


@dataclass(frozen=True)
class Cluster:
    """What the driver knows of the cluster that a fit will run on.

    `host` is the address that its servers listen on, `None` for socket files of this user; workers connect to
    `advertised`.
    """

    executors: int
    slots: int
    task_cpus: int
    workers_on_host: int
    host: str | None
    advertised: str | None
    has_devices: bool
    memory_budget: int | None


def check_java() -> None:
    """Raise where Spark could not start because there is no Java that it takes."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        raise ClusterError(
            f"Spark needs Java, and no `java` was found{f' under JAVA_HOME={home}' if home else ''}. {JAVA_ADVICE}"
        )
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    if found and int(found.group(1)) < 17:
        raise ClusterError(f"Spark needs Java 17 or later. Received: Java {found.group(1)} at {java}. {JAVA_ADVICE}")


def survey(
    session: Session, job: TrainingJob, host: str | None = None, clock: Callable[[], float] = time.monotonic
) -> Cluster:
    """Read the cluster's facts and refuse a job that it can never run; `host` is where its servers are to listen."""
    check_backend(session, job.model.backend)
    slots = _slots_in_time(session, needed_slots(job), clock)
    _check_slots(session, job, slots)
    if session.setting("spark.speculation") == "true":
        raise ClusterError(
            "Spark may start a second copy of a running worker because spark.speculation is true. "
            "Set spark.speculation=false for training."
        )
    task_cpus = int(session.setting("spark.task.cpus") or 1)
    executors = _executors(session)
    per_host = min(job.workers, -(-slots // max(1, executors)))
    driver = (session.setting("spark.driver.host"), session.setting("spark.driver.bindAddress"))
    bind, advertised = listening(session.master, *driver) if host is None else (_own_address(session, host),) * 2
    return Cluster(
        executors=max(1, executors),
        slots=slots,
        task_cpus=task_cpus,
        workers_on_host=per_host,
        host=bind,
        advertised=advertised,
        has_devices=session.setting("spark.task.resource.gpu.amount") is not None,
        memory_budget=_container_budget(session, per_host),
    )


def check_running(session: Session, method: str, advice: str) -> None:
    """Raise where Spark was stopped before `method` was called."""
    if session.is_stopped():
        raise ClusterError(f"`{method}` needs Spark, and this Spark session was stopped. {advice}")


def check_backend(session: Session, backend: str) -> None:
    """Raise where Python workers run this process's interpreter, and it does not have the backend's package."""
    python = shutil.which(os.environ.get("PYSPARK_PYTHON", sys.executable))
    if _is_local(session) and python == sys.executable:
        check_installed(backend)


def check_partitions(partitions: int, job: TrainingJob) -> None:
    """Refuse an RDD that cannot give each worker a partition without a shuffle, which only its owner may order."""
    if partitions < job.workers:
        raise JobError(
            f"numWorkers={job.workers} needs an RDD with at least as many partitions. Received: {partitions} "
            f"partition(s). Call repartition({job.workers}) on the RDD, or lower numWorkers to {max(1, partitions)}."
        )


def needed_slots(job: TrainingJob) -> int:
    """How many tasks of a job must run at once for it to go on at all."""
    return job.placement.needed_slots(job.exchange, job.workers)


def _slots_in_time(session: Session, needed: int, clock: Callable[[], float]) -> int:
    """The slots that there are; executors that are just starting are given some seconds to register."""
    slots = session.slots()
    if _is_local(session) or _may_grow(session):
        return slots
    deadline = clock() + (_NEXT_SECONDS if slots else REGISTER_SECONDS)
    pause = threading.Event()
    while slots < needed and clock() < deadline:
        pause.wait(_LOOK_SECONDS)
        found = session.slots()
        if found != slots:
            # Others come soon behind the first, or not at all.
            deadline = clock() + _NEXT_SECONDS
        slots = found
    if not slots:
        raise ClusterError(
            f"No executor has registered with Spark within {REGISTER_SECONDS:.0f} s, so that no task can run. Expected "
            f"at least one at {session.master}. See in the cluster manager's own page whether it has workers with the "
            "memory and the cores that spark.executor.memory and spark.executor.cores ask for, and the executors' "
            f"logs. {_driver_place(session)}"
        )
    return slots


def _driver_place(session: Session) -> str:
    """Where executors look for the driver, and where it listens if that is another place."""
    host, port = session.setting("spark.driver.host"), session.setting("spark.driver.port")
    bind = session.setting("spark.driver.bindAddress")
    told = f"Executors that start connect to spark.driver.host={host}, port {port}"
    if bind is None or bind == host:
        return f"{told}; see that they can."
    return (
        f"{told}, where the driver listens on spark.driver.bindAddress={bind}; see that what comes to the one reaches "
        "the other."
    )


def _check_slots(session: Session, job: TrainingJob, slots: int) -> None:
    needed = needed_slots(job)
    if needed <= slots:
        return
    if _may_grow(session):
        _check_growth(session, needed)
        return
    if job.placement.server_tasks:
        raise ClusterError(
            f"servers={job.servers} and numWorkers={job.workers} need {needed} task slots at once, and Spark has "
            f"{slots}. Servers are tasks of their own. Lower either, give Spark more cores (now {session.master}), or "
            "let the parameters live elsewhere with servers='driver' or servers='workers'."
        )
    why = (
        "a synchronous plan" if job.exchange.synchronous else f"meet={job.exchange.meet!r} with servers={job.servers!r}"
    )
    raise ClusterError(
        f"numWorkers={job.workers} is above the {slots} task slot(s) that Spark has, and {why} needs "
        f"all its workers at once. Lower numWorkers to {slots}, give Spark more cores (now {session.master}),"
        " or use exchange='downpour', whose workers may run one after the other."
    )


def _check_growth(session: Session, needed: int) -> None:
    """Refuse what dynamic allocation will never grow to, as far as its settings tell."""
    most, cores = session.setting("spark.dynamicAllocation.maxExecutors"), session.setting("spark.executor.cores")
    if most is None or cores is None or not most.isdigit():
        return
    slots = int(most) * (int(cores) // int(session.setting("spark.task.cpus") or 1))
    if slots < needed:
        raise ClusterError(
            f"This fit needs {needed} task slots at once, and dynamic allocation grows to {slots}: "
            f"spark.dynamicAllocation.maxExecutors={most} executors of spark.executor.cores={cores}. Raise the former, "
            f"or lower numWorkers (and `servers`) to {slots} in all."
        )


def server_host(session: Session) -> str:
    """Where executors find the driver."""
    _, advertised = listening(session.master, session.setting("spark.driver.host"), None)
    return advertised or "127.0.0.1"


def listening(master: str, host: str | None, bind: str | None) -> tuple[str | None, str | None]:
    """Where the servers listen and where workers find them, as Spark's driver does it; `None` for socket files.

    In containers the two differ: a driver may listen everywhere, and be reached by another name or address.

    Args:
        master: Spark's master.
        host: spark.driver.host.
        bind: spark.driver.bindAddress.
    """
    if master.startswith("local"):
        return None, None
    if not host:
        raise JobError("spark.driver.host is not set, so executors could not find the parameter server.")
    # Spark wants brackets around IPv6 addresses.
    advertised, bind = host.strip("[]"), (bind or host).strip("[]")
    try:
        return _address_of(bind), advertised
    except (OSError, UnicodeError) as error:
        raise ClusterError(
            f"The servers of a fit listen where Spark's driver does, and {bind!r} is no address of this machine "
            f"({error}). Set spark.driver.bindAddress to one, or to 0.0.0.0 for all."
        ) from error


def _address_of(host: str) -> str:
    """An address of this machine that `host` stands for, IPv4 where there is one."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    family, kind, protocol, _, target = min(found, key=lambda each: each[0] != socket.AF_INET)
    with socket.socket(family, kind, protocol) as probe:
        probe.bind((target[0], 0))
    return str(target[0])


def _own_address(session: Session, host: str) -> str:
    """The address of this machine that a front-end's `host` stands for."""
    try:
        address = _address_of(host)
    except (OSError, UnicodeError) as error:
        raise ClusterError(
            f"`host` must be a name or an address of the driver's machine. Received: {host!r} ({error}). Leave it "
            f"out to listen where Spark's driver does, which is {server_host(session)}."
        ) from error
    if ipaddress.ip_address(address).is_unspecified:
        raise ClusterError(
            f"`host` must be one address that workers can connect to. Received: {host!r}, which stands for all. Leave "
            f"it out to listen where Spark's driver does, which is {server_host(session)}."
        )
    if is_loopback(address) and not is_loopback(server_host(session)):
        logger.warning(
            "The servers of this fit listen on %s, which workers on other machines cannot reach; Spark's driver is at "
            "%s.", address, server_host(session),
        )  # fmt: skip
    return address


def _may_grow(session: Session) -> bool:
    return session.setting("spark.dynamicAllocation.enabled") == "true"


def _is_local(session: Session) -> bool:
    return bool(session.master.startswith("local") and not session.master.startswith("local-cluster"))


def _executors(session: Session) -> int:
    if _is_local(session):
        return 1
    return max(1, session.hosts())


def _container_budget(session: Session, workers_on_host: int) -> int | None:
    """Half of what a container leaves to Python, shared by its workers; `None` where no container sets a limit."""
    if not session.master.startswith(("yarn", "k8s")):
        return None
    asked = session.setting("spark.executor.pyspark.memory") or session.setting("spark.executor.memoryOverhead")
    if asked is None:
        executor = _bytes(session.setting("spark.executor.memory") or "1g")
        factor = float(session.setting("spark.executor.memoryOverheadFactor") or 0.1)
        overhead = max(384 << 20, int(executor * factor))
    else:
        overhead = _bytes(asked)
    return max(1, overhead // 2 // max(1, workers_on_host))


def _bytes(text: str) -> int:
    """Spark's notation for memory; a bare number is MiB."""
    found = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)i?b?\s*", text.lower())
    if found is None:
        raise JobError(f"Spark's memory setting {text!r} cannot be read.")
    return int(found.group(1)) << {"k": 10, "": 20, "m": 20, "g": 30, "t": 40}[found.group(2)]
