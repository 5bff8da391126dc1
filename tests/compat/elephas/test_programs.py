"""The programs of Elephas's document, run as a user would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extended import extended

ENVIRONMENT = {
    "KERAS_BACKEND": "jax",
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
}
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

DOCUMENT = {
    "elephas_basic.py": """
conf = SparkConf().setAppName('Elephas_App').setMaster('local[8]')
sc = SparkContext(conf=conf)
model = Sequential()
model.add(Dense(128, input_dim=784))
model.compile(loss='categorical_crossentropy', optimizer=SGD())
rdd = to_simple_rdd(sc, X_train, Y_train)
from elephas import optimizers as elephas_optimizers
adagrad = elephas_optimizers.Adagrad()
spark_model = SparkModel(sc,model, optimizer=adagrad, frequency='epoch', mode='asynchronous', num_workers=2)
spark_model.train(rdd, nb_epoch=20, batch_size=32, verbose=0, validation_split=0.1, num_workers=8)
""",
    "elephas_mllib.py": """
from elephas.utils.rdd_utils import to_labeled_point
lp_rdd = to_labeled_point(sc, X_train, Y_train, categorical=True)
from elephas.spark_model import SparkMLlibModel
adadelta = elephas_optimizers.Adadelta()
spark_model = SparkMLlibModel(sc,model, optimizer=adadelta, frequency='batch', mode='hogwild', num_workers=2)
spark_model.train(lp_rdd, nb_epoch=20, batch_size=32, verbose=0, validation_split=0.1, categorical=True, nb_classes=nb_classes)
""",  # noqa: E501 - the document's own lines
    "elephas_ml.py": """
df = to_data_frame(sc, X_train, Y_train, categorical=True)
test_df = to_data_frame(sc, X_test, Y_test, categorical=True)
adadelta = elephas_optimizers.Adadelta()
        nb_epoch=nb_epoch, batch_size=batch_size, optimizer=adadelta, frequency='batch', mode='asynchronous', num_workers=2,
        verbose=0, validation_split=0.1, categorical=True, nb_classes=nb_classes)
fitted_model = estimator.fit(df)
prediction = fitted_model.transform(test_df)
pnl = prediction.select("label", "prediction")
pnl.show(100)
prediction_and_label= pnl.map(lambda row: (row.label, row.prediction))
metrics = MulticlassMetrics(prediction_and_label)
print(metrics.precision())
print(metrics.recall())
""",  # noqa: E501 - the same
}


def run(command, folder):
    done = subprocess.run(
        command, cwd=folder, env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("name", DOCUMENT)
def test_every_line_of_the_document_is_in_the_program_as_it_is_written(name):
    lines = [line.rstrip() for line in (EXAMPLES / "seeds" / name).read_text().splitlines()]
    places = [lines.index(line) for line in DOCUMENT[name].strip("\n").splitlines()]
    assert places == sorted(places)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "elephas_basic.py",
        extended("elephas_mllib.py"),
        extended("elephas_ml.py"),
    ],
)
def test_the_documents_program_learns_the_digits(name, tmp_path):
    keraunos = [sys.executable, "-m", "keraunos.cli.main", "run", "--as", "elephas"]
    printed = run([*keraunos, str(EXAMPLES / "seeds" / name)], tmp_path)
    if name == "elephas_ml.py":
        assert "|label|prediction|" in printed
        precision, recall = map(float, re.findall(r"^(0\.\d+|1\.0)$", printed, re.MULTILINE))
        assert precision == recall > 0.8
    else:
        assert float(re.search(r"^accuracy (\S+)$", printed, re.MULTILINE).group(1)) > 0.8
