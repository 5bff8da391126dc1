"""Images of a DataFrame beside their predictions. Runs on the driver, in a notebook's kernel."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keraunos.errors import DataError, one_of

# OpenCV's numbers of the types with one byte per channel: Pillow's mode, and how Spark orders the channels.
_MODES = {0: ("L", "L"), 16: ("RGB", "BGR"), 24: ("RGBA", "BGRA")}
_LARGEST = 256
_SHOWN = 112
_RIGHT, _WRONG, _UNMARKED = "#2e9e5b", "#e5484d", "rgba(128,128,128,0.5)"


def show_predictions(
    dataframe: Any, image: str = "image", prediction: str = "prediction", label: str | None = "label", n: int = 12
) -> None:
    """Show the first images of a DataFrame with their predictions; wrong predictions are marked.

    Args:
        dataframe: the result of a model's `transform`.
        image: a column of Spark's image struct, as `read_images` and Spark's `image` source make it.
        prediction: the column with the predicted class, as a number or a name.
        label: the column with the true class. If its metadata has names for its numbers, names are shown. `None` shows
            predictions alone.
        n: how many images.
    """
    from IPython.display import display

    wanted = [name for name in (image, prediction, label) if name is not None]
    _check(dataframe, wanted, image, n)
    rows = dataframe.select(*wanted).limit(n).collect()
    names = _names_of(dataframe.schema, wanted[1:])
    cells = [_ImageCell.of(row[0], row[1], row[2] if label is not None else None, names) for row in rows]
    display({"text/html": _grid(cells), "text/plain": "\n".join(cell.told for cell in cells)}, raw=True)


def png_of(image: Any) -> bytes:
    """Returns a row of Spark's image struct as a PNG file, made smaller where it is large."""
    from PIL import Image

    if image["mode"] not in _MODES:
        raise DataError(
            f"An image to show must have one, three or four channels of 8 bits: mode 0, 16 or 24. Received: mode "
            f"{image['mode']!r} of {image['origin']!r}. Read the files with keraunos.data.images.read_images."
        )
    mode, order = _MODES[image["mode"]]
    picture = Image.frombytes(mode, (image["width"], image["height"]), bytes(image["data"]), "raw", order)
    picture.thumbnail((_LARGEST, _LARGEST))
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


@dataclass(frozen=True)
class _ImageCell:
    """One image of the grid; `right` is `None` if there is nothing to compare."""

    picture: bytes | None
    width: int
    prediction: str
    label: str | None
    right: bool | None

    @classmethod
    def of(cls, image: Any, prediction: Any, label: Any, names: Sequence[str]) -> _ImageCell:
        predicted, true = _worded(prediction, names), None if label is None else _worded(label, names)
        comparable = true is not None and _is_class(prediction) and _is_class(label)
        picture = None if image is None else png_of(image)
        width = 0 if image is None else image["width"]
        return cls(picture, width, predicted, true, predicted == true if comparable else None)

    @property
    def told(self) -> str:
        if self.label is None:
            return self.prediction
        if self.right is None:
            return f"{self.prediction} (label {self.label})"
        return f"✓ {self.prediction}" if self.right else f"✗ {self.prediction}, is {self.label}"


def _grid(cells: Sequence[_ImageCell]) -> str:
    marked = [cell.right for cell in cells if cell.right is not None]
    head = f"<div>{sum(marked)} of {len(marked)} right</div>" if marked else ""
    figures = "".join(_figure(cell) for cell in cells) or "<div>The DataFrame has no rows.</div>"
    return f'<div>{head}<div style="display:flex;flex-wrap:wrap;gap:12px;margin-top:6px">{figures}</div></div>'


def _figure(cell: _ImageCell) -> str:
    colour = {True: _RIGHT, False: _WRONG, None: _UNMARKED}[cell.right]
    box = f"width:{_SHOWN}px;height:{_SHOWN}px;border:3px solid {colour};border-radius:4px;box-sizing:border-box"
    told = html.escape(cell.told)
    if cell.picture is None:
        shown = f'<div style="{box};display:flex;align-items:center;justify-content:center">no image</div>'
    else:
        # Small images are shown pixel by pixel.
        scaling = ";image-rendering:pixelated" if cell.width < _SHOWN else ""
        source = base64.b64encode(cell.picture).decode()
        shown = (
            f'<img src="data:image/png;base64,{source}" alt="{told}" title="{told}" '
            f'style="{box};object-fit:contain;margin:0{scaling}"/>'
        )
    weight = "bold" if cell.right is False else "normal"
    caption = f'<div style="font-weight:{weight};font-size:12px;line-height:1.3;overflow-wrap:anywhere">{told}</div>'
    return f'<div style="width:{_SHOWN}px">{shown}{caption}</div>'


def _check(dataframe: Any, wanted: Sequence[str], image: str, n: int) -> None:
    for name in wanted:
        if name not in dataframe.columns:
            hint = " Without labels, pass label=None." if name == wanted[-1] and len(wanted) == 3 else ""
            raise DataError(one_of("column", name, dataframe.columns) + hint)
    fields = getattr(dataframe.schema[image].dataType, "names", [])
    if not {"height", "width", "mode", "data"} <= set(fields):
        raise DataError(
            f"Column {image!r} must hold images as Spark's image struct. Received: "
            f"{dataframe.schema[image].dataType.simpleString()}. Read files with keraunos.data.images.read_images."
        )
    if n < 1:
        raise DataError(f"`n` must be at least 1: how many images to show. Received: {n!r}.")


def _names_of(schema: Any, columns: Sequence[str]) -> list[str]:
    """Returns the names of classes that one of the columns has in its metadata."""
    for name in columns:
        names = (schema[name].metadata or {}).get("ml_attr", {}).get("vals")
        if names:
            return [str(each) for each in names]
    return []


def _worded(value: Any, names: Sequence[str]) -> str:
    if not isinstance(value, (int, float)):
        return str(value)
    if float(value).is_integer():
        return names[int(value)] if 0 <= value < len(names) else str(int(value))
    return f"{value:.4g}"


def _is_class(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, (int, float)) and float(value).is_integer())
