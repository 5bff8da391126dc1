"""Elephas's search on Spark: templates and Optuna trials, many tasks, the lowest loss."""

import json
import logging
import os
import pickle
import socket
import subprocess
import sys
import threading

import keras
import numpy as np
import pytest
from sklearn.datasets import load_digits

from keraunos.compat.elephas.hyperas.distributions import choice, uniform
from keraunos.compat.elephas.hyperas.ensemble import VotingModel
from keraunos.compat.elephas.hyperopt import STATUS_FAIL, STATUS_OK, Trials
from keraunos.compat.elephas.hyperparam import HyperParamModel
from keraunos.errors import JobError, WorkerError

FOUR = (np.eye(2), np.ones(2), np.zeros((1, 2)), np.zeros(1))


def four():
    return FOUR


def sized(X_train, Y_train, X_test, Y_test):
    size = {{choice([1, 3, 5, 7])}}
    network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(size)])
    return {"loss": abs(size - 5), "status": STATUS_OK, "model": network}


def shifted(X_train, Y_train, X_test, Y_test):
    return {"loss": ({{uniform(0, 1)}} - 0.3) ** 2, "status": STATUS_OK}


@pytest.fixture
def search(spark):
    return HyperParamModel(spark.sparkContext, num_workers=2)


@pytest.mark.spark
def test_a_program_as_elephas_had_it(search):
    def data():
        digits = load_digits()
        X, Y = digits.data.astype("float32") / 16, keras.utils.to_categorical(digits.target)
        X_train, Y_train = X[:600], Y[:600]
        X_test, Y_test = X[600:900], Y[600:900]
        return X_train, Y_train, X_test, Y_test

    def model(X_train, Y_train, X_test, Y_test):
        from keras.layers import Activation, Dense, Dropout
        from keras.models import Sequential

        keras_model = Sequential()
        keras_model.add(keras.Input((64,)))
        keras_model.add(Dense(32))
        keras_model.add(Activation("relu"))
        keras_model.add(Dropout({{uniform(0, 0.3)}}))
        keras_model.add(Dense(10))
        keras_model.add(Activation("softmax"))
        keras_model.compile(
            loss="categorical_crossentropy",
            optimizer=keras.optimizers.RMSprop({{choice([1e-7, 0.01])}}),
            metrics=["acc"],
        )
        keras_model.fit(X_train, Y_train, batch_size={{choice([16, 32])}}, epochs=4, verbose=0)
        _, acc = keras_model.evaluate(X_test, Y_test, verbose=0)
        return {
            "loss": -acc,
            "status": STATUS_OK,
            "model": keras_model.to_yaml(),
            "weights": pickle.dumps(keras_model.get_weights()),
        }

    best = search.minimize(model=model, data=data, max_evals=3)
    _, _, X_test, Y_test = data()
    _, accuracy = best.evaluate(X_test, Y_test, verbose=0)
    assert accuracy > 0.8
    assert accuracy == pytest.approx(-min(search.trials.losses()))
    assert set(search.trials.argmin) == {"Dropout", "RMSprop", "batch_size"}
    assert search.trials.argmin["RMSprop"] == 0.01
    assert search.study.best_value == pytest.approx(-accuracy)


@pytest.mark.spark
def test_the_lowest_losses_first(search):
    models = search.best_models(3, sized, four, max_evals=6)
    losses = search.trials.losses()
    assert [abs(each.layers[0].units - 5) for each in models] == sorted(losses)[:3]
    assert models[0].layers[0].units == 5
    # Only what was asked for is kept.
    assert sum("model" in result for result in search.trials.results) == 3


