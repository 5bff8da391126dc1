"""Single files: whatever Pillow reads becomes upright pixels of 8 bits in the order BGR, in the size asked for."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from keraunos.data.image_files import Framing, decode
from keraunos.errors import DataError

ORIENTATION = 0x0112


def encoded(image, kind="PNG", **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def pixels(content, path="x", **framing):
    """The decoded image as an array, its channels as RGB."""
    found = decode(content, path, Framing(**framing))
    assert found.mode == {1: 0, 3: 16}[found.channels]
    return np.frombuffer(found.data, np.uint8).reshape(found.height, found.width, found.channels)[..., ::-1]


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def gradient(height, width):
    """Red grows to the right, green downwards."""
    red, green = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([red, green, np.full_like(red, 90)], axis=-1).astype(np.uint8))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "PPM", "TIFF"])
def test_what_is_kept_whole_comes_out_whole(kind):
    image = noise(5, 7)
    np.testing.assert_array_equal(pixels(encoded(Image.fromarray(image), kind)), image)


def test_the_bytes_are_blue_green_red():
    found = decode(encoded(Image.new("RGB", (1, 1), (1, 2, 3))), "x", Framing())
    assert (found.data, found.height, found.width, found.channels, found.mode) == (b"\x03\x02\x01", 1, 1, 3, 16)


@pytest.mark.parametrize(
    ("image", "colour"),
    [
        (Image.new("L", (2, 2), 77), (77, 77, 77)),
        (Image.new("1", (2, 2), 1), (255, 255, 255)),
        (Image.new("RGBA", (2, 2), (10, 20, 30, 128)), (10, 20, 30)),
        (Image.new("LA", (2, 2), (50, 9)), (50, 50, 50)),
        (Image.new("RGB", (2, 2), (200, 10, 60)).quantize(4), (200, 10, 60)),
        (Image.fromarray(np.full((2, 2), 0x4D12, np.uint16)), (0x4D, 0x4D, 0x4D)),
    ],
    ids=["grey", "bits", "alpha", "grey and alpha", "palette", "16 bits"],
)
def test_every_mode_becomes_three_channels(image, colour):
    assert pixels(encoded(image))[0, 0].tolist() == list(colour)


def test_a_cmyk_jpeg_becomes_three_channels():
    found = pixels(encoded(Image.new("CMYK", (8, 8), (255, 0, 0, 0)), "JPEG", quality=95))
    assert np.abs(found[4, 4].astype(int) - [0, 255, 255]).max() < 12


def test_grey_on_demand():
    found = decode(encoded(Image.new("RGB", (3, 2), (255, 0, 0))), "x", Framing(channels=1))
    assert (found.channels, found.mode, found.height, found.width) == (1, 0, 2, 3)
    assert set(found.data) == {76}  # 0.299 of 255, as ITU-R 601 weighs red


@pytest.mark.parametrize(
    ("orientation", "top", "left"), [(1, True, True), (3, False, False), (6, True, False), (8, False, True)]
)
def test_images_are_turned_upright(orientation, top, left):
    image = Image.new("RGB", (32, 16))
    image.paste((255, 255, 255), (0, 0, 8, 8))
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    found = pixels(encoded(image, "JPEG", quality=95, exif=exif))
    assert found.shape[:2] == ((16, 32) if orientation in (1, 3) else (32, 16))
    corner = found[:4] if top else found[-4:]
    assert (corner[:, :4] if left else corner[:, -4:]).mean() > 230
    assert found.mean() < 100


@given(
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    size=st.integers(1, 20),
    crop=st.sampled_from(["center", "random", None]),
)
def test_every_image_gets_the_size(height, width, size, crop):
    assert pixels(encoded(Image.fromarray(noise(height, width))), size=size, crop=crop).shape == (size, size, 3)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_the_middle_is_cut_out(kind):
    content = encoded(gradient(100, 300), kind, quality=95)
    found = pixels(content, size=20).astype(int)
    # Of 300 columns the middle 100 are seen, and all rows; each pixel stands for the middle of 5.
    across, down = 255 * (100 + 5 * np.arange(20) + 2) / 299, 255 * (5 * np.arange(20) + 2) / 99
    np.testing.assert_allclose(found[:, 1:-1, 0], np.tile(across[1:-1], (20, 1)), atol=5)
    np.testing.assert_allclose(found[1:-1, :, 1], np.tile(down[1:-1, None], (1, 20)), atol=5)


def test_a_larger_resize_shows_less():
    content = encoded(gradient(100, 100))
    found = pixels(content, size=20, resize=40).astype(int)
    assert abs(found[:, 0, 0].mean() - 255 * 26 / 99) < 5
    assert abs(found[:, -1, 0].mean() - 255 * 73 / 99) < 5


def test_squeezing_shows_everything():
    found = pixels(encoded(gradient(100, 300)), size=20, crop=None).astype(int)
    assert found[:, 0, 0].max() < 12
    assert found[:, -1, 0].min() > 243


def test_a_random_crop_is_the_files_own():
    content = encoded(gradient(50, 200))
    crops = {path: pixels(content, path, size=10, crop="random") for path in map(str, range(20))}
    lefts = [int(found[5, 0, 0]) for found in crops.values()]
    assert min(lefts) < 50
    assert max(lefts) > 140
    for path, found in crops.items():
        np.testing.assert_array_equal(found, pixels(content, path, size=10, crop="random"))
    again = [int(pixels(content, path, size=10, crop="random", seed=1)[5, 0, 0]) for path in crops]
    assert again != lefts


def test_an_image_of_the_size_is_left_alone():
    image = noise(12, 12)
    np.testing.assert_array_equal(pixels(encoded(Image.fromarray(image)), size=12), image)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"size": 0}, "`size`.*at least 1.*Received: 0"),
        ({"size": (2, 3)}, r"`size`.*Received: \(2, 3\)"),
        ({"size": True}, "`size`.*Received: True"),
        ({"size": 8, "crop": "centre"}, "`crop`.*'center', 'random'.*Received: 'centre'"),
        ({"channels": 4}, "`channels` must be 3.*Received: 4"),
        ({"seed": "a"}, "`seed`.*Received: 'a'"),
        ({"resize": 256}, "`resize`.*size=None"),
        ({"size": 224, "resize": 200}, "`resize`.*at least `size`.*200"),
        ({"size": 224, "resize": 256, "crop": None}, "`resize`.*crop=None"),
    ],
)
def test_what_is_no_framing_is_refused(options, told):
    with pytest.raises(DataError, match=told):
        Framing(**options)
