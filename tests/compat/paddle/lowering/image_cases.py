"""The cases of layers of images."""

from __future__ import annotations

import math

import numpy as np

from tests.compat.paddle.lowering import image_references as images
from tests.compat.paddle.lowering.batch_calls import BatchCase, dense, weight

ROWS = 2


def conv_settings(channels, sides, window, stride, padding, groups=1, *, ceil=False, filters=None):
    """`filters` makes it the settings of a transposed convolution; sides are (down, across)."""
    rule = math.ceil if ceil else math.floor
    told = {
        "filter_size_y": window[0], "filter_size": window[1], "stride_y": stride[0], "stride": stride[1],
        "padding_y": padding[0], "padding": padding[1], "groups": groups, "channels": channels,
        "filter_channels": (channels if filters is None else filters) // groups, "caffe_mode": not ceil,
    }  # fmt: skip
    out = []
    for side, size, step, pad in zip(sides, window, stride, padding, strict=True):
        if filters is None:
            out.append(1 + rule((2 * pad + side - size) / step))
        else:
            out.append((side - 1) * step + size - 2 * pad + ceil)
    image, output = (sides, out) if filters is None else (out, sides)
    return {**told, "img_size_y": image[0], "img_size": image[1], "output_y": output[0], "output_x": output[1]}


