"""Whatever reads a model from a file trusts nothing in it by itself."""

import io
import json
import sys
import zipfile

import h5py
import keras
import numpy as np
import pytest
from pyspark.ml import PipelineModel

import keraunos
from keraunos import KerasClassificationModel, KerasClassifier, KerasEstimator, KerasModel, KerasRegressionModel
from keraunos.errors import JobError, KeraunosError, ModelError, PlanError
from tests.security import malicious_archives as archives
from tests.security import malicious_folders as folders
from tests.security import own_layers

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

NOT_TRUSTED = rf"class 'Marking' of the module '{archives.MODULE}'.*not trusted.*spark\.keraunos\.trustedModules"


@pytest.fixture
def marker(marker):
    yield marker
    assert not marker.exists()
    assert archives.MODULE not in sys.modules


@pytest.mark.parametrize("kind", [KerasModel, KerasClassificationModel, KerasRegressionModel])
def test_the_load_of_a_fitted_model(kind, tmp_path, marker):
    name = f"{kind.__module__}.{kind.__name__}"
    path = folders.fitted(tmp_path / "model", name, folders.malicious_archive())
    with pytest.raises(ModelError, match=NOT_TRUSTED):
        kind.load(path)


def test_the_load_of_a_pipeline(tmp_path, marker):
    path = folders.pipeline(
        tmp_path / "pipeline", lambda stage: folders.fitted(stage, archive=folders.malicious_archive())
    )
    with pytest.raises(ModelError, match=NOT_TRUSTED):
        PipelineModel.load(path)


def test_the_load_of_an_estimator(tmp_path, marker):
    path = folders.write(
        tmp_path / "estimator", "keraunos.ml.estimator.KerasEstimator", {"model.keras": folders.malicious_archive()}
    )
    with pytest.raises(ModelError, match=NOT_TRUSTED):
        KerasEstimator.load(path)


def test_a_fitted_model_of_a_file(tmp_path, marker):
    (tmp_path / "model.keras").write_bytes(folders.malicious_archive())
    for kind in (KerasModel, KerasClassificationModel):
        with pytest.raises(ModelError, match=NOT_TRUSTED):
            kind.of(str(tmp_path / "model.keras"))
    with pytest.raises(ModelError, match=NOT_TRUSTED):
        KerasModel.of((tmp_path / "model.keras").as_uri(), trustedModules=["another_module"])


def test_a_training_that_goes_on_from_a_file(spark, tmp_path, marker):
    rows = spark.createDataFrame([([1.0, 2.0], 1)], "features array<double>, label int")
    (tmp_path / "model.keras").write_bytes(folders.malicious_archive())
    path = folders.fitted(tmp_path / "model", archive=folders.malicious_archive())
    for given in (str(tmp_path / "model.keras"), path):
        with pytest.raises(ModelError, match=NOT_TRUSTED):
            KerasClassifier(initialModel=given, verbose=0).fit(rows)


def test_the_load_of_paddle(tmp_path, marker):
    from keraunos.compat.paddle.estimator import PaddleModel

    name = "keraunos.compat.paddle.estimator.PaddleModel"
    path = folders.fitted(tmp_path / "model", name, folders.malicious_archive())
    with pytest.raises(ModelError, match=NOT_TRUSTED):
        PaddleModel.load(path)


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_the_load_of_elephas(suffix, tmp_path, marker):
    from keraunos.compat.elephas.spark_model import load_spark_model

    path = tmp_path / f"model{suffix}"
    described = json.dumps({"class_name": "SparkModel", "config": {}})
    if suffix == ".keras":
        buffer = io.BytesIO(folders.malicious_archive())
        with zipfile.ZipFile(buffer, "a") as parts:
            parts.writestr("distributed_config.json", described)
        path.write_bytes(buffer.getvalue())
    else:
        with h5py.File(path, "w") as file:
            file.attrs["distributed_config"] = described
            file.attrs["model_config"] = json.dumps(archives.sequential(archives.layer(archives.MODULE, "Marking")))
            file.create_group("model_weights")
    with pytest.raises(ModelError, match=NOT_TRUSTED):
        load_spark_model(str(path))


def elephas_stage(path, kind, facts, references=None, archive=None):
    described = {
        "class_name": kind,
        "config": {},
        "keraunos": {"facts": facts, "custom_objects": references or {}},
    }
    with h5py.File(path, "w") as file:
        file.attrs["distributed_config"] = json.dumps(described)
        if archive is not None:
            file.create_dataset("keraunos/model.keras", data=np.frombuffer(archive, dtype=np.uint8))
    return str(path)


def test_the_stages_of_elephas(tmp_path, marker):
    from keraunos.compat.elephas.ml_model import load_ml_estimator, load_ml_transformer

    archive = folders.malicious_archive()
    # A file may not say either what is trusted of it.
    trained = {"signature": folders.SIGNATURE, "backend": "jax", "floatx": "float32", "trusted": [archives.MODULE]}
    facts = {"history": [], "model_type": None, "trained": trained}
    with pytest.raises(ModelError, match=NOT_TRUSTED):
        load_ml_transformer(elephas_stage(tmp_path / "t.h5", "ElephasTransformer", facts, archive=archive))
    with pytest.raises(ModelError, match=NOT_TRUSTED):
        load_ml_estimator(elephas_stage(tmp_path / "e.h5", "ElephasEstimator", {}, archive=archive))
    named = {"mark": f"{archives.MODULE}:mark"}
    with pytest.raises(ModelError, match=rf"'mark' of the module '{archives.MODULE}', which is not trusted"):
        load_ml_estimator(elephas_stage(tmp_path / "r.h5", "ElephasEstimator", {}, named))


