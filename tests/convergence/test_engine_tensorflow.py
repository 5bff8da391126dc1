"""The engine's promises on TensorFlow; `test_on_tensorflow.py` runs them where Keras is on another backend."""

import os

import pytest

if os.environ["KERAS_BACKEND"] == "tensorflow":
    import keras
    import numpy as np
    import tensorflow as tf

    from tests.conformance import engine
    from tests.conformance.engine_suite import EngineSuite

    class TestEngineOnTensorFlow(EngineSuite):
        @pytest.mark.parametrize("sizes", [[96], [60, 36]], ids=["1 worker", "2 workers"])
        def test_adam_gets_one_gradient_for_each_row_of_an_embedding(self, sizes):
            """Keras on TensorFlow alone squares the parts of a gradient that belong to one id, and not their sum."""
            random = np.random.default_rng(0)
            ids = random.integers(0, 9, size=(96, 6)).astype("int32")
            parts = engine.partitions(engine.table(x=ids, y=(ids[:, 0] > 4).astype("int64")), sizes)
            job = engine.job_of(embedding(), len(sizes), batch_size=8, epochs=3)
            trained, _ = engine.train(job, parts)
            plain = embedding()
            for inputs, targets, _ in engine.global_batches(job, parts):
                with tf.GradientTape() as tape:
                    loss = plain.loss(targets, plain(inputs, training=True))
                gradients = tape.gradient(loss, [each.value for each in plain.trainable_variables])
                plain.optimizer.apply([tf.convert_to_tensor(each) for each in gradients], plain.trainable_variables)
            assert engine.difference(trained, plain) < 1e-4

    def embedding():
        keras.utils.set_random_seed(1)
        layers = [keras.layers.Embedding(9, 4), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(3, "softmax")]
        model = keras.Sequential([keras.Input((6,), dtype="int32"), *layers])
        model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy())
        return model