@pytest.mark.spark
def test_all_trials_with_what_the_function_returned(spark):
    def model(X_train, Y_train, X_test, Y_test, trial):
        size = trial.suggest_int("size", 1, 4)
        trial.set_user_attr("who", "me")
        network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(size)])
        # It has its own arrays, and may do with them what it likes.
        X_train += 1
        return {"loss": size, "model": network, "pid": os.getpid(), "sum": X_train.sum(), "kind": np.float32}

    search = HyperParamModel(spark, num_workers=2)
    (trials,) = search.compute_trials(model, four, max_evals=4)
    assert isinstance(trials, Trials)
    assert trials.tids == [0, 1, 2, 3]
    assert trials.statuses() == [STATUS_OK] * 4
    for trial in trials:
        assert trial["misc"]["vals"] == {"size": [trial["result"]["loss"]]}
        assert search.load_model(trial).layers[0].units == trial["result"]["loss"]
        assert trial["result"]["sum"] == 6.0
        assert trial["result"]["pid"] != os.getpid()
        assert trial["result"]["kind"] == repr(np.float32)
    assert [each.user_attrs for each in search.study.trials] == [{"who": "me"}] * 4


@pytest.mark.spark
def test_an_ensemble_of_the_best(search):
    def model(X_train, Y_train, X_test, Y_test):
        bias = {{choice([0.5, 1.0, 2.0, 9.0])}}
        network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, activation="softmax")])
        network.set_weights([np.zeros((2, 2)), np.array([0.0, bias if bias < 9 else -bias])])
        return {"loss": bias, "status": STATUS_OK, "model": network}

    ensemble = search.best_ensemble(3, model, four, max_evals=4)
    assert isinstance(ensemble, VotingModel)
    assert len(ensemble.model_list) == 3
    assert ensemble.predict(FOUR[0]).tolist() == [1, 1]
    assert ensemble.predict_proba(FOUR[0]).tolist() == [[0.0, 1.0]] * 2
    soft = search.best_ensemble(2, model, four, max_evals=2, voting="soft", weights=[1, 3])
    assert soft.predict(FOUR[0]).tolist() == [1, 1]
    each = [one.predict(FOUR[0], verbose=0) for one in soft.model_list]
    np.testing.assert_allclose(soft.predict_proba(FOUR[0]), 0.25 * each[0] + 0.75 * each[1])


@pytest.mark.spark
def test_trials_that_fail_are_told_and_left_out(spark, caplog):
    def model(X_train, Y_train, X_test, Y_test):
        end = {{choice(["raise", "fail", "nan", "die", "fine"])}}
        if end == "raise":
            raise RuntimeError("the network fell apart")
        if end == "die":
            os._exit(3)
        network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        status = STATUS_FAIL if end == "fail" else STATUS_OK
        return {"loss": float("nan") if end == "nan" else 1.0, "status": status, "model": network}

    search = HyperParamModel(spark, num_workers=2, seed=54)  # which draws each of them once
    with caplog.at_level(logging.WARNING, "keraunos"):
        best = search.minimize(model, four, max_evals=5)
    assert best.layers[0].units == 1
    errors = " | ".join(trial["misc"].get("error", "") for trial in search.trials)
    for expected in ("RuntimeError: the network fell apart", "status is 'fail'", "not a number", "Spark job failed"):
        assert expected in errors
    assert "4 of 5 trials failed" in caplog.text
    assert search.trials.statuses().count(STATUS_FAIL) == 4
    assert sorted(search.trials.losses()) == [1.0] + [float("inf")] * 4
    assert search.trials.argmin == {"end": "fine"}


@pytest.mark.spark
def test_a_search_of_which_nothing_is_left(search):
    def model(X_train, Y_train, X_test, Y_test):
        raise RuntimeError("no luck with " + {{choice(["this", "that"])}})

    with pytest.raises(WorkerError, match=r"No trial of the search ended well: 2 failed.*no luck with"):
        search.minimize(model, four, max_evals=2)


