import subprocess
import sys

import pytest

from keraunos.cli.main import main
from keraunos.compat.paddle.config_parser import Conv, Image, Input, Layer, Outputs, Settings, parse_config
from keraunos.compat.paddle.summary import summary

CONFIG = """
from paddle.trainer.config_parser import *
Settings(batch_size=32, algorithm='sgd', learning_rate=0.1)
Inputs('image', 'label')
Layer(name='image', type='data', size=3 * 32 * 32)
Layer(name='conv', type='exconv', active_type='relu', num_filters=8, shared_biases=True,
      inputs=Input('image', conv=Conv(filter_size=5, channels=3, padding=2, stride=1, groups=1)))
Layer(name='norm', type='batch_norm', inputs=Input('conv', image=Image(channels=8)))
Layer(name='pool', type='pool',
      inputs=Input('norm', pool=Pool(pool_type='max-projection', channels=8, size_x=2, stride=2)))
Layer(name='a', type='fc', size=get_config_arg('width', int, 10), inputs=Input('pool', parameter_name='w'), bias=False)
Layer(name='b', type='fc', size=get_config_arg('width', int, 10), inputs=Input('pool', parameter_name='w'), bias=False)
Layer(name='out', type='fc', size=4, active_type='softmax', inputs=['a', 'b'])
Layer(name='label', type='data', size=4)
Layer(name='cost', type='multi-class-cross-entropy', inputs=['out', 'label'])
Outputs('cost')
"""


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "config.py"
    path.write_text(CONFIG)
    return path


def line_of(text, name):
    return next(line.split() for line in text.splitlines() if line.startswith(f"{name} "))


def test_layers_sizes_and_totals(config_file):
    text = summary(parse_config(config_file))
    assert line_of(text, "conv")[:7] == ["conv", "exconv,", "relu", "8", "x", "32", "x"]
    assert line_of(text, "conv")[-3:] == ["w0,", "wbias", f"{8 * 75 + 8}"]
    assert line_of(text, "pool") == ["pool", "pool", "8", "x", "16", "x", "16", "2,048", "norm", "0"]
    assert line_of(text, "norm")[-1] == "32"
    assert line_of(text, "a")[-2:] == ["w", "20,480"]
    assert line_of(text, "b")[-3:] == ["w", "(shared)", "20,480"]
    assert line_of(text, "out")[-1] == "84"
    total = 8 * 75 + 8 + 32 + 20480 + 84
    assert f"Weights:    {total:,}, of which {total - 16:,} are trained" in text
    assert "Inputs:     image, label" in text
    assert "Outputs:    cost" in text
    assert "Training:   sgd, momentum, batches of 32, learning rate 0.1 (poly)" in text


def test_the_image_of_a_transposed_convolution_is_what_it_gives():
    def config():
        Settings(batch_size=1)
        Layer(name="x", type="data", size=18)
        conv = Conv(filter_size=3, channels=2, padding=0, stride=2, groups=1)
        Layer(name="up", type="exconvt", num_filters=4, inputs=Input("x", conv=conv), bias=False)
        Layer(name="flat", type="batch_norm", inputs=Input("x", image=Image(channels=18)))
        Outputs("up", "flat")

    text = summary(parse_config(config))
    assert line_of(text, "up")[2:8] == ["4", "x", "7", "x", "7", "196"]
    assert line_of(text, "flat")[2] == "18"


def test_the_command_prints_it(config_file, capsys):
    assert main(["paddle", "summary", str(config_file), "--config-args", "width=3"]) == 0
    assert line_of(capsys.readouterr().out, "a")[-1] == f"{2048 * 3:,}"


def test_the_command_says_what_is_wrong_and_ends_with_2(tmp_path, capsys):
    path = tmp_path / "config.py"
    path.write_text("Settings(batch_size=1, momentum=1)")
    assert main(["paddle", "summary", str(path)]) == 2
    assert "`Settings` knows no setting 'momentum'" in capsys.readouterr().err


def test_the_command_loads_no_framework(config_file):
    program = (
        "import sys; from keraunos.cli.main import main; main(['paddle', 'summary', sys.argv[1]]);"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'keras', 'jax', 'tensorflow', 'pyspark'}))"
    )
    done = subprocess.run([sys.executable, "-c", program, config_file], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
