import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from keraunos.compat.tensorspark import idx_files
from keraunos.errors import DataError, JobError
from keraunos.session.registry import session_of
from tests.compat.tensorspark.idx import encoded, enlarged_digits, write_digits

shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=70)
arrays = hnp.arrays(np.uint8, shapes.filter(lambda shape: np.prod(shape) < 20000))


@given(arrays, st.booleans())
def test_what_was_written_is_read(array, packed):
    content = gzip.compress(encoded(array)) if packed else encoded(array)
    assert np.array_equal(idx_files.parse(content, "file"), array)


@given(arrays)
def test_blocks_put_together_are_the_file(array):
    blocks = dict(idx_files.cut(("file", encoded(array))))
    assert np.array_equal(np.concatenate([blocks[number] for number in range(len(blocks))]), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be an idx file of unsigned bytes"),
        (b"\x89PNG and more", "begins with b'\\\\x89PNG'"),
        (b"\0\0\x0d\x01\0\0\0\x02floats..", "must be an idx file of unsigned bytes"),
        (encoded(np.ones((3, 2)))[:-1], "must hold 6 bytes after its header, as that says. Received: 5"),
        (gzip.compress(encoded(np.ones((300, 2))), mtime=0)[:25], "'file' must"),
        (b"\x1f\x8bnot gzip at all", "A gzipped file must be whole"),
    ],
    ids=["empty", "image", "floats", "short", "cut off", "no gzip"],
)
def test_a_file_that_is_no_idx_file_is_refused(content, message):
    with pytest.raises(DataError, match=message):
        idx_files.parse(content, "file")


def test_rows_are_what_a_model_takes():
    images, labels = np.array([[[0, 255]], [[51, 0]]], np.uint8), np.array([3, 0], np.uint8)
    (first, three), (second, zero) = idx_files.rows((0, (images, labels)))
    np.testing.assert_allclose(first, [0.0, 1.0])
    np.testing.assert_allclose(second, [0.2, 0.0], rtol=1e-6)
    assert (three.argmax(), three.sum(), zero.argmax(), zero.sum()) == (3, 1, 0, 1)
    assert first.dtype == three.dtype == np.float32


def test_a_label_beyond_the_classes_is_refused():
    with pytest.raises(DataError, match="from 0 to 9. Received: 10"):
        idx_files.one_hot(np.array([1, 10], np.uint8))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("below", "images", "packed"), [("", "idx3", False), ("", "idx1", True), ("mnist", "idx1", False)]
)
def test_the_files_are_found_as_people_name_them(spark, tmp_path, below, images, packed):
    write_digits(tmp_path / below, images=images, packed=packed)
    folder = idx_files.IdxFolder(f"{tmp_path.as_uri()}/", session_of(spark))
    pair = folder.pair("train")
    assert pair.rows == 1500
    assert f"train-images-{images}-ubyte" in pair.images
    pictures, labels = folder.arrays("t10k")
    expected, numbers = enlarged_digits()
    assert np.array_equal(pictures, expected[:297].reshape(297, 784))
    assert np.array_equal(labels, numbers[:297])


@pytest.mark.spark
def test_every_row_is_in_one_of_the_partitions(spark, tmp_path):
    write_digits(tmp_path, packed=True)
    pair = idx_files.IdxFolder(str(tmp_path), session_of(spark)).pair("train")
    parts = idx_files.blocks(session_of(spark), pair, 3).flatMap(idx_files.rows).glom().collect()
    counts = [len(part) for part in parts]
    assert sum(counts) == 1500
    assert min(counts) > 400
    expected, numbers = enlarged_digits()
    found = {(row.tobytes(), int(label.argmax())) for part in parts for row, label in part}
    pixels = idx_files.pixels(expected[297:])
    assert found == {(row.tobytes(), int(label)) for row, label in zip(pixels, numbers[297:], strict=True)}


@pytest.mark.spark
def test_what_is_missing_is_told_with_how_to_put_it_there(spark, tmp_path):
    write_digits(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    folder = idx_files.IdxFolder(str(tmp_path), session_of(spark))
    folder.pair("train")
    with pytest.raises(
        JobError, match=f"'t10k' part are missing.*hadoop fs -put MNIST_data/\\* {tmp_path}.*spark.hdfs"
    ):
        folder.pair("t10k")


@pytest.mark.spark
def test_files_that_do_not_belong_together_are_refused(spark, tmp_path):
    write_digits(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(encoded(np.zeros(7)))
    with pytest.raises(DataError, match="a label for each image. Received: 1500 images and 7 labels"):
        idx_files.IdxFolder(str(tmp_path), session_of(spark)).pair("train")
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(encoded(np.zeros((1500, 10))))
    with pytest.raises(DataError, match="must hold labels, an array of 1 dimension.*Received: one of 2"):
        idx_files.IdxFolder(str(tmp_path), session_of(spark)).pair("train")
