"""Wide and deep: a linear part over many sparse ids, and embeddings through two layers beside it.

A row has the ids that are set in it (`wide`, any number of them), a user, an item and some numbers. Args: crossed,
users, items, numbers, embedding, hidden, classes, batch_size.
"""

from paddle.trainer_config_helpers import *

crossed = get_config_arg("crossed", int, 100000)
users = get_config_arg("users", int, 5000)
items = get_config_arg("items", int, 2000)
numbers = get_config_arg("numbers", int, 13)
embedding = get_config_arg("embedding", int, 32)
hidden = get_config_arg("hidden", int, 64)
classes = get_config_arg("classes", int, 2)

settings(
    batch_size=get_config_arg("batch_size", int, 256),
    learning_rate=1e-3,
    learning_method=AdaGradOptimizer(),
)

sparse = ParamAttr(initial_std=0.0, initial_mean=0.0, sparse_update=True)
weights = embedding_layer(input=data_layer(name="wide", size=crossed), size=classes, param_attr=sparse)
wide = pooling_layer(input=weights, pooling_type=SumPooling())

user = embedding_layer(input=data_layer(name="user", size=users), size=embedding)
item = embedding_layer(input=data_layer(name="item", size=items), size=embedding)
deep = concat_layer(input=[user, item, data_layer(name="numbers", size=numbers)])
deep = fc_layer(input=deep, size=hidden, act=ReluActivation())
deep = fc_layer(input=deep, size=hidden // 2, act=ReluActivation())

with mixed_layer(size=classes, act=SoftmaxActivation(), bias_attr=True, name="predict") as predict:
    predict += identity_projection(wide)
    predict += full_matrix_projection(deep)

outputs(classification_cost(input=predict, label=data_layer(name="label", size=classes), name="cost"))
