"""Data, and layers that treat a row as a vector. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.paddle.layer_types.draft import Draft
from keraunos.compat.paddle.layer_types.layer_type import REQUIRED, layer_type


@layer_type(
    "data",
    "DataLayer",
    inputs=(0, 0),
    attributes={"height": 0, "width": 0},
    positional=("name", "size", "height", "width"),
)
def data(draft: Draft) -> None:
    """An entry of the rows; `height` and `width` declare an image that is not square."""
    size = draft.need_size()
    height = draft.count("height")
    width = draft.count("width")
    draft.check(bool(height) == bool(width), "`height` and `width` belong together", f"height={height}, width={width}")
    if height:
        draft.check(
            size % (height * width) == 0,
            "`size` must be a multiple of height times width",
            f"size={size}, height={height}, width={width}",
        )
    draft.set_size(size, height=height, width=width)


@layer_type("data_norm", "DataNormLayer", attributes={"data_norm_strategy": "z-score"})
def data_norm(draft: Draft) -> None:
    """Inputs normalized by statistics that were worked out beforehand: five rows of them."""
    draft.choice(
        "data_norm_strategy", draft.attributes["data_norm_strategy"], ("z-score", "min-max", "decimal-scaling")
    )
    draft.set_size(draft.input_size(0))
    draft.weight(0, 5 * draft.size, (5, draft.size), is_static=True)


@layer_type("fc", "FCLayer", inputs=(1, None), bias=True, positional=("name", "inputs", "size"))
def fc(draft: Draft) -> None:
    """A matrix on each input, summed."""
    size = draft.need_size()
    for at in range(len(draft.told)):
        draft.weight(at, draft.input_size(at) * size, (draft.input_size(at), size))
    draft.add_bias(size)


@layer_type(
    "selective_fc",
    "SelectiveFCLayer",
    inputs=(1, None),
    bias=True,
    attributes={
        "selective_fc_pass_generation": False,
        "has_selected_colums": True,
        "selective_fc_full_mul_ratio": 0.02,
        "selective_fc_parallel_plain_mul_thread_num": 0,
    },
    positional=("name", "inputs", "size"),
)
def selective_fc(draft: Draft) -> None:
    """The columns of a fully connected layer that the last input selects; matrices are stored transposed."""
    size = draft.need_size()
    matrices = len(draft.told)
    if draft.attributes["has_selected_colums"]:
        draft.check(
            matrices >= 2,
            "with `has_selected_colums` the last input selects the columns",
            f"{matrices} input",
            "Add that input, or write has_selected_colums=False",
        )
        matrices -= 1
        draft.check(
            draft.input_size(matrices) == size,
            "the input that selects columns must have the layer's size",
            f"{draft.input_size(matrices)} columns, size {size}",
        )
    for at in range(matrices):
        draft.weight(at, draft.input_size(at) * size, (size, draft.input_size(at)))
    draft.add_bias(size)


@layer_type("addto", "AddToLayer", inputs=(1, None), bias=True, keeps_image=True)
def addto(draft: Draft) -> None:
    """The sum of its inputs."""
    for at in range(len(draft.told)):
        draft.set_size(draft.input_size(at))
    draft.add_bias(draft.size)


@layer_type("concat", "ConcatenateLayer", inputs=(1, None))
def concat(draft: Draft) -> None:
    """Its inputs side by side; images of equal sides, channel after channel."""
    sides = {draft.state.images.get(each.name) for each in draft.feeding}
    common = sides.pop() if len(sides) == 1 else None
    height, width = common or (0, 0)
    draft.set_size(sum(each.size for each in draft.feeding), height=height, width=width)


@layer_type("prelu", "ParameterReluLayer", attributes={"partial_sum": 1}, keeps_image=True)
def prelu(draft: Draft) -> None:
    """A slope of its own, for `partial_sum` consecutive columns each, if a column is negative."""
    draft.set_size(draft.input_size(0))
    shared = draft.count("partial_sum", least=1)
    draft.check(
        draft.size % shared == 0,
        "`partial_sum` must divide the size of the input",
        f"partial_sum={shared}, size {draft.size}",
    )
    draft.weight(0, draft.size // shared, (1, draft.size // shared))


@layer_type("trans", "TransLayer")
def trans(draft: Draft) -> None:
    """The transpose of the whole batch, which must have as many rows as columns."""
    draft.set_size(draft.input_size(0))


@layer_type("resize", "ResizeLayer", positional=("name", "size", "inputs"))
def resize(draft: Draft) -> None:
    """The numbers of a batch in rows of another width."""
    draft.need_size()


@layer_type(
    "featmap_expand",
    "FeatMapExpandLayer",
    attributes={"num_filters": REQUIRED, "as_row_vector": True},
    positional=("name", "inputs", "num_filters"),
)
def featmap_expand(draft: Draft) -> None:
    """The input, `num_filters` times."""
    draft.set_size(draft.input_size(0) * draft.count("num_filters", least=1))
