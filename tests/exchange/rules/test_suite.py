"""The rules that are built in, by the suite for rules."""

import keras

from keraunos.job.exchange_plan import ExchangePlan
from keraunos.testing.rule_suite import RuleSuite


class TestOwn(RuleSuite):
    rule = "own"


class TestMean(RuleSuite):
    rule = "mean"

    def plans(self):
        return [*super().plans(), ExchangePlan("updates", 5, "synchronous", "mean", scale="stretched")]


class TestSum(RuleSuite):
    rule = "sum"


class TestAdd(RuleSuite):
    rule = "add"

    def plans(self):
        stretched = ExchangePlan("updates", 5, "asynchronous", "add", scale="stretched")
        return [*super().plans(), stretched, ExchangePlan("updates", 5, "hogwild", "add", scale="staleness")]


class TestMovingAverage(RuleSuite):
    rule = "moving_average(5)"
    refused = ("moving_average(0)", "moving_average(1.5)")
    ordered = True


class TestElastic(RuleSuite):
    rule = "elastic(0.2)"
    refused = ("elastic(0)", "elastic(1.0)")


class TestDelayedNesterov(RuleSuite):
    rule = "delayed_nesterov(0.5, 0.8, 2, 0.1)"
    refused = ("delayed_nesterov(-1)", "delayed_nesterov(momentum=2)", "delayed_nesterov(delay=0)")


class KerasOptimizerSuite(RuleSuite):
    """Keras compiles a step for each length of a slice, so there are few plans."""

    exact = False
    answers = (("gradients", "synchronous"),)

    def plans(self):
        return [ExchangePlan(send, 1, meet, self.rule) for send, meet in self.answers]


class TestAdam(KerasOptimizerSuite):
    rule = "adam(learning_rate=0.05)"
    refused = ("adam(gradient_accumulation_steps=2)", "adam(loss_scale_factor=2)")
    answers = (("gradients", "asynchronous"), ("updates", "hogwild"))


class TestClippedByTheNormOfAllSlices(KerasOptimizerSuite):
    rule = "sgd(learning_rate=0.1, momentum=0.9, global_clipnorm=0.5)"
    answers = (("gradients", "synchronous"), ("gradients", "asynchronous"))


class TestWholeVariables(KerasOptimizerSuite):
    rule = "lamb(learning_rate=0.05)"


class TestAnOptimizerAsAnObject(KerasOptimizerSuite):
    rule = keras.optimizers.RMSprop(0.05, momentum=0.5)


class Adam(RuleSuite):
    rule = "adam"


def test_the_suite_makes_a_plan_of_each_way_that_is_declared():
    (plan,) = TestOwn().plans()
    assert plan == ExchangePlan.named("allreduce")
    plans = Adam().plans()
    assert len(plans) == 2 * 4
    assert ExchangePlan("updates", 1, "bounded(2)", "adam") in plans
