"""`zoo.pipeline.api.keras`: Keras-1-style models, thin over Keras on TensorFlow. Runs on the driver."""
