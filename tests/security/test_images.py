"""An image of a few kilobytes can claim any size: it is decoded up to a bound, and counts as broken beyond it."""

import io
import struct
import zlib

import pytest
from PIL import Image

from keraunos.data.corrupt_images import CorruptImages
from keraunos.data.image_files import MAX_PIXELS, Framing, decode
from keraunos.data.images import read_images
from keraunos.errors import DataError


def bomb(width, height):
    """A PNG with rows of zeros, which pack into next to nothing."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packing = zlib.compressobj(9)
    row = bytes(1 + width // 8)
    rows = b"".join([*(packing.compress(row) for _ in range(height)), packing.flush()])
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize("framing", [Framing(), Framing(8), Framing(8, crop=None, channels=1)])
def test_a_bomb_is_refused_before_it_is_decoded(framing):
    content = bomb(12_000, 12_000)
    assert len(content) < 40_000
    with pytest.raises(ValueError, match=r"12000 x 12000 pixels, and at most max_pixels=89478485"):
        decode(content, "bomb.png", framing)


def test_the_bound_can_be_set():
    stream = io.BytesIO()
    Image.new("RGB", (20, 30)).save(stream, "PNG")
    assert decode(stream.getvalue(), "x", Framing(max_pixels=600)).height == 30
    with pytest.raises(ValueError, match="20 x 30 pixels"):
        decode(stream.getvalue(), "x", Framing(max_pixels=599))
    # Pillow's own limit, which only warns at first, does not stand in the way of a larger one.
    before = Image.MAX_IMAGE_PIXELS
    assert decode(bomb(14_000, 13_000), "x", Framing(4, max_pixels=3 * MAX_PIXELS)).height == 4
    assert before == Image.MAX_IMAGE_PIXELS
    for wrong in (0, None, 2.5, True):
        with pytest.raises(DataError, match="max_pixels"):
            Framing(max_pixels=wrong)


@pytest.mark.spark
def test_a_bomb_among_images_is_skipped_and_counted(spark, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (20, 30)).save(tmp_path / name / "good.png")
    (tmp_path / "a" / "bomb.png").write_bytes(bomb(12_000, 12_000))
    corrupt = CorruptImages(spark)
    assert read_images(spark, str(tmp_path), 8, corrupt=corrupt).count() == 2
    assert corrupt.count == 1
    ((path, why),) = corrupt.files.items()
    assert path.endswith("a/bomb.png")
    assert "12000 x 12000 pixels" in why
    nulls = read_images(spark, str(tmp_path), 8, on_corrupt="null").where("image is null").count()
    assert nulls == 1
