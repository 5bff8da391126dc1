"""`tf.contrib.lookup`: tables from words to numbers and back. Runs on the driver and on workers.

What moved to TensorFlow's core is taken from there; the calls whose arguments had other names in contrib are here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from keraunos.compat.tensorflow1 import _mode

_v1 = _mode.tensorflow_1()
_ops: Any = import_module("tensorflow.python.ops.lookup_ops")

_FROM_CORE = (
    "FastHashSpec", "HasherSpec", "IdTableWithHashBuckets", "KeyValueTensorInitializer", "LookupInterface",
    "StrongHashSpec", "TextFileIdTableInitializer", "TextFileIndex", "TextFileInitializer",
    "TextFileStringTableInitializer", "index_table_from_file", "index_to_string_table_from_file",
)  # fmt: skip
_OWN = (
    "HashTable", "MutableHashTable", "index_table_from_tensor", "index_to_string", "index_to_string_table_from_tensor",
    "string_to_index", "string_to_index_table_from_tensor",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _FROM_CORE:
        return getattr(_ops, name)
    raise AttributeError(f"tf.contrib.lookup has no attribute {name!r} here. There are: {', '.join(__dir__())}.")


def __dir__() -> list[str]:
    return sorted({*_FROM_CORE, *_OWN})


class HashTable(_ops.StaticHashTableV1):  # type: ignore[misc]  # TensorFlow has no types
    """A table whose rows come from an initializer; `tf.tables_initializer()` fills it."""

    def __init__(self, initializer: Any, default_value: Any, shared_name: Any = None, name: str | None = None) -> None:
        _refuse_shared("HashTable", shared_name)
        super().__init__(initializer, default_value, name=name)

    @property
    def init(self) -> Any:
        """The operation that fills the table."""
        return self.initializer


class MutableHashTable(_ops.MutableHashTable):  # type: ignore[misc]  # the same
    """A table that a program fills row by row."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: Any = None,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        _refuse_shared("MutableHashTable", shared_name)
        super().__init__(key_dtype, value_dtype, default_value, name=name, checkpoint=checkpoint)


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = _ops.FastHashSpec,
    dtype: Any = _v1.string,
    name: str | None = None,
) -> Any:
    """Returns a table from the strings or numbers of `mapping` to their places in it."""
    return _ops.index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, dtype, name)


string_to_index_table_from_tensor = index_table_from_tensor


def index_to_string_table_from_tensor(mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """Returns a table from places in `mapping` to its strings."""
    return _ops.index_to_string_table_from_tensor(mapping, default_value, name)


def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None) -> Any:
    """Returns the places in `mapping` of a tensor's strings."""
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """Returns the strings of `mapping` at a tensor's places."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)


def _refuse_shared(table: str, shared_name: Any) -> None:
    if shared_name is not None:
        raise ValueError(
            f"tf.contrib.lookup.{table} takes no `shared_name` here: a table is that of its graph. Received: "
            f"{shared_name!r}. Leave it out."
        )
