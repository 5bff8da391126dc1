"""Calls that changed their meaning within one day. Runs on the driver.

A day is a span of releases. If they differ in the meaning of a call without the argument, the last meaning is used,
with a warning that has both; if the difference is between two networks, the call is refused with both. Arguments
without a name are taken up to the place from which on releases differ. The tables are from the signatures of Keras
0.1.0 to 2.3.1.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keraunos.compat.old_keras.days import Day
from keraunos.errors import JobError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class UndecidedDefault:
    """A default that changed within a day.

    Attributes:
        argument: whose default it is, by the day's own name.
        meanings: what it was, by releases, the one that is taken last.
        refused: whether it has to be given.
    """

    argument: str
    meanings: str
    refused: bool = False


@dataclass(frozen=True)
class Places:
    """Arguments without a name whose places changed within a day.

    Attributes:
        settled: how many stand where they stood in all of its releases.
        meanings: what the next one was, by releases.
    """

    settled: int
    meanings: str


_LOOP = UndecidedDefault("activation", "'sigmoid' until 0.3.2 and 'tanh' in 0.3.3", refused=True)
_GATES = UndecidedDefault("recurrent_activation", "'sigmoid' in 2.3 and 'hard_sigmoid' until 2.2")
_EPSILON_1 = UndecidedDefault("epsilon", "1e-06 until 1.0.2 and 1e-08 from 1.0.3 on")
_EPSILON_2 = UndecidedDefault("epsilon", "1e-08 until 2.1.2 and 1e-07 from 2.1.3 on")
_FILTERS_1D = UndecidedDefault("init", "'uniform' until 1.1 and 'glorot_uniform' in 1.2")

DEFAULTS: Mapping[tuple[str, str], tuple[UndecidedDefault, ...]] = {
    ("0", "SimpleRNN"): (_LOOP,),
    ("0", "GRU"): (_LOOP,),
    ("0", "BatchNormalization"): (UndecidedDefault("gamma_init", "'uniform' until 0.3.2 and 'one' in 0.3.3"),),
    ("0", "MaxoutDense"): (
        UndecidedDefault(
            "init",
            "weights of at most sqrt(6 / (inputs * outputs + nb_feature)) until 0.3.2 and of at most "
            "sqrt(3 / sqrt(nb_feature * inputs * outputs)) in 0.3.3",
        ),
    ),
    ("1", "BatchNormalization"): (
        UndecidedDefault("epsilon", "1e-06 until 1.0.7, 1e-05 until 1.1 and 0.001 in 1.2"),
        UndecidedDefault("momentum", "0.9 until 1.0.6 and 0.99 from then on"),
    ),
    ("1", "Convolution1D"): (_FILTERS_1D,),
    ("1", "Highway"): (UndecidedDefault("transform_bias", "-2 until 1.1 and 1 in 1.2"),),
    ("1", "AtrousConvolution1D"): (_FILTERS_1D,),
    ("1", "ImageDataGenerator"): (
        UndecidedDefault("featurewise_center", "True until 1.0.1 and False from 1.0.2 on"),
        UndecidedDefault("featurewise_std_normalization", "True until 1.0.1 and False from 1.0.2 on"),
    ),
    ("1", "ImageDataGenerator.flow"): (UndecidedDefault("shuffle", "False until 1.0.3 and True from 1.0.4 on"),),
    **{("1", name): (_EPSILON_1,) for name in ("RMSprop", "Adagrad", "Adadelta")},
    **{("2", name): (_EPSILON_2,) for name in ("RMSprop", "Adagrad", "Adadelta", "Adam", "Adamax")},
    **{("2", name): (_GATES,) for name in ("GRU", "LSTM", "GRUCell", "LSTMCell")},
}

_EACH_MEAN = "measured for each pixel until 1.1 and for each channel in 1.2"
_SAMPLE_0 = "along the rows of an image in 0.3.3 and over the whole image before"
_SAMPLE_2 = "over the channels of each pixel until 2.0.8 and over the whole image from 2.0.9 on"
# Arguments whose values meant another thing, by releases, the one that is taken last.
USES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("0", "ImageDataGenerator"): {"samplewise_center": _SAMPLE_0, "samplewise_std_normalization": _SAMPLE_0},
    ("1", "ImageDataGenerator"): {
        "featurewise_center": _EACH_MEAN,
        "featurewise_std_normalization": _EACH_MEAN,
        "zca_whitening": "by sums divided by the pixels until 1.1.0 and by the images from 1.1.1 on",
    },
    ("2", "ImageDataGenerator"): {
        "samplewise_center": _SAMPLE_2,
        "samplewise_std_normalization": _SAMPLE_2,
        "shear_range": "in radians until 2.1.2 and in degrees from 2.1.3 on",
    },
}

_LATE_WEIGHTS = "`weights` until 0.2 and `W_regularizer` in 0.3"
PLACES: Mapping[tuple[str, str], Places] = {
    ("0", "Embedding"): Places(3, "`weights` or `W_regularizer` in 0.1 and `input_length` from 0.2 on"),
    ("0", "Convolution2D"): Places(8, "`W_regularizer` in 0.2 and `dim_ordering` in 0.3"),
    ("0", "MaxPooling1D"): Places(2, "`ignore_border` until 0.2 and `border_mode` in 0.3"),
    ("0", "MaxPooling2D"): Places(2, "`ignore_border` until 0.2 and `border_mode` in 0.3"),
    ("0", "BatchNormalization"): Places(2, "`momentum` until 0.2 and `axis` in 0.3"),
    ("0", "SimpleRNN"): Places(4, _LATE_WEIGHTS),
    ("0", "GRU"): Places(5, _LATE_WEIGHTS),
    ("0", "LSTM"): Places(6, _LATE_WEIGHTS),
    ("1", "Highway"): Places(1, "`transform_bias` until 1.1 and `activation` in 1.2"),
    ("0", "Highway"): Places(1, "`transform_bias` in 0.3 and nothing before"),
    ("2", "Conv1D"): Places(4, "`dilation_rate` until 2.1 and `data_format` from 2.2 on"),
    ("2", "SeparableConv2D"): Places(5, "`depth_multiplier` until 2.1 and `dilation_rate` from 2.2 on"),
    ("2", "Conv2DTranspose"): Places(4, "`data_format` until 2.1 and `output_padding` from 2.2 on"),
}
# The form before 0.2, where the size of the input came first.
_UNNAMED = "`W_regularizer` until 0.1.1 and `name` from then on"
_UNREGULARIZED = "`W_constraint` until 0.1.1 and `activity_regularizer` from then on"
_UNSHAPED = "`image_shape` until 0.1.1 and `border_mode` from then on"
FIRST_PLACES: Mapping[str, Places] = {
    "Dense": Places(5, _UNNAMED),
    "TimeDistributedDense": Places(7, _UNREGULARIZED),
    "MaxoutDense": Places(7, _UNREGULARIZED),
    "Convolution1D": Places(2, "`filter_length`, after `nb_filter` and `stack_size` until 0.1.1 and after `input_dim` "
                               "and `nb_filter` from then on"),
    "Convolution2D": Places(7, _UNSHAPED),
    "LSTM": Places(4, "`activation` until 0.1.1 and `forget_bias_init` from then on"),
}  # fmt: skip


def check_places(name: str, day: Day, arguments: Sequence[Any], *, first: bool = False) -> None:
    """Refuse an argument without a name that was another one in other releases of the day."""
    places = FIRST_PLACES.get(name) if first else PLACES.get((day.name, name))
    if places is not None and len(arguments) > places.settled:
        raise JobError(
            f"{name} of Keras {day.name} takes {places.settled} arguments without a name: the next was "
            f"{places.meanings}. Received: {len(arguments)}, {', '.join(map(repr, arguments))}. Give the others by "
            "name."
        )


def say_defaults(name: str, day: Day, given: Iterable[str], order: Sequence[str] = (), places: int = 0) -> None:
    """Warn of defaults that changed within the day and are not given; refuse those that must be."""
    told = {*given, *order[:places]}
    for default in DEFAULTS.get((day.name, name), ()):
        if default.argument in told:
            continue
        both = f"{name} without `{default.argument}` meant {default.meanings}"
        if default.refused:
            raise JobError(f"{both}, and nothing tells which. Received: no `{default.argument}`. Give it by name.")
        warn_once(f"{both}, which is taken. Give `{default.argument}` if the program is of another release.")


def say_uses(name: str, day: Day, given: Mapping[str, Any]) -> None:
    """Warn of arguments that are used and meant another thing in other releases of the day."""
    for argument, meanings in USES.get((day.name, name), {}).items():
        if given.get(argument):
            warn_once(f"`{argument}` of {name} was {meanings}, which is taken.")


def warn_once(message: str) -> None:
    """Log a warning the first time that there is reason to."""
    if message not in _said:
        _said.add(message)
        logger.warning("%s", message)


_said: set[str] = set()
