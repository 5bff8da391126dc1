"""A configuration as a table of its layers, their sizes and their parameters. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence

from keraunos.compat.paddle.model_config import LayerConfig, ModelConfig, OptimizationConfig, TrainerConfig

_HEAD = ("Layer", "Type", "Shape", "Size", "Inputs", "Parameters", "Weights")
_RIGHT = (3, 6)

# The settings of an input with the size of a layer's output image: height and width.
_SIDES = {
    "conv": ("output_y", "output_x"),
    "pool": ("output_y", "output_x"),
    "norm": ("output_y", "output_x"),
    "image": ("img_size_y", "img_size"),
    "maxout": ("img_size_y", "img_size_x"),
    "bilinear_interp": ("out_size_y", "out_size_x"),
}


def summary(config: TrainerConfig) -> str:
    """Returns the table, with totals below it; a parameter that several layers share counts once in the totals."""
    model = config.model_config
    sizes = {parameter.name: parameter.size for parameter in model.parameters}
    seen: set[str] = set()
    rows = [_row(layer, sizes, seen) for layer in model.layers]
    return "\n".join([*_table([_HEAD, *rows]), "", *_totals(model), _training(config.opt_config)])


def layer_shape(layer: LayerConfig) -> tuple[int, ...]:
    """Channels, height and width of the image that a layer returns; its size alone where it gives none."""
    transposed = layer.type.endswith("convt")
    for each in layer.inputs:
        for kind, sides in _SIDES.items():
            if kind not in each.settings:
                continue
            names = _SIDES["image"] if transposed else sides
            high, wide = (int(each.settings[kind][name]) for name in names)
            if high * wide > 1 and layer.size % (high * wide) == 0:
                return layer.size // (high * wide), high, wide
    return (layer.size,)


def _row(layer: LayerConfig, sizes: dict[str, int], seen: set[str]) -> tuple[str, ...]:
    names = [each.parameter for each in layer.inputs if each.parameter is not None]
    if layer.bias is not None:
        names.append(layer.bias)
    short = f"_{layer.name}."  # what Paddle puts before the names that it makes up
    told = [f"{name} (shared)" if name in seen else name.removeprefix(short) for name in names]
    seen.update(names)
    shape = layer_shape(layer)
    return (
        layer.name,
        f"{layer.type}, {layer.active_type}" if layer.active_type not in ("", "linear") else layer.type,
        " x ".join(map(str, shape)) if len(shape) > 1 else "",
        f"{layer.size:,}",
        ", ".join(dict.fromkeys(each.layer for each in layer.inputs)),
        ", ".join(told),
        f"{sum(sizes[name] for name in dict.fromkeys(names)):,}",
    )


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [
        "  ".join(
            cell.rjust(width) if column in _RIGHT else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _totals(model: ModelConfig) -> list[str]:
    total = sum(parameter.size for parameter in model.parameters)
    static = sum(parameter.size for parameter in model.parameters if parameter.is_static)
    return [
        f"Inputs:     {', '.join(model.input_layer_names)}",
        f"Outputs:    {', '.join(model.output_layer_names)}",
        f"Layers:     {len(model.layers)}",
        f"Parameters: {len(model.parameters)}",
        f"Weights:    {total:,}, of which {total - static:,} are trained" if static else f"Weights:    {total:,}",
    ]


def _training(settings: OptimizationConfig) -> str:
    return (
        f"Training:   {settings.algorithm}, {settings.learning_method}, batches of {settings.batch_size}, "
        f"learning rate {settings.learning_rate:g} ({settings.learning_rate_schedule})"
    )
