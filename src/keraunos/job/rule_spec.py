"""Which rule a plan names, and with which options, as plain data. Runs on the driver and on workers.

A rule is written as its name with literal arguments, `"elastic(0.1)"` or `"sgd(learning_rate=0.7, momentum=0.9)"`,
as a Keras optimizer object, or as a `RuleSpec`. What a rule takes and computes is in its class, which is known here by
its home, `module:Class`, and imported when its declaration is asked for. Those of this package load no framework.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keraunos.errors import PlanError, one_of
from keraunos.job.homes import at_home, is_home
from keraunos.job.rule_declaration import UNDECLARED, RuleDeclaration
from keraunos.trust import how_to_trust, is_trusted

# Built-in rules and their homes.
BUILT_IN: Mapping[str, str] = {
    "own": "keraunos.exchange.rules.own:Own",
    "mean": "keraunos.exchange.rules.mean:Mean",
    "sum": "keraunos.exchange.rules.sum:Sum",
    "add": "keraunos.exchange.rules.add:Add",
    "moving_average": "keraunos.exchange.rules.moving_average:MovingAverage",
    "elastic": "keraunos.exchange.rules.elastic:Elastic",
    "delayed_nesterov": "keraunos.exchange.rules.delayed_nesterov:DelayedNesterov",
}
_OPTIMIZER = "keraunos.exchange.rules.keras_optimizer:KerasOptimizer"

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
        self._check_options(self.declared_here)

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
        order = _declared_here(name, _REGISTERED.get(name)).order
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

    def imported(self) -> Any:
        """What is at the rule's home; an error where it cannot be imported."""
        return _imported(self.name, self.home)

    @property
    def declared(self) -> RuleDeclaration:
        """What the rule's class says about itself; an error where it cannot be imported."""
        return _declaration_of(self.imported())

    @property
    def declared_here(self) -> RuleDeclaration:
        """The same, where the rule is built in or registered in this process and can be imported.

        Nothing else is imported for a plan that is only read; whoever runs it asks for `declared`.
        """
        return _declared_here(self.name, self.home)

    def check(self) -> None:
        """Refuse options that the rule does not take; an error where it cannot be imported."""
        self._check_options(self.declared)

    def value(self, name: str, workers: int) -> Any:
        """An option as it was given, or its default with so many workers."""
        return self.declared.value(name, self.option(name), workers)

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

    def _check_options(self, declared: RuleDeclaration) -> None:
        declared.check_options(self.name, self.options)
        if declared.check is not None:
            declared.check(self)

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
    if not is_home(home):
        raise PlanError(f"The home of a registered rule must be written 'module:Class'. Received: {home!r}.")


def _imported(rule: str, home: str | None) -> Any:
    """What is at a rule's home."""
    where = home or BUILT_IN.get(rule, _OPTIMIZER)
    try:
        return at_home(where)
    except (ImportError, AttributeError) as error:
        raise PlanError(
            f"The rule {rule!r} must be importable wherever a server runs. Expected: {where!r}. Received: {error}. "
            "Install the package that registers it on the executors."
        ) from error


def _declaration_of(found: Any) -> RuleDeclaration:
    declared = getattr(found, "declaration", UNDECLARED)
    if not isinstance(declared, RuleDeclaration):
        raise PlanError(f"The `declaration` of a rule must be a RuleDeclaration. Received: {declared!r}.")
    return declared


def _declared_here(rule: str, home: str | None) -> RuleDeclaration:
    """What a rule says about itself, where it is built in or registered in this process and can be imported."""
    if home is not None and _REGISTERED.get(rule) != home:
        return UNDECLARED
    try:
        found = _imported(rule, home)
    except PlanError:
        # Said by whoever runs the plan: a process that only writes one need not have the rule.
        return UNDECLARED
    return _declaration_of(found)


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
