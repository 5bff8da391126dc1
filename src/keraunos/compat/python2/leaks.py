"""Variables that list comprehensions left behind in Python 2 alone. Runs on the driver and on executors.

A program that reads one would continue with another value today, so it is refused, with its line. What runs in which
order is followed roughly: branches as if all were taken, loops as if they ran twice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from keraunos.errors import JobError

_FUNCTIONS = (ast.FunctionDef, ast.Lambda)
_INNER = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.Lambda)


def refuse_leaked(tree: ast.AST, path: str) -> None:
    """Raise `JobError` where a variable is read after a list comprehension has used its name."""
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef):
            _left_by(scope, path)
        elif isinstance(scope, ast.ClassDef):
            _check_class(scope, path)
    left = _left_by(tree, path)
    for function in _outermost(tree):
        for node in _free(function):
            _check(node, left, path)


def _left_by(scope: ast.AST, path: str) -> set[str]:
    """Returns the variables that comprehensions have left in a scope at its end."""
    left: set[str] = set()
    for node in _in_order(scope):
        if isinstance(node, ast.ListComp):
            left |= _variables_of(node)
        elif isinstance(node.ctx, ast.Load):
            _check(node, left, path)
        else:
            left.discard(node.id)
    return left


def _check_class(scope: ast.ClassDef, path: str) -> None:
    """Refuse list comprehensions that read a variable of their class, which today's cannot see."""
    bound: set[str] = set()
    for node in _in_order(scope):
        if isinstance(node, ast.Name):
            bound |= set() if isinstance(node.ctx, ast.Load) else {node.id}
            continue
        first = set(ast.walk(node.generators[0].iter))  # which runs in the class
        for each in _free(node):
            if each.id in bound and each not in first:
                raise JobError(
                    f"{path!r} is a program for Python 2 that cannot be translated: line {each.lineno}: {each.id!r} of "
                    f"the class {scope.name} is read in a list comprehension, which saw it in Python 2 alone. Use a "
                    "loop."
                )


def _check(node: ast.Name, left: set[str], path: str) -> None:
    if node.id in left:
        raise JobError(
            f"{path!r} is a program for Python 2 that cannot be translated: line {node.lineno}: "
            f"{node.id!r} is read after a list comprehension has used that name, which gave it another "
            "value in Python 2 alone. Give the variable of the comprehension a name of its own."
        )


def _variables_of(comprehension: ast.ListComp) -> set[str]:
    """Returns the variables of a list comprehension, and of those within it."""
    inner = [node for node in ast.walk(comprehension) if isinstance(node, ast.ListComp)]
    targets = [generator.target for node in inner for generator in node.generators]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _in_order(scope: ast.AST) -> Iterator[ast.ListComp | ast.Name]:
    """Yields the names and comprehensions of a scope in the order in which they run, roughly."""
    for child in _children(scope):
        for name in _bound_by(child):
            yield ast.Name(name, ast.Store())
        if isinstance(child, ast.AugAssign) and isinstance(child.target, ast.Name):
            yield ast.copy_location(ast.Name(child.target.id, ast.Load()), child)
        if isinstance(child, _INNER):
            yield from _free(child)
        if isinstance(child, ast.ListComp | ast.Name):
            yield child
        elif not isinstance(child, (ast.FunctionDef, ast.ClassDef, *_INNER)):
            yield from _in_order(child)


def _free(scope: ast.AST) -> list[ast.Name]:
    """Returns the names that an inner scope reads and does not bind."""
    names = [node for node in ast.walk(scope) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in ast.walk(scope) if isinstance(node, ast.arg)}
    bound |= {name for node in ast.walk(scope) for name in _bound_by(node)}
    # What it says to be global is the module's.
    bound -= {name for node in ast.walk(scope) if isinstance(node, ast.Global) for name in node.names}
    return [node for node in names if isinstance(node.ctx, ast.Load) and node.id not in bound]


def _outermost(node: ast.AST) -> Iterator[ast.AST]:
    """Functions that are in no other."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            yield child
        else:
            yield from _outermost(child)


def _bound_by(node: ast.AST) -> list[str]:
    """Returns names that a node binds without a node for the name."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.ExceptHandler):
        return [node.name] if node.name else []
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [each.asname or each.name.partition(".")[0] for each in node.names]
    return []


def _children(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Assign):
        return [node.value, *node.targets]
    if isinstance(node, ast.For):
        return [node.iter, *(node.target, *node.body) * 2, *node.orelse]
    if isinstance(node, ast.While):
        return [*(node.test, *node.body) * 2, *node.orelse]
    return list(ast.iter_child_nodes(node))
