"""Prints the files of a constraints file's packages by their hashes, for `pip install --require-hashes`.

.venv/bin/python scripts/lock.py constraints.txt constraints-torch.txt --without torch > requirements-lock.txt

The ordinary pip client asks the index that it is set up for, by the names and versions of the constraints alone; what a
user's own settings of pip add to that (folders of wheels, other indexes) is left out. pip chooses the files for the
Python and the system that this runs on. `--without` leaves out what is installed from a build of one's own.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def main() -> int:
    """Ask pip for the files, and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("constraints", nargs="+", type=Path, help="files that name exact versions")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="a package to leave out")
    options = parser.parse_args()
    wanted = pinned([path.read_text() for path in options.constraints], options.without)
    print(locked(reported(wanted), options.without))
    return 0


def pinned(constraints: Sequence[str], without: Sequence[str]) -> list[str]:
    """The requirements of all constraints, each once, but for those left out."""
    left_out = {canonicalize_name(name) for name in without}
    lines = {line.split("#")[0].strip() for text in constraints for line in text.splitlines()} - {""}
    return sorted(line for line in lines if canonicalize_name(Requirement(line).name) not in left_out)


def reported(requirements: Sequence[str]) -> Mapping[str, Any]:
    """What pip would install for them, as it reports it; nothing is installed."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder, "wanted.txt"), Path(folder, "report.json")
        wanted.write_text("\n".join(requirements))
        pip = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--quiet"]
        chosen = ["--dry-run", "--ignore-installed", "--no-deps", "--report", str(report), "-r", str(wanted)]
        subprocess.run([*pip, *chosen], check=True)
        found: Mapping[str, Any] = json.loads(report.read_text())
    return found


def locked(report: Mapping[str, Any], without: Sequence[str]) -> str:
    """The lock file of a report: names, versions and hashes, and no address."""
    python = ".".join(platform.python_version_tuple()[:2])
    system = f"{platform.system()} {platform.machine()}"
    lines = [
        f"# Made by scripts/lock.py from the constraints, for Python {python} on {system}.",
        "# pip install --require-hashes --no-deps -r requirements-lock.txt",
        *(f"# Left out, because it may be a build of one's own: {name}" for name in without),
    ]
    for each in sorted(report["install"], key=lambda each: canonicalize_name(each["metadata"]["name"])):
        name, version = canonicalize_name(each["metadata"]["name"]), each["metadata"]["version"]
        hashes = each["download_info"].get("archive_info", {}).get("hashes", {})
        if "sha256" not in hashes:
            raise SystemExit(f"The index gave no sha256 for {name}=={version}. Leave it out with --without {name}.")
        lines += [f"{name}=={version} \\", f"    --hash=sha256:{hashes['sha256']}"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
