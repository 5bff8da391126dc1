"""BigDL's optim methods as a program writes them. Runs on the driver; what they compute is in `compat.zoo.rules`.

A method is its arguments. `rule` turns it into the rule that is run where the parameters live, with the clipping that
an optimizer was given; a mapping from the beginnings of variables' names to methods becomes one rule too.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo import rules as _rules
from keraunos.compat.zoo.bigdl.optim import schedules
from keraunos.compat.zoo.bigdl.optim.arguments import float_type, number, whole
from keraunos.compat.zoo.vector_rules import method_for
from keraunos.errors import JobError
from keraunos.exchange.rules.rule import Rule
from keraunos.job.rule_spec import RuleSpec
from keraunos.launch.given_paths import given_path

DOUBLEMAX = 1.7976931348623157e308
_FORMAT = "bigdl.optim.OptimMethod"


class OptimMethod:
    """A way to turn gradients into new parameters."""

    name = ""

    def rule(self, *, clip_constant: tuple[float, float] | None = None, clip_norm: float | None = None) -> RuleSpec:
        """Returns the rule that does this, with the gradient first scaled to a global norm and then cut to a range."""
        return RuleSpec(self.name, {**_for_rule(self.options()), **clipping(clip_constant, clip_norm)})

    @property
    def servers(self) -> str | None:
        """Where the parameters must live for this method: `"driver"`, or `None` if any place will do."""
        return None

    def options(self) -> dict[str, Any]:
        """Returns the arguments as plain data."""
        return {key: _plain(value) for key, value in vars(self).items()}

    def rate_at(self, step: int) -> float:
        """Returns the learning rate of a step, counted from 1."""
        return _rules.rate_at(_for_rule(self.options()), step)

    def save(self, path: str, overWrite: bool = False) -> None:
        """Write the method's arguments to a file, which `load` reads."""
        file = given_path(path)
        if file.exists() and not overWrite:
            raise JobError(f"`path` must not exist yet, or `overWrite` must be True. Received: {str(path)!r}.")
        data = {"format": _FORMAT, "class": type(self).__name__, "arguments": self.options()}
        file.replace(json.dumps(data, indent=2).encode())

    @staticmethod
    def load(path: str, bigdl_type: str = "float") -> OptimMethod:
        """Returns the method that `save` wrote."""
        float_type(bigdl_type)
        try:
            data = json.loads(given_path(path).read())
        except (OSError, ValueError) as error:
            raise JobError(
                f"`path` must be a file that an optim method's `save` wrote. Received: {str(path)!r} ({error})."
            ) from error
        if not isinstance(data, dict) or data.get("format") != _FORMAT or data.get("class") not in METHODS:
            raise JobError(f"`path` must be a file that an optim method's `save` wrote. Received: {str(path)!r}.")
        return _rebuilt(METHODS[data["class"]], data["arguments"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in vars(self).items())})"


class ScheduledMethod(OptimMethod):
    """A method whose schedule may be a `Plateau`."""

    learningrate: float
    leaningrate_schedule: schedules.LearningRateSchedule

    @property
    def servers(self) -> str | None:
        """On the driver, where a `Plateau` changes the rate."""
        return "driver" if isinstance(self.leaningrate_schedule, schedules.Plateau) else None


