"""Validation of the volumes of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.validation.core.containers import validate_path
from ruleop.core.validation.field_errors import (
    duplicate,
    forbidden_value,
    invalid_value,
    required,
    validate_one_of,
    validate_required,
)
from ruleop.core.validation.fields.field_names import label_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

# What a source of each type must name.
_REQUIRED: Final = {
    "hostPath": "path",
    "local": "path",
    "secret": "secretName",
    "configMap": "name",
    "persistentVolumeClaim": "claimName",
    "nfs": "server",
    "csi": "driver",
}
# The server checks sources in an order of its own, of which these are the first.
_ORDER: Final = ("emptyDir", "hostPath", "gitRepo", "secret", "nfs", "persistentVolumeClaim", "configMap")
_ON_HOST: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_FILES: Final = ("secret", "configMap", "downwardAPI", "projected")
_LARGEST_MODE: Final = 0o777


def validate_volumes(volumes: Sequence[Object], field: str, valid: set[str]) -> Iterator[FieldError]:
    """`valid`: names of valid volumes, to which this adds."""
    for index, volume in enumerate(volumes):
        errors = list(_validate_volume(volume, f"{field}[{index}]", valid))
        if not errors:
            valid.add(volume["name"])
        yield from errors


def _validate_volume(volume: Object, field: str, names: set[str]) -> Iterator[FieldError]:
    name = volume.get("name", "")
    order = dict.fromkeys((*_ORDER, *volume))
    given = [each for each in order if each != "name" and volume.get(each) is not None]
    for kind in given[1:]:
        yield forbidden_value(f"{field}.{kind}", "may not specify more than 1 volume type")
    if given:
        yield from validate_source(given[0], volume[given[0]], f"{field}.{given[0]}")
    else:
        yield required(field, "must specify a volume type")
    yield from validate_required(f"{field}.name", name, label_problems)
    if name in names:
        yield duplicate(f"{field}.name", name)


def validate_source(kind: str, source: Object, field: str) -> Iterator[FieldError]:
    needed = _REQUIRED.get(kind)
    if needed and not source.get(needed):
        yield required(f"{field}.{needed}")
    if kind in ("hostPath", "local") and ".." in source.get("path", "").split("/"):
        yield invalid_value(f"{field}.path", source["path"], "must not contain '..'")
    if kind == "hostPath":
        yield from validate_one_of(f"{field}.type", source.get("type", ""), _ON_HOST)
    if kind not in _FILES:
        return
    yield from _validate_mode(f"{field}.defaultMode", source.get("defaultMode"))
    if kind not in ("secret", "configMap"):
        return
    for index, item in enumerate(source.get("items") or ()):
        at = f"{field}.items[{index}]"
        for each in ("key", "path"):
            if not item.get(each):
                yield required(f"{at}.{each}")
        path = item.get("path", "")
        yield from validate_path(f"{at}.path", path)
        if path.startswith("..") and not path.startswith("../"):
            yield invalid_value(f"{at}.path", path, "must not start with '..'")
        yield from _validate_mode(f"{at}.mode", item.get("mode"))


def _validate_mode(field: str, mode: int | None) -> Iterator[FieldError]:
    if mode is not None and not 0 <= mode <= _LARGEST_MODE:
        yield invalid_value(field, mode, "must be a number between 0 and 0777 (octal), both inclusive")
