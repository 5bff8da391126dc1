"""Analytics Zoo's `TransformerLayer` and `BERT` as layers of Keras. Runs on the driver and on workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from keraunos.compat.zoo.own_layers.channels_first import PACKAGE
from keraunos.compat.zoo.own_layers.stepping import Stepping
from keraunos.compat.zoo.tensorflow_mode import in_tensorflow_2
from keraunos.errors import JobError
from keraunos.learners.registry import import_keras_on

import_keras_on("tensorflow")

import keras  # noqa: E402 - after the backend is settled
from keras import ops  # noqa: E402 - the same


@keras.saving.register_keras_serializable(PACKAGE)
class AttentionBlock(keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """Self-attention of several heads, then two Dense layers; what each adds is normalized with its input.

    Args:
        size: the length of a step's vector.
        heads: how many heads there are.
        intermediate_size: the size between the two Dense layers.
        hidden_drop: the share of outputs to drop in training.
        attn_drop: the share of attention to drop in training.
        initializer_range: the deviation of the initial weights.
        bidirectional: whether steps see those after them.
        exact: whether the activation is the exact GELU, or its approximation by tanh.
        named: name, dtype and the like.
    """

    def __init__(
        self,
        size: int,
        heads: int,
        intermediate_size: int,
        hidden_drop: float,
        attn_drop: float,
        initializer_range: float,
        bidirectional: bool,
        exact: bool,
        **named: Any,
    ) -> None:
        super().__init__(**named)
        self._options: dict[str, Any] = {
            "size": size,
            "heads": heads,
            "intermediate_size": intermediate_size,
            "hidden_drop": hidden_drop,
            "attn_drop": attn_drop,
            "initializer_range": initializer_range,
            "bidirectional": bidirectional,
            "exact": exact,
        }
        self.heads, self.bidirectional, self.exact = heads, bidirectional, exact
        self.joined = _projection(3 * size, initializer_range, "query_key_value")
        self.projection = _projection(size, initializer_range, "projection")
        self.wide = _projection(intermediate_size, initializer_range, "wide")
        self.narrow = _projection(size, initializer_range, "narrow")
        self.norms = [keras.layers.LayerNormalization(epsilon=1e-5, name=f"norm_{i}") for i in (1, 2)]
        self.dropped = [keras.layers.Dropout(hidden_drop) for _ in range(2)]
        self.attention_dropped = keras.layers.Dropout(attn_drop)

    def build(self, input_shape: Any) -> None:
        """Make the weights."""
        size, between = self._options["size"], self._options["intermediate_size"]
        shape = (None, None, size)
        for layer in (self.joined, self.projection, self.wide, *self.norms):
            layer.build(shape)
        self.narrow.build((None, None, between))

    def call(self, inputs: Any, added: Any = None, training: bool = False) -> Any:
        """Returns the new vectors of all steps.

        Args:
            inputs: the vectors of all steps.
            added: what is added to the logarithms of the attention; `None` for nothing.
            training: whether to drop.
        """
        attended = self.dropped[0](self.projection(self._attention(inputs, added, training)), training=training)
        normal = self.norms[0](inputs + attended)
        moved = keras.activations.gelu(self.wide(normal), approximate=not self.exact)
        return self.norms[1](normal + self.dropped[1](self.narrow(moved), training=training))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns that of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {**super().get_config(), **self._options}

    def _attention(self, inputs: Any, added: Any, training: bool) -> Any:
        steps, size = inputs.shape[1:]
        shape = (-1, steps, self.heads, size // self.heads)
        query, key, value = (
            ops.transpose(ops.reshape(each, shape), (0, 2, 1, 3)) for each in ops.split(self.joined(inputs), 3, axis=-1)
        )
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2))) / math.sqrt(size // self.heads)
        if not self.bidirectional:
            seen = ops.tril(ops.ones((steps, steps), dtype=scores.dtype))
            scores = scores * seen + (1.0 - seen) * -1e9
        scores = scores if added is None else scores + added
        shares = self.attention_dropped(ops.softmax(scores), training=training)
        return ops.reshape(ops.transpose(ops.matmul(shares, value), (0, 2, 1, 3)), (-1, steps, size))


@keras.saving.register_keras_serializable(PACKAGE)
class TransformerLayer(Stepping, keras.layers.Layer):  # type: ignore[misc]  # Keras is untyped
    """Blocks of self-attention over words and their positions.

    Its inputs are the numbers of words and of positions; its outputs the vectors of all steps, and a vector for the row
    that is made of the first step's.

    Args:
        n_block: how many blocks there are.
        hidden_drop: the share of outputs to drop in training.
        attn_drop: the share of attention to drop in training.
        n_head: how many heads a block has.
        initializer_range: the deviation of the initial weights.
        bidirectional: whether steps see those after them.
        output_all_block: whether the outputs of all blocks are given, before the row's.
        embedding_layer: from the inputs to vectors: a layer or a model.
        input_shape: the shapes of the inputs.
        intermediate_size: of the Dense layers in a block; 0 for four times the vectors' length.
        bigdl_type: "float".
        named: name, dtype and the like.
    """

    exact = False

    def __init__(
        self,
        n_block: int,
        hidden_drop: float,
        attn_drop: float,
        n_head: int,
        initializer_range: float,
        bidirectional: bool,
        output_all_block: bool,
        embedding_layer: Any,
        input_shape: Sequence[Sequence[int]],
        intermediate_size: int = 0,
        bigdl_type: str = "float",
        **named: Any,
    ) -> None:
        if bigdl_type != "float":
            raise JobError(f"`bigdl_type` must be 'float'. Received: {bigdl_type!r}.")
        if any(not isinstance(each, (list, tuple)) for each in input_shape):
            raise JobError(
                f"`input_shape` of {type(self).__name__} must be a list of shapes, one for each input. "
                f"Received: {input_shape!r}."
            )
        super().__init__(**{"autocast": False, **named})
        self.zoo_input_shape = [tuple(each) for each in input_shape]
        # A model of zoo.pipeline.api.keras.models has the Keras model inside.
        self.embedding_layer = getattr(embedding_layer, "model", embedding_layer)
        self.output_all_block = output_all_block
        self._options: dict[str, Any] = {
            "n_block": n_block,
            "hidden_drop": hidden_drop,
            "attn_drop": attn_drop,
            "n_head": n_head,
            "initializer_range": initializer_range,
            "bidirectional": bidirectional,
            "output_all_block": output_all_block,
            "input_shape": self.zoo_input_shape,
            "intermediate_size": intermediate_size,
        }

    def build(self, input_shape: Any) -> None:
        """Make the weights."""
        inputs = [keras.KerasTensor(tuple(each)) for each in input_shape]
        found = self.embedding_layer(self._embedded(inputs))
        size, options = int(found.shape[-1]), self._options
        self.blocks = [
            AttentionBlock(
                size,
                options["n_head"],
                options["intermediate_size"] or 4 * size,
                options["hidden_drop"],
                options["attn_drop"],
                options["initializer_range"],
                options["bidirectional"],
                self.exact,
                name=f"block_{number}",
            )
            for number in range(options["n_block"])
        ]
        self.pooler = keras.layers.Dense(size, activation="tanh", name="pooler")
        for block in self.blocks:
            block.build(found.shape)
        self.pooler.build((None, size))

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Returns the outputs."""
        vectors, mask, outputs = self.embedding_layer(self._embedded(inputs), training=training), self._mask(inputs), []
        for block in self.blocks:
            vectors = block(vectors, added=mask, training=training)
            outputs.append(vectors)
        pooled = self.pooler(vectors[:, 0])
        return [*outputs, pooled] if self.output_all_block else [vectors, pooled]

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        embedding = keras.saving.serialize_keras_object(self.embedding_layer)
        return {**super().get_config(), **self._options, "embedding_layer": embedding}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns the layer that was made with the arguments."""
        embedding = keras.saving.deserialize_keras_object(config["embedding_layer"])
        return cls(**{**config, "embedding_layer": embedding})

    @classmethod
    @in_tensorflow_2
    def init(
        cls,
        vocab: int = 40990,
        seq_len: int = 77,
        n_block: int = 12,
        hidden_drop: float = 0.1,
        attn_drop: float = 0.1,
        n_head: int = 12,
        hidden_size: int = 768,
        embedding_drop: float = 0.1,
        initializer_range: float = 0.02,
        bidirectional: bool = False,
        output_all_block: bool = False,
    ) -> TransformerLayer:
        """Returns a layer with a table for words and positions, whose rows are added up."""
        table = _table(vocab, hidden_size, initializer_range, "words")
        inputs = [keras.Input((seq_len,)) for _ in range(2)]
        found = keras.layers.Dropout(embedding_drop)(table(inputs[0]) + table(inputs[1]))
        return TransformerLayer(
            n_block,
            hidden_drop,
            attn_drop,
            n_head,
            initializer_range,
            bidirectional,
            output_all_block,
            keras.Model(inputs, found),
            input_shape=((seq_len,), (seq_len,)),
        )

    def _embedded(self, inputs: Any) -> Any:
        return list(inputs)

    def _mask(self, inputs: Any) -> Any:
        return None


@keras.saving.register_keras_serializable(PACKAGE)
class BERT(TransformerLayer):
    """The encoder of BERT: its inputs are the numbers of words, segments and positions, and a mask of what counts.

    Args:
        n_block: how many blocks there are.
        n_head: how many heads a block has.
        intermediate_size: of the Dense layers in a block.
        hidden_drop: the share of outputs to drop in training.
        attn_drop: the share of attention to drop in training.
        initializer_range: the deviation of the initial weights.
        output_all_block: whether the outputs of all blocks are given, before the row's.
        embedding_layer: from the first three inputs to vectors: a layer or a model.
        input_shape: the shapes of the inputs; the mask's is (1, 1, steps).
        bigdl_type: "float".
        named: name, dtype and the like.
    """

    exact = True

    def __init__(
        self,
        n_block: int,
        n_head: int,
        intermediate_size: int,
        hidden_drop: float,
        attn_drop: float,
        initializer_range: float,
        output_all_block: bool,
        embedding_layer: Any,
        input_shape: Sequence[Sequence[int]],
        bigdl_type: str = "float",
        **named: Any,
    ) -> None:
        if len(input_shape) != 4:
            raise JobError(
                "`input_shape` of BERT must have the shapes of words, segments, positions and the mask. "
                f"Received: {input_shape!r}."
            )
        super().__init__(
            n_block,
            hidden_drop,
            attn_drop,
            n_head,
            initializer_range,
            bidirectional=True,
            output_all_block=output_all_block,
            embedding_layer=embedding_layer,
            input_shape=input_shape,
            intermediate_size=intermediate_size,
            bigdl_type=bigdl_type,
            **named,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, from which the layer is made again."""
        return {name: value for name, value in super().get_config().items() if name != "bidirectional"}

    @classmethod
    @in_tensorflow_2
    def init(  # type: ignore[override]  # Analytics Zoo's order
        cls,
        vocab: int = 40990,
        hidden_size: int = 768,
        n_block: int = 12,
        n_head: int = 12,
        seq_len: int = 512,
        intermediate_size: int = 3072,
        hidden_drop: float = 0.1,
        attn_drop: float = 0.1,
        initializer_range: float = 0.02,
        output_all_block: bool = True,
        bigdl_type: str = "float",
    ) -> BERT:
        """Returns a layer with tables for words, segments and positions, whose rows are added up and normalized."""
        inputs = [keras.Input((seq_len,)) for _ in range(3)]
        rows = (("words", vocab), ("segments", 2), ("positions", seq_len))
        tables = [_table(count, hidden_size, initializer_range, name) for name, count in rows]
        found = keras.layers.add([table(each) for table, each in zip(tables, inputs, strict=True)])
        found = keras.layers.Dropout(hidden_drop)(keras.layers.LayerNormalization(epsilon=1e-12)(found))
        shape = ((seq_len,), (seq_len,), (seq_len,), (1, 1, seq_len))
        return BERT(
            n_block,
            n_head,
            intermediate_size,
            hidden_drop,
            attn_drop,
            initializer_range,
            output_all_block,
            keras.Model(inputs, found),
            shape,
            bigdl_type,
        )

    @staticmethod
    def init_from_existing_model(*given: Any, **named: Any) -> BERT:
        """Refused: the file is one of a JVM's objects."""
        raise JobError(
            "A BERT that Analytics Zoo saved is a file of JVM objects, which cannot be read. Received: "
            f"{named.get('path', given[0] if given else None)!r}. Make one with BERT.init(...) and set its weights."
        )

    def _embedded(self, inputs: Any) -> Any:
        return list(inputs[:3])

    def _mask(self, inputs: Any) -> Any:
        return (1.0 - ops.cast(inputs[3], "float32")) * -10000.0


def _projection(size: int, deviation: float, name: str) -> Any:
    return keras.layers.Dense(size, kernel_initializer=keras.initializers.RandomNormal(0.0, deviation), name=name)


def _table(rows: int, size: int, deviation: float, name: str) -> Any:
    return keras.layers.Embedding(
        rows, size, embeddings_initializer=keras.initializers.RandomNormal(0.0, deviation), name=name
    )
