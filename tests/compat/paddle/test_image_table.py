"""`sqlContext.loadImageTable(path, size)` as the document calls it."""

import warnings

import pytest
from PIL import Image
from pyspark.sql import SparkSession, SQLContext

from keraunos.compat.paddle.image_table import install, load_image_table
from keraunos.errors import DataError

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("2012-small")
    for name in ("n01", "n02"):
        (root / name).mkdir()
        for number in range(3):
            Image.new("RGB", (30, 20), (80 * number, 0, 0)).save(root / name / f"{number}.JPEG", quality=95)
    return root


@pytest.fixture
def installed(monkeypatch):
    """Both classes with the method, for one test."""
    for each in (SparkSession, SQLContext):
        monkeypatch.setattr(each, "loadImageTable", None, raising=False)
    install()


def test_a_context_and_a_session_load_the_table(spark, folder, installed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Spark's own, of the old class
        context = SQLContext(spark.sparkContext)
    for source in (context, spark):
        frame = source.loadImageTable(str(folder), 16)
        rows = frame.collect()
        assert sorted(row.label for row in rows) == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
        assert {(row.image.height, row.image.width, len(row.image.data)) for row in rows} == {(16, 16, 768)}


def test_options_are_those_of_read_images(spark, folder):
    frame = load_image_table(spark, str(folder), 8, channels=1, labels=None)
    assert {(row.image.nChannels, row.image.mode) for row in frame.collect()} == {(1, 0)}
    with pytest.raises(DataError, match="`size`.*Received: '224'"):
        load_image_table(spark, str(folder), "224")
