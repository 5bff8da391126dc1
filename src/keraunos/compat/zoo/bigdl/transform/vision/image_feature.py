"""One image with all that is known of it, by key. Runs on the driver and on executors.

`mat` is the image in OpenCV's layout: rows from the top, channels in the order BGR, 8 bits or floats from 0 to 255.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from keraunos.errors import DataError

Mat = npt.NDArray[Any]

URI, BYTES, MAT, FLOATS = "uri", "bytes", "mat", "floats"
LABEL, TENSOR, SAMPLE, PREDICT = "label", "imageTensor", "sample", "predict"
ORIGINAL_SIZE, READ_SIZE, ERROR = "originalSize", "readSize", "error"


class ImageFeature:
    """An image: its file's bytes, its pixels, its label, its prediction.

    Args:
        image: pixels as an array of height, width and channels, in the order BGR.
        label: an array, or a number.
        path: where the image is from.
    """

    def __init__(
        self, image: Any = None, label: Any = None, path: str | None = None, bigdl_type: str = "float"
    ) -> None:
        del bigdl_type
        self._state: dict[str, Any] = {}
        self._drawn = 0
        self._identity: tuple[int, int] | None = None
        if image is not None:
            self[MAT] = _pixels(image)
            self[ORIGINAL_SIZE] = self[MAT].shape
        if label is not None:
            self[LABEL] = np.atleast_1d(np.asarray(label, np.float32))
        if path is not None:
            self[URI] = path

    @property
    def is_valid(self) -> bool:
        """Whether the image could be decoded."""
        return ERROR not in self._state

    @property
    def uri(self) -> str | None:
        """Where the image is from."""
        found: str | None = self.get(URI)
        return found

    @property
    def pixels(self) -> Mat:
        """The image's pixels, before or after they became floats."""
        for key in (MAT, FLOATS):
            found = self.get(key)
            if found is not None:
                return np.asarray(found)
        raise DataError(
            f"The image {self.uri!r} has no pixels. Expected: one that was decoded. Received: "
            f"{self.get(ERROR) or f'only {sorted(self._state)}'}. Decode it with ImageBytesToMat."
        )

    def get_image(self, float_key: str = FLOATS, to_chw: bool = True) -> npt.NDArray[np.float32]:
        """Returns the pixels as floats, channels first or last."""
        found = self.get(float_key)
        image = np.asarray(self.pixels if found is None else found, np.float32)
        return np.ascontiguousarray(image.transpose(2, 0, 1)) if to_chw and image.ndim == 3 else image

    def get_label(self) -> npt.NDArray[np.float32]:
        """Returns the label as an array; -1 if there is none."""
        return np.asarray(self._state.get(LABEL, [-1.0]), np.float32)

    def keys(self) -> list[str]:
        """Returns all entries of the image."""
        return sorted(self._state)

    def get(self, key: str) -> Any:
        """Returns the entry of a key, or `None`."""
        return self._state.get(key)

    def copy(self) -> ImageFeature:
        """Returns the same image, of which keys can be set without setting them here."""
        made = ImageFeature()
        made._state, made._drawn, made._identity = dict(self._state), self._drawn, self._identity
        return made

    def without(self, *keys: str) -> ImageFeature:
        """Returns the same image, of which less is known."""
        made = self.copy()
        for key in keys:
            made._state.pop(key, None)
        return made

    def draw(self) -> np.random.Generator:
        """Random numbers of the next random step: they depend on the image and on how many such steps were before."""
        if self._identity is None:
            content = self.get(BYTES)
            if content is None:
                content = np.ascontiguousarray(self.pixels).tobytes()
            self._identity = (zlib.crc32((self.uri or "").encode()), zlib.crc32(content))
        self._drawn += 1
        return np.random.default_rng([*self._identity, self._drawn])

    def __getitem__(self, key: str) -> Any:
        if key not in self._state:
            raise DataError(
                f"The image {self.uri!r} must have {key!r}. Received: one with {', '.join(map(repr, self.keys()))}. "
                "Put the step that makes it before."
            )
        return self._state[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._state[key] = value

    def __contains__(self, key: object) -> bool:
        return key in self._state

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


def _pixels(image: Any) -> Mat:
    array = np.asarray(image)
    if array.ndim == 2:
        array = array[:, :, np.newaxis]
    if array.ndim != 3 or array.dtype.kind not in "uif":
        raise DataError(
            "An image must be an array of height, width and channels. Received: an array of the shape "
            f"{array.shape} and the type {array.dtype}. Images in three dimensions are not here."
        )
    return array if array.dtype == np.uint8 else array.astype(np.float32)
