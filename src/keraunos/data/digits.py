"""1,797 handwritten digits of 8 by 8 pixels, for examples. Runs on the driver.

They come with the package, as the bytes of `digits.npz`, so that nothing is downloaded:

    from keraunos.data.digits import load_digits

    digits = load_digits()
    spark.createDataFrame(digits.frame)

They are the test set of E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*, UCI Machine Learning
Repository, 1998, https://doi.org/10.24432/C50P49, licensed under CC BY 4.0
(https://creativecommons.org/licenses/by/4.0/), in the order that scikit-learn has them in, and unchanged but for the
format of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_FILE = Path(__file__).with_name("digits.npz")
_SIDE = 8


@dataclass(frozen=True, eq=False)
class Digits:
    """Images of digits and which digit each one is, under the names that scikit-learn gives them.

    Attributes:
        data: a row of 64 numbers from 0 to 16 for each image, line by line.
        target: the digit that each image shows, from 0 to 9.
    """

    data: npt.NDArray[np.float64]
    target: npt.NDArray[np.int64]

    @property
    def images(self) -> npt.NDArray[np.float64]:
        """The same numbers as images of 8 by 8."""
        return self.data.reshape(-1, _SIDE, _SIDE)

    @property
    def feature_names(self) -> list[str]:
        """A name for each pixel, from `pixel_0_0` to `pixel_7_7`: line, then place in the line."""
        return [f"pixel_{line}_{place}" for line in range(_SIDE) for place in range(_SIDE)]

    @property
    def frame(self) -> Any:
        """A pandas DataFrame with a column for each pixel and the column `target`."""
        import pandas as pd

        return pd.DataFrame(self.data, columns=self.feature_names).assign(target=self.target)


def load_digits() -> Digits:
    """Returns all of the digits, as arrays of the caller's own."""
    with np.load(_FILE, allow_pickle=False) as found:
        return Digits(found["pixels"].astype(np.float64), found["digits"].astype(np.int64))
