"""Detects whether a program is for Python 2 or for Python 3. Runs on the driver and on executors.

A source that today's Python compiles is taken for Python 2 only if it uses a name that no Python 3 has, binds it
nowhere, asks nowhere which Python it runs on, and has nothing in it that only Python 3 has.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# Builtins; a star import may also define those of the second kind.
STRONG = frozenset({"StandardError", "basestring", "execfile", "raw_input", "unichr", "unicode", "xrange"})
WEAK = frozenset({"apply", "buffer", "cmp", "file", "intern", "long", "reduce", "reload"})
METHODS = frozenset({"has_key", "iteritems", "iterkeys", "itervalues", "viewitems", "viewkeys", "viewvalues"})
MODULES = frozenset(
    {
        "BaseHTTPServer", "ConfigParser", "HTMLParser", "Queue", "SimpleHTTPServer", "SocketServer", "StringIO",
        "Tkinter", "__builtin__", "anydbm", "cPickle", "cStringIO", "commands", "cookielib", "copy_reg", "exceptions",
        "htmlentitydefs", "httplib", "sets", "thread", "urllib2", "urlparse", "xmlrpclib",
    }
)  # fmt: skip
ATTRIBUTES = {
    "itertools": frozenset({"ifilter", "ifilterfalse", "imap", "izip", "izip_longest"}),
    "os": frozenset({"getcwdu"}),
    "string": frozenset({"join", "letters", "lowercase", "uppercase"}),
    "sys": frozenset({"maxint", "setdefaultencoding"}),
    "urllib": frozenset({"quote", "quote_plus", "unquote", "urlencode", "urlopen", "urlretrieve"}),
}

_WORDS = sorted({*STRONG, *WEAK, *METHODS, *MODULES}.union(*ATTRIBUTES.values()))
_ANY = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b|^\s*print\b", re.MULTILINE)
# A program that uses one of these supports both Pythons.
_KNOWS_BOTH = frozenset({"PY2", "PY3", "PY_3", "python_2_unicode_compatible", "version_info", "hexversion"})
_BRIDGES = frozenset({"builtins", "future", "past", "six"})

# Lines that no Python 3 accepts, for use without fissix.
_OLD_SYNTAX = re.compile(
    r"""^\s*(?:print\s*(?:$|["'\w>`\[{~-])|exec\s+[^(=\s]|raise\s+[\w.]+\s*,|except\s+[^:]+,\s*\w+\s*:)"""
    r"""|`[^`]+`|<>|\blambda\s*\(|\bdef\s+\w+\(.*\(\s*\w+\s*,|\b0\d+\b|\b\d+[lL]\b|\bur["']""",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Python2Evidence:
    """Where a program shows that it is for Python 2."""

    line: int
    text: str


def of_python_2(source: bytes, path: str, *, beside: bool = False) -> Python2Evidence | None:
    """Returns the first name of Python 2 in a source that today's Python compiles; `None` if it is not for Python 2.

    One `beside` a program for Python 2 needs no such name.
    """
    if not beside and not _ANY.search(source.decode("utf-8", "replace")):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown when the source was compiled
        tree = ast.parse(source, path)
    if _knows_both(tree) or needs_python_3(tree):
        return None
    seen = _Names(Path(path).parent)
    seen.visit(tree)
    return seen.first() or (Python2Evidence(1, "it goes with a program for Python 2") if beside else None)


def of_old_syntax(text: str, error: SyntaxError) -> Python2Evidence | None:
    """Returns the line that only Python 2 takes, where the error or a look at the lines shows one."""
    if isinstance(error, TabError):
        return Python2Evidence(error.lineno or 1, "tabs and spaces in one block")
    lines = text.splitlines()
    near = [] if error.lineno is None else [error.lineno]
    for number in [*near, *range(1, len(lines) + 1)]:
        if 0 < number <= len(lines) and _OLD_SYNTAX.search(lines[number - 1]):
            return Python2Evidence(number, repr(lines[number - 1].strip()))
    return None


def needs_python_3(tree: ast.Module, *, translated: bool = False) -> bool:
    """Returns whether there is anything in a program that Python 2 does not take."""
    prints = translated or any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "print_function"
        for node in tree.body
    )
    return any(_is_new(node, prints=prints, translated=translated) for node in ast.walk(tree))


def line_of(text: str, number: int) -> str:
    """Returns a line of a source, without its indentation."""
    lines = text.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


_NEW = (
    ast.AnnAssign, ast.AsyncFor, ast.AsyncFunctionDef, ast.AsyncWith, ast.Await, ast.JoinedStr, ast.MatMult, ast.Match,
    ast.NamedExpr, ast.Nonlocal, ast.YieldFrom,
)  # fmt: skip


def _is_new(node: ast.AST, *, prints: bool, translated: bool) -> bool:
    if isinstance(node, _NEW):
        return True
    if isinstance(node, ast.FunctionDef):
        every = [*node.args.posonlyargs, *node.args.args, node.args.vararg, node.args.kwarg]
        annotated = any(each is not None and each.annotation is not None for each in every)
        return annotated or bool(node.args.kwonlyargs) or node.returns is not None
    if isinstance(node, ast.ClassDef):
        return bool(node.keywords) and not translated
    if isinstance(node, ast.Raise):
        return node.cause is not None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        named = {each.arg for each in node.keywords}
        return (node.func.id == "super" and not node.args) or (node.func.id == "print" and bool(named) and not prints)
    return isinstance(node, ast.List | ast.Tuple | ast.Set) and any(isinstance(e, ast.Starred) for e in node.elts)


def _knows_both(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            if (node.id if isinstance(node, ast.Name) else node.attr) in _KNOWS_BOTH:
                return True
        elif isinstance(node, ast.Import):
            if any(each.name.partition(".")[0] in _BRIDGES for each in node.names):
                return True
        elif isinstance(node, ast.ImportFrom):
            if not node.level and (node.module or "").partition(".")[0] in _BRIDGES:
                return True
        elif isinstance(node, ast.ExceptHandler) and node.type is not None:
            caught = {each.id for each in ast.walk(node.type) if isinstance(each, ast.Name)}
            if caught & {"NameError", "ImportError", "ModuleNotFoundError"}:
                return True
    return False


def _leftmost(node: ast.expr) -> ast.expr | None:
    """Returns the first operand of an expression, if it is an expression."""
    if isinstance(node, ast.BinOp):
        return node.left
    if isinstance(node, ast.Tuple) and node.elts:
        return node.elts[0]
    if isinstance(node, ast.Attribute | ast.Subscript):
        return node.value
    if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
        return node.func
    return None


class _Names(ast.NodeVisitor):
    """Collects what a module binds, and where it uses names of Python 2."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bound: set[str] = set()
        self._imported: set[str] = set()
        self._stars = False
        self._loaded: list[tuple[int, str]] = []
        self._sure: list[Python2Evidence] = []
        self._methods: list[Python2Evidence] = []

    def first(self) -> Python2Evidence | None:
        """Returns the first use of a name that only Python 2 has."""
        known = STRONG if self._stars else STRONG | WEAK
        found = [
            Python2Evidence(line, name) for line, name in self._loaded if name in known and name not in self._bound
        ]
        # A DataFrame of pandas had `iteritems` until lately.
        found += self._sure + ([] if "pandas" in self._imported else self._methods)
        return min(found, key=lambda each: each.line, default=None)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._loaded.append((node.lineno, node.id))
        else:
            self._bound.add(node.id)

    def visit_arg(self, node: ast.arg) -> None:
        self._bound.add(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._bound.add(node.name)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bound.add(node.name)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bound.add(node.name)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            self._bound.add(each.asname or each.name.partition(".")[0])
            self._module(node.lineno, each.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._stars |= node.names[0].name == "*"
        self._bound.update(each.asname or each.name for each in node.names)
        if node.module and not node.level:
            self._module(node.lineno, node.module)
            for each in node.names:
                if each.name in ATTRIBUTES.get(node.module, ()):
                    self._sure.append(Python2Evidence(node.lineno, f"{node.module}.{each.name}"))

    def visit_Expr(self, node: ast.Expr) -> None:
        # `print` alone, `print >>file, …`, `print (…), …`, `print (…) % …`, `print (…).name`: without use today.
        first, plain = node.value, True
        while (inner := _leftmost(first)) is not None:
            first, plain = inner, False
        if isinstance(first, ast.Call) and not plain:
            first = first.func
        if isinstance(first, ast.Name) and first.id == "print":
            self._sure.append(Python2Evidence(node.lineno, "print"))
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.attr in ATTRIBUTES.get(node.value.id, ()):
            self._sure.append(Python2Evidence(node.lineno, f"{node.value.id}.{node.attr}"))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            self._methods.append(Python2Evidence(node.lineno, f".{node.func.attr}()"))
        self.generic_visit(node)

    def _module(self, line: int, name: str) -> None:
        root = name.partition(".")[0]
        self._imported.add(root)
        if root in MODULES and not self._has_its_own(root):
            self._sure.append(Python2Evidence(line, f"import {name}"))

    def _has_its_own(self, root: str) -> bool:
        """Returns whether a module of that name exists today: the program's, or an installed one."""
        if (self._folder / f"{root}.py").is_file() or (self._folder / root).is_dir():
            return True
        try:
            return find_spec(root) is not None
        except (ImportError, ValueError):
            return False