def conv_case(name, kind, channels, sides, filters, window, stride, padding, groups=1, *, ceil=False, shared=True,
              bias=True, active_type=""):  # fmt: skip
    told = conv_settings(channels, sides, window, stride, padding, groups, ceil=ceil)
    out = (told["output_y"], told["output_x"])
    size = filters * out[0] * out[1]

    def reference(inputs, parameters):
        x = inputs[0].reshape(-1, channels, *sides)
        if kind == "exconv":
            own = images.from_filters_last(parameters["w0"], groups, channels, *window)
        else:
            own = parameters["w0"].reshape(filters, channels // groups, *window)
        y = images.conv(x, own, stride, padding, groups, ceil)
        if bias:
            y = y + (parameters["bias"].reshape(-1, 1, 1) if shared else parameters["bias"].reshape(y.shape[1:]))
        y = np.maximum(y, 0) if active_type == "relu" else y
        return y.reshape(*inputs[0].shape[:-1], -1)

    parameters = {"w0": weight(filters * (channels // groups) * window[0] * window[1])}
    if bias:
        parameters["bias"] = weight(filters if shared else size, seed=8)
    return BatchCase(name, kind, size, [dense(ROWS, channels * sides[0] * sides[1], conv=told)], reference, parameters,
                     {"num_filters": filters, "shared_biases": shared}, active_type=active_type)  # fmt: skip


def convt_case(name, kind, channels, sides, filters, window, stride, padding, groups=1, *, ceil=False):
    told = conv_settings(channels, sides, window, stride, padding, groups, ceil=ceil, filters=filters)
    out = (told["img_size_y"], told["img_size"])

    def reference(inputs, parameters):
        if kind == "exconvt":
            own = images.transposed_from_filters_last(parameters["w0"], groups, filters, *window)
        else:
            own = parameters["w0"].reshape(channels, filters // groups, *window)
        x = inputs[0].reshape(-1, channels, *sides)
        y = images.conv_transposed(x, own, stride, padding, out, groups)
        return (y + parameters["bias"].reshape(-1, 1, 1)).reshape(len(x), -1)

    parameters = {"w0": weight(channels * (filters // groups) * window[0] * window[1]), "bias": weight(filters, seed=8)}
    return BatchCase(name, kind, filters * out[0] * out[1], [dense(ROWS, channels * sides[0] * sides[1], conv=told)],
                     reference, parameters, {"num_filters": filters, "shared_biases": True})  # fmt: skip


def two_inputs_case():
    first = conv_settings(1, (3, 3), (3, 3), (1, 1), (1, 1))
    second = conv_settings(2, (3, 3), (1, 1), (1, 1), (0, 0))

    def reference(inputs, parameters):
        total = images.conv(inputs[0].reshape(-1, 1, 3, 3), images.from_filters_last(parameters["w0"], 1, 1, 3, 3),
                            (1, 1), (1, 1))  # fmt: skip
        total += images.conv(inputs[1].reshape(-1, 2, 3, 3), images.from_filters_last(parameters["w1"], 1, 2, 1, 1),
                             (1, 1), (0, 0))  # fmt: skip
        return total.reshape(ROWS, -1)

    inputs = [dense(ROWS, 9, conv=first), dense(ROWS, 18, seed=1, conv=second)]
    return BatchCase("conv_of_two_inputs", "exconv", 18, inputs, reference, {"w0": weight(18), "w1": weight(4)},
                     {"num_filters": 2})  # fmt: skip


def conv_cases():
    yield conv_case("conv_floor", "exconv", 2, (6, 5), 3, (3, 2), (2, 2), (0, 0), active_type="relu")
    yield conv_case("conv_ceil", "exconv", 2, (6, 5), 3, (3, 2), (2, 2), (1, 0), ceil=True)
    yield conv_case("conv_untied_bias", "exconv", 2, (4, 3), 2, (2, 2), (1, 1), (0, 1), shared=False)
    yield conv_case("conv_groups", "exconv", 4, (4, 4), 4, (3, 3), (1, 1), (1, 1), groups=2, bias=False)
    yield conv_case("conv_cudnn_groups", "cudnn_conv", 4, (4, 4), 6, (3, 1), (2, 1), (1, 0), groups=2)
    yield two_inputs_case()
    yield convt_case("convt", "exconvt", 2, (3, 2), 3, (3, 2), (2, 1), (1, 0))
    yield convt_case("convt_groups", "exconvt", 4, (2, 2), 2, (3, 3), (2, 2), (1, 1), groups=2)
    yield convt_case("convt_cudnn_larger", "cudnn_convt", 2, (3, 3), 2, (2, 2), (3, 3), (0, 0), ceil=True)


def pool_case(name, kind, sides, size, stride, padding=(0, 0), start=0, channels=2):
    counts = [
        1 + math.ceil((side - start + 2 * pad - window) / step)
        for side, window, step, pad in zip(sides, size, stride, padding, strict=True)
    ]
    told = {
        "pool_type": kind, "channels": channels, "size_y": size[0], "size_x": size[1], "stride_y": stride[0],
        "stride": stride[1], "padding_y": padding[0], "padding": padding[1], "start": start, "img_size_y": sides[0],
        "img_size": sides[1], "output_y": counts[0], "output_x": counts[1],
    }  # fmt: skip

    def reference(inputs, _):
        x = inputs[0].reshape(ROWS, channels, *sides)
        return images.pool(x, "max" if "max" in kind else "avg", size, stride, padding, start).reshape(ROWS, -1)

    return BatchCase(name, "pool", channels * counts[0] * counts[1],
                     [dense(ROWS, channels * sides[0] * sides[1], pool=told)], reference)  # fmt: skip


def pool_cases():
    yield pool_case("pool_max_over_the_edge", "max-projection", (5, 6), (3, 3), (2, 2))
    yield pool_case("pool_max_start", "max-projection", (6, 6), (2, 2), (2, 2), start=1)
    yield pool_case("pool_max_padding", "cudnn-max-pool", (5, 4), (3, 2), (2, 2), (1, 1))
    yield pool_case("pool_max_fits", "max-projection", (7, 5), (3, 2), (4, 3))
    yield pool_case("pool_max_of_whole_strides", "max-projection", (7, 6), (4, 3), (2, 1))
    yield pool_case("pool_max_of_whole_strides_padding", "max-projection", (8, 7), (4, 6), (2, 2), (1, 1))
    yield pool_case("pool_average_over_the_edge", "avg-projection", (5, 6), (3, 3), (2, 2))
    yield pool_case("pool_average_start", "avg-projection", (6, 5), (2, 2), (2, 2), start=1)
    yield pool_case("pool_average_padding", "cudnn-avg-pool", (5, 4), (3, 2), (2, 2), (1, 1))
    for kind in ("max-projection", "avg-projection"):
        told = {"pool_type": kind, "pyramid_height": 3, "channels": 2, "img_size": 5, "img_size_y": 6}
        yield BatchCase(
            f"pyramid_{kind}", "spp", 42, [dense(ROWS, 60, spp=told)],
            lambda inputs, _, kind=kind: images.pyramid(inputs[0].reshape(ROWS, 2, 6, 5), kind[:3], 3),
        )  # fmt: skip


def norm_case(size):
    told = {"norm_type": "cmrnorm-projection", "channels": 5, "size": size, "scale": 0.3, "pow": 0.75, "img_size": 2,
            "img_size_y": 1}  # fmt: skip
    return BatchCase(
        f"norm_over_{size}", "norm", 10, [dense(ROWS, 10, norm=told)],
        lambda inputs, _: images.local_norm(inputs[0].reshape(ROWS, 5, 1, 2), size, 0.3, 0.75).reshape(ROWS, -1),
    )  # fmt: skip


def across_channels_case():
    told = {"norm_type": "cross-channel-norm", "channels": 3, "size": 1, "scale": 1.0, "pow": 1.0, "img_size": 2,
            "img_size_y": 2}  # fmt: skip

    def reference(inputs, parameters):
        x = inputs[0].reshape(ROWS, 3, 4)
        return (x / np.sqrt((x**2).sum(axis=1, keepdims=True) + 1e-6) * parameters["w0"].reshape(3, 1)).reshape(
            ROWS, -1
        )

    return BatchCase("norm_across_channels", "norm", 12, [dense(ROWS, 12, norm=told)], reference, {"w0": weight(3)})


def batch_norm_case(name, channels, sides, *, training=True, use_global_stats=True, rows=4, active_type=""):
    told = {"channels": channels, "img_size_y": sides[0], "img_size": sides[1]}
    size = channels * sides[0] * sides[1]
    parameters = {
        "w0": 1 + weight(channels), "w1": weight(1, channels, seed=9), "w2": weight(1, channels, seed=10) ** 2,
        "bias": weight(1, channels, seed=8),
    }  # fmt: skip

    def reference(inputs, own):
        x = inputs[0].reshape(rows, channels, *sides)
        if training or not use_global_stats:
            y = images.batch_norm(x, own["w0"], own["bias"])
        else:
            y = images.normalized(x, own["w1"], own["w2"], own["w0"], own["bias"])
        return (np.maximum(y, 0) if active_type == "relu" else y).reshape(rows, -1)

    inputs = [dense(rows, size, image=told), *(dense(rows, size) for _ in range(2))]
    return BatchCase(name, "batch_norm", size, inputs, reference, parameters,
                     {"use_global_stats": use_global_stats, "moving_average_fraction": 0.9}, active_type=active_type,
                     training=training)  # fmt: skip


def other_cases():
    yield norm_case(3)
    yield norm_case(4)
    yield across_channels_case()
    yield batch_norm_case("batch_norm_images", 2, (2, 3), active_type="relu")
    yield batch_norm_case("batch_norm_vectors", 3, (1, 1))
    yield batch_norm_case("batch_norm_of_what_was_seen", 2, (1, 2), training=False)
    yield batch_norm_case("batch_norm_of_the_batch_at_test", 2, (1, 2), training=False, use_global_stats=False)
    yield BatchCase(
        "maxout", "maxout", 12,
        [dense(ROWS, 24, maxout={"channels": 4, "groups": 2, "img_size_x": 3, "img_size_y": 2})],
        lambda inputs, _: inputs[0].reshape(ROWS, 2, 2, 6).max(axis=2).reshape(ROWS, -1),
    )  # fmt: skip
    yield BatchCase(
        "pad", "pad", 4 * 4 * 5,
        [dense(ROWS, 12, pad={"channels": 2, "img_size": 2, "img_size_y": 3, "pad_c": [1, 1], "pad_h": [0, 1],
                              "pad_w": [2, 1]})],
        lambda inputs, _: np.pad(inputs[0].reshape(ROWS, 2, 3, 2), [(0, 0), (1, 1), (0, 1), (2, 1)]).reshape(ROWS, -1),
    )  # fmt: skip
    for sides in ((5, 4), (2, 1)):
        told = {"num_channels": 2, "img_size_x": 2, "img_size_y": 3, "out_size_y": sides[0], "out_size_x": sides[1]}
        yield BatchCase(
            f"bilinear_to_{sides[0]}", "bilinear_interp", 2 * sides[0] * sides[1],
            [dense(ROWS, 12, bilinear_interp=told)],
            lambda inputs, _, sides=sides: images.bilinear(inputs[0].reshape(ROWS, 2, 3, 2), sides).reshape(ROWS, -1),
        )  # fmt: skip
    yield BatchCase(
        "rotate", "rotate", 12, [dense(ROWS, 12)],
        lambda inputs, _: np.rot90(inputs[0].reshape(ROWS, 2, 3, 2), -1, axes=(2, 3)).reshape(ROWS, -1),
        attributes={"height": 3, "width": 2},
    )  # fmt: skip
    told = {"channels": 2, "block_y": 2, "block_x": 3, "stride_y": 2, "stride_x": 1, "padding_y": 1, "padding_x": 0,
            "img_size_y": 3, "img_size_x": 4, "output_y": 3, "output_x": 2}  # fmt: skip
    yield BatchCase(
        "blocks_as_steps", "blockexpand", 12, [dense(ROWS, 24, block_expand=told)],
        lambda inputs, _: images.blocks(inputs[0].reshape(ROWS, 2, 3, 4), (2, 3), (2, 1), (1, 0), (3, 2)),
    )  # fmt: skip


CASES = [*conv_cases(), *pool_cases(), *other_cases()]
