"""`tf.contrib.layers`, from tf-slim, and `embed_sequence`. Runs on the driver and on workers."""

from __future__ import annotations

from typing import Any

from keraunos.compat.tensorflow1 import _mode, _slim

_v1 = _mode.tensorflow_1()
_PLACES = ("tf_slim.layers",)


def __getattr__(name: str) -> Any:
    return _slim.look_up("tf.contrib.layers", _PLACES, name)


def __dir__() -> list[str]:
    return sorted({*_slim.names_in(_PLACES), "embed_sequence"})


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """Returns the vectors of ids, from a variable `embeddings` of `vocab_size` rows.

    With `unique` each is looked up once.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. Received: "
            f"vocab_size={vocab_size!r} and embed_dim={embed_dim!r}."
        )
    with _v1.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        embeddings = _v1.get_variable(
            "embeddings", shape=shape, initializer=initializer, regularizer=regularizer, trainable=trainable
        )
        if not unique:
            return _v1.nn.embedding_lookup(embeddings, ids)
        ids = _v1.convert_to_tensor(ids)
        each, places = _v1.unique(_v1.reshape(ids, [-1]))
        vectors = _v1.gather(_v1.nn.embedding_lookup(embeddings, each), places)
        return _v1.reshape(vectors, _v1.concat([_v1.shape(ids), _v1.shape(vectors)[1:]], axis=0))
