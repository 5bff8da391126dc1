"""A layer that is being defined: its given arguments, and those that its type computes. Runs on the driver."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from keraunos.compat.paddle.language_parameters import define_parameter
from keraunos.compat.paddle.language_projections import Operator, Projection
from keraunos.compat.paddle.language_state import Configuration
from keraunos.compat.paddle.language_values import INPUT_SETTINGS, Bias, Input, parameter_attributes, unknown
from keraunos.compat.paddle.layer_types.geometry import square_side
from keraunos.compat.paddle.layer_types.layer_type import REQUIRED, LayerType
from keraunos.compat.paddle.model_config import InputConfig, LayerConfig
from keraunos.errors import ModelError

logger = logging.getLogger(__name__)

ACTIVATIONS = (
    "", "linear", "sigmoid", "softmax", "sequence_softmax", "relu", "brelu", "tanh", "stanh", "softrelu", "abs",
    "square", "exponential", "log",
)  # fmt: skip

_COMMON = ("inputs", "size", "active_type", "drop_rate", "device", "error_clipping_threshold")


class Draft:
    """One layer, on its way to a `LayerConfig`.

    Attributes:
        told: the configuration's arguments for each input, in order.
        feeding: the layers that feed them.
        attributes: what the type takes besides, defaults filled in; the type's function may add to it.
        settings: for each input, what the type's function works out for it alone.
    """

    def __init__(self, name: str, about: LayerType, said: Mapping[str, Any], state: Configuration) -> None:
        self.name = name
        self.about = about
        self.type = about.name
        self.state = state
        self._check_name()
        self._check_keywords(said)
        self.size: int = self.whole("size", said.get("size") or 0)
        self.active_type: str = said["active_type"] if said.get("active_type") is not None else about.active_type
        self.drop_rate: float = float(said.get("drop_rate") or 0.0)
        self.coeff: float = 1.0 if said.get("coeff") is None else float(said["coeff"])
        self.error_clipping_threshold: float = float(said.get("error_clipping_threshold") or 0.0)
        self.attributes: dict[str, Any] = {
            each: said[each] if said.get(each) is not None else default for each, default in about.attributes.items()
        }
        self.operators: tuple[Mapping[str, Any], ...] = ()
        self.told: list[Input | Projection | Operator] = []
        self.feeding: list[LayerConfig] = []
        self.settings: list[dict[str, Mapping[str, Any]]] = []
        self.parameters: list[str | None] = []
        self._bias_told: bool | Bias = self._bias(said.get("bias"))
        self._bias_name: str | None = None
        self._image: tuple[int, int] | None = None
        for each in _listed(said.get("inputs")):
            self.add_input(each)
        self._check()
        if said.get("device") is not None:
            logger.info("Layer %r: `device` changes nothing; where a layer runs is decided by Spark.", name)

    def add_input(self, value: Any) -> int:
        """Add an input. Returns its position."""
        if isinstance(value, str):
            value = Input(value)
        if not isinstance(value, Input | Projection | Operator):
            self.fail("an input must be the name of a layer, an Input, a projection or an operator", repr(value))
        source = (
            next(iter(_listed(value.input_layer_names)), None)
            if isinstance(value, Operator)
            else value.input_layer_name
        )
        if not isinstance(source, str):
            self.fail("an input names a layer by a string", repr(source))
        if source not in self.state.layers:
            known = unknown("the configuration", "layer", source, self.state.layers)
            raise ModelError(f"Layer {self.name!r} ({self.type}): inputs must be defined before; {known}")
        self.told.append(value)
        self.feeding.append(self.state.layers[source])
        self.settings.append({})
        self.parameters.append(None)
        return len(self.told) - 1

    def input_size(self, at: int) -> int:
        """Returns the width of an input."""
        return self.feeding[at].size

    def setting(self, at: int, kind: str, example: str) -> Any:
        """Returns the argument `conv`, `pool` … of an input, which must be given."""
        value = getattr(self.told[at], kind, None)
        if value is None:
            self.fail(f"input {at} ({self.feeding[at].name!r}) must say `{kind}`", "nothing", f"Write {example}")
        return value

    def image_sides(self, at: int, channels: int) -> tuple[int, int]:
        """Height and width of the image that an input returns; a square unless an earlier layer declared otherwise."""
        source = self.feeding[at]
        if channels < 1 or source.size % channels:
            self.fail(
                f"the size of input {source.name!r} must be a multiple of its channels",
                f"size {source.size}, {channels} channels",
            )
        pixels = source.size // channels
        if source.name in self.state.images:
            height, width = self.state.images[source.name]
            if height * width == pixels:
                return height, width
        side = square_side(pixels)
        if side is None:
            self.fail(
                f"input {source.name!r} must be a square image",
                f"{pixels} pixels in each of {channels} channels",
                "Give the data layer `height` and `width` if the image is not square",
            )
        return side, side

    def set_size(self, size: int, *, height: int = 0, width: int = 0) -> None:
        """The width of the layer's output; a given size, or that of another input, must be the same."""
        if self.size and self.size != size:
            self.fail(
                f"its inputs and settings give size {size}", f"size {self.size}", "Sizes of all inputs must agree"
            )
        if size < 1:
            self.fail("its size must be at least 1", f"size {size}")
        self.size = size
        if height:
            self._image = (height, width)

    def need_size(self, example: str = "size=…") -> int:
        """Returns the size, which the configuration must give."""
        if self.size < 1:
            self.fail("it must say its size", f"size={self.size}", f"Write {example}")
        return self.size

    def weight(self, at: int, size: int, dims: Sequence[int] = (), **forced: Any) -> None:
        """A parameter of an input; `forced` overrides the configuration."""
        if size == 0:
            return
        told = self.told[at]
        for refused, instead in (
            ("format", "weights are dense; give `sparse_update=True` for a large one"),
            ("update_hooks", "give `is_static=True` to a weight that must not move"),
        ):
            if getattr(told, refused, None) is not None:
                self.fail(f"`{refused}` of an input cannot be had here: {instead}", repr(getattr(told, refused)))
        name = getattr(told, "parameter_name", None) or f"_{self.name}.w{at}"
        define_parameter(self.state, name, size, dims, {**parameter_attributes(told), **forced}, self.name)
        self.parameters[at] = name

    def add_bias(self, size: int, dims: Sequence[int] = ()) -> None:
        """The bias, if the layer has one."""
        if self._bias_told is False:
            return
        told = self._bias_told if isinstance(self._bias_told, Bias) else Bias()
        name = told.parameter_name or f"_{self.name}.wbias"
        define_parameter(self.state, name, size, dims or (1, size), parameter_attributes(told), self.name)
        self._bias_name = name

    def finish(self) -> LayerConfig:
        """Returns the layer, complete."""
        if self.about.keeps_image and self._image is None:
            self._image = self.state.images.get(self.feeding[0].name)
        if self._image is not None:
            self.state.images[self.name] = self._image
        inputs = [
            InputConfig(source.name, parameter, getattr(told, "input_layer_argument", None), settings)
            for source, parameter, told, settings in zip(self.feeding, self.parameters, self.told, self.settings)
        ]
        return LayerConfig(
            name=self.name,
            type=self.type,
            size=self.size,
            inputs=tuple(inputs),
            active_type=self.active_type,
            bias=self._bias_name,
            drop_rate=self.drop_rate,
            coeff=self.coeff,
            error_clipping_threshold=self.error_clipping_threshold,
            operators=self.operators,
            attributes=self.attributes,
        )

    def whole(self, what: str, value: Any, least: int = 0) -> int:
        """Returns the value, which must be a whole number of at least that much."""
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0 or value < least:
            self.fail(f"`{what}` must be a whole number of at least {least}", f"{what}={value!r}")
        return int(value)

    def count(self, attribute: str, least: int = 0) -> int:
        """Returns an attribute of the layer, which must be a whole number of at least that much."""
        self.attributes[attribute] = self.whole(attribute, self.attributes[attribute], least)
        return int(self.attributes[attribute])

    def choice(self, what: str, value: Any, known: Sequence[str]) -> None:
        """Refuse a value that is not among the known ones."""
        if value not in known:
            self.fail(f"`{what}` must be one of {', '.join(map(repr, known))}", repr(value))

    def check(self, holds: bool, rule: str, received: str, advice: str = "") -> None:
        """Refuse the layer unless a rule holds."""
        if not holds:
            self.fail(rule, received, advice)

    def fail(self, rule: str, received: str, advice: str = "") -> NoReturn:
        """Refuse the layer: the rule that it breaks, and what there is instead."""
        raise ModelError(
            f"Layer {self.name!r} ({self.type}): {rule}. Received: {received}.{f' {advice}.' if advice else ''}"
        )

    def _bias(self, said: Any) -> bool | Bias:
        default = self.about.bias
        if said is None:
            return bool(default)
        if not isinstance(said, bool | Bias):
            self.fail("`bias` must be True, False or a Bias", repr(said))
        if default is None and said is not False:
            self.fail("layers of this type have no bias", f"bias={said!r}", "Leave it out")
        return said

    def _check_name(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            self.fail("its name must be a string that is not empty", repr(self.name))
        if "@" in self.name:
            self.fail("'@' may not be in the name of a layer", repr(self.name), "Paddle keeps it for recurrent groups")
        if self.name in self.state.layers:
            self.fail(
                "names of layers must be unique",
                f"a second layer {self.name!r}",
                f"The first is of type {self.state.layers[self.name].type!r}; rename one",
            )

    def _check_keywords(self, said: Mapping[str, Any]) -> None:
        known = {*_COMMON, "bias", *self.about.attributes, *(("coeff",) if self.about.is_cost else ())}
        for each in said:
            if each not in known:
                raise ModelError(f"Layer {self.name!r}: " + unknown(f"type {self.type!r}", "attribute", each, known))
        for each, default in self.about.attributes.items():
            if default is REQUIRED and said.get(each) is None:
                self.fail(f"layers of this type must say `{each}`", "nothing", f"Write {each}=…")

    def _check(self) -> None:
        least, most = self.about.inputs
        given = len(self.told)
        if given < least or (most is not None and given > most):
            wanted = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            self.fail(f"layers of this type take {wanted} input{'' if wanted == '1' else 's'}", f"{given} inputs")
        self.choice("active_type", self.active_type, ACTIVATIONS)
        self.check(0.0 <= self.drop_rate < 1.0, "`drop_rate` must be at least 0 and less than 1", repr(self.drop_rate))
        self.check(
            not (self.drop_rate and self.active_type.endswith("softmax")),
            "dropout cannot stand behind a softmax",
            f"drop_rate={self.drop_rate}, active_type={self.active_type!r}",
            "Put the dropout on the layer before",
        )
        for told in self.told:
            for kind in INPUT_SETTINGS:
                if getattr(told, kind, None) is not None and kind != self.about.reads:
                    self.fail(f"inputs of this type do not say `{kind}`", f"{kind}={getattr(told, kind)!r}")


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
