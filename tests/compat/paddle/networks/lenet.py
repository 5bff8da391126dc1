"""LeNet, as Caffe and Paddle's demo of handwritten digits have it. Args: side, classes, batch_size."""

from paddle.trainer_config_helpers import *

side = get_config_arg("side", int, 28)
classes = get_config_arg("classes", int, 10)

settings(
    batch_size=get_config_arg("batch_size", int, 128),
    learning_rate=0.1 / 128.0,
    learning_method=MomentumOptimizer(0.9),
    regularization=L2Regularization(0.0005 * 128),
)

image = data_layer(name="pixel", size=side * side)
net = simple_img_conv_pool(input=image, filter_size=5, num_filters=20, num_channel=1, pool_size=2, pool_stride=2)
net = simple_img_conv_pool(input=net, filter_size=5, num_filters=50, pool_size=2, pool_stride=2)
net = fc_layer(input=net, size=500, act=ReluActivation())
predict = fc_layer(input=net, size=classes, act=SoftmaxActivation(), name="predict")

outputs(classification_cost(input=predict, label=data_layer(name="label", size=classes), name="cost"))
