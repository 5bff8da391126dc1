"""Which rule a plan names, and with which options, as plain data. Runs on the driver and on workers.

A rule is written as its name with literal arguments, `"elastic(0.1)"` or `"sgd(learning_rate=0.7, momentum=0.9)"`,
as a Keras optimizer object, or as a `RuleSpec`. What the rules compute is in `keraunos.exchange.rules`; this module
knows only their names, so that a plan is checked on the driver before anything is loaded.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keraunos.errors import PlanError, one_of
from keraunos.trust import how_to_trust, is_trusted

# Built-in rules: their options, in the order in which they may be given without a name.
BUILT_IN: Mapping[str, tuple[str, ...]] = {
    "own": (),
    "mean": (),
    "sum": (),
    "add": (),
    "moving_average": ("n",),
    "elastic": ("alpha",),
    "delayed_nesterov": ("learning_rate", "momentum", "delay", "activation"),
}

# Keras's optimizers by the name they go by in a plan.
KERAS_OPTIMIZERS: Mapping[str, str] = {
    "adadelta": "Adadelta",
    "adafactor": "Adafactor",
    "adagrad": "Adagrad",
    "adam": "Adam",
    "adamax": "Adamax",
    "adamw": "AdamW",
    "ftrl": "Ftrl",
    "lamb": "Lamb",
    "lion": "Lion",
    "muon": "Muon",
    "nadam": "Nadam",
    "rmsprop": "RMSprop",
    "sgd": "SGD",
}

# The name of a rule that is a whole serialised optimizer.
KERAS_OBJECT = "keras"

_REGISTERED: dict[str, str] = {}


@dataclass(frozen=True)
class RuleSpec:
    """A rule's name and options.

    Attributes:
        name: a built-in rule, a Keras optimizer in lower case, `keras` for a serialised one, or a registered name.
        options: its arguments, as JSON could hold them.
        home: `module:Class` of a registered rule, so that a process that never imported the front-end that registered
            it finds it all the same; `None` for the rules that are built in.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    home: str | None = None

    def __post_init__(self) -> None:
        try:
            plain = json.loads(json.dumps(dict(self.options)))
        except (TypeError, ValueError) as error:
            raise PlanError(
                f"The options of the rule {self.name!r} must be plain data: numbers, strings, booleans, lists. "
                f"Received: {self.options!r}."
            ) from error
        object.__setattr__(self, "options", plain)
        if self.home is None:
            object.__setattr__(self, "home", _REGISTERED.get(self.name))
        if self.home is not None:
            _check_home(self.home)
        elif self.name != KERAS_OBJECT and self.name not in known_rules():
            raise PlanError(one_of("rule", self.name, known_rules()))
        if self.name in BUILT_IN and self.home is None:
            _check_built_in(self)
        if self.is_optimizer:
            _check_optimizer(self)

    @classmethod
    def of(cls, value: Any) -> RuleSpec:
        """The rule that a user wrote: a `RuleSpec`, its JSON, a name with arguments, or a Keras optimizer."""
        if isinstance(value, RuleSpec):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, Mapping):
            return cls.from_json(value)
        if callable(getattr(value, "get_config", None)) and hasattr(value, "apply_gradients"):
            return cls(KERAS_OBJECT, _serialized(value))
        raise PlanError(
            "`rule` must be a rule's name, with its arguments as in 'elastic(0.1)', or a Keras optimizer. "
            f"Received: {value!r}."
        )

    @classmethod
    def parse(cls, text: str) -> RuleSpec:
        """The rule in a text such as `sgd(learning_rate=0.7, nesterov=True)`; arguments are literals."""
        name, positional, named = parse_call(text, "rule")
        known = {each.lower(): each for each in known_rules()}
        if name.lower() not in known:
            raise PlanError(one_of("rule", name, known_rules()))
        name = known[name.lower()]
        order = BUILT_IN.get(name, ("learning_rate",) if name in KERAS_OPTIMIZERS else ())
        if len(positional) > len(order):
            raise PlanError(
                f"The rule {name!r} must be given at most {len(order)} arguments without a name. Received: {text!r}."
            )
        given = dict(zip(order, positional, strict=False))
        twice = sorted(set(given) & set(named))
        if twice:
            raise PlanError(f"The rule {name!r} must be given {twice[0]!r} once. Received: {text!r}.")
        return cls(name, {**given, **named})

    @property
    def is_optimizer(self) -> bool:
        """Whether it is one of Keras's optimizers, or a serialised one."""
        return self.home is None and (self.name == KERAS_OBJECT or self.name in KERAS_OPTIMIZERS)

    def option(self, name: str, default: Any = None) -> Any:
        """An option of the rule (of the optimizer, where it is a serialised one)."""
        options = self.options["config"] if self.name == KERAS_OBJECT and self.home is None else self.options
        value = options.get(name)
        return default if value is None else value

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return {"name": self.name, "options": dict(self.options), "home": self.home}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RuleSpec:
        """The rule that `to_json` described."""
        return cls(data["name"], data["options"], data["home"])

    @classmethod
    def from_saved(cls, data: Mapping[str, Any]) -> RuleSpec:
        """The rule that a file describes; refused where its code is neither registered here nor trusted."""
        rule = cls.from_json(data)
        home = rule.home
        if home is not None and _REGISTERED.get(rule.name) != home and not is_trusted(home.partition(":")[0]):
            module, _, name = home.partition(":")
            raise PlanError(
                f"The rule {rule.name!r} is {name!r} of the module {module!r}, which is not trusted. Expected: a rule "
                f"that is built in, registered or of a trusted module. Received: a file that names {home!r}. "
                f"{how_to_trust(module)}."
            )
        return rule

    def __str__(self) -> str:
        if self.name == KERAS_OBJECT and self.home is None:
            return str(self.options["class_name"])
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.name}({arguments})" if arguments else self.name


