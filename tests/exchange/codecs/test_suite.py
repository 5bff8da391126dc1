"""The codecs by the suite for codecs."""

from keraunos.exchange.codecs.bfloat16 import Bfloat16Codec
from keraunos.exchange.codecs.int8 import Int8Codec
from keraunos.exchange.codecs.plain import PlainCodec
from keraunos.exchange.codecs.registry import CODECS
from keraunos.testing.codec_suite import CodecSuite


class TestPlain(CodecSuite):
    codec = PlainCodec


class TestBfloat16(CodecSuite):
    codec = Bfloat16Codec
    relative_error = 2.0**-8


class TestInt8(CodecSuite):
    codec = Int8Codec
    relative_error = 1 / 127 / 2


def test_every_codec_is_in_a_suite():
    tested = {each.codec for each in (TestPlain, TestBfloat16, TestInt8)}
    assert tested == set(CODECS.values())
