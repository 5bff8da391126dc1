"""Paddle's binary parameter files: bytes, folders, and what is wrong with some."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from keraunos.compat.paddle import parameter_files as files
from keraunos.errors import ModelError

floats = st.floats(width=32, allow_nan=True)
PARAMETERS = {"_fc.w0": np.arange(6, dtype=np.float32).reshape(2, 3), "_fc.wbias": np.zeros(3, np.float32)}


def test_a_file_is_a_header_and_numbers():
    content = files.to_bytes(np.array([[1.0, -2.0]], np.float32))
    assert content == struct.pack("<iIQff", 0, 4, 2, 1.0, -2.0)


@given(arrays.arrays(np.float32, arrays.array_shapes(max_dims=3, min_side=0), elements=floats))
def test_numbers_come_back_bit_for_bit(values):
    back = files.from_bytes(files.to_bytes(values), name="w", size=values.size)
    assert back.tobytes() == values.tobytes()


def test_a_folder_of_a_pass_gives_shapes_and_types_back(tmp_path):
    folder = f"{tmp_path}/output/pass-00007"
    files.save_parameters(folder, {name: values + 1 for name, values in PARAMETERS.items()})
    files.save_parameters(folder, PARAMETERS)
    assert sorted(path.name for path in (tmp_path / "output" / "pass-00007").iterdir()) == ["_fc.w0", "_fc.wbias"]
    like = {name: np.zeros(values.shape, np.float64) for name, values in PARAMETERS.items()}
    loaded = files.load_parameters(folder, like)
    for name, values in PARAMETERS.items():
        assert (loaded[name].shape, loaded[name].dtype) == (values.shape, np.float64)
        np.testing.assert_array_equal(loaded[name], values)


@pytest.mark.spark
def test_a_folder_on_hadoops_file_systems(spark, mounted, tmp_path):
    for folder in (f"file:{tmp_path}/pass-00000", f"file://{tmp_path}/pass-00001", f"{mounted}/pass-00002"):
        for session in (spark, None):
            files.save_parameters(folder, PARAMETERS, spark=session)
            files.save_parameters(folder, PARAMETERS, spark=session)
            loaded = files.load_parameters(folder, PARAMETERS, spark=session)
            np.testing.assert_array_equal(loaded["_fc.w0"], PARAMETERS["_fc.w0"])
            assert (tmp_path / folder.rpartition("/")[2] / "_fc.w0").is_file()


WHOLE = files.to_bytes(np.ones(3))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "header of 16 bytes"),
        (WHOLE[:10], "header of 16 bytes.*10 bytes"),
        (WHOLE[:-1], "3 numbers in 12 bytes.*11 bytes"),
        (WHOLE + b"x", "3 numbers in 12 bytes.*13 bytes"),
        (struct.pack("<iIQ", 2, 4, 0), "version 0.*version 2"),
        (struct.pack("<iIQd", 0, 8, 1, 1.0), "4 bytes.*8 bytes"),
        (files.to_bytes(np.ones(4)), "3 numbers.*4.*another configuration"),
    ],
)
def test_a_wrong_file_is_said_to_be_wrong_by_its_name(content, says):
    with pytest.raises(ModelError, match=f"'_fc.wbias'.*{says}"):
        files.from_bytes(content, name="_fc.wbias", size=3)


def test_a_missing_parameter_is_named(tmp_path):
    files.save_parameters(str(tmp_path), {"_fc.w0": PARAMETERS["_fc.w0"]})
    with pytest.raises(ModelError, match="'_fc.wbias'"):
        files.load_parameters(str(tmp_path), PARAMETERS)


def test_a_name_leaves_no_folder():
    with pytest.raises(ModelError, match="'../w'"):
        files.save_parameters("anywhere", {"../w": np.ones(1)})
