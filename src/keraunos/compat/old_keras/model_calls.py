"""Calls of models: the order of their arguments on each day, and what each is called today. Plain data."""

from __future__ import annotations

from collections.abc import Mapping

_FIT = "batch_size nb_epoch verbose callbacks validation_split validation_data shuffle"
_FIT_2 = _FIT.replace("nb_epoch", "epochs")

# By day ("" is any that is not named), the arguments without a name in their order.
ORDERS: Mapping[str, Mapping[str, str]] = {
    "compile": {
        "0": "optimizer loss class_mode theano_mode",
        "1 Sequential": "optimizer loss metrics sample_weight_mode",
        "": "optimizer loss metrics loss_weights sample_weight_mode",
    },
    "fit": {
        "0": f"x y {_FIT} show_accuracy class_weight sample_weight",
        "1": f"x y {_FIT} class_weight sample_weight initial_epoch",
        "": f"x y {_FIT_2} class_weight sample_weight initial_epoch steps_per_epoch validation_steps",
    },
    "evaluate": {
        "0": "x y batch_size show_accuracy verbose sample_weight",
        "": "x y batch_size verbose sample_weight",
    },
    "predict": {"": "x batch_size verbose"},
    "train_on_batch": {
        "0": "x y accuracy class_weight sample_weight",
        "1 Sequential": "x y class_weight sample_weight",
        "2 Sequential": "x y class_weight sample_weight",
        "": "x y sample_weight class_weight",
    },
    "test_on_batch": {"0": "x y accuracy sample_weight", "": "x y sample_weight"},
    "fit_generator": {
        "0": "generator samples_per_epoch nb_epoch verbose show_accuracy callbacks validation_data nb_val_samples "
        "class_weight nb_worker nb_val_worker",
        "1": "generator samples_per_epoch nb_epoch verbose callbacks validation_data nb_val_samples class_weight "
        "max_q_size nb_worker pickle_safe initial_epoch",
        "": "generator steps_per_epoch epochs verbose callbacks validation_data validation_steps class_weight "
        "max_queue_size workers use_multiprocessing shuffle initial_epoch",
    },
    "evaluate_generator": {
        "0": "generator val_samples show_accuracy verbose",
        "1": "generator val_samples max_q_size nb_worker pickle_safe",
        "": "generator steps max_queue_size workers use_multiprocessing verbose",
    },
    "predict_generator": {
        "1": "generator val_samples max_q_size nb_worker pickle_safe",
        "": "generator steps max_queue_size workers use_multiprocessing verbose",
    },
}
RENAMED: Mapping[str, str] = {"X": "x", "nb_epoch": "epochs"}
# Keras 2 took these of Keras 1's as well.
OLDER: Mapping[str, str] = {
    "nb_epoch": "epochs",
    "samples_per_epoch": "samples_per_epoch",
    "nb_val_samples": "nb_val_samples",
    "val_samples": "val_samples",
    "nb_worker": "workers",
    "max_q_size": "max_queue_size",
    "pickle_safe": "use_multiprocessing",
}
# They affect only how batches are made.
OF_QUEUES = (
    "max_q_size",
    "max_queue_size",
    "nb_worker",
    "nb_val_worker",
    "workers",
    "pickle_safe",
    "use_multiprocessing",
)
