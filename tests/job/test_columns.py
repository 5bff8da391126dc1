import json
import re

import pytest

from keraunos.errors import ColumnError
from keraunos.job.columns import Columns, Slot


def test_one_column_fills_the_one_unnamed_slot():
    assert Slot.all_from("pixels", "featuresCol") == (Slot(None, ("pixels",)),)


def test_a_list_of_columns_is_stacked():
    assert Slot.all_from(["a", "b"], "featuresCol") == (Slot(None, ("a", "b"), stacked=True),)


def test_a_list_of_one_column_is_stacked_too():
    assert Slot.all_from(["a"], "featuresCol") == (Slot(None, ("a",), stacked=True),)


def test_a_dict_gives_named_slots_in_its_order():
    assert Slot.all_from({"wide": ["a", "b"], "deep": "v"}, "featuresCol") == (
        Slot("wide", ("a", "b"), stacked=True),
        Slot("deep", ("v",)),
    )


@pytest.mark.parametrize("argument", ["", [], {}, 3, ["a", 3], {"x": []}, None])
def test_what_names_no_column_is_refused(argument):
    with pytest.raises(ColumnError, match=re.escape("`featuresCol` must ")) as raised:
        Slot.all_from(argument, "featuresCol")
    assert "Received: " in str(raised.value)


def test_names_are_each_column_once():
    columns = Columns(
        features=Slot.all_from({"p": ["a", "b"], "q": "b"}, "featuresCol"),
        labels=Slot.all_from("y", "labelCol"),
        weight="w",
        validation="a",
    )
    assert columns.names == ("a", "b", "y", "w")


def test_columns_round_trip_through_json():
    columns = Columns(
        features=Slot.all_from({"p": ["a", "b"], "q": "c"}, "featuresCol"),
        labels=Slot.all_from("y", "labelCol"),
        weight="w",
        validation="v",
        allow_nan=True,
    )
    assert Columns.from_json(json.loads(json.dumps(columns.to_json()))) == columns
