"""Detects a program's day from its source. Runs on the driver; imports no Keras.

Modules and arguments that only some releases had are evidence. A program with none is one for today's Keras. If a
call had another meaning than today, and nothing shows the program's day, it is refused with both meanings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from keraunos.compat.old_keras.layer_table import LAYERS, REFUSED_LAYERS
from keraunos.compat.old_keras.value_tables import ACTIVATIONS, INITIALIZERS
from keraunos.compat.python2.program import tree_of
from keraunos.errors import JobError

_EVER = frozenset("0123")
_OLD = frozenset("012")
_FIRST = frozenset("01")


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence.

    Attributes:
        where: file and line.
        what: what stands there.
        taken: the days whose Keras took it.
        style: those of them whose programs wrote so.
    """

    where: str
    what: str
    taken: frozenset[str]
    style: frozenset[str]


# Modules, and names in them: the days that had them.
_MODULES: Mapping[str, frozenset[str]] = {
    **{
        f"layers.{name}": _OLD
        for name in [
            "advanced_activations",
            "convolutional",
            "convolutional_recurrent",
            "core",
            "embeddings",
            "local",
            "merge",
            "noise",
            "normalization",
            "pooling",
            "recurrent",
            "wrappers",
        ]
    },
    "layers.containers": frozenset("0"),
    "utils.np_utils": _OLD,
    "utils.generic_utils": _OLD,
    "utils.visualize_util": _FIRST,
    "utils.vis_utils": frozenset("2"),
    "utils.data_utils": _OLD,
    "objectives": _OLD,
    "initializations": _FIRST,
    "engine": frozenset("12"),
    "engine.topology": frozenset("12"),
    "engine.training": frozenset("12"),
    "wrappers.scikit_learn": _OLD,
}
_NAMES: Mapping[str, frozenset[str]] = {
    "Graph": frozenset("0"),
    "Highway": _FIRST,
    "MaxoutDense": _FIRST,
    "Merge": _FIRST,
    "TimeDistributedDense": _FIRST,
    "TimeDistributedMerge": frozenset("0"),
    "WeightRegularizer": _FIRST,
    "activity_l1": _FIRST,
    "activity_l2": _FIRST,
    "l1l2": _FIRST,
    "maxnorm": _OLD,
    "merge": frozenset("12"),
    "model_from_yaml": _OLD,
    "multi_gpu_model": frozenset("2"),
    "CuDNNLSTM": frozenset("2"),
    "CuDNNGRU": frozenset("2"),
}
# Keras 2 still took most arguments of Keras 1 by name.
_ARGUMENTS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    **dict.fromkeys(
        [
            "nb_epoch",
            "output_dim",
            "W_regularizer",
            "b_regularizer",
            "U_regularizer",
            "W_constraint",
            "b_constraint",
            "border_mode",
            "subsample",
            "subsample_length",
            "dim_ordering",
            "nb_filter",
            "nb_row",
            "nb_col",
            "filter_length",
            "pool_length",
            "inner_init",
            "inner_activation",
            "forget_bias_init",
            "dropout_W",
            "dropout_U",
            "samples_per_epoch",
            "nb_val_samples",
            "nb_worker",
            "nb_feature",
        ],
        (_OLD, _FIRST),
    ),
    "show_accuracy": (_FIRST, frozenset("0")),
    "class_mode": (frozenset("0"), frozenset("0")),
    "theano_mode": (frozenset("0"), frozenset("0")),
    "truncate_gradient": (frozenset("0"), frozenset("0")),
    "stack_size": (frozenset("0"), frozenset("0")),
}
_OPTIMIZERS = ("SGD", "RMSprop", "Adagrad", "Adadelta", "Adam", "Adamax", "Nadam")
_KERAS_2_ARGUMENTS = [
    "units",
    "filters",
    "kernel_size",
    "kernel_initializer",
    "kernel_regularizer",
    "bias_regularizer",
    "recurrent_initializer",
    "recurrent_activation",
    "steps_per_epoch",
    "validation_steps",
    "data_format",
    "use_bias",
]
# Functions of `keras.backend`, which Keras 2 took from programs of Keras 1.
_ORDERINGS = ("image_dim_ordering", "set_image_dim_ordering")
_METHODS = ("to_yaml", "fit_generator", "evaluate_generator", "predict_generator")
# Calls whose arguments are evidence; other calls, such as XGBoost's, may have arguments of the same name.
_CALLS = {*LAYERS, *REFUSED_LAYERS, *_METHODS, "Conv1D", "Conv2D", "Conv3D", "compile", "evaluate", "fit", "train"} | {
    "ElephasEstimator",
    "train_on_batch",
    "test_on_batch",
}
# Calls that mean one thing today and meant another: from how many arguments without a name on, and the types of the
# last of them that only today's meaning has.
_MOVED: Mapping[str, tuple[int, tuple[type, ...], str]] = {
    "SGD": (3, (bool,), "the third argument of SGD was `decay` until Keras 2.2 and is `nesterov` today"),
    "RMSprop": (3, (), "the third argument of RMSprop was `epsilon` until Keras 2.2 and is `momentum` today"),
    "Adagrad": (
        2,
        (),
        "the second argument of Adagrad was `epsilon` until Keras 2.2 and is `initial_accumulator_value` today",
    ),
    "Adadelta": (4, (), "the fourth argument of Adadelta was `decay` until Keras 2.2 and is `weight_decay` today"),
    "Adam": (5, (bool,), "the fifth argument of Adam was `decay` until Keras 2.2 and is `amsgrad` today"),
    "Adamax": (5, (), "the fifth argument of Adamax was `decay` until Keras 2.2 and is `weight_decay` today"),
    "EarlyStopping": (
        2,
        (float,),
        "the second argument of EarlyStopping was `patience` until Keras 1.1 and is `min_delta` since 1.2",
    ),
    "compile": (3, (), "the third argument of compile was `metrics` until Keras 2 and is `loss_weights` today"),
    "ModelCheckpoint": (
        5,
        (bool,),
        "the fifth argument of ModelCheckpoint was `mode` until Keras 0.3 and is `save_weights_only` since 1.0",
    ),
}
_SIZED = ("Dense", "TimeDistributedDense", "LSTM", "GRU", "SimpleRNN", "MaxoutDense")
_KERNELS = {"Convolution1D": 1, "Conv1D": 1, "Convolution2D": 2, "Conv2D": 2, "Convolution3D": 3, "Conv3D": 3}