class SGD(ScheduledMethod):
    """Gradient descent, with momentum, weight decay and a schedule.

    `dampening` is the momentum by default, as in Torch; Nesterov's momentum needs it to be 0. `learningrates` and
    `weightdecays` are a factor on the rate and a decay per parameter. `leaningrate_schedule` is BigDL's
    spelling.
    """

    name = "bigdl_sgd"

    def __init__(
        self,
        learningrate: float = 1e-3,
        learningrate_decay: float = 0.0,
        weightdecay: float = 0.0,
        momentum: float = 0.0,
        dampening: float = DOUBLEMAX,
        nesterov: bool = False,
        leaningrate_schedule: schedules.LearningRateSchedule | None = None,
        learningrates: npt.ArrayLike | None = None,
        weightdecays: npt.ArrayLike | None = None,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        self.learningrate = number("learningrate", learningrate, least=0)
        self.learningrate_decay = number("learningrate_decay", learningrate_decay, least=0)
        self.weightdecay = number("weightdecay", weightdecay, least=0)
        self.momentum = number("momentum", momentum, least=0)
        self.dampening = self.momentum if dampening == DOUBLEMAX else number("dampening", dampening)
        self.nesterov = bool(nesterov)
        self.leaningrate_schedule = _schedule(leaningrate_schedule)
        self.learningrates = _each("learningrates", learningrates)
        self.weightdecays = _each("weightdecays", weightdecays)
        if self.nesterov and not (self.momentum > 0 and self.dampening == 0):
            raise JobError(
                "`nesterov` must come with a momentum above 0 and dampening=0. Received: "
                f"momentum={self.momentum!r}, dampening={self.dampening!r}."
            )
        if self.weightdecay and self.weightdecays is not None:
            raise JobError("`weightdecay` and `weightdecays` must not both be given. Received: both.")


class LarsSGD(OptimMethod):
    """Gradient descent whose rate is scaled, for each variable, by the norms of the variable and of its gradient."""

    name = "bigdl_lars_sgd"

    def __init__(
        self,
        trust: float = 1.0,
        learningrate: float = 1e-3,
        learningrate_decay: float = 0.01,
        weightdecay: float = 0.0005,
        momentum: float = 0.5,
        leaningrate_schedule: schedules.LearningRateSchedule | None = None,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        self.trust = number("trust", trust, above=0, most=1)
        self.learningrate = number("learningrate", learningrate, least=0)
        self.learningrate_decay = number("learningrate_decay", learningrate_decay, least=0)
        self.weightdecay = number("weightdecay", weightdecay, least=0)
        self.momentum = number("momentum", momentum, least=0)
        self.leaningrate_schedule = _schedule(leaningrate_schedule)
        if isinstance(self.leaningrate_schedule, schedules.Plateau):
            raise JobError("`leaningrate_schedule` of LarsSGD must follow the steps. Received: a Plateau. Use SGD.")


class Adagrad(OptimMethod):
    """Adagrad (Duchi et al., 2011)."""

    name = "bigdl_adagrad"

    def __init__(
        self,
        learningrate: float = 1e-3,
        learningrate_decay: float = 0.0,
        weightdecay: float = 0.0,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        self.learningrate = number("learningrate", learningrate, least=0)
        self.learningrate_decay = number("learningrate_decay", learningrate_decay, least=0)
        self.weightdecay = number("weightdecay", weightdecay, least=0)


class Adadelta(OptimMethod):
    """Adadelta (arXiv 1212.5701), without a learning rate."""

    name = "bigdl_adadelta"

    def __init__(self, decayrate: float = 0.9, epsilon: float = 1e-10, bigdl_type: str = "float") -> None:
        float_type(bigdl_type)
        self.decayrate = number("decayrate", decayrate, least=0, below=1)
        self.epsilon = number("epsilon", epsilon, above=0)


class Adam(OptimMethod):
    """Adam (arXiv 1412.6980)."""

    name = "bigdl_adam"

    def __init__(
        self,
        learningrate: float = 1e-3,
        learningrate_decay: float = 0.0,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        self.learningrate = number("learningrate", learningrate, least=0)
        self.learningrate_decay = number("learningrate_decay", learningrate_decay, least=0)
        self.beta1 = number("beta1", beta1, least=0, below=1)
        self.beta2 = number("beta2", beta2, least=0, below=1)
        self.epsilon = number("epsilon", epsilon, least=0)


class ParallelAdam(Adam):
    """Adam; `parallel_num`, into how many threads its vector was cut, changes no result and is the servers' matter."""

    def __init__(
        self,
        learningrate: float = 1e-3,
        learningrate_decay: float = 0.0,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parallel_num: int = -1,
        bigdl_type: str = "float",
    ) -> None:
        super().__init__(learningrate, learningrate_decay, beta1, beta2, epsilon, bigdl_type)
        if parallel_num != -1:
            raise JobError(
                "`parallel_num` must be left at -1: every server works on its own part of the parameters. Received: "
                f"{parallel_num!r}. Choose the number of servers of the job instead."
            )


class Ftrl(OptimMethod):
    """Follow the regularised leader (McMahan et al., 2013), with an L1, an L2 and a shrinking L2 penalty."""

    name = "bigdl_ftrl"

    def __init__(
        self,
        learningrate: float = 1e-3,
        learningrate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        self.learningrate = number("learningrate", learningrate, above=0)
        self.learningrate_power = number("learningrate_power", learningrate_power, most=0)
        self.initial_accumulator_value = number("initial_accumulator_value", initial_accumulator_value, least=0)
        self.l1_regularization_strength = number("l1_regularization_strength", l1_regularization_strength, least=0)
        self.l2_regularization_strength = number("l2_regularization_strength", l2_regularization_strength, least=0)
        self.l2_shrinkage_regularization_strength = number(
            "l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength, least=0
        )


class Adamax(OptimMethod):
    """Adamax (arXiv 1412.6980)."""

    name = "bigdl_adamax"

    def __init__(
        self,
        learningrate: float = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-38,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        self.learningrate = number("learningrate", learningrate, least=0)
        self.beta1 = number("beta1", beta1, least=0, below=1)
        self.beta2 = number("beta2", beta2, least=0, below=1)
        self.epsilon = number("epsilon", epsilon, least=0)


class RMSprop(OptimMethod):
    """The gradient over a running root mean square of it."""

    name = "bigdl_rmsprop"

    def __init__(
        self,
        learningrate: float = 1e-2,
        learningrate_decay: float = 0.0,
        decayrate: float = 0.99,
        epsilon: float = 1e-8,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        self.learningrate = number("learningrate", learningrate, least=0)
        self.learningrate_decay = number("learningrate_decay", learningrate_decay, least=0)
        self.decayrate = number("decayrate", decayrate, least=0, below=1)
        self.epsilon = number("epsilon", epsilon, least=0)


class LBFGS(OptimMethod):
    """Limited-memory BFGS with steps of a fixed length.

    Each batch gives one evaluation and so one iteration, which is within any `max_iter` and `max_eval`; with a batch of
    all rows this is L-BFGS as it is written in books. All parameters must lie on one server.
    """

    name = "bigdl_lbfgs"

    def __init__(
        self,
        max_iter: int = 20,
        max_eval: float = DOUBLEMAX,
        tolfun: float = 1e-5,
        tolx: float = 1e-9,
        ncorrection: int = 100,
        learningrate: float = 1.0,
        verbose: bool = False,
        linesearch: Any = None,
        linesearch_options: Any = None,
        bigdl_type: str = "float",
    ) -> None:
        float_type(bigdl_type)
        if linesearch is not None or linesearch_options is not None:
            raise JobError(
                "`linesearch` and `linesearch_options` must be None: a step is of a fixed length here. Received: "
                f"{linesearch!r}, {linesearch_options!r}. Give `learningrate`."
            )
        if verbose:
            raise JobError("`verbose` must be False. Received: True. Watch the loss with a TrainSummary.")
        self.max_iter = whole("max_iter", max_iter)
        self.max_eval = number("max_eval", max_eval, least=1)
        self.tolfun = number("tolfun", tolfun, least=0)
        self.tolx = number("tolx", tolx, least=0)
        self.ncorrection = whole("ncorrection", ncorrection)
        self.learningrate = number("learningrate", learningrate, above=0)

    @property
    def servers(self) -> str | None:
        """On the driver: the method is no sum over elements."""
        return "driver"


METHODS: Mapping[str, type[OptimMethod]] = {
    each.__name__: each for each in (SGD, LarsSGD, Adagrad, Adadelta, Adam, ParallelAdam, Ftrl, Adamax, RMSprop, LBFGS)
}


def combined_rule(
    methods: OptimMethod | Mapping[str, OptimMethod],
    *,
    clip_constant: tuple[float, float] | None = None,
    clip_norm: float | None = None,
    names: Sequence[str] = (),
    steps_before: int = 0,
) -> RuleSpec:
    """Returns the rule of a method, or of methods by the beginnings of the names of the variables that each is for.

    A variable belongs to the longest beginning that fits; one of `names` that none fits is an error. Schedules go on
    from `steps_before`.
    """
    if isinstance(methods, OptimMethod):
        return _later(methods.rule(clip_constant=clip_constant, clip_norm=clip_norm), steps_before)
    if not isinstance(methods, Mapping) or not methods:
        raise JobError(
            "`optim_method` must be one of bigdl.optim.optimizer's methods, or a mapping from the beginnings of "
            f"variables' names to such. Received: {methods!r}."
        )
    parts: dict[str, Any] = {}
    for prefix, method in methods.items():
        own_numbers = isinstance(method, SGD) and (method.learningrates or method.weightdecays)
        if not isinstance(method, OptimMethod) or method.servers or own_numbers:
            raise JobError(
                "A method for some of the variables must be one that may run on any server, without a Plateau, "
                f"`learningrates` and `weightdecays`. Received: {method!r} for {prefix!r}."
            )
        parts[prefix] = _later(method.rule(), steps_before).to_json()
    for name in names:
        method_for(name, list(parts))
    return RuleSpec("bigdl_by_prefix", {"methods": parts, **clipping(clip_constant, clip_norm)})


class RateFollower:
    """Moves the rate of a method with a `Plateau` after each epoch, while the workers wait.

    It gets the rule, which is available only if the parameters live on the driver.
    """

    def __init__(self, method: ScheduledMethod) -> None:
        assert isinstance(method.leaningrate_schedule, schedules.Plateau)
        self.rate = method.learningrate
        self.monitor = method.leaningrate_schedule.monitor
        self._plateau = method.leaningrate_schedule
        self._plateau.reset()

    @classmethod
    def of(cls, methods: OptimMethod | Mapping[str, OptimMethod]) -> RateFollower | None:
        """Returns the follower of a method that has one."""
        return cls(methods) if isinstance(methods, ScheduledMethod) and methods.servers is not None else None

    def end_epoch(self, rule: Rule | None, *, loss: float | None = None, score: float | None = None) -> float:
        """Process the result of an epoch.

        Returns the next epoch's rate, and sets it in the rule, which must not be in use.
        """
        value = loss if self.monitor == "Loss" else score
        if value is None:
            raise JobError(
                f"A Plateau of {self.monitor!r} must be shown one after each epoch. Received: none. Validate every "
                "epoch, or monitor 'Loss'."
            )
        self.rate = self._plateau.observe(self.rate, value)
        if rule is None:
            raise JobError(
                "The parameters of a method with a Plateau must live on the driver. Received: other servers."
            )
        rule.learning_rate = self.rate
        return self.rate


def clipping(constant: tuple[float, float] | None, norm: float | None) -> dict[str, Any]:
    """Returns the options of a rule that clip the gradient."""
    options: dict[str, Any] = {}
    if constant is not None:
        low, high = (number("clip_constant", each) for each in constant)
        if not low < high:
            raise JobError(f"Gradients must be clipped to a range from less to more. Received: {constant!r}.")
        options["clip_constant"] = [low, high]
    if norm is not None:
        options["clip_norm"] = number("clip_norm", norm, above=0)
    return options


def _later(rule: RuleSpec, steps_before: int) -> RuleSpec:
    return RuleSpec(rule.name, {**rule.options, "steps_before": steps_before}) if steps_before else rule


def _for_rule(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options as rules name them; a method without a learning rate has the rate 1."""
    return {"learning_rate": 1.0} | {"learning_rate" if key == "learningrate" else key: options[key] for key in options}


def _schedule(value: Any) -> schedules.LearningRateSchedule:
    if value is None:
        return schedules.Default()
    if not isinstance(value, schedules.LearningRateSchedule):
        raise JobError(
            "`leaningrate_schedule` must be one of Default, Exponential, MultiStep, Plateau, Poly, SequentialSchedule, "
            f"Step and Warmup. Received: {value!r}."
        )
    if isinstance(value, schedules.SequentialSchedule) and not value.schedules:
        raise JobError("A SequentialSchedule must be given schedules with `add`. Received: none.")
    return value


def _each(name: str, values: npt.ArrayLike | None) -> list[float] | None:
    if values is None:
        return None
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise JobError(f"`{name}` must be one finite number for each parameter. Received: {values!r}.")
    return [float(each) for each in array]


def _plain(value: Any) -> Any:
    return value.to_json() if isinstance(value, schedules.LearningRateSchedule) else value


def _rebuilt(kind: type[OptimMethod], arguments: Mapping[str, Any]) -> OptimMethod:
    known = inspect.signature(kind).parameters
    given = {key: value for key, value in arguments.items() if key in known}
    if given.get("leaningrate_schedule") is not None:
        given["leaningrate_schedule"] = schedules.from_json(given["leaningrate_schedule"])
    return kind(**given)
