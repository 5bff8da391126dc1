"""Rules of a user's, with all that a rule may declare: nothing in the package names them."""

import numpy as np

from keraunos import Rule, RuleDeclaration, RuleOption
from keraunos.job.rule_declaration import APPLY, NUMBER, PULL, STRETCHED


class Trimmed(Rule):
    """Move by each update, no element by more than `cap`; half as far unless the plan says otherwise."""

    declaration = RuleDeclaration(
        takes=("updates",),
        meets=("asynchronous", "bounded"),
        options=(
            RuleOption.number("cap", 0.1, at_least=0),
            RuleOption.whole_number("patience", lambda workers: 2 * workers, at_least=1),
            RuleOption("kind", "both", "be 'both' or 'above'", {"both", "above"}.__contains__),
        ),
        scale=0.5,
        scales=(NUMBER, "staleness"),
        moved_by="cap",
        instead_of_meeting="Use rule='mean'.",
    )

    def apply(self, sent, parameters, result, *, squared_norm=None):
        for each in sent:
            update = (each.values / each.rows).clip(-self.option("cap"), self.option("cap"))
            parameters -= self.plan.factor(self.workers, each.staleness) * update


class Median(Rule):
    """Workers apply the median of their gradients, element by element."""

    declaration = RuleDeclaration(takes=("gradients",), meets=("synchronous",), on_workers=APPLY)
    gives_parameters = False

    def apply(self, sent, parameters, result, *, squared_norm=None):
        np.copyto(result, np.median([each.values / each.denominators[0] for each in sent], axis=0))


class Tug(Rule):
    """The center stays, and workers go a part of the way to it."""

    declaration = RuleDeclaration(
        takes=("weights",),
        options=(RuleOption.between("part", lambda workers: 1 / (1 + workers), low=0, high=1),),
        scales=(NUMBER, STRETCHED),
        scales_together=("weights",),
        on_workers=PULL,
    )
    gives_parameters = False

    @classmethod
    def puller(cls, plan, workers):
        part = plan.rule.value("part", workers)

        def pull(weights, center):
            weights += part * (center - weights)

        return pull

    def apply(self, sent, parameters, result, *, squared_norm=None):
        np.copyto(result, parameters)


class Mute(Rule):
    """Says that it pulls, and not how."""

    declaration = RuleDeclaration(takes=("weights",), on_workers=PULL)

    def apply(self, sent, parameters, result, *, squared_norm=None):
        np.copyto(result, parameters)