def test_an_architecture_of_elephas(tmp_path, marker):
    from keraunos.compat.elephas.ml_model import ElephasEstimator, ElephasTransformer

    config = json.dumps(archives.sequential(archives.layer(archives.MODULE, archives.CLASS)))
    with pytest.raises(ModelError, match=NOT_TRUSTED):
        ElephasEstimator(keras_model_config=config).get_model()
    with pytest.raises(ModelError, match=NOT_TRUSTED):
        ElephasTransformer(keras_model_config=config, weights=[]).get_model()


def test_the_loads_of_analytics_zoo(tmp_path, marker):
    pytest.importorskip("tensorflow")
    from tests.security.own_process import run_alone

    (tmp_path / "model.keras").write_bytes(folders.malicious_archive())
    with h5py.File(tmp_path / "model.h5", "w") as file:
        file.attrs["model_config"] = json.dumps(archives.sequential(archives.layer(archives.MODULE, "Marking")))
    with h5py.File(tmp_path / "lambda.h5", "w") as file:
        file.attrs["model_config"] = json.dumps(archives.keras_2("keras", marker))
    found = run_alone("tests.security.zoo_loads", str(tmp_path))
    for case in ("net", "keras", "h5", "keras2 keras", "keras2 h5"):
        assert f"'{archives.MODULE}'" in found[case], case
        assert "not trusted" in found[case], case
    assert "Lambda" in found["keras2 lambda"]
    assert "SavedModel" in found["keras2 folder"]
    assert "'WriteFile'" in found["tfnet"]


def test_the_loads_of_sparkflow(tmp_path):
    pytest.importorskip("tensorflow")
    from keraunos.compat.sparkflow.tensorflow_async import SparkAsyncDL, SparkAsyncDLModel
    from tests.security import malicious_graphs

    marker = tmp_path / "marker"
    npz = io.BytesIO()
    np.savez(npz, w=np.ones((2, 1), np.float32))
    graph = {"graph.json.gz": malicious_graphs.packed(malicious_graphs.meta_json(marker, "operation"))}
    files = {**graph, "values.npz": npz.getvalue()}
    home = "keraunos.compat.sparkflow.tensorflow_async"
    model = folders.write(tmp_path / "model", f"{home}.SparkAsyncDLModel", files)
    estimator = folders.write(tmp_path / "estimator", f"{home}.SparkAsyncDL", graph)
    pipeline = folders.pipeline(
        tmp_path / "pipeline", lambda stage: folders.write(stage, f"{home}.SparkAsyncDLModel", files)
    )
    for kind, path in ((SparkAsyncDLModel, model), (SparkAsyncDL, estimator), (PipelineModel, pipeline)):
        with pytest.raises(ModelError, match=r"'WriteFile' of the saved graph is not trusted.*tensorflow\.raw_ops"):
            kind.load(path)
    assert not marker.exists()


def test_a_saved_model_may_name_no_module_in_its_metadata(tmp_path, marker):
    for place, reference in enumerate([f"{archives.MODULE}:mark", "os:system", "__main__:anything"]):
        path = folders.fitted(tmp_path / f"model{place}", custom_objects={"mark": reference})
        module, _, _ = reference.partition(":")
        with pytest.raises(ModelError, match=rf"'mark' of the module '{module}', which is not trusted"):
            KerasModel.load(path)


def test_a_trusted_module_gives_its_own_code_and_nothing_that_it_has_imported(tmp_path, own_module):
    own_module("import os\n\ndef own(x):\n    return x\n")
    with keraunos.trusting("a_users_own"):
        path = folders.fitted(tmp_path / "own", custom_objects={"own": "a_users_own:own"})
        assert KerasModel.load(path).getCustomObjects()["own"](3) == 3
        path = folders.fitted(tmp_path / "other", custom_objects={"run": "a_users_own:os.system"})
        with pytest.raises(ModelError, match="'run'"):
            KerasModel.load(path)


