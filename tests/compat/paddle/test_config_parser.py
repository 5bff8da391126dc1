import functools
import logging
import sys
import threading
from pathlib import Path

import pytest

from keraunos.compat.paddle import config_parser
from keraunos.compat.paddle.config_parser import (
    Bias,
    Conv,
    DataLayer,
    Evaluator,
    FCLayer,
    FullMatrixProjection,
    Generator,
    Import,
    Input,
    Inputs,
    Layer,
    Memory,
    MixedLayer,
    Outputs,
    Parameter,
    Pool,
    RecurrentLayerGroupBegin,
    Settings,
    TrainData,
    cluster_config,
    default_decay_rate,
    default_initial_mean,
    default_initial_smart,
    default_initial_std,
    default_momentum,
    get_config_arg,
    model_type,
    parse_config,
)
from keraunos.compat.paddle.model_config import TrainerConfig
from keraunos.errors import ModelError


def document():
    """The document's configuration, word by word."""
    Settings(
        algorithm="sgd",
        learning_method="momentum",
        batch_size=32,
        learning_rate=1,
        learning_rate_decay_a=0.5,
        learning_rate_decay_b=1500000 * 10,
        learning_rate_schedule="discexp",
        num_batches_per_send_parameter=1,
    )
    Inputs("label", "image")
    Outputs("cost")
    lr = 0.01 / 128.0
    dr = 0.0005 * 128.0
    Layer(name="image", type="data", size=150528)
    Layer(
        name="conv",
        type="exconv",
        active_type="relu",
        bias=Bias(learning_rate=lr * 2, momentum=0.9, initial_mean=0, initial_std=0.0),
        inputs=Input(
            "image",
            learning_rate=lr,
            momentum=0.9,
            decay_rate=dr,
            initial_mean=0.0,
            initial_std=0.059,
            conv=Conv(filter_size=7, channels=3, padding=0, stride=2, groups=1),
        ),
        num_filters=16,
        partial_sum=110 * 110,
        shared_biases=True,
    )
    Layer(
        name="pool",
        type="pool",
        inputs=Input("conv", pool=Pool(pool_type="max-projection", channels=16, size_x=32, start=0, stride=8)),
    )
    for name, source, size, std in (("fc", "pool", 16, 0.01), ("output", "fc", 1000, 0.001)):
        Layer(
            name=name,
            type="fc",
            active_type="relu" if name == "fc" else "softmax",
            bias=Bias(learning_rate=lr * 2, momentum=0.9, initial_mean=0, initial_std=0),
            inputs=[
                Input(source, learning_rate=lr, momentum=0.9, decay_rate=dr, initial_mean=0.0, initial_std=std),
            ],
            size=size,
        )
    Layer(name="label", type="data", size=1)
    Layer(name="cost", type="multi-class-cross-entropy", inputs=["output", "label"])


def parsed(*steps, args="", settings=None, outputs=("out",)):
    """A configuration of these steps; `x` (4 wide) and `label` (1 wide) are there already."""

    def config():
        Settings(batch_size=8, **(settings or {}))
        Layer(name="x", type="data", size=4)
        Layer(name="label", type="data", size=1)
        for step in steps:
            step()
        Outputs(*outputs)

    return parse_config(config, args)


def fc(name="out", source="x", size=3, **keywords):
    return lambda: Layer(name=name, type="fc", size=size, inputs=source, **keywords)


def test_the_document_has_the_sizes_that_paddle_works_out(caplog):
    with caplog.at_level(logging.INFO):
        config = parse_config(document, "")
    model = config.model_config
    assert {layer.name: layer.size for layer in model.layers} == {
        "image": 3 * 224 * 224,
        "conv": 16 * 109 * 109,
        "pool": 16 * 11 * 11,
        "fc": 16,
        "output": 1000,
        "label": 1,
        "cost": 1,
    }
    assert sum(parameter.size for parameter in model.parameters) == 50_360
    assert [parameter.name for parameter in model.parameters] == [
        "_conv.w0", "_conv.wbias", "_fc.w0", "_fc.wbias", "_output.w0", "_output.wbias",
    ]  # fmt: skip
    weight, bias = model.parameter("_conv.w0"), model.parameter("_conv.wbias")
    assert (weight.size, weight.dims, bias.dims) == (2352, (), (16, 1))
    assert weight.learning_rate == 7.8125e-5
    assert bias.learning_rate == 1.5625e-4
    assert (weight.momentum, weight.decay_rate, bias.decay_rate) == (0.9, 0.064, 0.0)
    assert model.input_layer_names == ("label", "image")
    assert model.output_layer_names == ("cost",)
    assert config.opt_config.learning_rate_schedule == "discexp"
    assert "`partial_sum` of a convolution changes nothing" in caplog.text


