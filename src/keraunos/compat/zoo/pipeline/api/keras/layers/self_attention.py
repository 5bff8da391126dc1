"""`zoo.pipeline.api.keras.layers.self_attention`. Runs on the driver."""

from __future__ import annotations

from keraunos.compat.zoo.own_layers.attention import BERT, TransformerLayer

__all__ = ["BERT", "TransformerLayer"]
