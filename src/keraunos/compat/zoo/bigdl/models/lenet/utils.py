"""`bigdl.models.lenet.utils`: the options of the model's program. Runs on the driver."""

from __future__ import annotations

from typing import Any

from keraunos.compat.zoo.bigdl.optim.optimizer import EveryEpoch, MaxEpoch, MaxIteration, Optimizer, Top1Accuracy

__all__ = ["get_end_trigger", "validate_optimizer"]


def get_end_trigger(options: Any) -> MaxEpoch | MaxIteration:
    """After this many epochs or steps, as the program's options say."""
    kind = MaxEpoch if options.endTriggerType.lower() == "epoch" else MaxIteration
    return kind(options.endTriggerNum)


def validate_optimizer(optimizer: Optimizer, test_data: Any, options: Any) -> None:
    """Validate and save after every epoch."""
    optimizer.set_validation(
        batch_size=options.batchSize, val_rdd=test_data, trigger=EveryEpoch(), val_method=[Top1Accuracy()]
    )
    optimizer.set_checkpoint(EveryEpoch(), options.checkpointPath)