def day_of(
    sources: Iterable[tuple[str, bytes]], system: str = "elephas", *, tensorflows: bool = True
) -> tuple[str, list[Evidence]]:
    """Returns the day of a program of these files, and the evidence; "3" without evidence.

    Args:
        sources: its files, by name.
        system: the argument of `keraunos run --as`, for messages.
        tensorflows: whether TensorFlow's own Keras is of the same day. If it is not, a program that has no other
            is no evidence.
    """
    found: list[Evidence] = []
    unclear: list[Evidence] = []
    uses_keras = False
    for name, source in sources:
        tree = tree_of(source)
        if tree is None:
            continue  # running it reports the error
        reader = _EvidenceReader(name)
        reader.visit(tree)
        uses_keras = uses_keras or (reader.uses_keras if tensorflows else reader.by_itself)
        found += reader.found
        unclear += reader.unclear
    if not uses_keras:
        return "3", []
    taken = frozenset.intersection(_EVER, *(each.taken for each in found))
    if not taken:
        raise JobError(_contradiction(found))
    if taken == _EVER or "3" in taken:
        for each in unclear:
            raise JobError(
                f"{each.where}: {each.what}, and nothing in the program tells for which Keras it was written. Say it: "
                f"keraunos run --as {system} --keras 1, 2 or 3."
            )
        return "3", found
    style = frozenset.intersection(taken, *(each.style for each in found)) or taken
    return max(style), found


