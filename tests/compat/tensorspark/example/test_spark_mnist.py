import pytest

from keraunos.compat.tensorspark.example import spark_mnist
from keraunos.errors import JobError
from tests.compat.tensorspark.idx import write_digits

pytestmark = pytest.mark.spark


@pytest.fixture
def reading_from(spark):
    """A function that sets `spark.hdfs.dir`, as spark-defaults.conf would."""
    conf = spark.sparkContext._conf
    yield lambda folder: conf.set("spark.hdfs.dir", folder)
    conf._jconf.remove("spark.hdfs.dir")


def test_two_workers_learn_the_digits(spark, tmp_path, reading_from, capsys):
    write_digits(tmp_path, packed=True)
    reading_from(tmp_path.as_uri())
    accuracy = spark_mnist.train(
        sc=spark.sparkContext,
        user="liangfengsid",
        name="mnist_try",
        server_host="localhost",
        server_port=None,
        sync_interval=4,
        batch_size=20,
        num_partition=2,
        num_epoch=6,
    )
    assert accuracy > 0.85
    assert capsys.readouterr().out == f"test accuracy {accuracy:.4f}\n"
    # It runs on what it is given and leaves that running.
    assert spark.sparkContext.parallelize([1]).count() == 1


def test_files_that_are_missing_are_told_before_anything_runs(spark, tmp_path, reading_from, jobs_run):
    reading_from(str(tmp_path))
    with pytest.raises(JobError, match=f"Expected: 'train-images-idx1-ubyte' or .* in '{tmp_path}'.*hadoop fs -put"):
        spark_mnist.train(sc=spark.sparkContext)
    assert not jobs_run()


@pytest.mark.parametrize("argument", ["num_partition", "num_epoch"])
def test_numbers_below_one_are_refused(spark, argument):
    with pytest.raises(JobError, match=f"`{argument}` must be a whole number of at least 1. Received: 0"):
        spark_mnist.train(sc=spark.sparkContext, **{argument: 0})
