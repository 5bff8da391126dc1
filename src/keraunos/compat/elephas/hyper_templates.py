"""A model function whose source holds templates, as one that draws their values. Runs on the driver.

Hyperas writes `Dense({{choice([256, 512])}})`. Python reads that as a set within a set, which could never be built, so
there is nothing else it can mean. Each is replaced by a draw under a name, in place: a value is drawn when the function
comes to it, and what stands in the template may use the function's own variables.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

from keraunos.compat.elephas.hyper_draws import DISTRIBUTIONS
from keraunos.compat.python2.program import function_tree, is_operation
from keraunos.errors import JobError, one_of

_DRAWS = "__draws__"
_AROUND = "__around__"


def drawing(function: Any, notebook_name: str | None = None) -> Callable[..., Any]:
    """Returns the function with another first argument, `Draws`, from which it draws the values of its templates."""
    if not isinstance(function, FunctionType):
        raise JobError(
            "`model` must be a function with templates such as `{{uniform(0, 1)}}` in its source, or take an argument "
            f"`trial`. Received: {function!r}."
        )
    definition = definition_of(function, notebook_name)
    if definition.decorator_list:
        raise JobError(
            f"`model` must be a function as it is written. Received: {function.__name__}, which is decorated with "
            f"@{ast.unparse(definition.decorator_list[0])}. Leave the decorator out."
        )
    replaced = _Templates()
    for statement in definition.body:
        replaced.visit(statement)
    if not replaced.names:
        raise JobError(
            "`model` must have at least one template such as `{{uniform(0, 1)}}` in its source. Received: "
            f"{function.__name__}, which has none. Write one, or let it take an argument `trial` and draw values with "
            "`trial.suggest_float(...)` and the like."
        )
    arguments = definition.args
    (arguments.posonlyargs or arguments.args).insert(0, ast.arg(_DRAWS))
    return _compiled(definition, function)


def definition_of(function: FunctionType, notebook_name: str | None = None) -> ast.FunctionDef:
    """Returns the function's definition from a script, a notebook's cell, or the notebook's file."""
    try:
        lines, first = inspect.getsourcelines(function)
        source = "".join(lines)
    except (OSError, TypeError) as error:
        found = None if notebook_name is None else _in_notebook(function.__name__, notebook_name)
        if found is None:
            where = "" if notebook_name is None else f" nor in {notebook_name}.ipynb"
            raise JobError(
                f"The source of {function.__name__!r} must be at hand, since its templates are read there. Received: a "
                f"function whose source is not found{where} ({error}). Define it in a file or in a notebook's cell, or "
                "let it take an argument `trial`."
            ) from error
        return found
    # Within a block, a definition keeps its indentation, so that multi-line strings do not change.
    try:
        tree = function_tree(f"if True:\n{source}" if source[:1].isspace() else source, function)
    except SyntaxError:
        tree = ast.Module([], [])
    definition = _named(tree, function.__name__)
    if definition is None:
        raise JobError(
            "A function whose source is read must be defined with `def`. Received: "
            f"{function.__name__!r}, defined as {source.strip().splitlines()[0]!r}."
        )
    ast.increment_lineno(definition, first - (2 if source[:1].isspace() else 1))
    return definition


class _Templates(ast.NodeTransformer):
    """Replaces templates by draws, and names them as Hyperas does: by what they are given to."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if is_operation(node.func):
            return self.generic_visit(node)  # what a translation has put there names nothing
        node.func = self.visit(node.func)
        node.args = [self._named(_last_name(node.func), each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = self._named(keyword.arg, keyword.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.value = self._named(_last_name(node.targets[0]), node.value)
        return node

    def visit_Set(self, node: ast.Set) -> ast.AST:
        return self._named(None, node) if _is_template(node) else self.generic_visit(node)

    def _named(self, name: str | None, node: ast.expr) -> Any:
        if not _is_template(node):
            return self.visit(node)
        call = _call_in(node)
        kind = _last_name(call.func) or ""
        return self._draw(name or kind, kind, call, node)

    def _draw(self, name: str, kind: str, call: ast.Call, template: ast.expr) -> ast.Call:
        label = f"{name}_{self.names[name]}" if name in self.names else name
        self.names[name] += 1
        call.args = [ast.Constant(label), *map(self.visit, call.args)]
        call.keywords = [self.visit(each) for each in call.keywords]
        call.func = ast.Attribute(ast.Name(_DRAWS, ast.Load()), kind, ast.Load())
        return ast.copy_location(call, template)


def _is_template(node: ast.AST) -> bool:
    return isinstance(node, ast.Set) and len(node.elts) == 1 and isinstance(node.elts[0], ast.Set)


def _call_in(template: ast.expr) -> ast.Call:
    assert isinstance(template, ast.Set)
    inner = template.elts[0]
    assert isinstance(inner, ast.Set)
    call = inner.elts[0]
    if len(inner.elts) != 1 or not isinstance(call, ast.Call):
        raise JobError(
            "A template must be one distribution within double braces, such as `{{choice([64, 128])}}`. Received: "
            f"`{ast.unparse(template)}`."
        )
    if _last_name(call.func) not in DISTRIBUTIONS:
        raise JobError(one_of(f"the distribution in `{ast.unparse(template)}`", _last_name(call.func), DISTRIBUTIONS))
    return call


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _compiled(definition: ast.FunctionDef, original: FunctionType) -> FunctionType:
    """Returns the definition as a function with the globals, the defaults and the closure of the original."""
    closed_over = original.__code__.co_freevars
    # What the original takes from functions around it must be names of a function here, too.
    around = ast.parse(f"def {_AROUND}({', '.join(closed_over)}): pass").body[0]
    assert isinstance(around, ast.FunctionDef)
    around.body = [definition]
    module = ast.fix_missing_locations(ast.Module([around], []))
    # Our `from __future__` lines do not apply to the program.
    code = compile(module, original.__code__.co_filename, "exec", dont_inherit=True)
    code = _code_named(original.__name__, _code_named(_AROUND, code))
    cells: dict[str, CellType] = dict(zip(closed_over, original.__closure__ or (), strict=True))
    function = FunctionType(
        code,
        original.__globals__,
        original.__name__,
        original.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    function.__kwdefaults__ = original.__kwdefaults__
    _make_names(function)
    return function


def _make_names(function: FunctionType) -> None:
    """Create here the names that the function uses without importing them: executors do not have them."""
    given = function.__globals__.get("__builtins__")
    if isinstance(given, dict):
        for name in function.__code__.co_names:
            if name not in function.__globals__:
                with contextlib.suppress(KeyError):
                    given[name]


def _code_named(name: str, code: CodeType) -> CodeType:
    return next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name)


def _named(tree: ast.AST, name: str) -> ast.FunctionDef | None:
    found = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == name)
    return next(found, None)


def _in_notebook(name: str, notebook_name: str) -> ast.FunctionDef | None:
    """Returns the last definition of the name in a notebook in the working folder.

    Cells that are no Python are left out.
    """
    path = Path(f"{notebook_name.removesuffix('.ipynb')}.ipynb")
    if not path.is_file():
        raise JobError(
            f"`notebook_name` must be the name of a notebook in the working folder. Received: {notebook_name!r}, and "
            f"there is no {path.resolve()}."
        )
    found = None
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            try:
                tree = ast.parse("".join(cell["source"]))
            except SyntaxError:
                continue
            found = _named(tree, name) or found
    return found
