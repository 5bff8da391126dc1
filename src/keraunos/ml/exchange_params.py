"""The Params that say how workers share what they learn, and where the parameters live. Runs on the driver."""

from __future__ import annotations

from keraunos.job.exchange_plan import PRESETS
from keraunos.ml import conversion
from keraunos.ml.declaration import param, writable_param
from keraunos.ml.params import Settings


class HasExchange(Settings):
    """A plan by name or whole, answers in place of its own, and where the servers of the parameters are."""

    exchange, getExchange, setExchange = param(
        "How workers share what they learn: 'allreduce' (the mean gradient at every step: the same result as one "
        "process with the whole batch), 'averaging' (each trains alone for some steps, then their changes are "
        "averaged), 'downpour' (changes are added as they come, and nobody waits), 'hogwild' (the same without locks), "
        "'bounded' (the same, but nobody runs far ahead), 'elastic' (workers and a center pull at each other), "
        "'diloco' (rare exchanges, applied with Nesterov momentum), or an ExchangePlan.",
        conversion.exchange_plan("exchange"),
        default="allreduce",
    )
    every, getEvery, setEvery = param(
        "After how many steps workers share, or 'epoch', over what `exchange` brings along: "
        + ", ".join(f"{name} {plan.every}" for name, plan in PRESETS.items())
        + ".",
        conversion.round_length("every"),
    )
    meet, getMeet, setMeet = param(
        "How workers meet, over what `exchange` brings along: 'synchronous' (a round ends when all have sent), "
        "'asynchronous' (each contribution is applied at once, one at a time), 'hogwild' (without locks) or "
        "'bounded(4)' (asynchronous, but nobody runs more than 4 rounds ahead of the slowest).",
        conversion.meeting,
    )
    rule, getRule, setRule = param(
        "What turns contributions into new parameters, over what `exchange` brings along: 'own' (the model's optimizer "
        "on each worker), 'mean', 'sum', 'add', 'moving_average(4)', 'elastic(0.1)', 'delayed_nesterov', a registered "
        "rule, or an optimizer that the servers apply, as 'adam(learning_rate=0.01)' or as a Keras optimizer.",
        conversion.rule,
    )
    scale, getScale, setScale = param(
        "The factor on each contribution where workers do not meet synchronously: a number, 'workers' (one over their "
        "number), 'stretched' (together up to 1.5 times their mean update) or 'staleness' (one over 1 + what others "
        "contributed meanwhile). A mean of updates takes a number or 'stretched'. Not set: the preset's, or 'workers' "
        "for the rules 'add' and 'delayed_nesterov', 1 for others. On an optimizer it scales the learning rate.",
        conversion.scale,
    )
    compression, getCompression, setCompression = param(
        "How vectors travel between workers and servers: 'bfloat16' (half the bytes) or 'int8' (a quarter), each with "
        "the error of one message made good in the next. Not set: as they are.",
        conversion.compression,
    )
    servers, getServers, setServers = param(
        "Where the parameters live: 'driver', 'workers' (each worker holds its part), or a number of servers that run "
        "as Spark tasks of their own beside the workers and need a task slot each.",
        conversion.servers,
        default="driver",
    )
    serverPorts, setServerPorts = writable_param(
        "The first and the last port that servers may listen on, such as (40000, 40100), for firewalls. Not set: any "
        "free port.",
        conversion.port_range("serverPorts"),
    )

    stateEvery, getStateEvery, setStateEvery = param(
        "After how many exchanges a worker leaves its optimizer's state with the driver, to continue from when it is "
        "lost and started again. 0: never. Not set: with every exchange of a synchronous plan of at least 10 steps and "
        "up to 16 MB of state, so that nothing is lost, and every 100 otherwise. 'allreduce' needs none of it: any "
        "live worker has the state.",
        conversion.whole_number("stateEvery", at_least=0),
    )

    def getServerPorts(self) -> tuple[int, int] | None:
        """The first and the last port that servers may listen on; `None` stands for any."""
        value = self._get("serverPorts")
        return None if value is None else (int(value[0]), int(value[1]))
