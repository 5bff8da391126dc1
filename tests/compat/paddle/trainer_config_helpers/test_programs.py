"""Programs of the kind that the vocabulary was written for, from their text to what they describe."""

from keraunos.compat.paddle.config_parser import parse_config
from keraunos.compat.paddle.model_config import TrainerConfig
from tests.compat.paddle.trainer_config_helpers.comparison import parameter_count

STACKED_LSTM = """
from paddle.trainer_config_helpers import *

words, classes, embedding, hidden, stacked = 50, 2, 6, 8, 3
settings(
    batch_size=128,
    learning_rate=2e-3,
    learning_method=AdamOptimizer(),
    regularization=L2Regularization(8e-4),
    gradient_clipping_threshold=25,
)

layer_attr = ExtraLayerAttribute(drop_rate=0.5)
both = [ParameterAttribute(learning_rate=1e-3), ParameterAttribute(initial_std=0., learning_rate=1.)]
bias = ParameterAttribute(initial_std=0., l2_rate=0.)
relu, linear = ReluActivation(), LinearActivation()

embedded = embedding_layer(input=data_layer("word", size=words), size=embedding)
fc = fc_layer(input=embedded, size=hidden * 4 / 2, act=linear, bias_attr=bias)
lstm = lstmemory(input=fc, act=relu, bias_attr=bias, layer_attr=layer_attr)
for i in range(2, stacked + 1):
    fc = fc_layer(input=[fc, lstm], size=hidden * 4 / 2, act=linear, param_attr=both, bias_attr=bias)
    lstm = lstmemory(input=fc, reverse=(i % 2) == 0, act=relu, bias_attr=bias, layer_attr=layer_attr)

last = [pooling_layer(input=each, pooling_type=MaxPooling()) for each in (fc, lstm)]
output = fc_layer(input=last, size=classes, act=SoftmaxActivation(), bias_attr=bias, param_attr=both)
outputs(classification_cost(input=output, label=data_layer("label", 1)))
"""

ROLES = """
from paddle.trainer_config_helpers import *

words, marks, labels, embedding, hidden = 40, 2, 5, 4, 8
settings(batch_size=150, learning_rate=2e-2, learning_method=MomentumOptimizer(momentum=0),
         model_average=ModelAverage(average_window=0.5, max_average_window=10000))

std_0, std_default = ParameterAttribute(initial_std=0.), ParameterAttribute(initial_std=0.3)
table = ParameterAttribute(name="emb", initial_std=0., is_static=True)
fed = [embedding_layer(size=embedding, input=data_layer(name, words), param_attr=table) for name in ("word", "verb")]
fed.append(embedding_layer(size=embedding, input=data_layer("mark", marks), param_attr=std_default))

hidden_0 = mixed_layer(name="hidden0", size=hidden, bias_attr=std_default,
                       input=[full_matrix_projection(input=each, param_attr=std_default) for each in fed])
lstm_0 = lstmemory(name="lstm0", input=hidden_0, act=ReluActivation(), state_act=SigmoidActivation(), bias_attr=std_0)
with mixed_layer(name="features", size=labels, bias_attr=std_default) as features:
    features += full_matrix_projection(input=hidden_0)
    features += full_matrix_projection(input=lstm_0)

target = data_layer("target", labels)
crf = crf_layer(name="crf", size=labels, input=features, label=target, param_attr=ParameterAttribute(name="crfw"))
decoded = crf_decoding_layer(name="decoded", size=labels, input=features, label=target,
                             param_attr=ParameterAttribute(name="crfw"))
sum_evaluator(name="error", input=decoded)
outputs(crf)
"""


def written(folder, text):
    file = folder / "trainer_config.py"
    file.write_text(text)
    return parse_config(file, "")


def test_stacked_lstms_for_sentiments(tmp_path):
    config = written(tmp_path, STACKED_LSTM)
    memory = 4 * 16 + 7 * 4
    stacked = 50 * 6 + (6 * 16 + 16) + memory + 2 * (16 * 16 + 4 * 16 + 16 + memory) + (16 * 2 + 4 * 2 + 2)
    model = config.model_config
    assert parameter_count(model) == stacked
    assert model.input_layer_names == ("word", "label")
    memories = [layer for layer in model.layers if layer.type == "lstmemory"]
    assert [(each.attributes["reversed"], each.active_type, each.drop_rate) for each in memories] == [
        (False, "relu", 0.5), (True, "relu", 0.5), (False, "relu", 0.5),
    ]  # fmt: skip
    # The decay of `settings` is of every parameter but those that name their own.
    assert {each.decay_rate for each in model.parameters if each.name.endswith(".wbias")} == {0.0}
    assert {each.decay_rate for each in model.parameters if ".w0" in each.name} == {8e-4}
    assert TrainerConfig.from_json(config.to_json()) == config


def test_roles_of_words_by_a_chain(tmp_path):
    config = written(tmp_path, ROLES)
    model = config.model_config
    counted = 40 * 4 + 2 * 4 + (3 * 4 * 8 + 8) + (2 * 8 + 7 * 2) + (8 * 5 + 2 * 5 + 5) + 5 * (5 + 2)
    assert parameter_count(model) == counted
    assert model.parameter("emb").is_static
    assert [each.name for each in model.parameters].count("crfw") == 1
    assert model.layer("crf").inputs[0].parameter == model.layer("decoded").inputs[0].parameter == "crfw"
    assert (config.opt_config.average_window, config.opt_config.max_average_window) == (0.5, 10000)
    assert [each.type for each in model.evaluators] == ["sum"]
