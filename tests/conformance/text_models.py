"""Small models that take strings, and rows for them. TensorFlow must be installed."""

import keras
import numpy as np
import pyarrow as pa
from keras import layers

WORDS = ("awful", "bad", "dull", "fine", "good", "great")
LENGTH = 5


def texts(count, seed=0):
    """Short texts, and whether more of their words are kind than not."""
    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(WORDS), size=(count, 3))
    lines = [" ".join(WORDS[each] for each in row) + ("!" if row[0] % 2 else "") for row in drawn]
    return np.array(lines, dtype=object), (np.sum(drawn >= 3, axis=1) >= 2).astype("int64")


def as_bytes(lines):
    return np.array([line.encode() for line in lines], dtype=object)


def table(count=64, seed=0):
    lines, labels = texts(count, seed)
    return pa.table({"text": pa.array(lines.tolist()), "y": labels})


def vectorizer(**options):
    layer = layers.TextVectorization(**{"max_tokens": 20, "output_sequence_length": LENGTH, **options})
    layer.adapt(list(WORDS))
    return layer


def classifier(shape=(), *, optimizer="adam", vectorize=None):
    """Words to the mean of their embeddings, with what pads a text left out, to two classes."""
    keras.utils.set_random_seed(3)
    inputs = keras.Input(shape, dtype="string", name="text")
    numbers = (vectorize or vectorizer())(inputs)
    embedded = layers.Embedding(20, 4, mask_zero=True)(numbers)
    outputs = layers.Dense(2, activation="softmax")(layers.GlobalAveragePooling1D()(embedded))
    return compiled(keras.Model(inputs, outputs), optimizer)


def compiled(model, optimizer="adam"):
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def unbuilt():
    """A Sequential that does not know yet what its rows are."""
    keras.utils.set_random_seed(3)
    return compiled(
        keras.Sequential(
            [vectorizer(), layers.Embedding(20, 4), layers.GlobalAveragePooling1D(), layers.Dense(2, "softmax")]
        )
    )


def passenger_rows(count=40, seed=0):
    random = np.random.default_rng(seed)
    return {
        "age": random.normal(40, 10, size=count).astype("float32"),
        "city": random.choice(["Oslo", "Rome", "Lima"], size=count),
        "deck": random.integers(1, 4, size=count).astype("int64"),
        "y": random.integers(0, 2, size=count).astype("int64"),
    }


def feature_space(rows):
    """Numbers, strings, whole numbers as categories, and a cross of two of them."""
    keras.utils.set_random_seed(3)
    space = keras.utils.FeatureSpace(
        features={"age": "float_normalized", "city": "string_categorical", "deck": "integer_categorical"},
        crosses=[("city", "deck")],
        crossing_dim=8,
        output_mode="concat",
    )
    space.adapt({name: rows[name].tolist() for name in ("age", "city", "deck")})
    outputs = layers.Dense(2, activation="softmax")(space.get_encoded_features())
    return compiled(keras.Model(space.get_inputs(), outputs))


class Subclassed(keras.Model):
    """Text layers inside of a class, where they cannot be told from the rest."""

    def __init__(self):
        super().__init__()
        self.words = vectorizer()
        self.dense = layers.Dense(2)

    def call(self, inputs):
        return self.dense(self.words(inputs))
