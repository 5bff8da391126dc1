"""What the metadata of a saved estimator or model may name. Runs on the driver.

Metadata is a file like any other: the names in it are looked at before anything is imported or opened because of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keraunos.errors import JobError, PlanError
from keraunos.job.rule_spec import KERAS_OBJECT, RuleSpec
from keraunos.learners.framework_imports import import_keras

# A file does not decide what is trusted.
_NEVER_SAVED = ("trustedModules",)
_FILES = 1000


def without_trust(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """spark.ml's metadata without the Params that say what is trusted."""
    cleaned = dict(metadata)
    for kind in ("paramMap", "defaultParamMap"):
        held = metadata.get(kind) or {}
        cleaned[kind] = {name: value for name, value in held.items() if name not in _NEVER_SAVED}
    return cleaned


def check_rules(metadata: Any) -> None:
    """Refuse rules, wherever they are in metadata, whose code is not trusted."""
    for each in _rules_in(metadata):
        try:
            rule = RuleSpec.from_saved(each)
        except (KeyError, TypeError, AttributeError) as error:
            raise PlanError(f"A saved rule cannot be read. Received: {each!r}.") from error
        if rule.name == KERAS_OBJECT and rule.home is None:
            import_keras()
            from keraunos.learners.keras_files import checked_config

            checked_config(dict(rule.options), {})


def file_names(names: Any) -> Sequence[str]:
    """The names of the files that metadata lists; refused where one is no plain name of a file in the folder."""
    if not isinstance(names, list) or len(names) > _FILES:
        raise JobError(
            f"The metadata of a saved model must list the names of its files. Received: {str(names)[:200]!r}."
        )
    for name in names:
        if not isinstance(name, str) or not name or name in {".", ".."} or any(each in name for each in "/\\:"):
            raise JobError(
                "The files of a saved model must lie in its folder. Expected: names of files, such as 'model.keras'. "
                f"Received: {name!r}. Do not use this model: its metadata was changed."
            )
    return names


def _rules_in(value: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            if "home" in each and "name" in each:
                yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
