"""How large a cluster a program will ask for, read from its source. Runs on the driver.

`setCluster` comes after the first line that needs Spark; a local Spark that is started for the program has to know
before.
"""

from __future__ import annotations

import ast

from keraunos.compat.python2.program import tree_of

_ARGUMENTS = ("trainerNum", "pServerNum")


def slots_of(source: bytes) -> int | None:
    """Returns the most trainers and servers together that a call of `setCluster` with plain numbers asks for.

    `None`: none.
    """
    tree = tree_of(source)
    if tree is None:
        # Errors of the program are reported when it runs.
        return None
    asked = [_numbers(node) for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_cluster(node)]
    return max((sum(each) for each in asked), default=None)


def _is_cluster(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "setCluster"


def _numbers(call: ast.Call) -> list[int]:
    named = {each.arg: each.value for each in call.keywords}
    given = [*call.args, *(named[name] for name in _ARGUMENTS if name in named)]
    return [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, int)]
