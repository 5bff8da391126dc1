"""A folder of images as a DataFrame. Runs on the driver; the decoding runs on executors.

`read_images` finds the files with Spark's own `binaryFile` source, on any Hadoop file system, and decodes them with
Pillow when the rows are needed: nothing is read before an action runs. Its images are Spark's image struct, so code
that reads Spark's `image` source can read them, too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from keraunos.data.corrupt_images import CorruptImages
from keraunos.data.image_files import MAX_PIXELS, Decoded, Framing, decode
from keraunos.data.image_labels import FOLDERS, labelled
from keraunos.errors import DataError, one_of
from keraunos.session.registry import session_of

IMAGE_SCHEMA = "struct<origin:string,height:int,width:int,nChannels:int,mode:int,data:binary>"
SUFFIXES = ("bmp", "gif", "jfif", "jpe", "jpeg", "jpg", "png", "ppm", "tif", "tiff", "webp")
ON_CORRUPT = ("skip", "null", "fail")

_ARROW_IMAGE = pa.struct(
    [
        ("origin", pa.string()),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("nChannels", pa.int32()),
        ("mode", pa.int32()),
        ("data", pa.binary()),
    ]
)
_BATCH_BYTES = 16 << 20
# Spark counts 4 MB for the opening of a file, and so cuts a folder into partitions of some thirty images. A task more
# costs as much as ten images.
_TASKS_A_CORE = 4
_CUTS_A_TASK = 32


def read_images(
    spark: Any,
    path: str,
    size: int | None = None,
    *,
    labels: str | None = FOLDERS,
    classes: Sequence[str] | None = None,
    crop: str | None = "center",
    resize: int | None = None,
    channels: int = 3,
    seed: int = 0,
    on_corrupt: str = "skip",
    corrupt: CorruptImages | None = None,
    partitions: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Any:
    """Returns the images under a folder, with the columns `image` and, unless `labels` is `None`, `label`.

    An image is Spark's image struct: `origin` (the file), `height`, `width`, `nChannels`, `mode` (OpenCV's: 16 for
    three channels of 8 bits, 0 for one) and `data`, rows from the top, with the channels of a pixel in the order BGR.
    Files of the suffixes in `SUFFIXES` are read, in any case, at any depth. Images are turned upright as their EXIF
    data says. Transparency is dropped. Empty files are skipped, as by Spark's own sources.

    Args:
        spark: the session.
        path: a folder on any Hadoop file system.
        size: the height and width of every image, resampled bilinearly; `None` keeps the size of each image.
        labels: `"folders"`: the sub-folder of `path` that a file is in, at whatever depth, is its class, and classes
            are numbered in the order of their names. Or the path of a list with lines `relative/path label`; files
            that are not listed are skipped, and labels are class numbers or, if any is not a number, names. `None`: no
            labels.
        classes: the names of all classes in the order of their numbers, if the numbers must not depend on the folder.
        crop: `"center"`: the shorter side is made `size` long and the middle is cut out. `"random"`: the same, but at
            a place that depends on the file and `seed`. `None`: the whole image is squeezed into the square.
        resize: what the shorter side is made before the crop, such as 256 for a `size` of 224.
        channels: 3 for colour, 1 for grey.
        seed: of random crops.
        on_corrupt: what to do with a file that cannot be decoded: `"skip"` omits its row and reports it in the driver's
            log and in `corrupt`; `"null"` keeps the row with a null image; `"fail"` raises.
        corrupt: counts such files while rows are read.
        partitions: the number of partitions in which to decode. `None`: several per core if there are enough files, and
            more if each would have more than about a thousand.
        max_pixels: the largest image that is decoded, as its width times its height; a larger one counts as a file
            that cannot be decoded. A small file can claim any size, and decoding takes 4 to 10 bytes per pixel.
    """
    framing = Framing(size, crop, resize, channels, seed, max_pixels)
    if on_corrupt not in ON_CORRUPT:
        raise DataError(one_of("on_corrupt", on_corrupt, ON_CORRUPT))
    session = session_of(spark)
    files = (
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", _any_case(SUFFIXES))
        .load(path)
    )
    found, names = labelled(spark, path, files, labels, classes)
    chosen = found.select(*(["path", "content"] if labels is None else ["path", "content", "label"]))
    chosen = _cut(chosen, files.rdd.getNumPartitions(), partitions, session.parallelism)
    seen = corrupt or CorruptImages(spark)
    task = functools.partial(decode_batches, framing, on_corrupt, seen.accumulator)
    schema = f"image {IMAGE_SCHEMA}" + ("" if labels is None else ", label double")
    with session.own_python():
        images = chosen.mapInArrow(task, schema)
    return _described(images, framing, names)


def class_names(frame: Any, label: str = "label") -> list[str]:
    """Returns the names of the classes for the numbers in a label column of `read_images`."""
    metadata = frame.schema[label].metadata or {}
    names = metadata.get("ml_attr", {}).get("vals")
    if names is None:
        raise DataError(
            f"Column {label!r} does not say what its numbers stand for. Expected one that read_images made from "
            f"folders or from names. Received: a column with the metadata {metadata!r}."
        )
    return list(names)


def decode_batches(framing: Framing, on_corrupt: str, corrupt: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """Decode files to images, batch by batch, with their labels, if any."""
    rows = _ImageBatch()
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        labels = columns["label"].to_pylist() if "label" in columns else None
        for number, (path, content) in enumerate(zip(columns["path"], columns["content"], strict=True)):
            origin = path.as_py()
            image = _decoded(content.as_buffer(), origin, framing, on_corrupt, corrupt)
            if image is None and on_corrupt == "skip":
                continue
            rows.add(origin, image, None if labels is None else labels[number])
            if rows.bytes >= _BATCH_BYTES:
                yield rows.batch(labelled=labels is not None)
        if rows.images:
            yield rows.batch(labelled=labels is not None)


class _ImageBatch:
    """Collects images for an Arrow batch."""

    def __init__(self) -> None:
        self.images: list[Decoded | None] = []
        self.bytes = 0
        self._origins: list[str] = []
        self._labels: list[float | None] = []

    def add(self, origin: str, image: Decoded | None, label: float | None) -> None:
        self.images.append(image)
        self._origins.append(origin)
        self._labels.append(label)
        self.bytes += 0 if image is None else len(image.data)

    def batch(self, *, labelled: bool) -> Any:
        """Returns all of them as a record batch; starts again."""
        images = self.images
        fields = [
            pa.array(self._origins, pa.string()),
            *(
                pa.array([None if image is None else getattr(image, name) for image in images], pa.int32())
                for name in ("height", "width", "channels", "mode")
            ),
            pa.array([None if image is None else image.data for image in images], pa.binary()),
        ]
        mask = pa.array([image is None for image in images], pa.bool_())
        columns = {"image": pa.StructArray.from_arrays(fields, fields=list(_ARROW_IMAGE), mask=mask)}
        if labelled:
            columns["label"] = pa.array(self._labels, pa.float64())
        self.images, self._origins, self._labels, self.bytes = [], [], [], 0
        return pa.record_batch(columns)


def _decoded(content: Any, path: str, framing: Framing, on_corrupt: str, corrupt: Any) -> Decoded | None:
    try:
        return decode(content, path, framing)
    except Exception as error:
        # Pillow's decoders raise many types: OSError, SyntaxError, ValueError, struct.error and more.
        reason = f"{type(error).__name__}: {error}"
        if on_corrupt == "fail":
            raise DataError(
                f"The image {path!r} cannot be decoded. Expected a file that Pillow reads. Received: {reason}. Remove "
                "the file, or leave such files out with on_corrupt='skip'."
            ) from error
        corrupt.add({path: reason})
        return None


def _cut(files: Any, found: int, wanted: int | None, cores: int) -> Any:
    """Returns the files in as many partitions as wanted, or in as few as keep the cores busy.

    `found` is the current number of partitions.
    """
    if wanted is None:
        return files.coalesce(max(1, _TASKS_A_CORE * cores, found // _CUTS_A_TASK))
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise DataError(f"`partitions` must be a whole number of at least 1, or None. Received: {wanted!r}.")
    # A coalesce could join unequal partitions; a shuffle of the encoded files is then cheaper.
    return files.coalesce(wanted) if found >= 4 * wanted or found == wanted else files.repartition(wanted)


def _described(images: Any, framing: Framing, names: Sequence[str] | None) -> Any:
    """The DataFrame with metadata about its columns, which can be read before any row."""
    if framing.size is not None:
        size = {"height": framing.size, "width": framing.size, "nChannels": framing.channels}
        images = images.withMetadata("image", {"image": size})
    if names is not None:
        nominal = {"type": "nominal", "name": "label", "vals": list(names)}
        images = images.withMetadata("label", {"ml_attr": nominal})
    return images


def _any_case(suffixes: Sequence[str]) -> str:
    """Returns a glob of files with one of the suffixes in any case, since Hadoop's globs are case-sensitive."""
    spelled = ("".join(f"[{letter}{letter.upper()}]" for letter in suffix) for suffix in suffixes)
    return f"*.{{{','.join(spelled)}}}"
