import base64
import io
import re
from html import unescape

import numpy as np
import pytest
from PIL import Image
from pyspark.sql import Row

from keraunos.data.images import IMAGE_SCHEMA, read_images
from keraunos.errors import DataError
from keraunos.notebook import show_predictions
from keraunos.notebook.predictions import png_of

RNG = np.random.default_rng(3)


def struct_of(pixels, origin="file:/x.png"):
    """Pixels, RGB or grey, as Spark's image struct has them."""
    height, width = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    stored = pixels if channels == 1 else pixels[..., [2, 1, 0, *range(3, channels)]]
    mode = {1: 0, 3: 16, 4: 24}[channels]
    return Row(
        origin=origin, height=height, width=width, nChannels=channels, mode=mode, data=bytearray(stored.tobytes())
    )


def pictures_of(page):
    sources = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(source)))) for source in sources]


def captions_of(page):
    return [unescape(text) for text in re.findall(r'overflow-wrap:anywhere">([^<]*)<', page)]


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (5, 7, 4)])
def test_a_struct_becomes_the_picture_it_came_from(shape):
    pixels = RNG.integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png_of(struct_of(pixels))))), pixels)


def test_a_large_picture_is_made_smaller():
    picture = Image.open(io.BytesIO(png_of(struct_of(np.zeros((600, 300, 3), np.uint8)))))
    assert picture.size == (128, 256)


def test_an_image_of_floats_is_refused():
    image = Row(origin="file:/y", height=1, width=1, nChannels=3, mode=21, data=bytearray(12))
    with pytest.raises(DataError, match=r"mode 0, 16 or 24. Received: mode 21 of 'file:/y'"):
        png_of(image)


@pytest.mark.spark
class TestGrid:
    @pytest.fixture
    def pixels(self):
        return [RNG.integers(0, 256, (4, 6, 3), dtype=np.uint8) for _ in range(3)]

    @pytest.fixture
    def frame(self, spark, pixels):
        rows = [(struct_of(each), float(number), 1.0) for number, each in enumerate(pixels)]
        return spark.createDataFrame(rows, f"image {IMAGE_SCHEMA}, prediction double, label double").coalesce(1)

    def test_images_stand_in_order_with_wrong_ones_marked(self, frame, pixels, shown):
        show_predictions(frame)
        (output,) = shown
        page = output["data"]["text/html"]
        for drawn, expected in zip(pictures_of(page), pixels, strict=True):
            np.testing.assert_array_equal(drawn, expected)
        assert captions_of(page) == ["✗ 0, is 1", "✓ 1", "✗ 2, is 1"]
        assert "1 of 3 right" in page
        assert output["data"]["text/plain"].splitlines() == captions_of(page)

    def test_as_many_as_were_asked_for(self, frame, shown):
        show_predictions(frame, n=2)
        assert len(pictures_of(shown[0]["data"]["text/html"])) == 2

    def test_without_labels_nothing_is_judged(self, frame, shown):
        show_predictions(frame.drop("label"), label=None)
        page = shown[0]["data"]["text/html"]
        assert captions_of(page) == ["0", "1", "2"]
        assert "right" not in page

    def test_other_columns_and_names_of_classes(self, frame, shown):
        named = frame.withColumnsRenamed({"image": "scan", "prediction": "guess", "label": "truth"})
        named = named.withMetadata("truth", {"ml_attr": {"vals": ["cat", "<dog>", "emu"]}})
        show_predictions(named, image="scan", prediction="guess", label="truth")
        page = shown[0]["data"]["text/html"]
        assert captions_of(page) == ["✗ cat, is <dog>", "✓ <dog>", "✗ emu, is <dog>"]
        assert "<dog>" not in page

    def test_numbers_that_are_no_classes_are_not_judged(self, frame, shown):
        show_predictions(frame.selectExpr("image", "prediction + 0.25 as prediction", "label"))
        assert captions_of(shown[0]["data"]["text/html"])[0] == "0.25 (label 1)"

    def test_a_missing_image_keeps_its_place(self, frame, shown):
        show_predictions(frame.selectExpr("if(prediction = 1, null, image) as image", "prediction", "label"))
        page = shown[0]["data"]["text/html"]
        assert len(pictures_of(page)) == 2
        assert "no image" in page
        assert len(captions_of(page)) == 3

    def test_no_rows(self, frame, shown):
        show_predictions(frame.where("prediction > 9"))
        assert "The DataFrame has no rows." in shown[0]["data"]["text/html"]

    def test_a_folder_of_images_is_shown_by_name(self, spark, tmp_path, shown):
        for name, colour in (("blue", (0, 0, 255)), ("red", (255, 0, 0))):
            (tmp_path / name).mkdir()
            Image.new("RGB", (9, 9), colour).save(tmp_path / name / "1.png")
        table = read_images(spark, str(tmp_path), 8).selectExpr("*", "label as prediction").orderBy("image.origin")
        show_predictions(table)
        page = shown[0]["data"]["text/html"]
        assert captions_of(page) == ["✓ blue", "✓ red"]
        assert [tuple(picture[0, 0]) for picture in pictures_of(page)] == [(0, 0, 255), (255, 0, 0)]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"image": "picture"}, "`column` must be one of 'image', 'prediction', 'label'. Received: 'picture'"),
            ({"label": "labels"}, "Did you mean 'label'\\? Without labels, pass label=None"),
            ({"image": "prediction"}, "must hold images as Spark's image struct. Received: double"),
            ({"n": 0}, "`n` must be at least 1.*Received: 0"),
        ],
    )
    def test_what_cannot_be_shown_is_refused(self, frame, shown, options, message):
        with pytest.raises(DataError, match=message):
            show_predictions(frame, **options)
        assert shown == []
