"""Which names of the older systems stand for which modules of Keraunos. Runs on the driver and on workers.

To add a system, add its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keraunos.errors import JobError, one_of

TENSORFLOW_1 = {"tensorflow": "keraunos.compat.tensorflow1"}


@dataclass(frozen=True)
class System:
    """What a program of one system expects to find.

    Attributes:
        name: what it is called on the command line.
        aliases: packages of the system, each with the package of Keraunos that stands for it, submodules included.
        fallbacks: the same for names that anybody may use; a program's own module of that name comes first.
        shadows: packages that other code needs as they are, each with the module that the program sees instead.
        names: what its programs use without importing it, each with its module or `module:attribute`.
        dated: whether its programs may be older than Spark 2 and Keras 3, and use what those dropped.
        on_driver: `module:function`, called without arguments before a program runs: what only a driver has use for.
        slots: `module:function`, from a program's source to how many task slots it will ask for, or `None`.
    """

    name: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    shadows: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    dated: bool = False
    on_driver: str | None = None
    slots: str | None = None


SYSTEMS = {
    system.name: system
    for system in (
        System(
            "elephas",
            aliases={"elephas": "keraunos.compat.elephas"},
            fallbacks={
                "hyperas": "keraunos.compat.elephas.hyperas",
                "hyperopt": "keraunos.compat.elephas.hyperopt",
            },
            dated=True,
        ),
        System(
            "paddle",
            aliases={"paddle": "keraunos.compat.paddle"},
            fallbacks={
                "config_parser": "keraunos.compat.paddle.config_parser",
                "trainer_config_helpers": "keraunos.compat.paddle.trainer_config_helpers",
            },
            on_driver="keraunos.compat.paddle.image_table:install",
            slots="keraunos.compat.paddle.cluster_size:slots_of",
        ),
        System("sparkflow", aliases={"sparkflow": "keraunos.compat.sparkflow"}, shadows=TENSORFLOW_1),
        System(
            "tensorspark",
            aliases={"tensorspark": "keraunos.compat.tensorspark"},
            fallbacks={
                "core": "keraunos.compat.tensorspark.core",
                "example": "keraunos.compat.tensorspark.example",
            },
            shadows=TENSORFLOW_1,
            names={"sps": "keraunos.compat.tensorspark.core.spark_session"},
        ),
        System(
            "zoo",
            aliases={"bigdl": "keraunos.compat.zoo.bigdl", "zoo": "keraunos.compat.zoo"},
            shadows=TENSORFLOW_1,
        ),
    )
}

# A program of today: nothing stands for anything else.
PLAIN = System("")


def system_named(name: str) -> System:
    """The system of that name; `""` is a program that needs none."""
    if not name:
        return PLAIN
    if name not in SYSTEMS:
        raise JobError(one_of("--as", name, SYSTEMS))
    return SYSTEMS[name]
