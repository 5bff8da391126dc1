"""VGG-16. Args: side, classes, batch_size, and shrink, by which every width is divided."""

from paddle.trainer_config_helpers import *

side = get_config_arg("side", int, 224)
classes = get_config_arg("classes", int, 1000)
shrink = get_config_arg("shrink", int, 1)
batch_size = get_config_arg("batch_size", int, 128)

settings(
    batch_size=batch_size,
    learning_rate=0.001 / batch_size,
    learning_method=MomentumOptimizer(0.9),
    regularization=L2Regularization(0.0005 * batch_size),
)


def narrow_vgg(net, num_channels):
    """The layers of vgg_16_network, which has no argument for their width."""
    for at, (filters, times) in enumerate([(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]):
        net = img_conv_group(
            input=net,
            num_channels=num_channels if at == 0 else None,
            conv_num_filter=[filters // shrink] * times,
            pool_size=2,
            pool_stride=2,
        )
    for _ in range(2):
        net = fc_layer(input=net, size=4096 // shrink, act=ReluActivation(), layer_attr=ExtraAttr(drop_rate=0.5))
    return fc_layer(input=net, size=classes, act=SoftmaxActivation())


image = data_layer(name="image", size=3 * side * side)
if shrink == 1:
    predict = vgg_16_network(input_image=image, num_channels=3, num_classes=classes)
else:
    predict = narrow_vgg(image, 3)

outputs(classification_cost(input=predict, label=data_layer(name="label", size=classes), name="cost"))
