"""Spark's Python modules, compiled where its workers read them: a worker's start without a second of compiling.

    python -m tests.spark_modules

puts bytecode beside the sources in the zip files of this environment's Spark, and leaves Spark's own tests out of them:
a worker reads the list of a zip file's contents again and again. Another version of Python passes the bytecode over.
"""

import importlib.util
import marshal
import zipfile
from pathlib import Path


def compile_modules(file: Path) -> None:
    """Write the zip file anew."""
    aside = file.with_suffix(".writing")
    with zipfile.ZipFile(file) as read, zipfile.ZipFile(aside, "w", zipfile.ZIP_STORED) as written:
        for name in read.namelist():
            if name.endswith(("/", ".pyc")) or "/tests/" in name:
                continue
            content = read.read(name)
            written.writestr(name, content)
            if name.endswith(".py"):
                written.writestr(f"{name}c", _bytecode(content, f"{file}/{name}"))
    aside.replace(file)


def _bytecode(source: bytes, name: str) -> bytes:
    """As in a file of bytecode that is never compared with its source."""
    code = compile(source, name, "exec", dont_inherit=True)
    unchecked = (1).to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + unchecked + importlib.util.source_hash(source) + marshal.dumps(code)


if __name__ == "__main__":
    found = importlib.util.find_spec("pyspark")
    for each in Path(found.origin).parent.glob("python/lib/*.zip"):
        compile_modules(each)
