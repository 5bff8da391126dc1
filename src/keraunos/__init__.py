"""Deep learning on Apache Spark: any compiled Keras model as a spark.ml estimator. Runs everywhere.

Importing this package loads no framework; a public name is loaded when it is first used. The import selects Keras's
backend, unless the user has selected one: see `keraunos.backends`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keraunos.backends import settle_backend

if TYPE_CHECKING:
    from keraunos.errors import KeraunosError as KeraunosError
    from keraunos.exchange.rules.rule import Rule as Rule
    from keraunos.exchange.rules.rule import Sent as Sent
    from keraunos.job.exchange_plan import ExchangePlan as ExchangePlan
    from keraunos.job.rule_declaration import RuleDeclaration as RuleDeclaration
    from keraunos.job.rule_declaration import RuleOption as RuleOption
    from keraunos.job.rule_spec import register_rule as register_rule
    from keraunos.job.training_job import TrainingJob as TrainingJob
    from keraunos.launch.jsonl_log import JsonlLog as JsonlLog
    from keraunos.launch.jsonl_log import read_log as read_log
    from keraunos.ml.classifier import KerasClassificationModel as KerasClassificationModel
    from keraunos.ml.classifier import KerasClassifier as KerasClassifier
    from keraunos.ml.estimator import KerasEstimator as KerasEstimator
    from keraunos.ml.estimator import KerasModel as KerasModel
    from keraunos.ml.regressor import KerasRegressionModel as KerasRegressionModel
    from keraunos.ml.regressor import KerasRegressor as KerasRegressor
    from keraunos.telemetry.history import History as History
    from keraunos.telemetry.listener import Listener as Listener
    from keraunos.trust import trust_modules as trust_modules
    from keraunos.trust import trusting as trusting

__version__ = "0.1.0"

settle_backend()

_HOMES = {
    "ExchangePlan": "keraunos.job.exchange_plan",
    "History": "keraunos.telemetry.history",
    "JsonlLog": "keraunos.launch.jsonl_log",
    "KerasClassificationModel": "keraunos.ml.classifier",
    "KerasClassifier": "keraunos.ml.classifier",
    "KerasEstimator": "keraunos.ml.estimator",
    "KerasModel": "keraunos.ml.estimator",
    "KerasRegressionModel": "keraunos.ml.regressor",
    "KerasRegressor": "keraunos.ml.regressor",
    "KeraunosError": "keraunos.errors",
    "Listener": "keraunos.telemetry.listener",
    "Rule": "keraunos.exchange.rules.rule",
    "RuleDeclaration": "keraunos.job.rule_declaration",
    "RuleOption": "keraunos.job.rule_declaration",
    "Sent": "keraunos.exchange.rules.rule",
    "TrainingJob": "keraunos.job.training_job",
    "read_log": "keraunos.launch.jsonl_log",
    "register_rule": "keraunos.job.rule_spec",
    "trust_modules": "keraunos.trust",
    "trusting": "keraunos.trust",
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604 - the table above is the list of public names


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'keraunos' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
