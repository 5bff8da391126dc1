"""Columns of Spark's image struct: bytes in the shard, numbers in a batch, for training and for serving."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from keraunos.data.arrow_batches import ArrowReader
from keraunos.data.image_rows import as_inputs
from keraunos.errors import ColumnError, DataError, JobError
from keraunos.job.columns import Columns, Slot
from keraunos.job.pixels import Pixels
from tests.data.test_shard import PLENTY, shard_of

MODES = {1: 0, 3: 16, 4: 24}
FIELDS = ["origin", "height", "width", "nChannels", "mode", "data"]
PIXELS = st.builds(
    Pixels,
    scale=st.sampled_from([1 / 255, 1.0, 0.5, None]),
    order=st.sampled_from(["RGB", "BGR"]),
    layout=st.sampled_from(["HWC", "CHW"]),
)


def image(pixels=None):
    return Slot(None, ("image",), kind="image", pixels=pixels)


def struct(images, *, data_type=None, fields=FIELDS):
    """Arrow's struct of images in the order BGR; `None` is a null."""
    rows = [
        None
        if each is None
        else {
            "origin": "file:/x",
            "height": each.shape[0],
            "width": each.shape[1],
            "nChannels": each.shape[2],
            "mode": MODES[each.shape[2]],
            "data": each.tobytes(),
        }
        for each in images
    ]
    kinds = dict.fromkeys(FIELDS, pa.int32()) | {"origin": pa.string(), "data": data_type or pa.binary()}
    return pa.array(rows, pa.struct([(name, kinds[name]) for name in fields]))


def expected(images, pixels, dtype=np.float32):
    """What a model gets, computed without a thought of speed."""
    rows = np.asarray(images)
    if pixels.order == "RGB" and rows.shape[3] > 1:
        rows = np.concatenate([rows[..., 2::-1], rows[..., 3:]], axis=-1)
    if pixels.scale is not None:
        rows = (rows - np.asarray(pixels.mean or [0.0] * rows.shape[3])) * pixels.scale
    rows = rows.transpose(0, 3, 1, 2) if pixels.layout == "CHW" else rows
    return rows if pixels.scale is None else rows.astype(dtype)


