"""The functions that a configuration calls: `Settings`, `Layer`, `Evaluator` … Runs on the driver."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from keraunos.compat.paddle.language_parameters import define_parameter
from keraunos.compat.paddle.language_run import run_file
from keraunos.compat.paddle.language_settings import checked_settings
from keraunos.compat.paddle.language_state import current, truth
from keraunos.compat.paddle.language_values import PARAMETER_ATTRIBUTES, unknown
from keraunos.compat.paddle.layer_types.draft import Draft
from keraunos.compat.paddle.layer_types.layer_type import LayerType, type_named
from keraunos.compat.paddle.model_config import EvaluatorConfig, LayerConfig, ParameterConfig
from keraunos.errors import ModelError, one_of

logger = logging.getLogger(__name__)

EVALUATORS = (
    "classification_error", "seq_classification_error", "sum", "last-column-sum", "last-column-auc", "rankauc",
    "precision_recall", "pnpair", "chunk", "ctc_edit_distance", "value_printer", "gradient_printer", "max_id_printer",
    "max_frame_printer", "seq_text_printer", "classification_error_printer",
)  # fmt: skip

_EVALUATOR_ATTRIBUTES: dict[str, Any] = {
    "chunk_scheme": None, "num_chunk_types": None, "classification_threshold": 0.5, "positive_label": -1,
    "dict_file": None, "result_file": None, "num_results": 1, "delimited": True, "top_k": 1,
    "excluded_chunk_types": None,
}  # fmt: skip


def Settings(**settings: Any) -> None:
    """How the network is trained; `batch_size` must be among it."""
    current("Settings").settings.update(checked_settings(settings))


def Inputs(*names: str) -> None:
    """The data layers, in the order of a row's entries."""
    state = current("Inputs")
    state.inputs = [*(state.inputs or ()), *names]


def Outputs(*names: str) -> None:
    """The layers whose costs are trained."""
    state = current("Outputs")
    state.outputs = [*(state.outputs or ()), *names]


def Layer(name: str | None = None, type: str | None = None, **xargs: Any) -> LayerConfig:  # noqa: A002 - Paddle's word
    """Define a layer of a type. Returns it with its size."""
    state = current("Layer")
    if name is None or type is None:
        raise ModelError(f"`Layer` must say its name and its type. Received: name={name!r}, type={type!r}.")
    draft = Draft(name, type_named(name, type), xargs, state)
    draft.about.build(draft)
    made = draft.finish()
    state.layers[name] = made
    return made


class LayerClass:
    """Paddle's class of a layer type: called, it defines a layer."""

    def __init__(self, about: LayerType) -> None:
        self._about = about
        self.__name__ = about.class_name
        self.__doc__ = about.build.__doc__

    def __repr__(self) -> str:
        return f"<{self._about.class_name}, layers of type {self._about.name!r}>"

    def __call__(self, *arguments: Any, **keywords: Any) -> LayerConfig:
        """Define a layer; the first arguments may stand by place."""
        order = self._about.positional
        if len(arguments) > len(order):
            raise ModelError(
                f"`{self.__name__}` takes {', '.join(order)} by place, the rest by name. "
                f"Received: {len(arguments)} arguments by place."
            )
        placed = dict(zip(order, arguments))
        twice = sorted(set(placed) & set(keywords))
        if twice:
            raise ModelError(
                f"`{self.__name__}` was given `{twice[0]}` twice. Received: {keywords[twice[0]]!r} by name."
            )
        return Layer(type=self._about.name, **placed, **keywords)


def Evaluator(name: str, type: str, inputs: Any, **attributes: Any) -> EvaluatorConfig:  # noqa: A002 - Paddle's word
    """Something to measure beside the cost."""
    state = current("Evaluator")
    if type not in EVALUATORS:
        raise ModelError(f"Evaluator {name!r}: {one_of('type', type, EVALUATORS)}")
    if name in state.evaluators:
        raise ModelError(f"Evaluator {name!r}: names of evaluators must be unique. Received: a second {name!r}.")
    for each in attributes:
        if each not in _EVALUATOR_ATTRIBUTES:
            raise ModelError(
                f"Evaluator {name!r}: " + unknown("an evaluator", "attribute", each, _EVALUATOR_ATTRIBUTES)
            )
    told = {each: value for each, value in attributes.items() if value is not None}
    sources = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
    state.evaluators[name] = EvaluatorConfig(name, type, sources, {**_EVALUATOR_ATTRIBUTES, **told})
    return state.evaluators[name]


def Parameter(name: str, size: int, dims: Any = (), **attributes: Any) -> ParameterConfig:
    """Define a parameter before the layers that share it by `parameter_name`."""
    state = current("Parameter")
    for each in attributes:
        if each not in PARAMETER_ATTRIBUTES:
            raise ModelError(f"Parameter {name!r}: " + unknown("a parameter", "attribute", each, PARAMETER_ATTRIBUTES))
    if name in state.parameters:
        raise ModelError(f"Parameter {name!r}: names of parameters must be unique. Received: a second {name!r}.")
    return define_parameter(
        state, name, size, tuple(dims), {key: value for key, value in attributes.items() if value is not None}
    )


