"""A model that takes strings in two parts, which together are it; `convergence/test_on_tensorflow.py` runs it too."""

import os

import keras
import numpy as np
import pytest
from keras import layers

from keraunos.errors import DataError, ModelError
from keraunos.learners.keras_archive import from_archive, to_archive
from keraunos.learners.keras_front import parted
from keraunos.learners.keras_variables import layout_of
from keraunos.learners.tensorflow_layers import check_vocabularies, in_archive
from tests.conformance import text_models as models

ON_TENSORFLOW = os.environ["KERAS_BACKEND"] == "tensorflow"


def whole(model, texts):
    """What plain Keras computes of strings, which only Keras on TensorFlow does."""
    import tensorflow as tf

    return np.asarray(model(tf.constant(texts)))


def in_parts(model, inputs):
    rest, front = parted(model)
    return np.asarray(rest.predict(front(inputs), verbose=0))


@pytest.mark.parametrize("shape", [(), (1,)])
def test_the_parts_together_give_what_the_model_gives(shape):
    model = from_archive(to_archive(models.classifier(shape)))
    lines, _ = models.texts(7)
    found = in_parts(model, models.as_bytes(lines))
    # The layers by hand, on the numbers of the words.
    words = {word: number for number, word in enumerate(model.layers[1].get_vocabulary())}
    numbers = np.array([[words[word] for word in line.rstrip("!").split()] + [0, 0] for line in lines])
    table, kernel, bias = model.get_weights()
    scores = table[numbers][:, :3].mean(axis=1) @ kernel + bias
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    if ON_TENSORFLOW:
        np.testing.assert_allclose(found, whole(model, models.as_bytes(lines).reshape(-1, *shape)), rtol=1e-5)


def test_training_the_rest_trains_the_model_and_the_archive_is_the_whole():
    model = from_archive(to_archive(models.classifier()))
    before = [np.array(each) for each in model.get_weights()]
    rest, front = parted(model)
    assert rest.optimizer is model.optimizer
    assert rest.jit_compile or ON_TENSORFLOW  # which Keras turns off for layers of strings
    lines, labels = models.texts(32)
    rest.fit(front(models.as_bytes(lines)), labels, verbose=0)
    again = from_archive(to_archive(model))
    for now, then, back in zip(model.get_weights(), before, again.get_weights(), strict=True):
        assert np.abs(now - then).max() > 0
        np.testing.assert_array_equal(now, back)
    assert again.input.dtype == "string"
    assert int(again.optimizer.iterations) == 1
    np.testing.assert_allclose(
        in_parts(again, models.as_bytes(lines)), rest.predict(front(models.as_bytes(lines)), verbose=0), rtol=1e-6
    )


def test_every_process_makes_the_same_parts():
    archive = to_archive(models.feature_space(models.passenger_rows()))
    keras.Input((3,))  # another name counter
    layouts = []
    for _ in range(2):
        rest, front = parted(from_archive(archive))
        layouts.append((layout_of(rest), front.inputs, front.reads, front.keeps, front.makes))
    assert layouts[0] == layouts[1]
    assert layouts[0][2:4] == (("city", "deck"), ("age",))


def test_a_feature_space_in_parts():
    rows = models.passenger_rows()
    model = from_archive(to_archive(models.feature_space(rows)))
    rest, front = parted(model)
    given = {
        "age": rows["age"],
        "city": models.as_bytes(rows["city"]),
        "deck": rows["deck"],
    }
    made = front(given)
    assert set(made) == {"age", *front.makes}
    assert all(array.dtype == np.int32 for name, array in made.items() if name != "age")
    names = {layer.name: layer for layer in model.layers}
    cities = names["string_categorical_preprocessor" if "string_categorical_preprocessor" in names else front.makes[0]]
    vocabulary = cities.get_vocabulary()
    numbers = [vocabulary.index(city) for city in rows["city"]]
    assert any(np.array_equal(array.reshape(-1), numbers) for array in made.values())
    assert rest.predict(made, verbose=0).shape == (40, 2)
    rest.fit(made, rows["y"], verbose=0)


def test_one_layer_on_two_inputs_makes_two():
    first, second = (keras.Input((), dtype="string", name=name) for name in ("title", "body"))
    layer = models.vectorizer(name="words")
    both = layers.Concatenate()([layer(first), layer(second)])
    model = keras.Model([first, second], layers.Dense(2)(layers.Embedding(20, 2)(both)))
    _, front = parted(model)
    assert front.reads == ("title", "body")
    assert front.makes == ("words", "words_2")
    made = front({"title": models.as_bytes(["good"]), "body": models.as_bytes(["bad good"])})
    assert made["words"][0, 0] == made["words_2"][0, 1] != made["words_2"][0, 0]


