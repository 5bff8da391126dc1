"""A text classifier of two LSTM layers. Args: words, embedding, hidden, classes, batch_size."""

from paddle.trainer_config_helpers import *

words = get_config_arg("words", int, 30000)
embedding = get_config_arg("embedding", int, 128)
hidden = get_config_arg("hidden", int, 128)
classes = get_config_arg("classes", int, 2)

settings(
    batch_size=get_config_arg("batch_size", int, 128),
    learning_rate=2e-3,
    learning_method=AdamOptimizer(),
    regularization=L2Regularization(8e-4),
    gradient_clipping_threshold=25,
)

net = embedding_layer(input=data_layer(name="text", size=words), size=embedding)
for _ in range(2):
    net = simple_lstm(input=net, size=hidden)
net = last_seq(input=net)
predict = fc_layer(input=net, size=classes, act=SoftmaxActivation(), name="predict")

outputs(classification_cost(input=predict, label=data_layer(name="label", size=classes), name="cost"))
