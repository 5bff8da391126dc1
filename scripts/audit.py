"""Looks for known vulnerabilities of what is installed, and lists all of it as an SBOM (CycloneDX, JSON).

.venv/bin/python scripts/audit.py --pip-audit .venv-audit/bin/python --sbom build/sbom.cdx.json

The SBOM needs no network. pip-audit asks a service; where that cannot be reached, or does not know a package, this says
so and does not call the package sound.

exit codes:
  0  everything was checked, and nothing is known
  1  something is known: it is listed
  3  not checked, or not everything: it is said why
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
import tomllib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent

SOUND = 0
VULNERABLE = 1
NOT_CHECKED = 3

_SHOWN = 5


@dataclass(frozen=True)
class Verdict:
    """What came of it: an exit code, and lines to print."""

    code: int
    lines: tuple[str, ...]


def main() -> int:
    """Write the SBOM, ask pip-audit, and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pip-audit", type=Path, metavar="PYTHON", help="a Python that has pip-audit")
    parser.add_argument("--sbom", type=Path, default=ROOT / "build" / "sbom.cdx.json", help="where to write the SBOM")
    options = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
    document = sbom(distributions(), project, serial=uuid.uuid4(), now=datetime.now(UTC))
    options.sbom.parent.mkdir(parents=True, exist_ok=True)
    options.sbom.write_text(json.dumps(document, indent=1))
    print(f"SBOM of {len(document['components'])} packages: {options.sbom}")
    found = asked(options.pip_audit, project)
    print("\n".join(found.lines))
    return found.code


def asked(python: Path | None, project: str) -> Verdict:
    """What pip-audit says of the packages that are installed beside this script's interpreter."""
    if python is None or not python.exists():
        return Verdict(NOT_CHECKED, ("Not checked: pip-audit is not installed, and could not be.",))
    command = [str(python), "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    paths = dict.fromkeys(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))
    for path in paths:
        command += ["--path", path]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return verdict(ended.stdout, ended.stderr, project)


def verdict(answer: str, errors: str, project: str) -> Verdict:
    """What an answer of pip-audit amounts to. Its exit code tells neither a failure nor a package it passed over."""
    try:
        dependencies = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        said = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "it said nothing")
        return Verdict(NOT_CHECKED, (f"Not checked: pip-audit could not ask its service. It said: {said}",))
    known = [
        f"{each['name']} {each['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no version'}"
        for each in dependencies
        for found in each.get("vulns", ())
    ]
    ours = canonicalize_name(project)
    skipped = [
        each["name"] for each in dependencies if "skip_reason" in each and canonicalize_name(each["name"]) != ours
    ]
    lines = [f"Vulnerable: {line}" for line in known]
    if skipped:
        others = f" and {len(skipped) - _SHOWN} others" if len(skipped) > _SHOWN else ""
        lines.append(
            f"Not checked: the service did not answer for {len(skipped)} of {len(dependencies)} packages: "
            f"{', '.join(skipped[:_SHOWN])}{others}."
        )
    if known:
        return Verdict(VULNERABLE, tuple(lines))
    if skipped or not dependencies:
        return Verdict(NOT_CHECKED, tuple(lines or ["Not checked: pip-audit found no packages."]))
    return Verdict(SOUND, (f"No known vulnerability in {len(dependencies)} packages.",))


def sbom(installed: Iterable[Distribution], project: str, *, serial: uuid.UUID, now: datetime) -> dict[str, Any]:
    """What is installed, the project itself apart, as a CycloneDX document."""
    components = {canonicalize_name(each.metadata["Name"]): _component(each) for each in installed}
    subject = components.pop(canonicalize_name(project), {"type": "application", "name": project})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial.urn,
        "version": 1,
        "metadata": {
            "timestamp": now.isoformat(timespec="seconds"),
            "component": {**subject, "type": "application"},
        },
        "components": [components[name] for name in sorted(components)],
    }


def _component(installed: Distribution) -> dict[str, Any]:
    about: Mapping[str, Any] = installed.metadata.json
    name = canonicalize_name(about["name"])
    address = f"pkg:pypi/{name}@{about['version']}"
    component = {"type": "library", "bom-ref": address, "name": name, "version": about["version"], "purl": address}
    # An expression of SPDX is one by its own field; what stands in the older field may be any text.
    if "license_expression" in about:
        component["licenses"] = [{"expression": about["license_expression"]}]
    elif about.get("license") and "\n" not in about["license"]:
        component["licenses"] = [{"license": {"name": about["license"]}}]
    return component


if __name__ == "__main__":
    sys.exit(main())