def get_config_arg(name: str, type: Callable[[Any], Any], default: Any = None) -> Any:  # noqa: A002 - Paddle's word
    """Returns a config arg, as the type makes it of its text; the default if there is none."""
    args = current("get_config_arg").args
    if name not in args:
        return default
    if type is bool:
        return truth(name, args[name])
    try:
        return type(args[name])
    except ValueError:
        wanted = getattr(type, "__name__", repr(type))
        raise ModelError(f"The config arg `{name}` must be of type {wanted}. Received: {args[name]!r}.") from None


def Import(config_file: str, local_args: dict[str, Any] | None = None) -> None:
    """Run another file as part of this configuration; `local_args` are names that it finds."""
    run_file(current("Import"), config_file, local_args or {})


def model_type(name: str) -> None:
    """The kind of network in Paddle; only `nn` and `recurrent_nn` exist."""
    state = current("model_type")
    if name not in ("nn", "recurrent_nn"):
        raise ModelError(one_of("model_type", name, ("nn", "recurrent_nn")))
    state.model_type = name


def cluster_config(**_: Any) -> None:
    """Accepted as in Paddle, where it changes nothing either."""
    current("cluster_config")
    logger.info("`cluster_config` changes nothing: setCluster says how many trainers and servers there are.")


def TrainData(data_config: Any = None, async_load_data: Any = None) -> None:  # noqa: ARG001 - Paddle's arguments
    """Accepted; the rows come from the DataFrame that is fitted."""
    current("TrainData")
    logger.info("`TrainData` changes nothing: the rows come from the DataFrame that is given to fit.")


def TestData(data_config: Any = None, async_load_data: Any = None) -> None:  # noqa: ARG001 - Paddle's arguments
    """Accepted; the rows come from the DataFrame that is transformed."""
    current("TestData")
    logger.info("`TestData` changes nothing: the rows come from the DataFrame that is given to transform.")


def _source(name: str) -> Callable[..., dict[str, Any]]:
    def source(*arguments: Any, **keywords: Any) -> dict[str, Any]:
        current(name)
        return {"type": name, "arguments": list(arguments), **keywords}

    source.__name__ = name
    source.__doc__ = f"A source of rows, for `TrainData` and `TestData`: what {name} was told."
    return source


def _default(name: str) -> Callable[[Any], None]:
    def default(value: Any) -> None:
        if isinstance(value, str) or not isinstance(value, int | float):
            raise ModelError(f"`default_{name}` takes a number. Received: {value!r}.")
        setattr(current(f"default_{name}").defaults, name, value)

    default.__name__ = f"default_{name}"
    default.__doc__ = f"The `{name}` of parameters that are defined from here on and say none."
    return default


def _refused(name: str, instead: str) -> Callable[..., None]:
    def refused(*_: Any, **__: Any) -> None:
        current(name)
        raise ModelError(
            f"`{name}` cannot be had here. Expected a configuration without it. Received: a call of it. {instead}"
        )

    refused.__name__ = name
    refused.__doc__ = f"Refused. {instead}"
    return refused


def default_device(device: int) -> None:
    """Accepted and ignored: Spark decides where a layer runs."""
    current("default_device")
    logger.info("`default_device(%r)` changes nothing; where a layer runs is decided by Spark.", device)


ProtoData = _source("ProtoData")
PyData = _source("PyData")
SimpleData = _source("SimpleData")
MultiData = _source("MultiData")

default_initial_std = _default("initial_std")
default_initial_mean = _default("initial_mean")
default_initial_strategy = _default("initial_strategy")
default_initial_smart = _default("initial_smart")
default_momentum = _default("momentum")
default_decay_rate = _default("decay_rate")
default_num_batches_regularization = _default("num_batches_regularization")
default_gradient_clipping_threshold = _default("gradient_clipping_threshold")

_WHOLE_SEQUENCES = "The nearest are layers of type 'lstmemory', 'gated_recurrent' and 'recurrent'."
default_update_hooks = _refused("default_update_hooks", "Give `is_static=True` to parameters that must not move.")
default_compact_func = _refused("default_compact_func", "How parameters travel is decided by the exchange.")
RecurrentLayerGroupBegin = _refused("RecurrentLayerGroupBegin", _WHOLE_SEQUENCES)
RecurrentLayerGroupEnd = _refused("RecurrentLayerGroupEnd", _WHOLE_SEQUENCES)
RecurrentLayerGroupSetGenerator = _refused("RecurrentLayerGroupSetGenerator", _WHOLE_SEQUENCES)
RecurrentLayerGroupSetOutLink = _refused("RecurrentLayerGroupSetOutLink", _WHOLE_SEQUENCES)
RecurrentLayerGroupWithoutOutLinksBegin = _refused("RecurrentLayerGroupWithoutOutLinksBegin", _WHOLE_SEQUENCES)
SubModelBegin = _refused("SubModelBegin", _WHOLE_SEQUENCES)
SubModelEnd = _refused("SubModelEnd", _WHOLE_SEQUENCES)
Memory = _refused("Memory", _WHOLE_SEQUENCES)
Generator = _refused("Generator", _WHOLE_SEQUENCES)
