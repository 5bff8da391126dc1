"""A single worker within this process: the engine's results, and its errors."""

import numpy as np
import pytest

from keraunos.errors import DataError, JobError
from keraunos.exchange.rules.registry import rule_class
from keraunos.job.exchange_plan import ExchangePlan
from keraunos.launch import in_process
from keraunos.launch.fit import Fit
from keraunos.launch.fit_events import FitEvents
from keraunos.launch.rule_memory import RuleMemory
from keraunos.learners.keras_archive import from_archive
from tests.conformance import engine
from tests.conformance import learner_models as models


def rows(count=120):
    random = np.random.default_rng(0)
    x = random.normal(size=(count, models.FEATURES)).astype("float32")
    return engine.table(x=x, y=(x[:, 0] > 0).astype("int64"))


@pytest.mark.leaks
def test_one_process_gives_the_same_bits_as_any_engine():
    job = engine.job_of(models.dense("adam"), 1, batch_size=16, epochs=2, validation_split=0.2)
    result = in_process.fit(job, rows())
    trained, history = engine.train(job, [rows()])
    assert engine.difference(from_archive(result.archive), trained) == 0.0
    assert result.history["val_loss"] == pytest.approx(history["val_loss"], rel=1e-6)


@pytest.mark.leaks
def test_wrong_rows_are_told():
    job = engine.job_of(models.dense("sgd"), 1, batch_size=16)
    with pytest.raises(DataError, match="NaN"):
        in_process.fit(job, engine.table(x=np.full((9, models.FEATURES), np.nan, "float32"), y=np.zeros(9, "int64")))
    with pytest.raises(DataError, match="no rows"):
        in_process.fit(job, rows().slice(0, 0))


def test_more_than_one_worker_is_refused():
    with pytest.raises(JobError, match=r"must have one worker.*workers=2"):
        in_process.fit(engine.job_of(models.dense("sgd"), 2, batch_size=16), rows())


def test_what_a_rule_remembers_goes_on():
    """Momentum that is carried on makes of two fits what one long fit is."""
    plan = ExchangePlan("gradients", 1, "asynchronous", "sgd(learning_rate=0.05, momentum=0.9)")
    assert rule_class(plan.rule).gives_parameters

    def trained(model, epochs, memory):
        job = engine.job_of(model, 1, exchange=plan, batch_size=120, epochs=epochs, shuffle=False)
        with FitEvents(job) as events, Fit.open(job, events, verbose=0, memory=memory) as fit:
            threads = engine.Threads(job, fit.connection, [rows()], share_memory=True)
            try:
                return from_archive(fit.follow(threads).archive)
            finally:
                threads.join()

    memory = RuleMemory()
    twice = trained(trained(models.dense("sgd"), 2, memory), 2, memory)
    assert memory.state
    once = trained(models.dense("sgd"), 4, None)
    forgetful = trained(trained(models.dense("sgd"), 2, None), 2, None)
    assert engine.difference(twice, once) < 1e-6
    assert engine.difference(forgetful, once) > 1e-4


def test_workers_own_rules_remember_elsewhere():
    job = engine.job_of(models.dense("sgd"), 1, batch_size=16)
    refused = pytest.raises(JobError, match="only where the driver has it")
    with refused, FitEvents(job) as events, Fit.open(job, events, memory=RuleMemory()):
        pass
