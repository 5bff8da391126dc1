"""Stands in for Hyperopt if it is not installed: the names that programs for Elephas's search import."""

from keraunos.compat.elephas.hyperopt.base import (
    JOB_STATE_DONE,
    JOB_STATE_ERROR,
    STATUS_FAIL,
    STATUS_OK,
    Trials,
)

__all__ = ["JOB_STATE_DONE", "JOB_STATE_ERROR", "STATUS_FAIL", "STATUS_OK", "Trials"]