@pytest.mark.spark
def test_trials_run_side_by_side_in_tasks(search):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        server.settimeout(120)

        def let_them_go_together():
            waiting = [server.accept()[0] for _ in range(2)]
            for each in waiting:
                each.sendall(b"go")
                each.close()

        def model(X_train, Y_train, X_test, Y_test):
            from pyspark import TaskContext

            with socket.create_connection(("127.0.0.1", port), timeout=120) as together:
                told = together.recv(2)
            return {"loss": {{uniform(0, 1)}}, "told": told.decode(), "task": TaskContext.get().taskAttemptId()}

        host = threading.Thread(target=let_them_go_together)
        host.start()
        (trials,) = search.compute_trials(model, four, max_evals=2)
        host.join()
    assert [each["told"] for each in trials.results] == ["go", "go"]
    assert len({each["task"] for each in trials.results}) == 2


@pytest.mark.spark
def test_a_seed_says_what_is_drawn_and_later_trials_learn(spark):
    def losses(seed, max_evals):
        (trials,) = HyperParamModel(spark, num_workers=2, seed=seed).compute_trials(shifted, four, max_evals)
        return trials.losses()

    found = losses(1, 22)
    assert len(set(found)) == 22
    assert np.mean(found[-10:]) < np.mean(found[:10])
    # A trial depends on those before it only.
    assert losses(1, 13) == found[:13]
    assert losses(2, 2) != found[:2]


@pytest.mark.spark
def test_a_seed_says_how_a_model_begins(spark):
    def begun(seed):
        models = HyperParamModel(spark, num_workers=2, seed=seed).best_models(2, sized, four, max_evals=2)
        return [each.get_weights()[0].tolist() for each in models]

    first = begun(0)
    assert first == begun(0)
    assert first != begun(3)


PROGRAM = """
from keraunos.compat.elephas.hyperopt import STATUS_OK
from keraunos.compat.elephas.hyperas.distributions import choice
from keraunos.compat.elephas.hyperparam import HyperParamModel

def data():
    return [1], [2], [3], [4]

def times(number):
    return 2 * number

def model(X_train, Y_train, X_test, Y_test):
    return {'loss': times({{choice([4])}}) + X_train[0], 'status': STATUS_OK}

print(HyperParamModel(sc).compute_trials(model, data, max_evals=1)[0].losses())
"""


@pytest.mark.spark
@pytest.mark.extended
def test_a_script_that_is_run(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    options = "--conf spark.ui.enabled=false --conf spark.log.level=ERROR pyspark-shell"
    done = subprocess.run(
        [sys.executable, "-m", "keraunos.cli.main", "run", str(script)],
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": options},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[9.0]", done.stderr


@pytest.mark.spark
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("3.5", r"must return a dict such as .*Received: 3.5"),
        ("{'status': 'ok'}", r"must have a number under 'loss'.*Received: one with 'status'"),
        ("{'loss': [1, 2]}", r"'loss' that `model` returns must be one number. Received: \[1, 2\]"),
        ("{'loss': 1}", r"must have the trained Keras model under 'model'.*Received: None"),
        ("{'loss': 1, 'model': '{}'}", r"must have the trained Keras model under 'model'.*Received: '{}'"),
        ("{'loss': 1, 'status': 'okay'}", r"`status` must be one of 'ok', 'fail'. Received: 'okay'. Did you mean 'ok'"),
    ],
)
def test_results_that_no_trial_can_better(search, returned, message):
    def model(X_train, Y_train, X_test, Y_test, trial):
        return eval(returned)

    with pytest.raises(JobError, match=message):
        search.minimize(model, four, max_evals=1)


@pytest.mark.spark
def test_a_template_in_a_function_that_the_model_calls(search):
    def helper():
        return {{choice([1, 2])}}

    def model(X_train, Y_train, X_test, Y_test):
        return {"loss": helper() + {{uniform(0, 1)}}}

    with pytest.raises(JobError, match="`choice` must stand in a template.*Move the template into `model`"):
        search.minimize(model, four, max_evals=1)


def no_templates(X_train, Y_train, X_test, Y_test):
    return {"loss": 1}


def unknown_distribution(X_train, Y_train, X_test, Y_test):
    return {"loss": {{unifrom(0, 1)}}}  # noqa: F821


