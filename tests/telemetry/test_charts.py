import itertools
import math
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keraunos.telemetry.charts import charts
from tests.telemetry.drawn_charts import SVG, curves_in


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60))
def test_a_curve_has_a_point_for_each_epoch_at_the_height_of_its_value(values):
    (points,) = curves_in(charts([{"loss": value} for value in values]))["loss"]
    assert len(points) == len(values)
    places, heights = zip(*points, strict=True)
    steps = [after - before for before, after in itertools.pairwise(places)]
    assert max(steps) - min(steps) < 0.21
    top, bottom = min(heights), max(heights)
    for value, height in zip(values, heights, strict=True):
        if max(values) > min(values):
            share = (value - min(values)) / (max(values) - min(values))
            assert abs(height - (bottom - share * (bottom - top))) < 0.11


def test_each_metric_has_a_chart_with_training_and_validation():
    page = charts([{"loss": 1.0, "mae": 2.0, "val_loss": 3.0}, {"loss": 0.5, "mae": 1.0, "val_loss": 2.0}])
    assert {name: len(lines) for name, lines in curves_in(page).items()} == {"loss": 2, "mae": 1}
    assert "● train 0.5000" in page
    assert "● val 2.0000" in page


def test_the_axes_have_names_and_numbers():
    page = charts([{"loss": 4.0}, {"loss": 2.0}, {"loss": 3.0}], planned=9)
    words = [text.text for text in ET.fromstring(page).iter(f"{SVG}text")]
    assert {"loss", "epoch", "1", "5", "9", "2.0000", "3.0000", "4.0000"} <= set(words)


def test_the_axis_is_made_for_the_epochs_to_come():
    ((part,),) = curves_in(charts([{"loss": 2.0}, {"loss": 1.0}], planned=5)).values()
    ((whole,),) = curves_in(charts([{"loss": 2.0}, {"loss": 1.0}])).values()
    assert part[0] == whole[0]
    assert (part[1][0] - part[0][0]) * 4 == pytest.approx(whole[1][0] - whole[0][0], abs=0.5)


def test_an_epoch_that_is_not_over_is_a_ring_at_its_end():
    page = charts([{"loss": 2.0}, {"loss": 1.0}], {"loss": 0.5}, planned=3)
    ((points,),) = curves_in(page).values()
    ring = ET.fromstring(page).find(f".//{SVG}circle")
    assert float(ring.get("cx")) > points[-1][0]
    assert float(ring.get("cy")) > points[-1][1]
    assert "● train 0.5000" in page
    assert "over 2 epochs" in page


def test_values_that_are_no_numbers_are_left_out():
    ((points,),) = curves_in(charts([{"loss": 2.0}, {"loss": math.nan}, {"loss": math.inf}, {"loss": 1.0}])).values()
    assert len(points) == 2
    assert charts([{"loss": math.nan}], {"loss": math.inf}).count("<circle") == 0


def test_of_very_many_epochs_the_ends_are_curves_in():
    values = [float(number) for number in range(5001)]
    ((points,),) = curves_in(charts([{"loss": value} for value in values])).values()
    ((few,),) = curves_in(charts([{"loss": 0.0}, {"loss": 5000.0}])).values()
    assert len(points) < 450
    assert (points[0], points[-1]) == (few[0], few[1])


def brightness(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return np.dot([0.2126, 0.7152, 0.0722], linear)


def contrast(one, other):
    """As the guidelines for readable pages count it."""
    darker, lighter = sorted([brightness(one), brightness(other)])
    return (lighter + 0.05) / (darker + 0.05)


def test_words_can_be_read_on_light_and_dark_pages():
    page = charts([{"loss": 2.0, "val_loss": 3.0}, {"loss": 1.0, "val_loss": 2.0}])
    colours = set(re.findall(r'(?:fill|stroke)="(#[^"]+)"', page))
    assert len(colours) == 3
    for colour in colours:
        assert min(contrast(colour, "#ffffff"), contrast(colour, "#000000")) > 2.5, colour
    (words,) = set(re.findall(r'<text [^>]*fill="([^"]+)"', page))
    assert min(contrast(words, "#ffffff"), contrast(words, "#000000")) > 4.5


def test_nothing_is_run():
    assert "<script" not in charts([{"<script>": 1.0}])


def test_as_images_they_are_the_same_charts():
    epochs = [{"loss": 2.0, "<b>": 1.0}, {"loss": 1.0, "<b>": 3.0}]
    images = ET.fromstring(charts(epochs, as_images=True)).findall("img")
    assert curves_in(charts(epochs, as_images=True)) == curves_in(charts(epochs))
    assert [image.get("alt") for image in images] == ["loss over the epochs", "<b> over the epochs"]


def test_without_metrics_nothing_is_curves_in():
    assert charts([]) == ""