def some_images(shape=(5, 4, 6, 3), seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def in_shard(shard, batch_size=4):
    """The rows of a shard, with the numbers that tell which is which."""
    batches = list(shard.batches(0, batch_size))
    order = np.concatenate([batch.targets for batch in batches]).astype(int)
    return np.concatenate([batch.inputs for batch in batches])[np.argsort(order)]


@given(
    images=hnp.arrays(np.uint8, st.tuples(*[st.integers(1, 5)] * 3, st.sampled_from([1, 3, 4]))),
    pixels=PIXELS,
    budget=st.sampled_from([1, PLENTY]),
    data=st.data(),
)
def test_a_batch_holds_the_pixels_as_they_were_asked_for(tmp_path_factory, images, pixels, budget, data):
    if pixels.scale is not None and data.draw(st.booleans()):
        mean = data.draw(st.lists(st.floats(0, 255), min_size=images.shape[3], max_size=images.shape[3]))
        pixels = Pixels(pixels.scale, tuple(mean), pixels.order, pixels.layout)
    whole = {"image": struct(images), "y": pa.array(np.arange(len(images)))}
    cut = data.draw(st.integers(0, len(images)))
    parts = [{name: array.slice(*span) for name, array in whole.items()} for span in ((cut,), (0, cut))]
    columns = Columns((image(pixels),), (Slot(None, ("y",)),))
    kept = shard_of(columns, *parts, budget=budget, spool_dir=str(tmp_path_factory.mktemp("spool")))
    found = in_shard(kept)
    assert found.dtype == (np.uint8 if pixels.scale is None else np.float32)
    np.testing.assert_allclose(found, expected(images, pixels), rtol=1e-5, atol=1e-4)
    assert kept.digest == shard_of(columns, whole).digest


def test_by_default_a_model_gets_rgb_from_0_to_1():
    blue = np.zeros((1, 2, 2, 3), np.uint8)
    blue[..., 0] = 255
    (batch,) = shard_of(Columns((image(),)), {"image": struct(blue)}).batches(0, 1)
    assert batch.inputs[0, 0, 0].tolist() == [0.0, 0.0, 1.0]


def test_the_shard_keeps_bytes():
    images = some_images((8, 16, 16, 3))
    block = ArrowReader([image()]).read({"image": struct(images)})[0]
    assert block.dtype == np.uint8
    assert block.nbytes == images.nbytes


@pytest.mark.parametrize("floatx", ["float16", "float32", "float64", "bfloat16"])
def test_a_batch_has_the_float_type_of_the_model(floatx):
    (batch,) = shard_of(Columns((image(),)), {"image": struct(some_images())}, floatx=floatx).batches(0, 8)
    assert batch.inputs.dtype == (floatx if floatx != "bfloat16" else "float32")


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_a_flat_input_gets_the_same_numbers_flat(layout):
    images = some_images()
    pixels = Pixels(layout=layout)
    slot = Slot(None, ("image",), kind="image", pixels=pixels, shape=(4 * 6 * 3,))
    found = in_shard(
        shard_of(Columns((slot,), (Slot(None, ("y",)),)), {"image": struct(images), "y": pa.array(range(5))})
    )
    np.testing.assert_allclose(found, expected(images, pixels).reshape(5, -1), rtol=1e-6)


@pytest.mark.parametrize("data_type", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("fields", [FIELDS, FIELDS[1:]])
def test_serving_leaves_out_nulls_and_scales(data_type, fields):
    images = some_images()
    given_images = [images[0], None, images[1], images[2]]
    reader = ArrowReader([image(Pixels(order="BGR"))])
    inputs, incomplete = reader.serve({"image": struct(given_images, data_type=data_type, fields=fields)})
    assert incomplete.tolist() == [False, True, False, False]
    found = as_inputs(reader.slots, inputs, "float32")
    np.testing.assert_allclose(found, expected(images[:3], Pixels(order="BGR")), rtol=1e-6)


def test_serving_scales_the_images_among_several_inputs():
    images = some_images()
    slots = (Slot("picture", ("image",), kind="image"), Slot("x", ("x",)))
    columns = {"image": struct(images), "x": pa.array(np.arange(5, dtype=np.float32))}
    found = as_inputs(slots, ArrowReader(slots).serve(columns)[0], "float32")
    np.testing.assert_allclose(found["picture"], expected(images, Pixels()), rtol=1e-6)
    assert found["x"].tolist() == [0, 1, 2, 3, 4]


def test_no_rows_are_no_images():
    reader = ArrowReader([image()])
    assert len(reader.read({"image": struct([])})[0]) == 0
    assert reader.read({"image": struct(some_images())})[0].shape == (5, 4, 6, 3)


def without_pixels(images):
    array = struct(images)
    fields = [array.field(name) for name in FIELDS[:-1]] + [pa.nulls(len(images), pa.binary())]
    return pa.StructArray.from_arrays(fields, names=FIELDS)


def with_field(images, name, value):
    array = struct(images)
    fields = {each: array.field(each) for each in FIELDS}
    fields[name] = pa.array([value] * len(images), fields[name].type)
    return pa.StructArray.from_arrays(list(fields.values()), names=FIELDS)


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (struct([*some_images(), some_images((1, 4, 5, 3))[0]]), "one.*width 6.*width 5 and 3.*in row 5.*read_images"),
        (struct([some_images()[0], None]), "holds a null.*in row 1"),
        (without_pixels(some_images()), "an image without pixels.*in row 0"),
        (with_field(some_images(), "mode", 21), "not bytes.*Received: mode 21 in row 0"),
        (with_field(some_images(), "mode", 0), "malformed.*72 bytes and a mode of 3.*mode 0 in row 0"),
        (with_field(some_images(), "data", b"123"), "malformed.*Received: 3 bytes and mode 16 in row 0"),
    ],
)
def test_what_is_no_image_of_the_others_size_is_refused(array, told):
    with pytest.raises(DataError, match=told):
        ArrowReader([image()]).read({"image": array})


def test_a_later_batch_must_have_the_size_of_the_first():
    reader = ArrowReader([image()])
    reader.read({"image": struct(some_images())})
    with pytest.raises(DataError, match="height 4, width 6 and 3 channels.*Received: height 2.*1 channel in row 5"):
        reader.read({"image": struct(some_images((1, 2, 6, 1)))})


def test_images_of_another_size_than_the_models_are_refused():
    slot = Slot(None, ("image",), kind="image", shape=(8, 8, 3))
    with pytest.raises(DataError, match=re.escape("(8, 8, 3). Received: rows of shape (4, 6, 3)") + ".*`size`"):
        shard_of(Columns((slot,)), {"image": struct(some_images())})


def test_only_images_are_images():
    with pytest.raises(ColumnError, match="feeds a model input of images.*Received: int64"):
        ArrowReader([image()]).read({"image": pa.array([1, 2])})


def test_a_mean_has_a_number_for_each_channel():
    with pytest.raises(DataError, match=r"each channel.*'image'.*Received: 2 for"):
        list(shard_of(Columns((image(Pixels(mean=(1.0, 2.0))),)), {"image": struct(some_images())}).batches(0, 2))


def test_an_image_has_no_class_to_weigh():
    columns = Columns((Slot("x", ("x",)),), (image(),))
    with pytest.raises(JobError, match="classWeight.*'image' of kind 'image'"):
        shard_of(columns, class_weight={0: 1.0})
