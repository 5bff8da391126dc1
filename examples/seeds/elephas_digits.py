"""The data that Elephas's document leaves out: handwritten digits, enlarged to the 28 x 28 pixels of MNIST."""

from keraunos.data.digits import load_digits

import numpy as np

nb_classes = 10

_digits = load_digits()
_images = np.kron(_digits.images / 16, np.ones((3, 3)))  # 24 x 24
_X = np.pad(_images, ((0, 0), (2, 2), (2, 2))).reshape(-1, 784).astype("float32")
_Y = np.eye(nb_classes, dtype="float32")[_digits.target]
_order = np.random.default_rng(0).permutation(len(_X))
_train, _test = _order[:1500], _order[1500:]

X_train, Y_train = _X[_train], _Y[_train]
X_test, Y_test = _X[_test], _Y[_test]
