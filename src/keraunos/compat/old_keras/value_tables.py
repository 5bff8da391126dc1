"""Names of initializers, regularizers, constraints, losses and metrics, and what each means today. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Config = tuple[str, Mapping[str, Any]]


def _scaled(scale: float, mode: str, distribution: str) -> Config:
    return "VarianceScaling", {"scale": scale, "mode": mode, "distribution": distribution}


# Keras 0 and 1. A normal distribution was not truncated, and an orthogonal matrix was 1.1 times one.
INITIALIZERS: Mapping[str, Config] = {
    "uniform": ("RandomUniform", {"minval": -0.05, "maxval": 0.05}),
    "normal": ("RandomNormal", {"mean": 0.0, "stddev": 0.05}),
    "lecun_uniform": _scaled(1.0, "fan_in", "uniform"),
    "glorot_uniform": _scaled(1.0, "fan_avg", "uniform"),
    "glorot_normal": _scaled(1.0, "fan_avg", "untruncated_normal"),
    "he_uniform": _scaled(2.0, "fan_in", "uniform"),
    "he_normal": _scaled(2.0, "fan_in", "untruncated_normal"),
    "orthogonal": ("Orthogonal", {"gain": 1.1}),
    "identity": ("Identity", {"gain": 1.0}),
    "zero": ("Zeros", {}),
    "zeros": ("Zeros", {}),
    "one": ("Ones", {}),
    "ones": ("Ones", {}),
}
# Keras 2 before 2.3 drew these as truncated ones that were not widened again; the rest is today's.
INITIALIZERS_2: Mapping[str, Config] = {
    "uniform": INITIALIZERS["uniform"],
    "normal": INITIALIZERS["normal"],
    "zero": ("Zeros", {}),
    "one": ("Ones", {}),
}

# Functions of `keras.regularizers`: today's class, and what its arguments are called there.
REGULARIZERS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "l1": ("L1", "l", {"l": "l1"}),
    "l2": ("L2", "l", {"l": "l2"}),
    "l1l2": ("L1L2", "l1 l2", {}),
    "WeightRegularizer": ("L1L2", "l1 l2", {}),
    "L1L2Regularizer": ("L1L2", "l1 l2", {}),
}
REGULARIZER_DEFAULTS: Mapping[str, Mapping[str, float]] = {
    "l1": {"l1": 0.01},
    "l2": {"l2": 0.01},
    "l1l2": {"l1": 0.01, "l2": 0.01},
    "WeightRegularizer": {"l1": 0.0, "l2": 0.0},
    "L1L2Regularizer": {"l1": 0.0, "l2": 0.0},
}
REFUSED_REGULARIZERS: Mapping[str, str] = {
    **dict.fromkeys(
        ("ActivityRegularizer", "activity_l1", "activity_l1l2", "activity_l2"),
        "Today such a penalty is divided by the rows of a batch, then it was not. Use l1 or l2 as W_regularizer.",
    ),
    "EigenvalueRegularizer": "Use l2.",
}

CONSTRAINTS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "maxnorm": ("MaxNorm", "m axis", {"m": "max_value"}),
    "MaxNorm": ("MaxNorm", "m axis", {"m": "max_value"}),
    "nonneg": ("NonNeg", "", {}),
    "NonNeg": ("NonNeg", "", {}),
    "unitnorm": ("UnitNorm", "axis", {}),
    "UnitNorm": ("UnitNorm", "axis", {}),
    "MinMaxNorm": ("MinMaxNorm", "low high rate axis", {"low": "min_value", "high": "max_value"}),
}

# Names of Keras 1 that Keras 2 still had, and today's names.
CONSTRAINTS_2: Mapping[str, str] = {"maxnorm": "max_norm", "nonneg": "non_neg", "unitnorm": "unit_norm"}

# Short names, by which a history's keys were the long ones.
LONG_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("mse", "MSE"), "mean_squared_error"),
    **dict.fromkeys(("mae", "MAE"), "mean_absolute_error"),
    **dict.fromkeys(("mape", "MAPE"), "mean_absolute_percentage_error"),
    **dict.fromkeys(("msle", "MSLE"), "mean_squared_logarithmic_error"),
    **dict.fromkeys(("kld", "KLD", "kullback_leibler_divergence"), "kl_divergence"),
    "cosine": "cosine_proximity",
    "logcosh": "log_cosh",
    "huber_loss": "huber",
}
LOSSES = (
    "binary_crossentropy",
    "categorical_crossentropy",
    "hinge",
    "kl_divergence",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "poisson",
    "sparse_categorical_crossentropy",
    "squared_hinge",
)
METRICS = (
    "binary_accuracy",
    "categorical_accuracy",
    "sparse_categorical_accuracy",
    "top_k_categorical_accuracy",
    *LOSSES,
)
REFUSED_METRICS: Mapping[str, str] = {
    name: f"It was the mean of each batch's value, which is no {what}. Predict, and use scikit-learn's."
    for name, what in (
        ("precision", "precision"),
        ("recall", "recall"),
        ("fbeta_score", "score"),
        ("fmeasure", "score"),
        ("fscore", "score"),
        ("f1score", "score"),
        ("matthews_correlation", "correlation"),
    )
}
ACTIVATIONS = ("elu", "hard_sigmoid", "linear", "relu", "sigmoid", "softmax", "softplus", "softsign", "tanh")