def test_a_configuration_survives_its_text():
    config = parse_config(document, "a=1")
    assert TrainerConfig.from_json(config.to_json()) == config


def test_defaults_of_parameters_are_paddles():
    weight, bias = parsed(fc()).model_config.parameters
    assert (weight.name, weight.dims, bias.name, bias.dims) == ("_out.w0", (4, 3), "_out.wbias", (1, 3))
    for each in (weight, bias):
        assert (each.learning_rate, each.momentum, each.decay_rate) == (1.0, 0.0, 0.0)
        assert (each.initial_mean, each.initial_std, each.initial_strategy) == (0.0, 0.01, 0)


def test_defaults_of_settings_are_paddles():
    settings = parsed(fc()).opt_config
    assert (settings.algorithm, settings.learning_method, settings.learning_rate) == ("async_sgd", "momentum", 1.0)
    assert (settings.learning_rate_schedule, settings.num_batches_per_send_parameter) == ("poly", 1)


def test_default_functions_hold_for_later_parameters_only():
    steps = (
        fc("first"),
        lambda: default_initial_std(0.5),
        lambda: default_momentum(0.9),
        lambda: default_decay_rate(0.1),
        lambda: default_initial_mean(0.25),
        fc("out", source=Input("first", initial_std=2.0)),
    )
    model = parsed(*steps).model_config
    first, weight, bias = (model.parameter(name) for name in ("_first.w0", "_out.w0", "_out.wbias"))
    assert (first.initial_std, first.momentum, first.decay_rate) == (0.01, 0.0, 0.0)
    assert (weight.initial_std, weight.momentum, weight.decay_rate, weight.initial_mean) == (2.0, 0.9, 0.1, 0.25)
    assert (bias.initial_std, bias.momentum) == (0.5, 0.9)


def test_a_smart_start_is_one_over_the_root_of_the_rows():
    model = parsed(lambda: default_initial_smart(True), fc(size=9, bias=False)).model_config
    assert model.parameters[0].initial_std == 0.5
    assert model.parameters[0].initial_smart


def test_nothing_is_left_of_one_configuration_in_the_next():
    def broken():
        Settings(batch_size=8, learning_method="adam")
        default_momentum(0.9)
        Layer(name="x", type="data", size=4)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        parse_config(broken)
    config = parsed(fc())
    assert config.opt_config.learning_method == "momentum"
    assert config.model_config.parameters[0].momentum == 0.0


def test_functions_outside_of_a_configuration_say_so():
    for function, arguments in ((Settings, {"batch_size": 1}), (Layer, {"name": "x", "type": "data", "size": 1})):
        with pytest.raises(
            ModelError, match=f"`{function.__name__}` was called while no configuration is being parsed"
        ):
            function(**arguments)


def test_names_are_lent_to_a_function_and_taken_back():
    namespace = {"Layer": "a name of the program's own"}
    exec(
        "def config():\n"
        "    Settings(batch_size=2)\n"
        "    DataLayer(name='x', size=2)\n"
        "    Layer(name='out', type='fc', size=1, inputs='x')\n"
        "    Outputs('out')\n"
        "def broken():\n"
        "    raise RuntimeError(Layer)\n",
        namespace,
    )
    before = set(namespace)
    assert parse_config(namespace["config"]).model_config.layer("out").size == 1
    with pytest.raises(RuntimeError, match="function Layer"):
        parse_config(namespace["broken"])
    assert set(namespace) == before
    assert namespace["Layer"] == "a name of the program's own"


def test_names_are_lent_to_whatever_can_be_called():
    namespace = {}
    exec(
        "def config(width=2):\n"
        "    Settings(batch_size=2)\n"
        "    DataLayer(name='x', size=width)\n"
        "    Outputs('x')\n"
        "class Network:\n"
        "    def __call__(self):\n"
        "        config(3)\n"
        "    def deep(self):\n"
        "        config(4)\n",
        namespace,
    )
    network = namespace["Network"]()
    for source, width in ((functools.partial(namespace["config"], 5), 5), (network, 3), (network.deep, 4)):
        assert parse_config(source).model_config.layer("x").size == width