def not_a_distribution(X_train, Y_train, X_test, Y_test):
    return {"loss": {{1, 2}}}


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (no_templates, four, "must have at least one template.*Received: no_templates, which has none"),
        (unknown_distribution, four, "must be one of 'choice'.*Received: 'unifrom'. Did you mean 'uniform'"),
        (not_a_distribution, four, r"must be one distribution within double braces.*Received: `{{1, 2}}`"),
        (lambda a, b, c, d: {{uniform(0, 1)}}, four, "must be defined with `def`"),
        (os.getpid, four, "`model` must be a function with templates"),
        (3, four, "`model` must be a function. Received: 3"),
        (shifted, FOUR, "`data` must be a function"),
        (shifted, lambda: FOUR[:2], "`data` must return the 4 values that `model` takes, X_train.*Received: 2 values"),
        (shifted, lambda: None, "`data` must return the 4 values .*Received: NoneType"),
        (eval("lambda a: 0"), four, "The source of '<lambda>' must be at hand.*let it take an argument `trial`"),
    ],
)
def test_what_cannot_be_searched_is_told_before_anything_runs(model, data, message):
    with pytest.raises(JobError, match=message):
        HyperParamModel(None).minimize(model, data, max_evals=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_evals": 0}, "`max_evals` must be a whole number of at least 1. Received: 0"),
        ({"max_evals": 1, "notebook_name": "none"}, "`notebook_name` must be the name of a notebook"),
    ],
)
def test_arguments_out_of_range(arguments, message):
    unseen = eval("lambda a, b, c, d: 0")
    with pytest.raises(JobError, match=message):
        HyperParamModel(None).minimize(unseen, four, **arguments)


def test_numbers_of_workers_and_models_and_votes():
    with pytest.raises(JobError, match="`num_workers` must be a whole number of at least 1. Received: 0"):
        HyperParamModel(None, 0)
    with pytest.raises(JobError, match="`nb_models` must be a whole number"):
        HyperParamModel(None).best_models(0, shifted, four, max_evals=1)
    with pytest.raises(JobError, match="`voting` must be one of 'hard', 'soft'. Received: 'loud'"):
        HyperParamModel(None).best_ensemble(2, shifted, four, max_evals=1, voting="loud")
    with pytest.raises(JobError, match="`weights` must have a number for each of the 2 models"):
        HyperParamModel(None).best_ensemble(2, shifted, four, max_evals=1, weights=[1])


def test_without_optuna_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(JobError, match=r"needs Optuna.*pip install 'keraunos\[hyperparam\]'"):
        HyperParamModel(None).minimize(shifted, four, max_evals=1)


@pytest.mark.spark
def test_a_function_whose_source_only_the_notebook_has(search, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = "def model(X_train, Y_train, X_test, Y_test):\n    return {'loss': {{choice([4])}} + X_train[0, 0]}\n"
    cells = [
        {"cell_type": "markdown", "source": ["A search"]},
        {"cell_type": "code", "source": ["%matplotlib inline"]},
        {"cell_type": "code", "source": source.splitlines(keepends=True)},
    ]
    (tmp_path / "search.ipynb").write_text(json.dumps({"cells": cells}))
    namespace = {}
    exec(source, namespace)
    (trials,) = search.compute_trials(namespace["model"], four, max_evals=1, notebook_name="search")
    assert trials.losses() == [5.0]


@pytest.mark.spark
def test_data_meet_their_names_as_in_one_scope(search):
    def data():
        X_train, X_test, Y_train, Y_test = 1, 2, 30, 40
        return X_train, X_test, Y_train, Y_test

    def model(X_train, Y_train, X_test, Y_test):
        return {"loss": X_train - Y_train, "values": [X_test, Y_test], "drawn": {{uniform(0, 1)}}}

    (trials,) = search.compute_trials(model, data, max_evals=1)
    assert trials.losses() == [-29.0]
    assert trials.results[0]["values"] == [2, 40]
