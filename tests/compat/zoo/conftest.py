"""Files whose Keras runs on TensorFlow are left to a process of their own, which `test_on_tensorflow.py` starts."""

import os

ON_TENSORFLOW = [
    "test_bigdl_layers.py",
    "test_keras_api.py",
    "test_nets.py",
    "test_nnframes.py",
    "test_star_imports.py",
    "test_tfnet.py",
    "test_zoo_layers.py",
]

collect_ignore = [] if os.environ["KERAS_BACKEND"] == "tensorflow" else ON_TENSORFLOW
