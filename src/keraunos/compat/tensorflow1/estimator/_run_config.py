"""How an `Estimator` runs, and what it begins with. Runs on the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

# What distributed a training in TensorFlow 1.x, beside a session.
_DISTRIBUTES = (
    "device_fn",
    "eval_distribute",
    "experimental_distribute",
    "protocol",
    "train_distribute",
)


class WarmStartSettings(NamedTuple):
    """Which values variables begin with."""

    ckpt_to_initialize_from: str
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Any = None
    var_name_to_prev_var_name: Any = None


@dataclass(frozen=True, kw_only=True)
class _RunSettings:
    model_dir: str | None = None
    tf_random_seed: int | None = None
    save_summary_steps: int | None = 100
    save_checkpoints_steps: int | None = None
    save_checkpoints_secs: int | None = None
    session_config: Any = None
    keep_checkpoint_max: int | None = 5
    keep_checkpoint_every_n_hours: float = 10000
    log_step_count_steps: int | None = 100
    train_distribute: Any = None
    device_fn: Any = None
    protocol: Any = None
    eval_distribute: Any = None
    experimental_distribute: Any = None


class RunConfig(_RunSettings):
    """The configuration of an `Estimator`."""

    # They show a model function that it runs alone.
    task_type = "worker"
    task_id = 0
    global_id_in_cluster = 0
    num_ps_replicas = 0
    num_worker_replicas = 1
    is_chief = True
    master = ""
    evaluation_master = ""

    def __init__(self, model_dir: str | None = None, tf_random_seed: int | None = None, **named: Any) -> None:
        unknown = sorted(set(named) - set(_RunSettings.__dataclass_fields__))
        if unknown:
            raise ValueError(
                f"tf.estimator.RunConfig takes no `{unknown[0]}` here. Received: {named[unknown[0]]!r}. Expected: "
                f"{', '.join(_RunSettings.__dataclass_fields__)}."
            )
        for name in _DISTRIBUTES:
            if named.get(name) is not None:
                raise ValueError(
                    f"`{name}` must be left out of tf.estimator.RunConfig: an Estimator trains in one process. "
                    f"Received: {named[name]!r}. Train on Spark with zoo.tfpark.TFEstimator."
                )
        if named.get("save_checkpoints_steps") is not None and named.get("save_checkpoints_secs") is not None:
            raise ValueError(
                "`save_checkpoints_steps` and `save_checkpoints_secs` must not be given together. Received: "
                f"{named['save_checkpoints_steps']!r} and {named['save_checkpoints_secs']!r}. Leave one out."
            )
        super().__init__(model_dir=model_dir, tf_random_seed=tf_random_seed, **named)

    def replace(self, **fields: Any) -> RunConfig:
        """Returns the configuration with other fields."""
        return RunConfig(**{**{name: getattr(self, name) for name in _RunSettings.__dataclass_fields__}, **fields})
