"""Why a volume of a pod is invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.errors import forbidden_value, invalid_value, required, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

_NAMES: Final = {
    "configMap": "name",
    "secret": "secretName",
    "persistentVolumeClaim": "claimName",
    "hostPath": "path",
}
"""Sources of volumes, with the field that each needs."""

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
_MODES: Final = range(0o1000)


def volume_causes(volume: Object, field: str) -> Iterator[Cause]:
    # The server checks the sources in an order of its own, of which these are the first.
    order = ("emptyDir", "hostPath", "gitRepo", "secret", "nfs", "persistentVolumeClaim", "configMap")
    sources = [name for name in order if volume.get(name) is not None]
    for name in sources[1:]:
        yield forbidden_value(f"{field}.{name}", "may not specify more than 1 volume type")
    for name in sources[:1]:
        yield from _source_causes(name, volume[name], f"{field}.{name}")


def _source_causes(name: str, source: Object, field: str) -> Iterator[Cause]:
    if name in _NAMES and not source.get(_NAMES[name]):
        yield required(f"{field}.{_NAMES[name]}")
    if name == "hostPath" and source.get("type", "") not in _ON_HOST:
        yield unsupported(f"{field}.type", source["type"], _ON_HOST)
    mode = source.get("defaultMode", 0)
    if mode not in _MODES:
        problem = "must be a number between 0 and 0777 (octal), both inclusive"
        yield invalid_value(f"{field}.defaultMode", mode, problem)
    for index, each in enumerate(source.get("items") or ()):
        yield from _item_causes(each, f"{field}.items[{index}]")


def _item_causes(item: Object, field: str) -> Iterator[Cause]:
    if not item.get("key"):
        yield required(f"{field}.key")
    path = item.get("path") or ""
    if not path:
        yield required(f"{field}.path")
    elif path.startswith("/"):
        yield invalid_value(f"{field}.path", path, "must be a relative path")
    elif ".." in path.split("/"):
        yield invalid_value(f"{field}.path", path, "must not contain '..'")
