"""`make audit`: what is known of the packages, told apart from what nobody was asked."""

import importlib.util
import json
import re
import sys
import uuid
from datetime import UTC, datetime
from importlib.metadata import distributions, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(name):
    spec = importlib.util.spec_from_file_location(f"scripts_{name}", ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


audit, lock = script("audit"), script("lock")

# SKIPPED and UNREACHABLE are from answers of pip-audit 2.10.1, shortened. The others were written by hand in its form:
# no service that knows the packages could be reached to record them.
CLEAN = {"dependencies": [{"name": "six", "version": "1.17.0", "vulns": []}], "fixes": []}
ITSELF = {"name": "keraunos", "skip_reason": "Dependency not found on PyPI and could not be audited: keraunos (0.1.0)"}
SKIPPED = {"name": "absl-py", "skip_reason": "Dependency not found on PyPI and could not be audited: absl-py (2.5.1)"}
VULNERABLE = {
    "name": "jinja2",
    "version": "3.1.5",
    "vulns": [
        {
            "id": "GHSA-cpwx-vrp4-4pq7",
            "fix_versions": ["3.1.6"],
            "aliases": ["CVE-2025-27516"],
            "description": "The |attr filter selects the format method.",
        }
    ],
}
UNREACHABLE = """\
  File "requests/adapters.py", line 723, in send
    raise ProxyError(e, request=request)
requests.exceptions.ProxyError: HTTPSConnectionPool(port=443): Max retries exceeded with url: /boolean-py/5.0/json
"""


def told(*dependencies, errors=""):
    return audit.verdict(json.dumps({"dependencies": list(dependencies), "fixes": []}), errors, "keraunos")


def test_packages_without_a_known_vulnerability():
    found = told(*CLEAN["dependencies"], ITSELF)
    assert found.code == audit.SOUND
    assert found.lines == ("No known vulnerability in 2 packages.",)


def test_a_known_vulnerability_is_named_with_its_fix():
    found = told(*CLEAN["dependencies"], VULNERABLE)
    assert found.code == audit.VULNERABLE
    assert found.lines == ("Vulnerable: jinja2 3.1.5: GHSA-cpwx-vrp4-4pq7, fixed in 3.1.6",)


def test_what_the_service_does_not_answer_for_is_not_called_sound():
    # pip-audit itself ends with 0 and "No known vulnerabilities found" here.
    found = told(SKIPPED, ITSELF, errors="No known vulnerabilities found")
    assert found.code == audit.NOT_CHECKED
    assert found.lines == ("Not checked: the service did not answer for 1 of 2 packages: absl-py.",)


def test_a_vulnerability_counts_also_where_others_were_not_checked():
    found = told(VULNERABLE, *[SKIPPED] * 7)
    assert found.code == audit.VULNERABLE
    assert "7 of 8 packages" in found.lines[1]
    assert found.lines[1].endswith("and 2 others.")


@pytest.mark.parametrize(("answer", "errors"), [("", UNREACHABLE), ("", ""), ("[]", UNREACHABLE), ("{", UNREACHABLE)])
def test_a_service_that_cannot_be_reached_is_not_checked(answer, errors):
    found = audit.verdict(answer, errors, "keraunos")
    assert found.code == audit.NOT_CHECKED
    assert found.lines[0].startswith("Not checked: pip-audit could not ask its service.")
    assert ("ProxyError" in found.lines[0]) == bool(errors)


def test_without_pip_audit_nothing_is_checked(tmp_path):
    assert audit.asked(tmp_path / "no-python", "keraunos").code == audit.NOT_CHECKED


def test_the_sbom_lists_what_is_installed():
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    document = audit.sbom(distributions(), "keraunos", serial=uuid.UUID(int=7), now=moment)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["serialNumber"] == "urn:uuid:00000000-0000-0000-0000-000000000007"
    assert document["metadata"]["timestamp"] == "2026-01-02T03:04:05+00:00"
    assert document["metadata"]["component"]["name"] == "keraunos"
    found = {each["name"]: each for each in document["components"]}
    assert found["keras"]["purl"] == f"pkg:pypi/keras@{version('keras')}"
    assert "keraunos" not in found
    assert len({each["bom-ref"] for each in document["components"]}) == len(found)
    json.dumps(document)


REPORT = {
    "install": [
        {
            "metadata": {"name": "Six", "version": "1.17.0"},
            "download_info": {
                "url": "https://index/six.whl",
                "archive_info": {"hashes": {"sha256": "ab" * 32}},
            },
        }
    ]
}


def test_a_lock_file_has_hashes_and_no_addresses():
    text = lock.locked(REPORT, ["torch"])
    assert f"six==1.17.0 \\\n    --hash=sha256:{'ab' * 32}" in text
    assert "index/" not in text
    assert "torch" in text


def test_a_file_without_a_hash_is_refused():
    local = {
        "install": [{"metadata": {"name": "torch", "version": "2"}, "download_info": {"url": "x", "dir_info": {}}}]
    }
    with pytest.raises(SystemExit, match="no sha256 for torch==2.*--without torch"):
        lock.locked(local, [])


def test_the_lock_file_is_that_of_the_constraints():
    constraints = [(ROOT / name).read_text() for name in ("constraints.txt", "constraints-torch.txt")]
    text = (ROOT / "requirements-lock.txt").read_text()
    assert sorted(re.findall(r"^(\S+==\S+) \\$", text, re.MULTILINE)) == lock.pinned(constraints, ["torch"])
    assert len(re.findall(r"^    --hash=sha256:[0-9a-f]{64}$", text, re.MULTILINE)) == text.count("==")
    assert "://" not in text
