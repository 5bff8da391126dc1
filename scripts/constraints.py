"""Prints the exact versions of everything the project needs in this environment, as a pip constraints file.

.venv/bin/python scripts/constraints.py hyperparam jax notebook python2 tensorflow tensorflow1 > constraints.txt
.venv-torch/bin/python scripts/constraints.py torch --without constraints.txt > constraints-torch.txt
"""

from __future__ import annotations

import argparse
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Walk the requirements from pyproject.toml through what is installed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("extras", nargs="*", help="extras of the project to include")
    parser.add_argument("--without", type=Path, help="leave out what this constraints file already names")
    options = parser.parse_args()

    known = set() if options.without is None else _names_in(options.without)
    versions = _closure(_declared(options.extras))
    print("# The versions this project is tested with. Written by scripts/constraints.py.")
    for name in sorted(set(versions) - known):
        print(f"{name}=={versions[name]}")


def _declared(extras: list[str]) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    optional = project["project"]["optional-dependencies"]
    return [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(requirement for extra in extras for requirement in optional[extra]),
        *project["dependency-groups"]["dev"],
        "pip",
        "editables",  # hatchling asks for it when it builds an editable install
    ]


def _closure(requirements: list[str]) -> dict[str, str]:
    versions: dict[str, str] = {}
    seen: set[tuple[str, ...]] = set()
    waiting = [each for each in map(Requirement, requirements) if _applies(each, {""})]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        extras = requirement.extras or {""}
        if (name, *sorted(extras)) in seen or name == "setuptools":  # comes with the older Pythons, as they chose it
            continue
        seen.add((name, *sorted(extras)))
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue  # not needed on this platform, or only while the package is built
        versions[name] = Version(installed.version).public  # torch's "+cpu" names a build, not a version
        waiting += [each for each in map(Requirement, installed.requires or []) if _applies(each, extras)]
    return versions


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras | {""})


def _names_in(path: Path) -> set[str]:
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return {canonicalize_name(Requirement(line).name) for line in lines if line}


if __name__ == "__main__":
    main()
