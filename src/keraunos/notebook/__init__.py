"""Notebooks with Spark available, and what they show of a training. Runs on the driver, in a notebook's kernel.

`keraunos notebook` opens JupyterLab with all of it; elsewhere `%load_ext keraunos.notebook` gives a notebook the same:

- `extension` gives it `spark`, `sc` and `sqlContext`, and lets it begin cells with `%pyspark`;
- `live_curve` draws the metrics of a fit while it runs;
- `predictions` shows images beside what a model says of them.
"""

from __future__ import annotations

from typing import Any

from keraunos.notebook.predictions import show_predictions

__all__ = ["load_ipython_extension", "show_predictions", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """What IPython calls for `%load_ext keraunos.notebook`."""
    from keraunos.notebook import extension

    extension.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """What IPython calls for `%unload_ext keraunos.notebook`."""
    from keraunos.notebook import extension

    extension.unload(shell)