@pytest.mark.parametrize(
    ("options", "width"),
    [({"output_mode": "multi_hot"}, 8), ({"output_mode": "tf_idf"}, 8), ({"output_mode": "count", "ngrams": 2}, 8)],
)
def test_words_counted_or_weighed(options, width):
    layer = models.vectorizer(output_sequence_length=None, **options)
    inputs = keras.Input((1,), dtype="string")
    model = models.compiled(keras.Model(inputs, layers.Dense(2, activation="softmax")(layer(inputs))))
    lines = models.as_bytes(["good good bad", "what"])
    _, front = parted(from_archive(to_archive(model)))
    (made,) = front(lines).values()
    np.testing.assert_allclose(made, np.asarray(layer(np.array([["good good bad"], ["what"]]))), rtol=1e-6)
    assert made.dtype == np.float32


def test_whole_numbers_beyond_32_bits_are_looked_up_as_they_are():
    large = 5_000_000_000
    inputs = keras.Input((), dtype="int64", name="id")
    number = layers.IntegerLookup(vocabulary=[7, large, large + 2**32])(inputs)
    model = models.compiled(keras.Model(inputs, layers.Dense(2)(layers.Embedding(4, 2)(number))))
    archive = to_archive(model)
    assert in_archive(archive)
    _, front = parted(from_archive(archive))
    (made,) = front(np.array([large + 2**32, 7, large, 1])).values()
    assert made.tolist() == [3, 1, 2, 0]


def test_a_model_of_numbers_stays_whole():
    model = models.compiled(keras.Sequential([keras.Input((3,)), layers.Normalization(), layers.Dense(2)]))
    assert parted(model) == (model, None)
    assert not in_archive(to_archive(model))


class OwnStep(keras.Model):
    def train_step(self, *args):
        return super().train_step(*args)


def refused():
    text = keras.Input((), dtype="string", name="text")
    nested = models.classifier()
    numbers = keras.Input((1,), dtype="int64")
    words = layers.StringLookup(vocabulary=["a", "b"], invert=True, name="named")
    number = models.vectorizer(name="open", output_sequence_length=None)(text)
    noisy = layers.Hashing(5)(layers.GaussianNoise(1.0)(numbers))
    return {
        "'open' gives rows of any length.*output_sequence_length": keras.Model(text, layers.Embedding(20, 2)(number)),
        "has a 'train_step' of its own": OwnStep(text, layers.Dense(2)(models.vectorizer()(text))),
        "'functional.*has one inside.*weights to train": keras.Model(text, layers.Dense(2)(nested(text))),
        "gives strings: its layer 'named'": keras.Model(numbers, words(numbers)),
        "Received: Subclassed, a class of its own": models.Subclassed(),
        "Received: GaussianNoise with weights to train or random": keras.Model(numbers, layers.Embedding(5, 1)(noisy)),
    }


@pytest.mark.parametrize("message", list(refused()))
def test_what_cannot_be_parted_is_refused_by_name(message):
    with pytest.raises(ModelError, match=message):
        parted(refused()[message])


def test_a_layer_without_a_vocabulary_is_refused_by_name():
    with pytest.raises(ModelError, match="'words' has no vocabulary.*adapt"):
        check_vocabularies(keras.Sequential([layers.TextVectorization(name="words"), layers.Dense(1)]))
    check_vocabularies(models.unbuilt())


def test_a_vocabulary_that_an_archive_would_change_is_refused_by_name():
    layer = layers.StringLookup(name="codes")
    layer.adapt(np.array(["a\u2028b", "c"]))
    with pytest.raises(ModelError, match=r"'codes' cannot be saved.*Received: 'a\\u2028b'"):
        check_vocabularies(keras.Sequential([layer]))
    check_vocabularies(keras.Sequential([layers.StringLookup(vocabulary=["a\u2028b", "c"])]))


def test_rows_of_another_shape_are_refused():
    _, front = parted(models.classifier())
    with pytest.raises(
        DataError, match="input 'text'.*Expected rows of shape \\(\\).*Received: rows of shape \\(2,\\)"
    ):
        front(models.as_bytes(["a", "b"])[None, :])
