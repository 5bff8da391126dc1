"""From a Paddle configuration to a Keras model: one function a layer type, put together by `network`."""
