"""Files and folders at the paths that programs give: one contract, on this machine and through Hadoop."""

import subprocess
import sys
import textwrap

import pytest

from keraunos.errors import JobError
from keraunos.launch.given_paths import HadoopPath, LocalPath, given_path

pytestmark = pytest.mark.spark

WAYS = ("{folder}", "file:{folder}", "file://{folder}", "file://localhost{folder}", "viewfs://{mount}/data/a 50%25 b")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "a 50%25 b"
    made.mkdir()
    return made


@pytest.fixture(params=WAYS)
def root(request, spark, folder, tmp_path):
    """The same folder, named in each way."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    mount = f"given-{tmp_path.name}"
    hadoop.set(f"fs.viewfs.mounttable.{mount}.link./data", tmp_path.as_uri())
    text = request.param.format(folder=folder, mount=mount)
    found = given_path(text)
    assert isinstance(found, HadoopPath if text.startswith("viewfs") else LocalPath)
    return text


def visible(folder):
    """What lies there, without the checksums that Hadoop keeps."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if not each.name.endswith(".crc"))


def filled(path, files):
    for name, content in files.items():
        place = path / name if name else path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def failing(given, files, error):
    """A write that does not come to its end, of its own or because files cannot be put in their places."""

    def write():
        with given.written() as path:
            filled(path, files)
            if error is ZeroDivisionError:
                raise ZeroDivisionError

    with pytest.raises(error):
        write()


def test_a_file_is_written_replaced_and_read(root, folder):
    file = given_path(f"{root}/new/model.bin")
    assert not file.exists()
    file.replace(b"one")
    file.replace(b"another")
    assert file.exists()
    assert not file.is_folder()
    assert file.read() == b"another"
    assert (folder / "new" / "model.bin").read_bytes() == b"another"
    assert visible(folder) == ["new", "new/model.bin"]
    parent = given_path(f"{root}/new")
    assert parent.is_folder()
    assert parent.names() == ["model.bin"]
    assert given_path(f"{root}/gone").names() == []
    with pytest.raises(FileNotFoundError):
        given_path(f"{root}/gone").read()


def test_what_goes_wrong_leaves_what_was_there(root, folder):
    file = given_path(f"{root}/model.bin")
    file.replace(b"before")
    failing(file, {"": b"half"}, ZeroDivisionError)
    net = given_path(f"{root}/net")
    with net.written() as path:
        filled(path, {"graph": b"old", "sub/values": b"old"})
    (folder / "net" / "mine").write_bytes(b"mine")
    failing(net, {"graph": b"new"}, ZeroDivisionError)
    # A folder is not taken away for a file of its name.
    with pytest.raises(IsADirectoryError):
        net.replace(b"file")
    assert file.read() == b"before"
    assert visible(folder) == ["model.bin", "net", "net/graph", "net/mine", "net/sub", "net/sub/values"]
    with net.local() as path:
        assert (path / "graph").read_bytes() == b"old"
        assert (path / "sub" / "values").read_bytes() == b"old"
    # Nor a file for a folder.
    failing(net, {"graph": b"new", "mine/below": b"new"}, OSError)
    assert (folder / "net" / "mine").read_bytes() == b"mine"
    assert (folder / "net" / "graph").read_bytes() == b"old"


def test_the_files_of_a_checkpoint_are_found_by_their_prefix(root, folder):
    for name in ("model.index", "model.data-00000-of-00001", "model2.index"):
        (folder / name).write_bytes(name.encode())
    with given_path(f"{root}/model").local_prefix() as prefix:
        found = sorted(each.name for each in prefix.parent.glob("model.*"))
        assert found == ["model.data-00000-of-00001", "model.index"]
        assert (prefix.parent / "model.index").read_bytes() == b"model.index"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere://host/model", "`model_dir` must be a path of this machine.*hdfs://.*'nowhere://host/model'.*jars"),
        ("file://elsewhere/model", "'file://elsewhere/model'"),
        ("file:model", "'file:model'"),
        ("", "`model_dir` must be a path of a file or a folder. Received: ''"),
        (None, "Received: None"),
    ],
)
def test_paths_that_nobody_knows(spark, path, message):
    with pytest.raises(JobError, match=message) as raised:
        given_path(path, "model_dir")
    assert "\n" not in str(raised.value)


def test_a_name_with_a_colon_is_a_plain_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given_path("run:5").replace(b"here")
    assert (tmp_path / "run:5").read_bytes() == b"here"


def test_a_plain_path_needs_no_spark(tmp_path):
    program = """
        import sys

        from keraunos.launch.given_paths import given_path

        for way in ("", "file:", "file://"):
            file = given_path(f"{way}{sys.argv[1]}/file")
            file.replace(way.encode())
            assert file.read() == way.encode()
        assert "pyspark.sql" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path)], check=True, timeout=120)


def test_a_plain_path_may_be_one_of_hadoops_own(spark, tmp_path):
    mount = f"default-{tmp_path.name}"
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(f"fs.viewfs.mounttable.{mount}.link./data", tmp_path.as_uri())
    before = hadoop.get("fs.defaultFS")
    given_path(str(tmp_path / "one"), plain_by_hadoop=True).replace(b"1")
    hadoop.set("fs.defaultFS", f"viewfs://{mount}/")
    try:
        given_path("/data/two", plain_by_hadoop=True).replace(b"2")
        given_path(str(tmp_path / "three")).replace(b"3")
    finally:
        hadoop.set("fs.defaultFS", before)
    assert [(tmp_path / name).read_bytes() for name in ("one", "two", "three")] == [b"1", b"2", b"3"]
