"""Data sources are accepted and said to change nothing."""

import pytest

import keraunos.compat.paddle.trainer_config_helpers as tch


@pytest.mark.parametrize("function", ["define_py_data_sources", "define_py_data_sources2"])
def test_a_source_is_accepted_with_a_note(function, caplog):
    with caplog.at_level("INFO"):
        getattr(tch, function)("train.list", "test.list", module="no_such_module", obj="process", args={"a": 1})
    assert "DataFrame" in caplog.text
    assert "no_such_module" in caplog.text
