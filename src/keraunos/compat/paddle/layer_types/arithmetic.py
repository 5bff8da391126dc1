"""Arithmetic between rows and columns, and choices of ids. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.paddle.layer_types.draft import Draft
from keraunos.compat.paddle.layer_types.layer_type import REQUIRED, layer_type


@layer_type("out_prod", "OuterProdLayer", inputs=(2, 2))
def out_prod(draft: Draft) -> None:
    """Every column of the one times every column of the other."""
    draft.set_size(draft.input_size(0) * draft.input_size(1))


@layer_type("power", "PowerLayer", inputs=(2, 2))
def power(draft: Draft) -> None:
    """The second input to the power of the first."""
    one_wide(draft, 0)
    draft.set_size(draft.input_size(1))


@layer_type("scaling", "ScalingLayer", inputs=(2, 2))
def scaling(draft: Draft) -> None:
    """The second input times the first."""
    one_wide(draft, 0)
    draft.set_size(draft.input_size(1))


@layer_type("slope_intercept", "SlopeInterceptLayer", attributes={"slope": 1.0, "intercept": 0.0}, keeps_image=True)
def slope_intercept(draft: Draft) -> None:
    """The input times `slope` plus `intercept`."""
    draft.set_size(draft.input_size(0))


@layer_type("sum_to_one_norm", "SumToOneNormLayer", keeps_image=True)
def sum_to_one_norm(draft: Draft) -> None:
    """The input divided by its sum."""
    draft.set_size(draft.input_size(0))


@layer_type("interpolation", "InterpolationLayer", inputs=(3, 3))
def interpolation(draft: Draft) -> None:
    """A mean of the second and third input; the first is the weight of the second."""
    one_wide(draft, 0)
    for at in (1, 2):
        draft.set_size(draft.input_size(at))


@layer_type("conv_shift", "ConvShiftLayer", inputs=(2, 2))
def conv_shift(draft: Draft) -> None:
    """The circular convolution of the first input with the second."""
    draft.check(draft.input_size(1) % 2 == 1, "its second input must have an odd size", f"size {draft.input_size(1)}")
    draft.check(
        draft.input_size(1) <= draft.input_size(0),
        "its second input must not be wider than the first",
        f"sizes {draft.input_size(0)} and {draft.input_size(1)}",
    )
    draft.set_size(draft.input_size(0))


@layer_type("convex_comb", "ConvexCombinationLayer", inputs=(2, 2), positional=("name", "size", "inputs"))
def convex_comb(draft: Draft) -> None:
    """Rows of the second input weighed by the first, and summed."""
    _rows_of(draft)


@layer_type(
    "cos_vm",
    "CosSimVecMatLayer",
    inputs=(2, 2),
    attributes={"cos_scale": 1.0},
    positional=("name", "size", "inputs", "cos_scale"),
)
def cos_vm(draft: Draft) -> None:
    """The cosine between the first input and each row of the second."""
    _rows_of(draft)


@layer_type(
    "cos", "CosSimLayer", inputs=(2, 2), attributes={"cos_scale": 5.0}, positional=("name", "inputs", "cos_scale")
)
def cos(draft: Draft) -> None:
    """The cosine between two rows; times 5 by default, a constant of the first Paddle."""
    draft.check(
        draft.input_size(0) == draft.input_size(1),
        "both inputs must have the same size",
        f"sizes {draft.input_size(0)} and {draft.input_size(1)}",
    )
    draft.set_size(1)


@layer_type("tensor", "TensorLayer", inputs=(2, 2), bias=True, positional=("name", "size", "inputs", "bias"))
def tensor(draft: Draft) -> None:
    """A bilinear form of both inputs for each column."""
    size = draft.need_size()
    left, right = draft.input_size(0), draft.input_size(1)
    draft.weight(0, left * right * size, (left, right, size))
    draft.add_bias(size)


@layer_type("multiplex", "MultiplexLayer", inputs=(3, None), positional=("name", "inputs", "size"))
def multiplex(draft: Draft) -> None:
    """The row of the input that the first one names."""
    for at in range(1, len(draft.told)):
        draft.set_size(draft.input_size(at))


@layer_type("maxid", "MaxIdLayer", attributes={"beam_size": 1}, positional=("name", "inputs", "beam_size"))
def maxid(draft: Draft) -> None:
    """The column with the largest number."""
    beam = draft.count("beam_size", least=1)
    draft.check(
        beam <= draft.input_size(0),
        "`beam_size` must not be larger than the input",
        f"beam_size={beam}, an input of {draft.input_size(0)}",
    )
    draft.set_size(draft.input_size(0))


@layer_type("sampling_id", "SamplingIdLayer")
def sampling_id(draft: Draft) -> None:
    """A column drawn by the numbers as probabilities."""
    draft.set_size(draft.input_size(0))


@layer_type("eos_id", "EosIdLayer", attributes={"eos_id": REQUIRED}, positional=("name", "inputs", "eos_id"))
def eos_id(draft: Draft) -> None:
    """Whether an id is the end of a sequence: one of two."""
    draft.count("eos_id")
    draft.set_size(2)


def one_wide(draft: Draft, at: int) -> None:
    """Refuse an input that is more than one number per row."""
    source = draft.feeding[at]
    draft.check(source.size == 1, f"input {at} must be one number a row", f"{source.name!r} of size {source.size}")


def _rows_of(draft: Draft) -> None:
    """The second input is a matrix; one of its sides is the layer's size and the other is the first input's."""
    size = draft.need_size()
    draft.check(
        size * draft.input_size(0) == draft.input_size(1),
        "the size of its second input must be its own size times that of the first",
        f"size {size}, inputs of {draft.input_size(0)} and {draft.input_size(1)}",
    )
