"""Paddle's data sources, accepted so that old configurations parse: rows come from a DataFrame. On the driver."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["define_py_data_sources", "define_py_data_sources2"]

logger = logging.getLogger(__name__)


def define_py_data_sources2(train_list: Any, test_list: Any, module: Any, obj: Any, args: Any = None) -> None:
    """Accepted, with a note in the log: `fit` reads its DataFrame, and no provider is imported.

    Args:
        train_list: Paddle's list of training files.
        test_list: Paddle's list of test files.
        module: the provider's module, or one each for training and test.
        obj: the provider's name in it, or one each.
        args: what the provider is given.
    """
    logger.info(
        "define_py_data_sources2(train_list=%r, test_list=%r, module=%r, obj=%r, args=%r) is accepted and changes "
        "nothing: the rows come from the DataFrame that `fit` is given.",
        train_list, test_list, module, obj, args,
    )  # fmt: skip


def define_py_data_sources(
    train_list: Any,
    test_list: Any,
    module: Any,
    obj: Any,
    args: Any = None,
    train_async: bool = False,
    data_cls: Any = None,
) -> None:
    """Accepted as `define_py_data_sources2` is.

    Args:
        train_list: Paddle's list of training files.
        test_list: Paddle's list of test files.
        module: the provider's module, or one each for training and test.
        obj: the provider's name in it, or one each.
        args: what the provider is given.
        train_async: whether Paddle reads ahead.
        data_cls: the kind of Paddle's data configuration.
    """
    logger.info("define_py_data_sources: train_async=%r and data_cls=%r change nothing.", train_async, data_cls)
    define_py_data_sources2(train_list, test_list, module, obj, args)
