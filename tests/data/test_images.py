"""A folder of images as a DataFrame, on a real Spark and with real files."""

import re

import numpy as np
import pytest
from PIL import Image
from pyspark.errors import PySparkException
from pyspark.ml.feature import IndexToString

from keraunos.data.corrupt_images import CorruptImages
from keraunos.data.images import class_names, read_images
from keraunos.errors import DataError

pytestmark = pytest.mark.spark

COLOURS = {"ash": (120, 110, 100), "birch tree": (200, 30, 20), "élm's": (10, 40, 230)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three classes, one with a sub-folder, of two sizes and three kinds."""
    root = tmp_path_factory.mktemp("trees with a space")
    for number, (name, colour) in enumerate(COLOURS.items()):
        (root / name / "more").mkdir(parents=True)
        Image.new("RGB", (20, 14), colour).save(root / name / "one.png")
        Image.new("RGB", (14, 20), colour).save(root / name / "Two.JPG", "JPEG", quality=95)
        Image.new("L", (18, 14), 40 * number).save(root / name / "more" / "three.bmp")
    (root / "ash" / "notes.txt").write_text("no image")
    return root


@pytest.fixture
def broken(tmp_path):
    """Two images and two files that are none."""
    (tmp_path / "a").mkdir()
    for name in ("1", "2"):
        Image.new("RGB", (8, 8), (9, 9, 9)).save(tmp_path / "a" / f"{name}.png")
    (tmp_path / "a" / "3.png").write_bytes(b"no image")
    (tmp_path / "a" / "4.png").write_bytes((tmp_path / "a" / "1.png").read_bytes()[:50])
    return tmp_path


def below(row, folder):
    return row.image.origin.split(f"{folder.name}/")[1]


def test_a_folder_becomes_images_with_labels(spark, folder):
    frame = read_images(spark, str(folder), 8)
    rows = {below(row, folder): row for row in frame.collect()}
    assert frame.columns == ["image", "label"]
    assert class_names(frame) == list(COLOURS)
    assert {name: row.label for name, row in rows.items()} == {
        f"{name}/{file}": float(number)
        for number, name in enumerate(COLOURS)
        for file in ("one.png", "Two.JPG", "more/three.bmp")
    }
    for name, row in rows.items():
        image = row.image
        assert (image.height, image.width, image.nChannels, image.mode, len(image.data)) == (8, 8, 3, 16, 192)
        if "more" not in name:
            colour = COLOURS[name.split("/")[0]]
            assert np.abs(np.frombuffer(image.data, np.uint8).reshape(-1, 3)[:, ::-1].astype(int) - colour).max() < 6


def test_files_of_one_size_are_what_sparks_own_source_reads(spark, tmp_path):
    for number in range(4):
        noise = np.random.default_rng(number).integers(0, 256, (6, 9, 3), dtype=np.uint8)
        Image.fromarray(noise if number else noise[..., 0]).save(tmp_path / f"{number}.png")
    own = spark.read.format("image").load(str(tmp_path))
    found = read_images(spark, str(tmp_path), labels=None)
    assert found.schema.simpleString() == own.schema.simpleString()

    def told(frame, channels):
        rows = frame.filter(f"image.nChannels = {channels}").collect()
        return {row.image.origin.split("/")[-1]: tuple(row.image)[1:] for row in rows}

    assert told(found.filter("image.origin not like '%0.png'"), 3) == told(own, 3)
    assert len(told(own, 3)) == 3
    assert told(read_images(spark, str(tmp_path), labels=None, channels=1), 1)["0.png"] == told(own, 1)["0.png"]


def test_nothing_is_decoded_before_it_is_needed(spark, folder, jobs_run):
    frame = read_images(spark, str(folder), 8).filter("label = 1").limit(1)
    assert not jobs_run()
    assert frame.count() == 1


def test_spark_splits_it_and_reads_the_labels_names(spark, folder):
    frame = read_images(spark, str(folder), 4)
    parts = frame.randomSplit([0.6, 0.4], 0)
    origins = [{row.image.origin for row in part.collect()} for part in parts]
    assert sum(map(len, origins)) == len(origins[0] | origins[1]) == 9
    assert class_names(parts[0]) == list(COLOURS)
    named = IndexToString(inputCol="label", outputCol="name").transform(frame).select("image.origin", "name").collect()
    assert all(f"/{row.name}/" in row.origin for row in named)


def test_without_labels(spark, folder):
    frame = read_images(spark, f"{folder}/ash", labels=None)
    assert frame.columns == ["image"]
    assert sorted((row.image.height, row.image.width) for row in frame.collect()) == [(14, 18), (14, 20), (20, 14)]
    assert read_images(spark, f"{folder}/*/more", labels=None).count() == 3


@pytest.mark.parametrize("partitions", [1, 5])
def test_partitions(spark, folder, partitions):
    frame = read_images(spark, str(folder), 8, partitions=partitions)
    assert frame.rdd.getNumPartitions() == partitions
    assert frame.count() == 9


def test_a_few_large_files_are_decoded_by_all_cores(spark, folder):
    assert read_images(spark, str(folder), 8).rdd.getNumPartitions() >= spark.sparkContext.defaultParallelism


def test_classes_are_numbered_as_told(spark, folder):
    names = [*reversed(COLOURS), "oak"]
    frame = read_images(spark, str(folder), 4, classes=names)
    assert class_names(frame) == names
    assert {row.label for row in frame.filter("image.origin like '%ash%'").collect()} == {2.0}


class TestLists:
    def test_numbers(self, spark, folder, tmp_path):
        (tmp_path / "list.txt").write_text("ash/one.png 7\n\n./birch tree/Two.JPG   3\nbirch tree/more/three.bmp\t0\n")
        frame = read_images(spark, str(folder), 8, labels=str(tmp_path / "list.txt"))
        assert {below(row, folder): row.label for row in frame.collect()} == {
            "ash/one.png": 7.0, "birch tree/Two.JPG": 3.0, "birch tree/more/three.bmp": 0.0,
        }  # fmt: skip
        with pytest.raises(DataError, match="'label' does not say"):
            class_names(frame)

    def test_names(self, spark, folder, tmp_path):
        (tmp_path / "list.txt").write_text("ash/one.png grey\nélm's/one.png blue\nélm's/Two.JPG blue\n")
        frame = read_images(spark, str(folder), 8, labels=str(tmp_path / "list.txt"))
        assert class_names(frame) == ["blue", "grey"]
        assert sorted(row.label for row in frame.collect()) == [0.0, 0.0, 1.0]

    def test_files_that_are_not_there_are_told(self, spark, folder, tmp_path, caplog):
        (tmp_path / "list.txt").write_text("ash/one.png 1\nash/none.png 0\n")
        assert read_images(spark, str(folder), 8, labels=str(tmp_path / "list.txt")).count() == 1
        assert "such as ash/none.png" in caplog.text

    @pytest.mark.parametrize(
        ("text", "options", "told"),
        [
            ("ash/one.png\n", {}, "'ash/one.png' in line 1 of"),
            ("ash/one.png 1\nash/one.png 2\n", {}, "line 2 of .*had the label '1' before"),
            ("\n", {}, "at least one"),
            ("ash/one.png oak\n", {"classes": ["ash"]}, "names in `classes`.*Received: 'oak'"),
        ],
    )
    def test_a_wrong_list_is_refused(self, spark, folder, tmp_path, text, options, told):
        (tmp_path / "list.txt").write_text(text)
        with pytest.raises(DataError, match=told):
            read_images(spark, str(folder), 8, labels=str(tmp_path / "list.txt"), **options)


class TestCorruptFiles:
    def test_are_left_out_and_counted_once(self, spark, broken, caplog):
        corrupt = CorruptImages(spark)
        frame = read_images(spark, str(broken), 4, corrupt=corrupt)
        assert corrupt.count == 0
        assert frame.count() == 2
        assert frame.filter("image.height = 4").count() == 2
        assert corrupt.count == 2
        assert {path.split("/")[-1] for path in corrupt.files} == {"3.png", "4.png"}
        assert "UnidentifiedImageError" in next(why for path, why in corrupt.files.items() if "3.png" in path)
        assert len(re.findall(r"a/[34]\.png cannot be decoded: ", caplog.text)) == 2

    def test_are_nulls_on_demand(self, spark, broken):
        frame = read_images(spark, str(broken), 4, on_corrupt="null")
        assert (frame.count(), frame.filter("image is null").count()) == (4, 2)
        assert {row.label for row in frame.collect()} == {0.0}

    def test_fail_on_demand(self, spark, broken):
        (broken / "a" / "3.png").unlink()
        with pytest.raises(PySparkException, match=r"a/4\.png' cannot be decoded.*on_corrupt='skip'"):
            read_images(spark, str(broken), 4, on_corrupt="fail").collect()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"on_corrupt": "ignore"}, "'skip', 'null', 'fail'.*Received: 'ignore'"),
        ({"labels": ["a"]}, "`labels` must be 'folders'.*"),
        ({"labels": None, "classes": ["a"]}, "`classes` must be left out"),
        ({"classes": ["ash", "ash"]}, "`classes` must be a list of different names"),
        ({"classes": ["ash"]}, "`classes` names.*'birch tree'"),
        ({"size": -1}, "`size`"),
        ({"partitions": 0}, "`partitions`.*Received: 0"),
    ],
)
def test_wrong_options_are_refused_at_once(spark, folder, options, told):
    with pytest.raises(DataError, match=told):
        read_images(spark, str(folder), **options)


def test_labels_need_one_folder_with_folders(spark, folder):
    with pytest.raises(DataError, match=r"one folder.*Received: .*\*"):
        read_images(spark, f"{folder}/*")
    with pytest.raises(DataError, match="sub-folders, one a class.*'no folder'.*labels=None"):
        read_images(spark, f"{folder}/ash/more")


def test_a_file_beside_the_folders_is_named(spark, tmp_path):
    (tmp_path / "a").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "stray.png")
    with pytest.raises(PySparkException, match=r"stray\.png is in none of the folders"):
        read_images(spark, str(tmp_path), 4).collect()
