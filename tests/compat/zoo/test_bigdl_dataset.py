import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest

from keraunos.compat.zoo.bigdl.dataset import base, mnist, movielens, news20, sentence, transformer
from keraunos.compat.zoo.bigdl.util import engine
from keraunos.compat.zoo.bigdl.util.common import RNG, JTensor, Sample, callBigDlFunc, to_list
from keraunos.compat.zoo.common.utils import enable_multi_fs_save, is_local_path, to_list_of_numpy
from keraunos.compat.zoo.util import nest
from keraunos.errors import DataError, JobError
from tests.compat.tensorspark.idx import enlarged_digits, write_digits


@pytest.mark.parametrize("packed", [False, True])
def test_mnist_is_read_plain_and_gzipped(tmp_path, packed):
    write_digits(tmp_path, packed=packed, test_rows=20)
    pictures, labels = enlarged_digits()
    images, given = mnist.read_data_sets(str(tmp_path), "test")
    assert images.shape == (20, 28, 28, 1)
    assert np.array_equal(images[..., 0], pictures[:20])
    assert np.array_equal(given, labels[:20])
    (train, train_labels), (test, test_labels) = mnist.load_data(str(tmp_path))
    assert len(train) == len(train_labels) == len(labels) - 20
    assert np.allclose(test, (images - mnist.TRAIN_MEAN) / mnist.TRAIN_STD)
    assert np.array_equal(test_labels, given + 1)


def test_a_file_that_is_not_there_is_not_downloaded(tmp_path):
    with pytest.raises(JobError, match="'t10k-images-idx3-ubyte.gz' must be in the folder .*downloads nothing"):
        mnist.read_data_sets(str(tmp_path), "test")
    with pytest.raises(JobError, match="Received: no such folder"):
        news20.get_news20(str(tmp_path / "nowhere"))
    with pytest.raises(JobError, match="ml-1m.zip"):
        movielens.get_id_pairs(str(tmp_path))
    with pytest.raises(JobError, match="'train' or 'test'. Received: 'validation'"):
        mnist.read_data_sets(str(tmp_path), "validation")


def test_open_files_are_read(tmp_path):
    write_digits(tmp_path, packed=True, test_rows=5)
    with (tmp_path / "t10k-images-idx3-ubyte.gz").open("rb") as images:
        assert mnist.extract_images(images).shape == (5, 28, 28, 1)
    with gzip.open(tmp_path / "t10k-labels-idx1-ubyte.gz") as labels:
        assert mnist.extract_labels(labels).shape == (5,)
    with (tmp_path / "t10k-labels-idx1-ubyte.gz").open("rb") as labels, pytest.raises(DataError, match="3 dimension"):
        mnist.extract_images(labels)


def test_newsgroups_and_word_vectors_are_unpacked_once(tmp_path):
    with tarfile.open(tmp_path / "20news-18828.tar.gz", "w:gz") as archive:
        for name, text in {"b.group/2": "second", "a.group/10": "first", "a.group/notes": "left out"}.items():
            entry = tarfile.TarInfo(f"20news-18828/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    with zipfile.ZipFile(tmp_path / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.50d.txt", "the 0.5 1\nof -1 2.5\n")
    for _ in range(2):
        assert news20.get_news20(str(tmp_path)) == [("first", 1), ("second", 2)]
        assert news20.get_glove_w2v(str(tmp_path), dim=50) == {"the": [0.5, 1.0], "of": [-1.0, 2.5]}
        (tmp_path / "20news-18828.tar.gz").unlink(missing_ok=True)
    with pytest.raises(JobError, match="glove.6B.100d.txt"):
        news20.get_glove_w2v(str(tmp_path))


def test_ratings_of_films(tmp_path):
    with zipfile.ZipFile(tmp_path / "ml-1m.zip", "w") as archive:
        archive.writestr("ml-1m/ratings.dat", "1::1193::5::978300760\n2::661::3::978302109\n")
    assert movielens.get_id_ratings(str(tmp_path)).tolist() == [[1, 1193, 5], [2, 661, 3]]
    assert movielens.get_id_pairs(str(tmp_path)).tolist() == [[1, 1193], [2, 661]]
    (tmp_path / "ml-1m" / "ratings.dat").write_text("1,2,3,4\n")
    with pytest.raises(DataError, match="user::film::rating::time. Received: '1,2,3,4'"):
        movielens.read_data_sets(str(tmp_path))


def test_small_things_of_the_data_sets(capsys, tmp_path):
    assert transformer.normalizer(np.array([3.0, 5.0]), 3, 2).tolist() == [0, 1]
    assert sentence.sentences_bipadding("a b") == "SENTENCESTART a b SENTENCEEND"
    (tmp_path / "text").write_text("one\ntwo\n")
    assert sentence.read_localfile(str(tmp_path / "text")) == ["one\n", "two\n"]
    bar = base.Progbar(4)
    bar.add(1, [("loss", 2.0)])
    bar.add(3, [("loss", 1.0)])
    base.display_table([["name", 1]], [6, 8])
    assert capsys.readouterr().out.endswith("4/4 [==============================] - loss: 1.2500\nname  1 \n")


def test_records_and_random_numbers():
    sparse = JTensor.sparse(np.array([1, 2]), np.array([0, 1, 2, 0]), np.array([2, 3]))
    assert Sample.from_jtensor(sparse, 1).arrays()[0].tolist() == [[0, 0, 1], [2, 0, 0]]
    with pytest.raises(DataError, match="2 values and 3 indices"):
        JTensor.sparse(np.array([1, 2]), np.array([0, 1, 2]), np.array([2, 3]))
    with pytest.raises(DataError, match="sparse JTensor"):
        sparse.to_ndarray()
    RNG().set_seed(100)
    assert RNG().uniform(0.1, 0.2, [2])[0] == pytest.approx(0.15434049)
    assert to_list(3) == [3]
    with pytest.raises(JobError, match=r"callBigDlFunc\('float', 'createLinear', 1\) must be replaced"):
        callBigDlFunc("float", "createLinear", 1)


def test_versions_nests_and_paths(tmp_path):
    assert [engine.compare_version(*each) for each in (("2.10", "2.9"), ("2.4", "2.4.0"), ("1.6", "2"))] == [1, 0, -1]
    nested = {"b": [1, (2, 3)], "a": 4}
    assert nest.flatten(nested) == [4, 1, 2, 3]
    assert nest.pack_sequence_as(nested, [8, 5, 6, 7]) == {"b": [5, (6, 7)], "a": 8}
    assert [is_local_path(each) for each in ("/a", "file:///a", "hdfs://h/a")] == [True, True, False]
    assert [each.tolist() for each in to_list_of_numpy([1, np.ones(2)])] == [1, [1, 1]]
    with pytest.raises(DataError, match="Received: 'words'|Received: None"):
        to_list_of_numpy([None])
    seen = []
    enable_multi_fs_save(lambda obj, path: seen.append((obj, path)))("model", str(tmp_path))
    assert seen == [("model", str(tmp_path))]
