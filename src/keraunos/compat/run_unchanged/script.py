"""Running a program as Python would, with a system's names about it. Runs on the driver."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from keraunos.compat.python2 import program as python2
from keraunos.compat.run_unchanged import aliases
from keraunos.compat.run_unchanged.lazy_names import give_names
from keraunos.compat.run_unchanged.systems import TODAYS_KERAS, System, with_keras
from keraunos.errors import JobError
from keraunos.launch.preflight import check_java

logger = logging.getLogger(__name__)

FAILED = 1
INTERRUPTED = 130

# `%pyspark` alone on a line: what Zeppelin's notebooks begin a paragraph with.
_NOTEBOOK_LINE = re.compile(rb"^%(?=(?:spark\.)?pyspark[ \t]*\r?$)", re.MULTILINE)
# What TensorFlow calls the modules that programs of 1.x import as `tensorflow`.
_ALSO = (("tensorflow", "tensorflow._api.v2.compat.v1"),)
_OURS = tuple(str(Path(__file__).parents[2] / name) for name in ("cli", "compat/python2", "compat/run_unchanged"))


def run_script(path: str, arguments: Sequence[str], system: System) -> int:
    """Run the file as `__main__` and return its exit code; a `SystemExit` of its own goes through.

    What is written for Python 2 is translated, if the program is one of an older system.
    The module that was `__main__` is not put back: the program's threads and its exit handlers still need theirs.
    """
    if not Path(path).is_file():
        raise JobError(f"The script must be a file of Python source. Received: {path!r}, which does not exist.")
    if system.name and not system.python2 and _is_for_python_2(path):
        system = replace(system, python2=True)
    aliases.install_on_driver(system)
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = folder_of(path)
    file = os.path.abspath(path)  # noqa: PTH100 - as Python does it, links unresolved
    program = _main_module(file)
    give_names(vars(program), system)
    sys.modules["__main__"] = program
    try:
        code = _code_of(file, system)
    except SyntaxError as error:
        return _shown(error, FAILED, system)
    try:
        exec(code, vars(program))  # noqa: S102 - running the program is what was asked for
    except Exception as error:  # noqa: BLE001 - whatever the program raised is shown as Python would
        if "JAVA_GATEWAY_EXITED" in str(error):
            check_java()  # only now: a program that starts no Spark needs no Java
        return _shown(error, FAILED, system)
    except KeyboardInterrupt as error:
        return _shown(error, INTERRUPTED, system)
    return 0


def of_its_day(system: System, script: str, keras: str = "") -> System:
    """The system with the Keras and the Python that the program was written for: as is said, or as its source tells."""
    if system.name and Path(script).is_file() and _is_for_python_2(script):
        system = replace(system, python2=True)
    if keras or not system.keras_of or system.keras or not Path(script).is_file():
        return with_keras(system, keras)
    from keraunos.compat.old_keras import evidence

    sources = evidence.sources_of(script, source_of(script))
    day, found = evidence.day_of(sources, system.name, tensorflows="tensorflow" not in system.shadows)
    if day == TODAYS_KERAS:
        return system
    told = "; ".join(dict.fromkeys(f"{each.what} ({each.where})" for each in found[:4]))
    logger.info("The program is read as one for Keras %s, because of %s. --keras says otherwise.", day, told)
    return with_keras(system, day)


def _is_for_python_2(script: str) -> bool:
    """Returns whether the program is, or imports a module beside it that is and that only Python 2 could import."""
    from keraunos.compat.old_keras import evidence

    (_, source), *others = evidence.sources_of(script, source_of(script))
    if _is_translated(source, script):
        return True
    return any(_is_translated(each, path) for path, each in others) and _is_translated(source, script, beside=True)


def _is_translated(source: bytes, path: str, *, beside: bool = False) -> bool:
    try:
        return python2.read(source, path, beside=beside).translated
    except SyntaxError:
        return False


def source_of(path: str) -> bytes:
    """Returns a program's source, without the line that tells a notebook to run it with Spark."""
    return _NOTEBOOK_LINE.sub(b"#", Path(path).read_bytes())


def _code_of(file: str, system: System) -> CodeType:
    """Returns the program's code; one of today is Python's own affair."""
    # Our `from __future__` lines do not apply to the program.
    source = source_of(file)
    if system.name:
        return python2.read(source, file, beside=system.python2).code
    return compile(source, file, "exec", dont_inherit=True)


def folder_of(path: str) -> str:
    """Returns where a script lies, and the modules beside it."""
    return os.path.dirname(os.path.realpath(path))  # noqa: PTH120 - an empty path stays empty


def _main_module(file: str) -> ModuleType:
    module = ModuleType("__main__")
    vars(module).update(
        __file__=file, __loader__=SourceFileLoader("__main__", file), __annotations__={}, __cached__=None
    )
    return module


def _shown(error: BaseException, exit_code: int, system: System) -> int:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        link.__traceback__ = _without_ours(link.__traceback__)
        _use_own_names(link, system)
        link = link.__cause__ or link.__context__
    sys.excepthook(type(error), error, error.__traceback__)
    return exit_code


def _use_own_names(error: BaseException, system: System) -> None:
    """Let an error speak of modules by the names that the program imports them by."""
    ours = {**system.aliases, **system.shadows, **system.fallbacks}
    if not isinstance(error, (AttributeError, ImportError)) or not error.args or not isinstance(error.args[0], str):
        return
    message = error.args[0]
    for name, target in (*ours.items(), *_ALSO):
        message = re.sub(rf"\b{re.escape(target)}\b", name, message)
    if message != error.args[0] and system.name:
        error.args = (message, *error.args[1:])
        if isinstance(error, ImportError):
            error.msg = message


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Returns the traceback as it would be if the program had been started by Python itself."""
    if traceback is None:
        return None
    rest = _without_ours(traceback.tb_next)
    if traceback.tb_frame.f_code.co_filename.startswith(_OURS):
        return rest
    traceback.tb_next = rest
    return traceback