def register_rule(name: str, home: str) -> None:
    """Make a rule known by name: `home` is `module:Class`, a `keraunos.exchange.rules.rule.Rule` that can be imported.

    The plan carries the home with it, so that a server in another process finds the rule.
    """
    _check_home(home)
    taken = _REGISTERED.get(name)
    if not name.isidentifier() or name in BUILT_IN or name in KERAS_OPTIMIZERS or name == KERAS_OBJECT:
        raise PlanError(
            f"A registered rule's name must be an identifier that no rule here goes by. Received: {name!r}."
        )
    if taken not in (None, home):
        raise PlanError(f"The rule {name!r} must be registered once. Expected: {taken!r}. Received: {home!r}.")
    _REGISTERED[name] = home


def known_rules() -> tuple[str, ...]:
    """Every name that a rule may be written with, in this process."""
    return (*BUILT_IN, *KERAS_OPTIMIZERS, *_REGISTERED)


def parse_call(text: str, argument: str) -> tuple[str, list[Any], dict[str, Any]]:
    """A name, or a call of a name with literal arguments, taken apart; nothing is evaluated."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if isinstance(tree, ast.Name):
            return tree.id, [], {}
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and all(each.arg for each in tree.keywords):
            positional = [ast.literal_eval(each) for each in tree.args]
            return tree.func.id, positional, {str(each.arg): ast.literal_eval(each.value) for each in tree.keywords}
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        pass
    raise PlanError(
        f"`{argument}` must be a name, or a name with literal arguments, as in 'elastic(0.1)'. Received: {text!r}."
    )


def _check_home(home: str) -> None:
    module, _, name = home.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise PlanError(f"The home of a registered rule must be written 'module:Class'. Received: {home!r}.")


def _check_built_in(spec: RuleSpec) -> None:
    for name in spec.options:
        if name not in BUILT_IN[spec.name]:
            if not BUILT_IN[spec.name]:
                raise PlanError(f"The rule {spec.name!r} must be given no arguments. Received: {name!r}.")
            raise PlanError(one_of(f"{spec.name}'s argument", name, BUILT_IN[spec.name]))
    alpha, steps, delay = (spec.option(name) for name in ("alpha", "n", "delay"))
    if alpha is not None and not (_is_number(alpha) and 0 < alpha < 1):
        raise PlanError(f"`alpha` of the rule 'elastic' must lie between 0 and 1, exclusive. Received: {alpha!r}.")
    for name, value in (("n", steps), ("delay", delay)):
        if value is not None and not (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
            raise PlanError(
                f"`{name}` of the rule {spec.name!r} must be a whole number of at least 1. Received: {value!r}."
            )
    for name, low, high in (("learning_rate", 0, None), ("momentum", 0, 1), ("activation", 0, 1)):
        value = spec.option(name)
        if value is not None and not (_is_number(value) and low <= value and (high is None or value <= high)):
            span = f"of at least {low}" if high is None else f"from {low} to {high}"
            raise PlanError(f"`{name}` of the rule {spec.name!r} must be a number {span}. Received: {value!r}.")


# Options of a Keras optimizer that speak of what happens on a worker, and what to do instead.
_WORKERS_OWN = {
    "gradient_accumulation_steps": "the plan's `every` accumulates gradients: give that number there",
    "loss_scale_factor": "gradients arrive unscaled: set the loss scale on the model's own optimizer",
}


def _check_optimizer(spec: RuleSpec) -> None:
    for name, instead in _WORKERS_OWN.items():
        value = spec.option(name)
        if value is not None:
            raise PlanError(f"`{name}` must not be set on a server's optimizer: {instead}. Received: {value!r}.")
    wrapper = spec.options.get("class_name") if spec.name == KERAS_OBJECT else None
    if wrapper in {"LossScaleOptimizer", "MultiOptimizer", "ScheduleFreeAdamW"}:
        raise PlanError(
            "A server's optimizer must be a single one that trains the weights that workers compute with. "
            f"Received: {wrapper!r}. Give an inner optimizer, or 'adamw'."
        )


def _serialized(optimizer: Any) -> dict[str, Any]:
    """The optimizer's configuration, with the exclusions from weight decay that it leaves out."""
    # The optimizer is one of Keras's, so Keras is loaded already.
    from keras import optimizers

    config = dict(optimizers.serialize(optimizer))
    pattern = getattr(optimizer, "_exclude_from_weight_decay_pattern", None)
    if getattr(optimizer, "_exclude_from_weight_decay", None):
        raise PlanError(
            "A server's optimizer must name the variables that it excludes from weight decay. Received: "
            "`exclude_from_weight_decay(var_list=…)`. Use `exclude_from_weight_decay(var_names=…)`."
        )
    if pattern is not None:
        config["exclude_from_weight_decay"] = [pattern.pattern]
    return config


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
