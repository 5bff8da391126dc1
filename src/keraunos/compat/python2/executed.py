"""`eval`, `exec` and `compile` of text that is Python 2, too. Runs on the driver and on executors."""

from __future__ import annotations
import __future__

import ast
import builtins
import dis
from types import CodeType, FrameType
from typing import Any

from keraunos.errors import JobError

_FILE = "<string>"


def code_of(source: Any, mode: str, names: dict[str, Any], file: str = _FILE) -> Any:
    """Code that means what the text means to Python 2, or the code itself; `names` gets what it needs."""
    from keraunos.compat.python2 import operations, rewriting
    from keraunos.compat.python2.old_builtins import NAMES

    divides = names.get("division") is not __future__.division
    code = source if isinstance(source, CodeType) else _compiled(source, mode, file, divides=divides)
    for name in _names_in(code):
        if name in NAMES and name not in names:
            names[name] = NAMES[name]
        elif name == rewriting.OPERATIONS:
            names[name] = operations
    return code


def compiled(source: Any, file: str, mode: str, flags: int, frame: FrameType) -> Any:
    """`compile`; what else than text and a file it is given is Python 3's."""
    if not isinstance(source, (str, bytes)) or flags:
        return builtins.compile(source, file, mode, flags)
    return code_of(source, mode, frame.f_globals, file)


def executed(source: Any, given: Any, local: Any, frame: FrameType) -> None:
    """`exec`, in the caller's names unless it is given others."""
    names = frame.f_globals if given is None else given
    if given is not None or local is not None or frame.f_locals is frame.f_globals:
        exec(code_of(source, "exec", names), names, local)  # noqa: S102 - what the program asked for
        return
    inner = frame.f_locals
    before = dict(inner)
    exec(code_of(source, "exec", names), names, inner)  # noqa: S102 - what the program asked for
    _check_bound(frame, before, dict(inner))


def _check_bound(frame: FrameType, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Refuse names that the function would go on to read otherwise than Python 2 did."""
    code = frame.f_code
    own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    read = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for name, value in after.items():
        if (
            (name in own or name in read)
            and (name not in before or before[name] is not value)
            and code.co_name != "<module>"
        ):
            raise JobError(
                f"`exec` must not bind a name that its function reads. Received: {name!r}, in {code.co_name!r}, line "
                f"{frame.f_lineno} of {code.co_filename!r}, to whose names only Python 2 let it write. Give it a dict, "
                f"`exec code in names`, and read names[{name!r}]."
            )


def _compiled(source: Any, mode: str, file: str, *, divides: bool) -> Any:
    from keraunos.compat.python2 import rewriting, syntax
    from keraunos.compat.python2.text import as_text

    text = as_text(source)
    text = text.strip() if mode == "eval" else text
    try:
        new = syntax.translate(text)
    except syntax.NotPythonError:
        return builtins.compile(source, file, mode, dont_inherit=True)  # raises the SyntaxError
    parsed: Any = ast.parse(new.text.rstrip() if mode == "eval" else new.text, file, mode)
    rewriting.rewrite_parts(parsed, new.lines, file, divides=divides)
    return builtins.compile(parsed, file, mode, dont_inherit=True)


def _names_in(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))
