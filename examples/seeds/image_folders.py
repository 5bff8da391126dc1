"""Pictures of four kinds in a folder each, for the programs that read a table of images."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

KINDS = ("disks", "frames", "stripes", "triangles")


def write_images(folder, each=60, side=224, seed=0):
    """Write the pictures and give the folder: `each` of a kind, with places, sizes and colours of their own."""
    random = np.random.default_rng(seed)
    for kind in KINDS:
        below = Path(folder) / kind
        below.mkdir(parents=True, exist_ok=True)
        for number in range(each):
            _picture(kind, side, random).save(below / f"{number:04d}.jpg", quality=90)
    return str(Path(folder).resolve())


def _picture(kind, side, random):
    picture = Image.new("RGB", (side, side), _colour(random, 0, 90))
    draw = ImageDraw.Draw(picture)
    colour, reach = _colour(random, 130, 256), side * random.uniform(0.2, 0.35)
    x, y = random.uniform(reach, side - reach, 2)
    if kind == "disks":
        draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=colour)
    elif kind == "frames":
        draw.rectangle((x - reach, y - reach, x + reach, y + reach), outline=colour, width=side // 14)
    elif kind == "triangles":
        draw.polygon([(x, y - reach), (x - reach, y + reach), (x + reach, y + reach)], fill=colour)
    else:
        for start in range(int(random.integers(0, side // 7)), side, side // 7):
            draw.line((start, 0, start, side), fill=colour, width=side // 20)
    return picture.filter(ImageFilter.GaussianBlur(1))


def _colour(random, low, high):
    return tuple(int(value) for value in random.integers(low, high, 3))
