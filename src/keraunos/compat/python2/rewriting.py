"""Rewrites syntax and names whose meaning differs between Python 2 and Python 3. Runs on the driver and on executors.

Works on the syntax tree of a program that is in today's syntax already: division, methods of dicts and iterators,
special methods of classes, imports. What it puts there calls `operations`, which the program finds among its globals,
and which Spark pickles by name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from keraunos.compat.python2 import old_builtins, operations
from keraunos.compat.python2.leaks import refuse_leaked
from keraunos.compat.python2.old_modules import MODULES
from keraunos.errors import JobError

OPERATIONS = "__python2__"

_Node = TypeVar("_Node", bound=ast.AST)

# Methods that are called without arguments, each with the operation that replaces it.
_METHODS = frozenset(
    {
        "items", "iteritems", "iterkeys", "itervalues", "keys", "next", "values", "viewitems", "viewkeys", "viewvalues",
    }
)  # fmt: skip
_ATTRIBUTES = {
    ("np", "divide"): (OPERATIONS, "divide_arrays"),
    ("numpy", "divide"): (OPERATIONS, "divide_arrays"),
    ("os", "getcwdu"): ("os", "getcwd"),
    ("sys", "maxint"): ("sys", "maxsize"),
    ("sys", "setdefaultencoding"): (OPERATIONS, "setdefaultencoding"),
    ("time", "clock"): ("time", "process_time"),
}
# Special methods that have another name today.
_SPECIAL = {
    "__div__": "__truediv__",
    "__idiv__": "__itruediv__",
    "__nonzero__": "__bool__",
    "__rdiv__": "__rtruediv__",
    "next": "__next__",
}
_UNKNOWN_SPECIAL = ("__coerce__", "__delslice__", "__getslice__", "__setslice__")
_COMPARED = {ast.Eq: "equals", ast.NotEq: "differs", ast.In: "contains", ast.NotIn: "misses"}
_COMPARISONS = ("__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__")


def rewrite(tree: ast.Module, lines: Callable[[int], int], path: str, package: str) -> None:
    """Change a module's tree in place.

    Args:
        tree: the module.
        lines: from a line's number in the tree to that in the user's file.
        path: the user's file.
        package: the package that the module is in; empty for a module by itself.
    """
    divides = not any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(each.name == "division" for each in node.names)
        for node in tree.body
    )
    rewrite_parts(tree, lines, path, package, divides=divides)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names = [name for name in old_builtins.NAMES if name in used]
    ours = operations.__name__.rpartition(".")[0]
    given = [ast.ImportFrom(ours, [ast.alias("operations", OPERATIONS)], 0)]
    given += [ast.ImportFrom(old_builtins.__name__, [ast.alias(f"_{name}", name)], 0) for name in names]
    start = _after_the_future(tree)
    first = tree.body[min(start, len(tree.body) - 1)] if tree.body else ast.Pass(lineno=1, col_offset=-1)
    # Whoever imports everything from a module gets what it defines, not the builtins that it was given.
    named = ast.List([ast.Constant(name) for name in names], ast.Load())
    here = ast.Call(ast.Name("globals", ast.Load()), [], [])
    tree.body[start:start] = [_at(first, each) for each in given]
    tree.body.append(_at(tree.body[-1], ast.Expr(_call("hide", here, named))))
    ast.fix_missing_locations(tree)


def rewrite_parts(
    tree: ast.Module, lines: Callable[[int], int], path: str, package: str = "", *, divides: bool
) -> None:
    """The same for a tree that is a part of a module."""
    _place(tree, lines)
    refuse_leaked(tree, path)
    _Rewriter(path, package, divides=divides).visit(tree)
    ast.fix_missing_locations(tree)


def _after_the_future(tree: ast.Module) -> int:
    """Returns where the first statement is that may come after another one."""
    for number, node in enumerate(tree.body):
        is_text = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            return number
    return len(tree.body)


def _place(tree: ast.Module, lines: Callable[[int], int]) -> None:
    """Nodes are where they were in the user's file; their columns are not known any more."""
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            placed: Any = node
            placed.lineno = lines(placed.lineno)
            placed.end_lineno = max(placed.lineno, lines(placed.end_lineno or placed.lineno))
            placed.col_offset = placed.end_col_offset = -1


