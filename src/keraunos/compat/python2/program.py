"""From a program's source to its code, whichever Python it was written for. Runs on the driver and on executors."""

from __future__ import annotations
import __future__

import ast
import io
import tokenize
import warnings
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType

from keraunos.compat.python2 import evidence
from keraunos.errors import JobError


@dataclass(frozen=True)
class CompiledSource:
    """Code, and whether it was Python 2 before."""

    code: CodeType
    translated: bool = False


@lru_cache(maxsize=8)  # who asks whether a program is for Python 2 runs it next
def read(source: bytes, path: str, package: str = "", *, beside: bool = False) -> CompiledSource:
    """Compile a source; one for Python 2 is translated, and keeps its lines' numbers.

    Args:
        source: the file's bytes.
        path: what tracebacks name.
        package: the package that the module is in, where Python 2 looks for what it imports first.
        beside: whether it belongs to a program for Python 2; it is then for Python 2, too, unless its source shows
            otherwise.

    Raises:
        SyntaxError: neither Python takes the source.
        JobError: it is for Python 2, and cannot be translated, or what translates is not installed.
    """
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        translated = _translated(source, path, package, error)
        if translated is None:
            raise
        return translated
    if (found := evidence.of_python_2(source, path, beside=beside)) is None:
        return CompiledSource(code)
    return _translated(source, path, package, found) or CompiledSource(code)


def tree_of(source: bytes) -> ast.Module | None:
    """Returns a source's syntax tree, of whichever Python; `None` if it has none."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        pass
    try:
        from keraunos.compat.python2 import syntax

        return ast.parse(syntax.translate(_decoded(source)).text)
    except (ImportError, SyntaxError, ValueError):
        return None


def function_tree(source: str, function: FunctionType) -> ast.Module:
    """Returns the syntax tree of a function's source, with the meanings that its module has; raises `SyntaxError`."""
    from keraunos.compat.python2 import rewriting

    if rewriting.OPERATIONS not in function.__globals__:
        return ast.parse(source)
    from keraunos.compat.python2 import syntax

    new = syntax.translate(source)
    tree = ast.parse(new.text)
    divides = function.__globals__.get("division") is not __future__.division
    rewriting.rewrite_parts(tree, new.lines, function.__code__.co_filename, divides=divides)
    return tree


def is_operation(function: ast.expr) -> bool:
    """Returns whether a call in such a tree is one of an operation of Python 2."""
    from keraunos.compat.python2 import rewriting

    home = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(home, ast.Name) and home.id == rewriting.OPERATIONS


def _translated(
    source: bytes, path: str, package: str, why: SyntaxError | evidence.Python2Evidence
) -> CompiledSource | None:
    """Returns the program in today's Python; `None` if it is not one for Python 2 after all."""
    try:
        text = _decoded(source)
    except (SyntaxError, UnicodeDecodeError):
        return None
    told = why if isinstance(why, evidence.Python2Evidence) else evidence.of_old_syntax(text, why)
    try:
        from keraunos.compat.python2 import rewriting, syntax
    except ImportError:
        if told is None:
            return None
        raise JobError(
            f"{path!r} is a program for Python 2 (line {told.line}: {told.text}), and what translates it is not "
            "installed here. Install it with `pip install 'keraunos[python2]'`, on the executors too, or rewrite the "
            "program for Python 3."
        ) from None
    try:
        new = syntax.translate(text)
    except syntax.NotPythonError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what today's Python advises is not one of that program's
        try:
            tree = ast.parse(new.text, path)
            if evidence.needs_python_3(tree, translated=True):
                return None
            rewriting.rewrite(tree, new.lines, path, package)
            return CompiledSource(compile(tree, path, "exec", dont_inherit=True), translated=True)
        except SyntaxError as error:
            if told is None:
                return None
            line = new.lines(error.lineno or 1)
            raise JobError(
                f"{path!r} is a program for Python 2 that cannot be translated: line {line}: {error.msg}. Received: "
                f"{evidence.line_of(text, line)!r}. Rewrite that line for Python 3."
            ) from None


def _decoded(source: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return io.TextIOWrapper(io.BytesIO(source), encoding).read()