def sources_of(script: str | Path, source: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the program's file, and the files beside it that it imports."""
    folder = Path(script).resolve().parent
    waiting, seen = [(str(script), source)], {Path(script).resolve()}
    while waiting:
        name, text = waiting.pop()
        yield name, text
        for module in _imports(text):
            for path in (folder / f"{module}.py", folder / module / "__init__.py"):
                if path.is_file() and path.resolve() not in seen:
                    seen.add(path.resolve())
                    waiting.append((str(path), path.read_bytes()))


def _imports(source: bytes) -> Iterator[str]:
    tree = tree_of(source)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.replace(".", "/") for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.replace(".", "/")
            yield from (f"{node.module.replace('.', '/')}/{each.name}" for each in node.names)


class _EvidenceReader(ast.NodeVisitor):
    """Collects evidence in one file."""

    def __init__(self, file: str) -> None:
        self._file = Path(file).name
        self.found: list[Evidence] = []
        self.unclear: list[Evidence] = []
        self.uses_keras = False
        # TensorFlow's Keras has had most arguments in today's places from its beginning.
        self.by_itself = False
        # Names that the file imports from Keras; a class of that name from elsewhere is another one.
        self._from_keras: set[str] = set()
        self._from_elsewhere: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            self._imported(node, each.name)
            if _below_keras(each.name) is None:
                self._from_elsewhere.add(each.asname or each.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for each in node.names:
            if _below_keras(module) is None:
                self._from_elsewhere.add(each.asname or each.name)
                self._imported(node, f"{module}.{each.name}")
                continue
            self._from_keras.add(each.asname or each.name)
            self._imported(node, f"{module}.{each.name}")
            if each.name in _NAMES and not module.startswith("tensorflow"):
                self._note(node, f"{each.name} of {module}", _NAMES[each.name], _NAMES[each.name])

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node.func)
        if name in self._from_elsewhere:
            self.generic_visit(node)
            return
        for keyword in node.keywords:
            if keyword.arg:
                self._argument(node, name, keyword.arg)
        self._places(node, name)
        if name in _ORDERINGS and isinstance(node.func, ast.Attribute):
            self._note(node, f".{name}()", _OLD, _FIRST)
        if isinstance(node.func, ast.Attribute) and name in _METHODS and not self._is_module(node.func.value):
            self._note(node, f".{name}()", _OLD, _OLD)
        self.generic_visit(node)

    def _is_module(self, receiver: ast.expr) -> bool:
        return isinstance(receiver, ast.Name) and receiver.id in self._from_elsewhere

    def _imported(self, node: ast.stmt, name: str) -> None:
        below = _below_keras(name)
        if below is None:
            return
        self.uses_keras = True
        self.by_itself = self.by_itself or not name.startswith("tensorflow")
        parts = below.split(".")
        for end in range(1, len(parts) + 1):
            module = ".".join(parts[:end])
            if module in _MODULES:
                self._note(node, f"keras.{module}", _MODULES[module], _MODULES[module])

    def _argument(self, node: ast.Call, name: str, argument: str) -> None:
        if argument in _ARGUMENTS and name in _CALLS:
            self._note(node, f"`{argument}` of {name}", *_ARGUMENTS[argument])
        elif (argument in {"lr", "decay"} and name in _OPTIMIZERS) or (argument == "p" and name == "Dropout"):
            self._note(node, f"`{argument}` of {name}", _OLD, _OLD)
        elif argument == "init" and name in self._from_keras:
            self._note(node, f"`init` of {name}", _OLD, _FIRST)
        elif argument in {"input", "output"} and name == "Model":
            self._note(node, f"`{argument}` of Model", frozenset("12"), frozenset("1"))
        elif argument in _KERAS_2_ARGUMENTS and (name in self._from_keras or name.endswith("generator")):
            self._note(node, f"`{argument}` of {name}", frozenset("23"), frozenset("23"))

    def _places(self, node: ast.Call, name: str) -> None:
        """Evidence from positional arguments."""
        places = node.args
        if any(isinstance(each, ast.Starred) for each in places):
            return
        if name == "compile" and len(places) > 2 and _is_list_of_names(places[2]):
            self._note(node, "compile(optimizer, loss, [metrics])", frozenset("12"), frozenset("12"))
        elif name in _MOVED and len(places) >= _MOVED[name][0] and self._may_be_kerass(node.func, name):
            moved, kinds, what = _MOVED[name]
            last = places[moved - 1]
            if not (isinstance(last, ast.Constant) and isinstance(last.value, kinds)):
                self._doubt(node, what, in_tensorflow=name == "compile")
        if name in _SIZED and len(places) > 1:
            second = places[1]
            if _is_number(places[0]) and _is_number(second):
                self._note(node, f"{name}(inputs, outputs)", frozenset("0"), frozenset("0"))
            elif isinstance(second, ast.Constant) and isinstance(second.value, str):
                days = (
                    frozenset("23")
                    if second.value in ACTIVATIONS
                    else _FIRST
                    if second.value in INITIALIZERS
                    else _EVER
                )
                self._note(node, f"{name}(…, {second.value!r})", days, days)
        if name in _KERNELS and len(places) > max(_KERNELS[name], 2):
            self._kernel(node, name, places)

    def _kernel(self, node: ast.Call, name: str, places: list[ast.expr]) -> None:
        axes = _KERNELS[name]
        if any(isinstance(each, (ast.Tuple, ast.List)) for each in places[1:3]):
            self._note(node, f"{name} with a tuple", frozenset("23"), frozenset("23"))
        elif axes == 1:
            if isinstance(places[2], ast.Constant) and isinstance(places[2].value, str):
                self._note(node, f"{name}(…, {places[2].value!r})", _FIRST, _FIRST)
            else:
                told = ", ".join(ast.unparse(each) for each in places[:3])
                self._doubt(
                    node,
                    f"{name}({told}) began with the size of its input before Keras 0.2, had `init` in the third place "
                    "until 1.2, and has steps there today",
                )
        elif len(places) == axes + 2 and all(map(_is_number, places)):
            self._note(node, f"{name}({axes + 2} numbers)", frozenset("0"), frozenset("0"))
        else:
            sizes = ", ".join(ast.unparse(each) for each in places[: axes + 1])
            meant = " by ".join(ast.unparse(each) for each in places[1 : axes + 1])
            self._doubt(
                node,
                f"{name}({sizes}) meant a kernel of {meant} until Keras 2.3, and means a kernel of "
                f"{ast.unparse(places[1])} and steps of {ast.unparse(places[2])} today",
            )

    def _may_be_kerass(self, function: ast.expr, name: str) -> bool:
        """Returns whether the call is one of Keras: of a name that came from there, or of an attribute of something."""
        if isinstance(function, ast.Name):
            return name in self._from_keras
        return isinstance(function, ast.Attribute) and not self._is_module(function.value)

    def _doubt(self, node: ast.AST, what: str, *, in_tensorflow: bool = False) -> None:
        if not self.by_itself and not in_tensorflow:
            return
        self.unclear.append(Evidence(f"{self._file}:{getattr(node, 'lineno', 0)}", what, _EVER, _EVER))

    def _note(self, node: ast.AST, what: str, taken: frozenset[str], style: frozenset[str]) -> None:
        if taken != _EVER:
            self.found.append(Evidence(f"{self._file}:{getattr(node, 'lineno', 0)}", what, taken, style))


def _below_keras(name: str) -> str | None:
    """Returns the part of a module's name below `keras` or `tensorflow.keras`; `None` if it is neither."""
    for root in ("keras", "tensorflow.keras", "tensorflow.python.keras"):
        if name == root:
            return ""
        if name.startswith(f"{root}."):
            return name.removeprefix(f"{root}.")
    return None


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)


def _is_list_of_names(node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.Tuple)) and any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) for each in node.elts
    )


def _contradiction(found: list[Evidence]) -> str:
    told: dict[str, str] = {}
    for each in found:
        told.setdefault(
            "/".join(sorted(each.taken)), f"{each.what} ({each.where}) is of Keras {' or '.join(sorted(each.taken))}"
        )
    return (
        f"The program has words of releases of Keras that had none in common. Received: {'; '.join(told.values())}. "
        "Say which it was written for: --keras 0, 1, 2 or 3."
    )