@pytest.mark.parametrize("where", ["rule", "exchange", "nested", "facts", "optimizer"])
def test_a_saved_rule_names_no_module(where, tmp_path, marker):
    rule = {"name": "marking", "options": {}, "home": f"{archives.MODULE}:Marking"}
    optimizer = {"name": "keras", "options": archives.layer(archives.MODULE, "Marking", {}), "home": None}
    nested = {
        "name": "bigdl_by_prefix",
        "options": {"methods": {"a": rule}},
        "home": "keraunos.compat.zoo.rules:BigDLSGD",
    }
    params = {
        "rule": {"rule": rule},
        "exchange": {"exchange": {"send": "updates", "every": 1, "meet": "synchronous", "rule": rule}},
        "nested": {"rule": nested},
        "optimizer": {"rule": optimizer},
    }
    if where == "facts":
        buffer = io.BytesIO()
        np.savez(buffer, **{"0": np.zeros(2)})
        path = folders.fitted(tmp_path / "model", facts={"rule": rule}, files={"rule.npz": buffer.getvalue()})
        kind = KerasModel
    else:
        path = folders.write(tmp_path / "e", "keraunos.ml.estimator.KerasEstimator", {}, params=params[where])
        kind = KerasEstimator
    with pytest.raises((PlanError, ModelError), match=rf"'{archives.MODULE}'.*not trusted"):
        kind.load(path)


def test_a_file_does_not_decide_what_is_trusted(tmp_path, marker):
    (tmp_path / "model.keras").write_bytes(folders.malicious_archive())
    params = {"trustedModules": [archives.MODULE], "initialModel": str(tmp_path / "model.keras")}
    path = folders.write(tmp_path / "e", "keraunos.ml.estimator.KerasEstimator", {}, params=params)
    loaded = KerasEstimator.load(path)
    assert loaded.getTrustedModules() == []
    KerasEstimator(trustedModules=["my_layers"]).save(str(tmp_path / "saved"))
    (metadata,) = (tmp_path / "saved" / "metadata").glob("part-*")
    assert "my_layers" not in metadata.read_text()


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/hostname", "file:///etc/hostname", "a/../../secret", "..", "", 3, None, "a/b"]
)
def test_a_file_that_metadata_names_lies_in_the_folder(name, tmp_path):
    (tmp_path / "secret").write_text("secret")
    path = folders.fitted(tmp_path / "model", listed=["model.keras", "history.json", name])
    with pytest.raises(JobError, match=r"files of a saved model must lie in its folder") as told:
        KerasModel.load(path)
    assert repr(name) in str(told.value)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "elsewhere.keras").write_bytes(folders.plain_archive())
    path = folders.fitted(tmp_path / "model")
    (tmp_path / "model" / "model.keras").unlink()
    (tmp_path / "model" / "model.keras").symlink_to(tmp_path / "elsewhere.keras")
    with pytest.raises(JobError, match=r"'model.keras' in .*, a link to another place"):
        KerasModel.load(path)


def test_names_do_not_leave_a_folder_of_hadoop(spark, tmp_path):
    from keraunos.session.registry import session_of

    (tmp_path / "secret").write_text("secret")
    (tmp_path / "folder").mkdir()
    folder = session_of(spark).folder(str(tmp_path / "folder"))
    for name in ("../secret", "/etc/hostname", (tmp_path / "secret").as_uri(), "a/../../secret"):
        for use in (folder.read, folder.has, folder.delete, lambda each: folder.write(each, b"")):
            with pytest.raises(JobError, match="must lie in its folder"):
                use(name)
    assert (tmp_path / "secret").read_text() == "secret"


def own_model():
    model = keras.Sequential([keras.Input((2,), name="input"), own_layers.Twice(), keras.layers.Dense(1)])
    model.compile("sgd", own_layers.squared)
    return model


def test_the_session_says_what_is_trusted_and_its_workers_follow(spark, tmp_path, trusted):
    rows = spark.createDataFrame([([1.0, 2.0],)], "features array<double>")
    # A live model is the user's own, whatever the session trusts.
    live = KerasModel.of(own_model(), featuresCol="features")
    expected = live.transform(rows).head().prediction
    live.save(str(tmp_path / "model"))
    PipelineModel([live]).save(str(tmp_path / "pipeline"))
    for kind, name in ((KerasModel, "model"), (PipelineModel, "pipeline")):
        with pytest.raises(ModelError, match=r"'tests\.security\.own_layers'.*not trusted"):
            kind.load(str(tmp_path / name))
    trusted("another", own_layers.__name__)
    loaded = [KerasModel.load(str(tmp_path / "model")), PipelineModel.load(str(tmp_path / "pipeline"))]
    trusted("another")
    # What was trusted when it was read is the model's own since then.
    for each in loaded:
        assert each.transform(rows).head().prediction == expected
    assert isinstance(loaded[0].model.layers[0], own_layers.Twice)
    with pytest.raises(KeraunosError):
        KerasModel.load(str(tmp_path / "model"))


def test_a_call_says_what_is_trusted(spark, tmp_path):
    rows = spark.createDataFrame([([1.0, 2.0],)], "features array<double>")
    own_model().save(tmp_path / "model.keras")
    path = str(tmp_path / "model.keras")
    own = {"squared": own_layers.squared}
    with pytest.raises(ModelError, match="not trusted"):
        KerasModel.of(path, customObjects=own)
    made = KerasModel.of(path, customObjects=own, trustedModules=[own_layers.__name__])
    assert made.transform(rows).head().prediction is not None
    training = rows.selectExpr("features", "1.0 as label")
    begun = KerasEstimator(
        initialModel=path, customObjects=own, trustedModules=[own_layers.__name__], numWorkers=1, verbose=0
    )
    assert begun.fit(training).transform(rows).head().prediction is not None
