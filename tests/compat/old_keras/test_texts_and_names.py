"""Texts as each day counted them, names that programs import, and models as estimators of scikit-learn."""

import sys

import keras
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from keraunos.compat import keras0, keras1, keras2
from keraunos.compat.old_keras import contents, undecided
from keraunos.compat.old_keras.days import DAYS
from keraunos.errors import JobError

TEXTS = ["a b a", "B c", "c d c c"]


def test_shares_of_words_by_the_formula_of_keras_0():
    words = keras0.preprocessing.text.Tokenizer(nb_words=5)
    words.fit_on_texts(TEXTS)
    words.fit_on_texts(TEXTS[:2])
    assert (words.nb_words, words.document_count) == (5, 2)
    words = keras0.preprocessing.text.Tokenizer()
    words.fit_on_texts(TEXTS)
    found = words.texts_to_matrix(TEXTS, mode="tfidf")
    number = words.word_index["a"]
    assert found[0, number] == pytest.approx(np.log(2 / 3) / (1 + np.log(1 + 1 / 4)))
    assert found[1, number] == 0
    assert found[2, words.word_index["c"]] == pytest.approx(np.log(3 / 4) / (1 + np.log(1 + 2 / 4)))
    with pytest.raises(JobError, match="must be fit before mode 'tfidf'"):
        keras0.preprocessing.text.Tokenizer(3).sequences_to_matrix([[1]], "tfidf")


def test_texts_of_keras_1(caplog, monkeypatch):
    monkeypatch.setattr(undecided, "_said", set())
    text = keras1.preprocessing.text
    words = text.Tokenizer(nb_words=None, filters=text.base_filter(), char_level=True)
    words.fit_on_texts(["aA"])
    assert set(words.word_index) == {"a", "A"}
    assert words.texts_to_sequences(["A"]) == [[words.word_index["A"]]]
    assert words.texts_to_matrix(["aa"], "tfidf")[0, words.word_index["a"]] == pytest.approx(
        (1 + np.log(2)) * np.log(1 + 1 / 2)
    )
    assert "until Keras 1.0.4" in caplog.text
    assert text.text_to_word_sequence(text="It's a, b") == ["it's", "a", "b"]
    words = keras2.preprocessing.text.Tokenizer(num_words=None, char_level=True)
    words.fit_on_texts(["aA"])
    assert set(words.word_index) == {"a"}
    assert keras2.preprocessing.sequence.TimeseriesGenerator


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (keras0.objectives, "mse MSE mae mape msle cosine"),
        (keras1.objectives, "mse MSE mae mape msle kld cosine kullback_leibler_divergence"),
        (keras1.metrics, "mse mae mape msle cosine cosine_proximity"),
        (keras2.losses, "mse mae mape msle kld cosine logcosh huber_loss kullback_leibler_divergence"),
        (keras2.metrics, "mse mae mape msle cosine"),
        (keras2.constraints, "max_norm maxnorm non_neg nonneg unit_norm unitnorm min_max_norm"),
        (keras2.initializers, "uniform normal zero one zeros ones RandomUniform glorot_uniform"),
    ],
)
def test_names_that_programs_import(module, names):
    assert [name for name in names.split() if not hasattr(module, name)] == []


def test_what_the_names_are():
    assert keras2.constraints.maxnorm(3.0).max_value == 3.0
    model = keras2.models.Sequential([keras2.layers.Dense(1, input_dim=2, kernel_initializer="one")])
    model.compile("sgd", "logcosh", metrics=["logcosh", keras2.metrics.mae])
    x, y = np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([[1.0], [2.0]])
    error = np.array([2.0, -1.5])
    found = model.evaluate(x, y, verbose=0)
    assert found == pytest.approx([np.log(np.cosh(error)).mean()] * 2 + [np.abs(error).mean()], rel=1e-5)
    weights = np.asarray(keras2.initializers.normal()((500, 10)))
    assert float(weights.std()) == pytest.approx(0.05, rel=0.1)


def _built(package):
    def build(width=2):
        model = package.models.Sequential()
        layers = package.layers
        first = layers.Dense(2, width) if package is keras0 else layers.Dense(width, input_dim=2)
        model.add(first)
        model.add(layers.Dense(width, 2, activation="softmax") if package is keras0 else layers.Dense(2))
        model.add(layers.Activation("softmax"))
        metrics = {} if package is keras0 else {"metrics": ["accuracy"]}
        model.compile(optimizer="sgd", loss="categorical_crossentropy", **metrics)
        return model

    return build


@pytest.mark.parametrize("package", [keras0, keras1, keras2])
def test_a_classifier_of_scikit_learn(package):
    x = np.random.default_rng(0).normal(size=(12, 2))
    y = (x[:, 0] > 0).astype(int) * (2 if package is keras2 else 1)
    epochs = "epochs" if package is keras2 else "nb_epoch"
    wrappers = package.wrappers.scikit_learn
    made = wrappers.KerasClassifier(build_fn=_built(package), verbose=0, **{epochs: 3})
    assert len(made.fit(x, y).epoch) == 3
    found = made.predict(x)
    assert set(found) <= set(y)
    assert made.score(x, y) == pytest.approx((found == y).mean())
    assert made.predict_proba(x).shape == (12, 2)
    with pytest.raises(JobError, match="parameter of KerasClassifier` must be one of"):
        wrappers.KerasClassifier(build_fn=_built(package), widht=3)


def test_the_wrappers_say_what_they_need(monkeypatch):
    assert keras1.wrappers.scikit_learn  # so that there is something to take away
    monkeypatch.delattr("keraunos.compat.old_keras.sklearn_wrappers")
    monkeypatch.delitem(sys.modules, "keraunos.compat.old_keras.sklearn_wrappers")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(JobError, match="needs scikit-learn. Received: .*Install it with `pip install scikit-learn`"):
        contents.names_of("keras", "wrappers.scikit_learn", DAYS["1"])


def test_a_search_of_scikit_learn_and_the_score_of_a_regressor():
    x = np.random.default_rng(0).normal(size=(12, 2))

    def build(rate=0.1):
        model = keras1.models.Sequential([keras1.layers.Dense(1, input_dim=2)])
        model.compile(keras1.optimizers.SGD(lr=rate), "mse")
        return model

    made = keras1.wrappers.scikit_learn.KerasRegressor(build_fn=build, nb_epoch=1, verbose=0)
    made.fit(x, x[:, 0])
    loss = np.mean((made.predict(x) - x[:, 0]) ** 2)
    assert made.score(x, x[:, 0]) == pytest.approx(loss, rel=1e-5)  # and not minus it
    classifier = keras1.wrappers.scikit_learn.KerasClassifier(_built(keras1), nb_epoch=1, verbose=0)
    search = GridSearchCV(classifier, {"width": [2, 3]}, cv=2).fit(x, (x[:, 0] > 0).astype(int))
    assert search.best_params_["width"] in {2, 3}
    assert isinstance(search.best_estimator_.model, keras.Sequential)
