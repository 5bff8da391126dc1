"""Two configurations side by side: equal but for the names that their layers and parameters have."""

from dataclasses import replace

from keraunos.compat.paddle import config_parser as raw
from keraunos.compat.paddle.config_parser import parse_config
from keraunos.compat.paddle.language_state import current


def model_of(*parts):
    """The network that some functions define one after another; the last layer is its output."""

    def configs():
        raw.Settings(batch_size=4, algorithm="sgd")
        for part in parts:
            part()
        raw.Outputs(list(current("Outputs").layers)[-1])

    return parse_config(configs, "").model_config


def anonymous(model):
    """The same network, its layers and parameters called by their places."""
    layers = {layer.name: f"layer {at}" for at, layer in enumerate(model.layers)}
    parameters = {parameter.name: f"parameter {at}" for at, parameter in enumerate(model.parameters)}
    parameters[None] = None
    renamed = [
        replace(
            layer,
            name=layers[layer.name],
            bias=parameters[layer.bias],
            inputs=tuple(
                replace(each, layer=layers[each.layer], parameter=parameters[each.parameter]) for each in layer.inputs
            ),
        )
        for layer in model.layers
    ]
    measured = [
        replace(each, name=f"evaluator {at}", input_layers=tuple(layers[name] for name in each.input_layers))
        for at, each in enumerate(model.evaluators)
    ]
    return replace(
        model,
        layers=tuple(renamed),
        parameters=tuple(replace(each, name=parameters[each.name]) for each in model.parameters),
        input_layer_names=tuple(layers[name] for name in model.input_layer_names),
        output_layer_names=tuple(layers[name] for name in model.output_layer_names),
        evaluators=tuple(measured),
    )


def parameter_count(model):
    """How many numbers the network has."""
    return sum(parameter.size for parameter in model.parameters)
