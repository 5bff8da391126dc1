"""Notebooks with Spark, and the display of a training. Runs on the driver, in a notebook's kernel.

`keraunos notebook` opens JupyterLab with these features; elsewhere `%load_ext keraunos.notebook` adds them:

- `extension` defines `spark`, `sc` and `sqlContext`, and allows cells to begin with `%pyspark`;
- `live_curve` draws the metrics of a fit while it runs;
- `predictions` shows images beside their predictions.
"""

from __future__ import annotations

from typing import Any

from keraunos.notebook.predictions import show_predictions

__all__ = ["load_ipython_extension", "show_predictions", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython for `%load_ext keraunos.notebook`."""
    from keraunos.notebook import extension

    extension.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by IPython for `%unload_ext keraunos.notebook`."""
    from keraunos.notebook import extension

    extension.unload(shell)
