import itertools
from xml.etree import ElementTree as ET

import pytest

from keraunos.notebook.live_curve import LiveCurve
from tests.telemetry.drawn_charts import SVG, charts_in, curves_in


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def page_of(output):
    return ET.fromstring(output["data"]["text/html"])


def status_of(output):
    return page_of(output).findtext("div")


def test_one_display_is_replaced_while_the_fit_goes_on(shown):
    with LiveCurve(None, 3, Clock()) as curve:
        assert status_of(shown[-1]) == "epoch 1/3 · starting"
        curve.expect(300, 3)
        curve.update(50, 0, {"loss": 2.0})
        curve.update(100, 0, {"loss": 1.5})
        curve.epoch_end(0, {"loss": 1.5, "val_loss": 1.7})
        curve.update(200, 1, {"loss": 1.0})
        curve.epoch_end(1, {"loss": 1.0, "val_loss": 1.2})
        assert status_of(shown[-1]).startswith("epoch 3/3 · 67% · ")
        assert " left" in status_of(shown[-1])
        assert len(page_of(shown[-1]).findall(f".//{SVG}polyline")) == 2
    assert len({output["transient"]["display_id"] for output in shown}) == 1
    assert [output["update"] for output in shown] == [False] + [True] * (len(shown) - 1)


def test_the_curves_have_the_points_of_the_history(shown):
    losses = [2.0, 1.0, 0.5, 0.25]
    with LiveCurve(400, 4, Clock()) as curve:
        for epoch, loss in enumerate(losses):
            curve.update(100 * (epoch + 1), epoch, {"loss": loss})
            curve.epoch_end(epoch, {"loss": loss})
    ((points,),) = curves_in(shown[-1]["data"]["text/html"]).values()
    heights = [height for _, height in points]
    drops = [after - before for before, after in itertools.pairwise(heights)]
    assert drops == pytest.approx([drops[0], drops[0] / 2, drops[0] / 4], abs=0.2)
    assert status_of(shown[-1]).startswith("done · 4 epochs · ")
    assert "History of 4 epochs" in shown[-1]["data"]["text/plain"]


def test_what_is_left_is_shown_also_where_no_svg_is_let_in(shown):
    with LiveCurve(100, 1, Clock()) as curve:
        curve.epoch_end(0, {"loss": 3.0})
        assert "<svg" in shown[-1]["data"]["text/html"]
    assert "<svg" not in shown[-1]["data"]["text/html"]
    assert "<img" in shown[-1]["data"]["text/html"]


def test_an_epoch_is_seen_before_it_is_over(shown):
    with LiveCurve(100, 1, Clock()) as curve:
        curve.update(10, 0, {"loss": 3.0})
        assert page_of(shown[-1]).find(f".//{SVG}circle").get("fill") == "none"
        assert "● train 3.0000" in shown[-1]["data"]["text/html"]


def test_a_fit_that_ends_early_has_an_axis_of_the_epochs_it_had(shown):
    with LiveCurve(1000, 100, Clock()) as curve:
        curve.epoch_end(0, {"loss": 2.0})
        curve.epoch_end(1, {"loss": 1.0})
    (chart,) = charts_in(shown[-1]["data"]["text/html"])
    words = {text.text for text in chart.iter(f"{SVG}text")}
    assert "2" in words
    assert "100" not in words


@pytest.mark.parametrize(("error", "word"), [(KeyboardInterrupt, "interrupted"), (RuntimeError, "failed")])
def test_a_fit_that_breaks_says_so(shown, error, word):
    curve = LiveCurve(1000, 9, Clock())
    curve.epoch_end(0, {"loss": 2.0})
    with pytest.raises(error), curve:
        raise error
    assert status_of(shown[-1]).startswith(f"{word} · 1 of 9 epochs · ")


def test_notes_are_shown_as_they_are(shown):
    with LiveCurve(None, 1, Clock()) as curve:
        curve.note("2 < 3 workers")
    assert "2 &lt; 3 workers" in shown[-1]["data"]["text/html"]


def test_a_page_is_not_flooded(shown):
    with LiveCurve(None, 10_000, lambda: 0.0) as curve:
        for epoch in range(1000):
            curve.epoch_end(epoch, {"loss": 1.0})
        assert len(shown) == 1
    assert len(shown) == 2
    (chart,) = charts_in(shown[-1]["data"]["text/html"])
    assert chart.findtext(f"{SVG}title") == "loss over 1000 epochs"
