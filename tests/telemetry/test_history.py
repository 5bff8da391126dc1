import json
import math
import sys
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.telemetry.history import History
from tests.telemetry.drawn_charts import SVG, charts_in

EPOCHS = [
    {"loss": 0.9, "accuracy": 0.5, "val_loss": 1.0},
    {"loss": 0.4, "accuracy": 0.8, "val_loss": 0.6},
]

metric_names = st.text(st.characters(categories=("Ll", "Nd")), min_size=1, max_size=8)


def test_a_metric_is_read_like_a_mapping():
    history = History(EPOCHS)
    assert history["loss"] == [0.9, 0.4]
    assert list(history) == ["loss", "accuracy", "val_loss"]
    assert "val_accuracy" not in history
    assert dict(history)["accuracy"] == [0.5, 0.8]
    with pytest.raises(KeyError):
        history["auc"]


def test_an_epoch_without_the_metric_is_nan():
    history = History([{"loss": 1.0}, {"loss": 0.5, "val_loss": 0.7}])
    assert math.isnan(history["val_loss"][0])
    assert history["val_loss"][1] == 0.7


def test_it_is_frozen_and_keeps_its_own_copy():
    epochs = [{"loss": 1.0}]
    history = History(epochs)
    epochs[0]["loss"] = 2.0
    assert history["loss"] == [1.0]
    with pytest.raises(FrozenInstanceError):
        history.epochs = ()


@given(st.lists(st.dictionaries(metric_names, st.floats(allow_nan=False), max_size=4), max_size=5))
def test_json_round_trip(epochs):
    history = History(epochs)
    text = json.dumps(history.to_json(), allow_nan=False)
    assert History.from_json(json.loads(text)) == history


def test_nan_survives_strict_json():
    text = json.dumps(History([{"loss": math.nan}]).to_json(), allow_nan=False)
    assert math.isnan(History.from_json(json.loads(text))["loss"][0])


def test_pandas_has_a_row_an_epoch():
    frame = History(EPOCHS).to_pandas()
    assert list(frame.index) == [1, 2]
    assert frame.index.name == "epoch"
    assert frame["val_loss"].tolist() == [1.0, 0.6]


def test_repr_is_an_aligned_table():
    assert repr(History(EPOCHS)).splitlines() == [
        "History of 2 epochs",
        "epoch    loss  accuracy  val_loss",
        "    1  0.9000    0.5000    1.0000",
        "    2  0.4000    0.8000    0.6000",
    ]


def test_a_long_history_prints_its_ends():
    lines = repr(History([{"loss": float(n)} for n in range(100)])).splitlines()
    assert len(lines) == 13
    assert lines[-1].split() == ["100", "99.0000"]


def test_html_draws_a_chart_a_metric_with_a_line_each_for_train_and_validation():
    charts = charts_in(History(EPOCHS)._repr_html_())
    assert [chart.findtext(f"{SVG}title") for chart in charts] == ["loss over 2 epochs", "accuracy over 2 epochs"]
    assert [len(chart.findall(f"{SVG}polyline")) for chart in charts] == [2, 1]


def test_html_survives_odd_values_and_names():
    odd = History([{"<b>": math.nan}, {"<b>": math.inf}])
    (chart,) = charts_in(odd._repr_html_())
    assert "<b>" in "".join(chart.itertext())
    assert History()._repr_html_() == "History of 0 epochs"


def test_plot_without_matplotlib_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"matplotlib, which is not installed.*pip install 'keraunos\[notebook\]'"):
        History(EPOCHS).plot()


def test_why_it_ended_early_is_told_and_kept():
    plain, ended = History(EPOCHS), History(EPOCHS, ended="The loss was not finite.", skipped_rows=32, lost_rows=7)
    assert plain.ended is None
    assert set(plain.to_json()) == {"epochs"}
    assert History.from_json(json.loads(json.dumps(ended.to_json()))) == ended
    assert repr(ended).startswith("History of 2 epochs, 32 rows skipped, 7 rows lost, ended early: The loss")