def test_threads_parse_side_by_side():
    found = {}

    def parse(width):
        for _ in range(20):
            config = parse_config(sized, f"width={width}")
            found.setdefault(width, set()).add(config.model_config.layer("out").size)

    def sized():
        Settings(batch_size=1)
        Layer(name="x", type="data", size=2)
        Layer(name="out", type="fc", inputs="x", size=get_config_arg("width", int, 0))
        Outputs("out")

    threads = [threading.Thread(target=parse, args=(width,)) for width in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {width: {width} for width in range(1, 5)}


def test_a_configuration_within_a_configuration():
    def outer():
        Settings(batch_size=1)
        Layer(name="x", type="data", size=2)
        inner = parsed(fc(size=7))
        Layer(name="out", type="fc", inputs="x", size=inner.model_config.layer("out").size)
        Outputs("out")

    assert parse_config(outer).model_config.parameter("_out.w0").dims == (2, 7)


def test_a_file_finds_the_language_its_arguments_and_its_neighbours(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "head.py").write_text("Layer(name='out', type='fc', inputs='x', size=width)\n")
    (tmp_path / "config.py").write_text(
        "from config_parser import *\n"
        "from paddle.trainer.config_parser import parse_config as theirs\n"
        "Settings(batch_size=get_config_arg('batch', int, 16))\n"
        "Layer(name='x', type='data', size=4)\n"
        "Import('parts/head.py', {'width': 5})\n"
        "Outputs('out')\n"
    )
    modules = set(sys.modules)
    config = parse_config(tmp_path / "config.py", "batch=4,deep=True")
    assert config.opt_config.batch_size == 4
    assert config.model_config.parameter("_out.w0").dims == (4, 5)
    assert config.config_args == {"batch": "4", "deep": "True"}
    assert not {"paddle", "config_parser"} & (set(sys.modules) - modules)
    assert parse_config(str(tmp_path / "config.py")).opt_config.batch_size == 16


def test_config_args_have_types():
    seen = []

    def config():
        seen.extend(
            [
                get_config_arg("n", int, 3),
                get_config_arg("rate", float, 0.5),
                get_config_arg("deep", bool, False),
                get_config_arg("flat", bool, True),
                get_config_arg("name", str, "none"),
                get_config_arg("missing", int),
            ]
        )
        document()

    parse_config(config, "n=7,rate=0.25,deep=true,flat=0")
    assert seen == [7, 0.25, True, False, "none", None]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("n", "Config args must be written as 'k=v,k2=v2'. Received: 'n'"),
        ("n=seven", "config arg `n` must be of type int. Received: 'seven'"),
        ("yes=perhaps", "config arg `yes` must be one of True, 1, true"),
        ("extension_module_name=mine", "Extension modules of Paddle's parser are not loaded here"),
    ],
)
def test_wrong_config_args(args, message):
    with pytest.raises(ModelError, match=message):
        parsed(fc(), lambda: (get_config_arg("n", int, 1), get_config_arg("yes", bool, True)), args=args)


def test_shared_parameters_are_one_and_the_first_word_counts():
    model = parsed(
        fc("a", Input("x", parameter_name="w", initial_std=0.5), size=4, bias=False),
        fc("b", Input("a", parameter_name="w", initial_std=9.0), size=4, bias=Bias(parameter_name="shared")),
        fc("out", Input("b", parameter_name="w"), size=4, bias=Bias(parameter_name="shared")),
    ).model_config
    assert [each.name for each in model.parameters] == ["w", "shared"]
    assert model.parameter("w").initial_std == 0.5


def test_a_parameter_defined_beforehand():
    model = parsed(
        lambda: Parameter("w", 12, (4, 3), initial_std=0.25), fc("out", Input("x", parameter_name="w"), bias=False)
    ).model_config
    assert model.parameters[0].initial_std == 0.25


def test_classes_of_layers_define_them_too():
    model = parsed(
        lambda: DataLayer("more", 6),
        lambda: FCLayer("hidden", ["x", "more"], 3, active_type="tanh"),
        lambda: MixedLayer(name="out", inputs=[FullMatrixProjection("hidden")], size=2, bias=False),
    ).model_config
    assert [parameter.size for parameter in model.parameters] == [12, 18, 3, 6]
    assert model.layer("hidden").active_type == "tanh"


def test_what_changes_nothing_is_noted(caplog):
    with caplog.at_level(logging.INFO):
        config = parsed(
            fc(device=1),
            lambda: TrainData("anything"),
            lambda: cluster_config(fs_name="x"),
            lambda: model_type("recurrent_nn"),
            settings={"mini_batch_size": 16},
        )
    for words in (
        "`device` changes nothing",
        "rows come from the DataFrame",
        "setCluster",
        "`mini_batch_size` changes",
    ):
        assert words in caplog.text
    assert config.model_config.type == "recurrent_nn"


