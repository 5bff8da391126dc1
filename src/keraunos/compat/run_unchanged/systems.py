"""The aliases of the older systems: their names for modules of Keraunos. Runs on the driver and on workers.

To add a system, add its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from keraunos.errors import JobError, one_of

TENSORFLOW_1 = {"tensorflow": "keraunos.compat.tensorflow1"}


# What `keras` is to a program of an older day; TensorFlow 2 had Keras 2 as `tensorflow.keras`.
OLD_KERAS: Mapping[str, Mapping[str, str]] = {
    "0": {"keras": "keraunos.compat.keras0"},
    "1": {"keras": "keraunos.compat.keras1"},
    "2": {"keras": "keraunos.compat.keras2", "tensorflow": "keraunos.compat.tensorflow2"},
}
# The same beside TensorFlow 1.x, whose own `tf.keras` is another matter.
OLD_KERAS_ALONE: Mapping[str, Mapping[str, str]] = {
    day: {"keras": shadows["keras"]} for day, shadows in OLD_KERAS.items()
}
TODAYS_KERAS = "3"


_PYTHON_2 = "python2"


@dataclass(frozen=True)
class System:
    """The names that a program of one system expects.

    Attributes:
        name: what it is called on the command line.
        aliases: packages of the system, each with the package of Keraunos that replaces it, submodules included.
        fallbacks: the same for names that anybody may use; a program's own module of that name comes first.
        shadows: packages that other code needs unchanged, each with the module that the program sees instead.
        names: what its programs use without importing it, each with its module or `module:attribute`.
        dated: whether its programs may be older than Spark 2, and use what that dropped.
        keras_of: the replacements of packages in its programs for an older Keras, by the Keras.
        on_driver: `module:function`, called without arguments before a program runs: what only a driver has use for.
        slots: `module:function`, from a program's source to how many task slots it will ask for, or `None`.
        keras: which Keras the program means by `keras`: a key of `OLD_KERAS`, or nothing for the one that is installed.
        python2: whether the program is for Python 2, and with it the modules beside it.
    """

    name: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    shadows: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    dated: bool = False
    keras_of: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    on_driver: str | None = None
    slots: str | None = None
    keras: str = ""
    python2: bool = False

    @property
    def label(self) -> str:
        """The text that identifies the system in another process, for `system_named`."""
        return f"{self.name}:{self.keras}:{_PYTHON_2 if self.python2 else ''}".rstrip(":")


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
            # Elephas's own example of a search, of 2016, uses it without importing it.
            names={"pickle": "pickle"},
            dated=True,
            keras_of=OLD_KERAS,
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
            fallbacks={"tensorflow_estimator": "keraunos.compat.tensorflow1.tensorflow_estimator"},
            shadows=TENSORFLOW_1,
            keras_of=OLD_KERAS_ALONE,
        ),
    )
}

# A current program: there are no aliases.
PLAIN = System("")


def system_named(label: str) -> System:
    """Returns the system of that name, or of `name:keras:python2`; `""` is a program that needs none."""
    name, keras, python = (*label.split(":", 2), "", "")[:3]
    if not name:
        return PLAIN
    if name not in SYSTEMS:
        raise JobError(one_of("--as", name, SYSTEMS))
    system = replace(SYSTEMS[name], python2=True) if python == _PYTHON_2 else SYSTEMS[name]
    return with_keras(system, keras)


def with_keras(system: System, keras: str) -> System:
    """Returns the system for programs of that Keras; `""` leaves it open, and "3" is the one that is installed."""
    if not keras:
        return system
    if keras != TODAYS_KERAS and keras not in OLD_KERAS:
        raise JobError(one_of("--keras", keras, (*OLD_KERAS, TODAYS_KERAS)))
    if not system.keras_of:
        given = f"--as {system.name}" if system.name else "no --as"
        taken = " or ".join(f"--as {each.name}" for each in SYSTEMS.values() if each.keras_of)
        raise JobError(f"`--keras` must be given with {taken}. Received: --keras {keras} with {given}.")
    return replace(system, keras=keras, shadows={**system.shadows, **system.keras_of.get(keras, {})})
