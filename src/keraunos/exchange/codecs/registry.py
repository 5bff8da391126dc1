"""The codec of a name. Runs on both sides of the wire."""

from __future__ import annotations

from collections.abc import Mapping

from keraunos.errors import PlanError, one_of
from keraunos.exchange.codecs.bfloat16 import Bfloat16Codec
from keraunos.exchange.codecs.codec import Codec
from keraunos.exchange.codecs.int8 import Int8Codec
from keraunos.exchange.codecs.plain import PlainCodec

CODECS: Mapping[str, type[Codec]] = {codec.name: codec for codec in (PlainCodec, Bfloat16Codec, Int8Codec)}


def codec_named(name: str) -> Codec:
    """A codec of that name for the calling thread alone."""
    if name not in CODECS:
        raise PlanError(one_of("compression", name, CODECS))
    return CODECS[name]()
