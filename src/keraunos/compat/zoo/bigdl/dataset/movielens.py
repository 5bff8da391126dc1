"""`bigdl.dataset.movielens`: the ratings of MovieLens 1M from a folder. Runs on the driver."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from keraunos.compat.zoo.bigdl.dataset import base
from keraunos.errors import DataError

SOURCE_URL = "http://files.grouplens.org/datasets/movielens/"

Ratings = npt.NDArray[np.int64]


def read_data_sets(data_dir: str) -> Ratings:
    """Returns a row of user, film, rating and time for each rating: from `ml-1m/ratings.dat`, or from `ml-1m.zip`."""
    file = Path(data_dir, "ml-1m", "ratings.dat")
    if not file.is_file():
        with zipfile.ZipFile(base.maybe_download("ml-1m.zip", data_dir, f"{SOURCE_URL}ml-1m.zip")) as archive:
            archive.extractall(data_dir)
    rows = [line.split("::") for line in file.read_text(encoding="latin-1").splitlines() if line.strip()]
    if any(len(row) != 4 for row in rows):
        raise DataError(
            f"Each line of {str(file)!r} must be user::film::rating::time. Received: "
            f"{next('::'.join(row) for row in rows if len(row) != 4)!r}."
        )
    return np.array(rows).astype(np.int64).reshape(-1, 4)


def get_id_pairs(data_dir: str) -> Ratings:
    """Returns the users and the films."""
    return read_data_sets(data_dir)[:, 0:2]


def get_id_ratings(data_dir: str) -> Ratings:
    """Returns the users, the films and the ratings."""
    return read_data_sets(data_dir)[:, 0:3]