class _Rewriter(ast.NodeTransformer):
    """Rewrites a module."""

    def __init__(self, path: str, package: str, *, divides: bool) -> None:
        self._path = path
        self._package = package
        self._divides = divides
        self._classes: list[str] = []
        self._caught: list[str] = []

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and not _is_number(node.left):
            return _at(node, _call("percent", node.left, node.right))
        if not (self._divides and isinstance(node.op, ast.Div)) or _is_float(node.left) or _is_float(node.right):
            return node
        return _at(node, _call("divide", node.left, node.right))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        if not (self._divides and isinstance(node.op, ast.Div)):
            return node
        target = node.target
        if isinstance(target, ast.Name):
            value = _call("divide_in_place", ast.Name(target.id, ast.Load()), node.value)
            return _at(node, ast.Assign([target], value))
        if isinstance(target, ast.Attribute):
            name = ast.Constant(self._mangled(target.attr))
            return _at(node, ast.Expr(_call("divide_attribute", target.value, name, node.value)))
        key = _as_expression(target.slice)
        return _at(node, ast.Expr(_call("divide_item", target.value, key, node.value)))

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        node.iter = _characters(node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.iter = _characters(node.iter)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        name = _COMPARED.get(type(node.ops[0])) if len(node.ops) == 1 else None
        left, right = node.left, node.comparators[0]
        if name is None or _is_number(left) or _is_number(right):
            return node
        return _at(node, _call(name, *(_character(*pair) for pair in ((left, right), (right, left)))))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        method = node.func
        named = [each.arg for each in node.keywords]
        if isinstance(method, ast.Name):
            return self._function(node, method, named)
        if not isinstance(method, ast.Attribute):
            return node
        if method.attr in ("decode", "format") or (method.attr == "get" and len(node.args) in (1, 2) and not named):
            return _at(node, ast.Call(_operation(method.attr), [method.value, *node.args], node.keywords))
        if method.attr in _METHODS and not node.args and not named:
            return _at(node, _call(method.attr, method.value))
        if method.attr == "has_key" and len(node.args) == 1 and not named:
            return _at(node, _call("has_key", method.value, node.args[0]))
        if method.attr == "sort" and (node.args or "cmp" in named):
            return _at(node, ast.Call(_operation("sort"), [method.value, *node.args], node.keywords))
        return node

    def _function(self, node: ast.Call, function: ast.Name, named: list[str | None]) -> ast.expr:
        if function.id in ("repr", "str") and len(node.args) == 1 and not named:
            return _at(node, _call("text", function, *node.args))
        if function.id == "unicode" and len(node.args) in (2, 3) and not named:
            return _at(node, _call("decode", *node.args))
        if function.id == "isinstance" and len(node.args) == 2 and not named:
            types = node.args[1]
            if "str" in {each.id for each in ast.walk(types) if isinstance(each, ast.Name)}:
                return _at(node, _call("is_instance", *node.args))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and (node.value.id, node.attr) in _ATTRIBUTES:
            home, name = _ATTRIBUTES[node.value.id, node.attr]
            return _at(node, ast.Attribute(ast.Name(home, ast.Load()), name, node.ctx))
        if node.attr == "message" and isinstance(node.value, ast.Name) and node.value.id in self._caught:
            return _at(node, _call("message", node.value))
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        self._caught.append(node.name or "")
        self.generic_visit(node)
        self._caught.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._classes.append(node.name)
        self.generic_visit(node)
        self._classes.pop()
        own = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
        for name in _UNKNOWN_SPECIAL:
            if name in own:
                raise JobError(
                    f"{self._path!r} is a program for Python 2 that cannot be translated: line {own[name].lineno}: the "
                    f"class {node.name} defines {name}, which Python 3 never calls. Define __getitem__ and its "
                    "sisters, which are given slices."
                )
        for old, new in _SPECIAL.items():
            if old in own and new not in own:
                node.body.append(_at(own[old], _assign(new, ast.Name(old, ast.Load()))))
        plain = all(isinstance(each, ast.Name) and each.id == "object" for each in node.bases)
        if "__eq__" in own and "__hash__" not in own and plain:
            node.body.append(_at(own["__eq__"], _hashed_by_identity()))
        if "__cmp__" in own:
            for name in _COMPARISONS:
                if name not in own:
                    node.body.append(_at(own["__cmp__"], _assign(name, _operation(name.strip("_")))))
            if "__hash__" not in own:
                node.body.append(_at(own["__cmp__"], _hashed_by_identity()))
        return node

    def visit_Import(self, node: ast.Import) -> Any:
        return [_at(node, each) for alias in node.names for each in self._imports(alias)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        if node.level or not node.module or node.module == "__future__":
            return node
        if self._is_beside(node.module):
            node.level = 1
        else:
            node.module = MODULES.get(node.module, node.module)
        return node

    def _imports(self, alias: ast.alias) -> list[ast.stmt]:
        root, _, rest = alias.name.partition(".")
        if self._is_beside(root):
            # Python 2 looked in the module's own package first.
            inner = ast.alias(alias.name.rpartition(".")[2], alias.asname or "_")
            submodule: list[ast.stmt] = []
            if rest:
                submodule = [ast.ImportFrom(alias.name.rpartition(".")[0], [inner], 1)]
                if alias.asname:
                    return submodule
            return [*submodule, ast.ImportFrom(None, [ast.alias(root, alias.asname)], 1)]
        today = MODULES.get(alias.name)
        if today is None:
            return [ast.Import([alias])]
        return [ast.Import([ast.alias(today, alias.asname or (None if rest else alias.name))])]

    def _is_beside(self, name: str) -> bool:
        if not self._package:
            return False
        beside = Path(self._path).parent / name.partition(".")[0]
        return beside.with_suffix(".py").is_file() or (beside / "__init__.py").is_file()

    def _mangled(self, name: str) -> str:
        private = self._classes and name.startswith("__") and not name.endswith("__")
        return f"_{self._classes[-1].lstrip('_')}{name}" if private else name


def _as_expression(key: ast.expr) -> ast.expr:
    """Returns the expression in the brackets of a subscript, as a value."""
    if isinstance(key, ast.Slice):
        return _call("slice", *(each or ast.Constant(None) for each in (key.lower, key.upper, key.step)))
    if isinstance(key, ast.Tuple):
        return ast.Tuple([_as_expression(each) for each in key.elts], ast.Load())
    return key


def _is_float(node: ast.expr) -> bool:
    """Returns whether a division by or of this cannot be one of integers."""
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_number(node: ast.expr) -> bool:
    """Returns whether this is a constant, and neither text nor bytes."""
    return isinstance(node, ast.Constant) and not _is_text(node)


def _characters(node: ast.expr) -> ast.expr:
    """Returns the iterable of a loop, which may be bytes."""
    return (
        _at(node, _call("each", node))
        if isinstance(node, ast.Attribute | ast.Call | ast.Name | ast.Subscript) or _is_text(node)
        else node
    )


def _character(node: ast.expr, other: ast.expr) -> ast.expr:
    """Returns the operand of a comparison with text, which may be one byte."""
    single = isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice | ast.Tuple)
    if not single or not (_is_text(other) or isinstance(other, ast.Tuple | ast.List | ast.Set)):
        return node
    assert isinstance(node, ast.Subscript)
    return _at(node, _call("character", node.value, node.slice))


def _operation(name: str) -> ast.expr:
    return ast.Attribute(ast.Name(OPERATIONS, ast.Load()), name, ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(_operation(name), list(arguments), [])


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _hashed_by_identity() -> ast.stmt:
    return _assign("__hash__", ast.Attribute(ast.Name("object", ast.Load()), "__hash__", ast.Load()))


def _at(old: ast.AST, new: _Node) -> _Node:
    """Returns the new node where the old one was."""
    return ast.copy_location(new, old)