def test_evaluators_are_kept_with_defaults():
    config = parsed(
        fc(active_type="softmax"), lambda: Evaluator("error", "classification_error", ["out", "label"], top_k=3)
    )
    evaluator = config.model_config.evaluators[0]
    assert evaluator.input_layers == ("out", "label")
    assert evaluator.attributes["top_k"] == 3
    assert evaluator.attributes["classification_threshold"] == 0.5


def test_without_inputs_the_data_layers_are_the_inputs():
    assert parsed(fc()).model_config.input_layer_names == ("x", "label")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rat": 1}, "knows no setting 'learning_rat'.*Did you mean 'learning_rate'"),
        ({"algorithm": "owlqn"}, "'owlqn' is not run here.*nearest is algorithm='sgd'"),
        ({"owlqn_steps": 3}, "`owlqn_steps` belongs to the algorithm 'owlqn'"),
        ({"l1weight": 0.1}, "`decay_rate_l1`"),
        ({"algorithm": "sdg"}, "Did you mean 'sgd'"),
        ({"learning_method": "adams"}, "`learning_method` must be one of.*'adam'"),
        ({"learning_rate_schedule": "step"}, "`learning_rate_schedule` must be one of"),
        ({"learning_rate_schedule": "manual", "learning_rate_args": "5:x"}, "'n1:r1,n2:r2,…'"),
        ({"learning_rate_schedule": "manual", "learning_rate_args": "5:1,3:.5"}, "ascending"),
        ({"learning_rate": "fast"}, "`learning_rate` must be a number. Received: learning_rate='fast'"),
        ({"num_batches_per_send_parameter": 0}, "whole number of at least 1"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ModelError, match=message):
        parsed(fc(), settings=settings)


