"""What Keras can be told of a model, under `allreduce` and `averaging`: how far a fit is from plain Keras.

    python benchmarks/keras_features.py               (on JAX; a few minutes)

Prints the table of docs/keras_features.md: the largest difference of any weight after three epochs.
"""

import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.conformance import keras_features

HEAD = "| Keras | `allreduce`, 1 worker | `allreduce`, 2 workers | `averaging`, 1 worker | `averaging`, 2 workers |"


def main():
    print(HEAD)
    print("| --- | --- | --- | --- | --- |")
    for feature in keras_features.FEATURES_OF_KERAS:
        cells = []
        for exchange in ("allreduce", "averaging"):
            for workers in (1, 2):
                found = f"{keras_features.difference(feature, workers, exchange):.0e}"
                apart = feature.alike and exchange == "allreduce" and workers == 2
                cells.append(f"{found} ¹ ({feature.alike})" if apart else found)
        print(f"| {feature.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
