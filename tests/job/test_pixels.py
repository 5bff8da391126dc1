import json

import pytest

from keraunos.errors import ColumnError
from keraunos.job.columns import Columns, Slot
from keraunos.job.pixels import Pixels


@pytest.mark.parametrize(
    "pixels",
    [Pixels(), Pixels(None), Pixels(1.0, (104.0, 117.0, 123.0), "BGR", "CHW"), Pixels.of({"layout": "CHW"})],
)
def test_pixels_round_trip_through_json_within_their_columns(pixels):
    columns = Columns((Slot("a", ("image",), kind="image", pixels=pixels), Slot("b", ("x",))))
    assert Columns.from_json(json.loads(json.dumps(columns.to_json()))) == columns
    assert Pixels.of(json.loads(json.dumps(pixels.to_json()))) == pixels


def test_an_image_has_pixels_and_nothing_else_has():
    assert Slot(None, ("image",), kind="image").pixels == Pixels()
    assert Slot(None, ("x",)).pixels is None
    with pytest.raises(ColumnError, match="for columns of images.*'x' of kind 'number'"):
        Slot(None, ("x",), pixels=Pixels())


def test_a_slot_of_images_is_one_column():
    with pytest.raises(ColumnError, match="A column of images must be.*'a', 'b' as a list"):
        Slot(None, ("a", "b"), stacked=True, kind="image")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"order": "rgb"}, "order.*'RGB', 'BGR'.*Received: 'rgb'"),
        ({"layout": "NCHW"}, "layout.*'HWC', 'CHW'.*Received: 'NCHW'"),
        ({"scale": 0}, "scale.*other than 0.*Received: 0"),
        ({"scale": "1/255"}, "scale.*Received: '1/255'"),
        ({"mean": 127.5}, "mean.*list of one number a channel.*Received: 127.5"),
        ({"mean": [1.0, float("nan"), 2.0]}, "mean.*nan"),
        ({"mean": [1.0], "scale": None}, "mean.*stay bytes.*scale=1.0"),
        ({"std": [1.0]}, "pixels.*'scale', 'mean', 'order', 'layout'.*'std'"),
        ("RGB", "pixels.*dict.*Received: 'RGB'"),
    ],
)
def test_what_says_nothing_of_pixels_is_refused(options, told):
    with pytest.raises(ColumnError, match=told):
        Pixels.of(options)
