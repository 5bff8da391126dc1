"""How fast `read_images` decodes, beside a plain Pillow loop in as many processes.

One folder of generated JPEG files of ImageNet's usual size, brought to 224 by 224. Every contender decodes all of
them in each repeat; `read_images` writes its rows to Spark's `noop` sink, so that the pixels have reached the JVM. The
loop does what one would write by hand: open, draft, resize the shorter side, cut the middle out, take the bytes.

Prints images/s (medians of alternating repeats) and the ratio, the median of the repeats' own ratios.

    read_images / plain Pillow loop    goal: at least 0.8

    python benchmarks/images.py --images 3000 --repeats 7
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

CLASSES = 4
OURS, PLAIN = "read_images", "plain Pillow loop"


def main() -> None:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(options.cores) as pool:
        files = write_images(Path(folder), options.images)
        rates = measure(folder, files, pool, options)
    _show(rates, options)


def measure(folder: str, files: list[str], pool: Any, options: argparse.Namespace) -> dict[str, list[float]]:
    """Images a second of each contender, in alternating repeats after some that warm everything up."""
    from pyspark.sql import SparkSession

    from keraunos.data.images import read_images

    spark = (
        SparkSession.builder.master(f"local[{options.cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    tasks = [(file, options.size) for file in files]
    contenders = {
        OURS: lambda: read_images(spark, folder, options.size).write.format("noop").mode("overwrite").save(),
        PLAIN: lambda: pool.starmap(plain, tasks, chunksize=16),
    }
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for repeat in range(-options.warm_up, options.repeats):
        for name, decode in contenders.items():
            start = time.perf_counter()
            decode()
            if repeat >= 0:
                rates[name].append(len(files) / (time.perf_counter() - start))
    spark.stop()
    return rates


def plain(path: str, size: int) -> int:
    """One image as one would decode it by hand; gives the number of its bytes."""
    from PIL import Image

    with Image.open(path) as opened:
        opened.draft("RGB", (size, size))
        image = opened.convert("RGB")
    scale = size / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BILINEAR)
    left, top = (image.width - size) // 2, (image.height - size) // 2
    return len(image.crop((left, top, left + size, top + size)).tobytes())


def write_images(folder: Path, count: int) -> list[str]:
    """JPEG files with large shapes and some grain, 500 by 375 or upright; their paths."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    files = []
    for number in range(count):
        width, height = (500, 375) if number % 3 else (375, 500)
        shapes = Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        base = np.asarray(shapes.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
        grain = random.integers(-12, 13, base.shape, dtype=np.int16)
        path = folder / str(number % CLASSES) / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.clip(base + grain, 0, 255).astype(np.uint8)).save(path, quality=90)
        files.append(str(path))
    return files


def _show(rates: dict[str, list[float]], options: argparse.Namespace) -> None:
    print(f"{options.images} images to {options.size} by {options.size}, {options.cores} cores, images/s")
    for name, found in rates.items():
        print(f"  {name:20} {statistics.median(found):8.0f}   ({min(found):.0f} to {max(found):.0f})")
    ratios = [ours / loop for ours, loop in zip(rates[OURS], rates[PLAIN], strict=True)]
    print(f"  ratio {statistics.median(ratios):.2f}   (goal: at least 0.80)")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--warm-up", type=int, default=4)
    return parser.parse_args()


if __name__ == "__main__":
    main()