def test_a_batch_size_is_needed():
    def config():
        Settings(algorithm="sgd")
        Layer(name="x", type="data", size=4)
        Outputs("x")

    with pytest.raises(ModelError, match="sets no `batch_size`"):
        parse_config(config)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([fc(source="y")], "Layer 'out' .fc.: inputs must be defined before; .* no layer 'y'"),
        ([fc("hidden"), fc(source="hiden")], "Did you mean 'hidden'"),
        ([fc("x")], "Layer 'x' .fc.: names of layers must be unique.*type 'data'"),
        ([fc("a@b")], "Layer 'a@b' .fc.: '@' may not be in the name"),
        ([fc("")], "must be a string that is not empty"),
        ([lambda: Layer(name="out", type="fcc", size=1, inputs="x")],
         "Layer 'out'.*layer type 'fcc'.*Did you mean 'fc'"),
        ([lambda: Layer(name="out", type="gru_step", inputs="x")], "'gru_step'.*'gated_recurrent'"),
        ([lambda: Layer(name="out", type="agent", inputs="x")], "recurrent groups.*'lstmemory'"),
        ([lambda: Layer(name="out", type="classification_error", inputs="x")], "it is an evaluator"),
        ([lambda: Layer(name="out")], "must say its name and its type"),
        ([fc(activ_type="relu")], "Layer 'out': type 'fc' knows no attribute 'activ_type'.*'active_type'"),
        ([fc(coeff=2.0)], "type 'fc' knows no attribute 'coeff'"),
        ([fc(active_type="rellu")], "`active_type` must be one of"),
        ([fc(drop_rate=1.0)], "`drop_rate` must be at least 0 and less than 1"),
        ([fc(drop_rate=0.5, active_type="softmax")], "dropout cannot stand behind a softmax"),
        ([fc(size=0)], "Layer 'out' .fc.: it must say its size"),
        ([fc(size=2.5)], "`size` must be a whole number"),
        ([fc(source=[])], "take 1 or more inputs. Received: 0 inputs"),
        ([fc(source=3)], "an input must be the name of a layer"),
        ([fc(bias="no")], "`bias` must be True, False or a Bias"),
        ([fc(source=Input("x", conv=Conv(1, 1, 0, 1, 1)))], "inputs of this type do not say `conv`"),
        ([fc(source=Input("x", momentum=0.9, decay_rate_l1=0.1))], "'_out.w0': `momentum` and `decay_rate_l1` exclude"),
        ([fc(source=Input("x", momentum=0.9, num_batches_regularization=2))], "needs a momentum of 0"),
        ([fc(source=Input("x", is_static=True, sparse_remote_update=True))],
         "a static parameter has no sparse updates"),
        ([fc(source=Input("x", initial_strategy=2))], "`initial_strategy` must be 0"),
        ([fc(source=Input("x", learning_rate="much"))], "`learning_rate` must be a number"),
        ([fc(source=Input("x", format="csr"))], "`format` of an input cannot be had.*`sparse_update=True`"),
        ([fc(source=Input("x", update_hooks="pruning"))], "`update_hooks` of an input cannot be had.*`is_static=True`"),
        (
            [fc("a", Input("x", parameter_name="w")), fc("out", Input("x", parameter_name="w"), size=5)],
            "Layer 'out', parameter 'w': a shared parameter must have the same size.*size 20, dims .4, 5.",
        ),
        (
            [fc("a", Input("x", parameter_name="w"), size=8), fc("out", Input("a", parameter_name="w"), size=4)],
            "dims .8, 4., where size 32, dims .4, 8. were defined",
        ),
        ([lambda: Memory("x", 3)], "`Memory` cannot be had here.*'lstmemory'"),
        ([lambda: Generator(max_num_frames=3)], "`Generator` cannot be had here"),
        ([lambda: RecurrentLayerGroupBegin("g")], "`RecurrentLayerGroupBegin` cannot be had here"),
        ([lambda: Import("nowhere.py")], "no configuration file 'nowhere.py'"),
        ([lambda: Evaluator("e", "accuracy", "x")], "Evaluator 'e': `type` must be one of"),
        ([fc(), lambda: Evaluator("e", "sum", "nothing")], "Evaluator 'e': there is no layer 'nothing'"),
        ([fc(), lambda: Evaluator("e", "sum", "out", threshold=1)], "knows no attribute 'threshold'"),
        ([fc(), lambda: Inputs("x", "lable")], "Inputs: there is no layer 'lable'.*Did you mean 'label'"),
        ([fc(), lambda: Inputs("x", "out")], "Inputs: 'out' is of type 'fc'. Expected a layer of type 'data'"),
        ([fc(), lambda: Inputs("label")], "the data layer 'x' is not named"),
        ([fc("other")], "Outputs: there is no layer 'out'"),
        ([lambda: model_type("multi_nn")], "`model_type` must be one of"),
        ([lambda: default_momentum("0.9")], "`default_momentum` takes a number"),
        ([lambda: DataLayer("y", 1, 1, 1, 1)], "`DataLayer` takes name, size, height, width by place"),
        ([lambda: DataLayer("y", name="z")], "`DataLayer` was given `name` twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_layer_and_its_rule(steps, message):
    with pytest.raises(ModelError, match=message):
        parsed(*steps)


def test_a_wrong_keyword_of_an_input_names_the_nearest():
    with pytest.raises(ModelError, match="`Input` knows no argument 'inital_std'.*Did you mean 'initial_std'"):
        Input("x", inital_std=1.0)


def test_outputs_are_needed():
    def config():
        Settings(batch_size=1)
        Layer(name="x", type="data", size=4)

    with pytest.raises(ModelError, match="names no outputs.*'x'"):
        parse_config(config)


def test_a_configuration_is_a_function_or_a_file():
    with pytest.raises(ModelError, match="must be a function without arguments or the path of a file. Received: 3"):
        parse_config(3)
    with pytest.raises(ModelError, match="no configuration file 'none.py'"):
        parse_config(Path("none.py"))


def test_star_import_gives_the_language_and_the_estimator():
    names = {}
    exec("from keraunos.compat.paddle.config_parser import *", names)
    assert {"Layer", "Settings", "FCLayer", "LstmLayer", "Paddle", "parse_config", "get_config_arg"} <= set(names)
    assert all(name in names for name in config_parser.__all__)


def test_a_configuration_for_python_2_is_translated_with_the_modules_that_it_imports(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "sizes_of_old.py").write_text("print 'sizes'\nwidth = 9 / 2\n")
    (tmp_path / "config.py").write_text(
        "from sizes_of_old import width\n"
        "args = {'size': width}\n"
        "print 'configuring', args\n"
        "Settings(algorithm='sgd', batch_size=33 / 2, learning_rate=1 / 10.0)\n"
        "for (name, type), size in zip([('x', 'data')], range(3, 4)):\n"
        "    Layer(name=name, type=type, size=size)\n"
        "Layer(name='out', type='fc', inputs='x', **args)\n"
        "Outputs('out')\n"
    )
    finders = list(sys.meta_path)
    config = parse_config(tmp_path / "config.py")
    sys.modules.pop("sizes_of_old")
    assert (config.opt_config.batch_size, config.opt_config.learning_rate) == (16, 0.1)
    assert [layer.size for layer in config.model_config.layers] == [3, 4]
    assert sys.meta_path == finders
