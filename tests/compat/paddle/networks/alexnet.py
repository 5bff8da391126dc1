"""AlexNet with its two groups. Args: side, classes, batch_size, and shrink, by which every width is divided."""

from paddle.trainer_config_helpers import *

side = get_config_arg("side", int, 227)
classes = get_config_arg("classes", int, 1000)
shrink = get_config_arg("shrink", int, 1)
batch_size = get_config_arg("batch_size", int, 128)

settings(
    batch_size=batch_size,
    learning_rate=0.01 / batch_size,
    learning_method=MomentumOptimizer(0.9),
    regularization=L2Regularization(0.0005 * batch_size),
)

net = data_layer(name="image", size=3 * side * side)
net = img_conv_layer(input=net, filter_size=11, num_channels=3, num_filters=96 // shrink, stride=4)
net = img_cmrnorm_layer(input=net, size=5, scale=0.0001, power=0.75)
net = img_pool_layer(input=net, pool_size=3, stride=2)
net = img_conv_layer(input=net, filter_size=5, num_filters=256 // shrink, padding=2, groups=2)
net = img_cmrnorm_layer(input=net, size=5, scale=0.0001, power=0.75)
net = img_pool_layer(input=net, pool_size=3, stride=2)
net = img_conv_layer(input=net, filter_size=3, num_filters=384 // shrink, padding=1)
net = img_conv_layer(input=net, filter_size=3, num_filters=384 // shrink, padding=1, groups=2)
net = img_conv_layer(input=net, filter_size=3, num_filters=256 // shrink, padding=1, groups=2)
net = img_pool_layer(input=net, pool_size=3, stride=2)
for _ in range(2):
    net = fc_layer(input=net, size=4096 // shrink, act=ReluActivation(), layer_attr=ExtraAttr(drop_rate=0.5))
predict = fc_layer(input=net, size=classes, act=SoftmaxActivation(), name="predict")

outputs(classification_cost(input=predict, label=data_layer(name="label", size=classes), name="cost"))
