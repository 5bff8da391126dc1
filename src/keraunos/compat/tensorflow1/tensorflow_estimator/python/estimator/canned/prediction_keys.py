"""The keys of what a ready-made estimator predicts. Runs on the driver."""

from __future__ import annotations


class PredictionKeys:
    """The keys by the names that programs call them by."""

    ALL_CLASSES = "all_classes"
    ALL_CLASS_IDS = "all_class_ids"
    CLASSES = "classes"
    CLASS_IDS = "class_ids"
    LOGISTIC = "logistic"
    LOGITS = "logits"
    PREDICTIONS = "predictions"
    PROBABILITIES = "probabilities"
    TOP_K = "top_k"
