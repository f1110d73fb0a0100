"""The manager of each field that ruleop sets, by the record on the object and its managedFields."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from ruleop.authoring.report import LastWrite, ManagedField, PastChange, What
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.merge import Fields, KeyedFields, MapFields
from ruleop.messages import format_path
from ruleop.planning.child.existing import read_record
from ruleop.planning.model.marks import MANAGED_BY, RESERVED, RULEOP

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object

_IDENTITY: Final = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})
"""Immutable fields without a field manager."""

Step: TypeAlias = str | tuple[tuple[str, Any], ...]
"""A field's name, or the keys of a list item and their values."""


def last_change(obj: Object) -> LastWrite | None:
    """The manager that changed an object last, apart from its status."""
    managers = [_manager(each) for each in _entries(obj) if each.get("subresource") != "status"]
    return max(managers, key=lambda each: each.time, default=None)


def last_writes(obj: Object) -> Iterator[PastChange]:
    """The last write of each manager, with all fields that it owns, except those that identify the object and ruleop's
    own metadata."""
    for entry in _entries(obj):
        manager, is_status, fields = _manager(entry), entry.get("subresource") == "status", entry.get("fieldsV1")
        listed = dict.fromkeys(_listed(fields if isinstance(fields, Mapping) else {}, ()))
        paths = [path for path in listed if path not in _IDENTITY and not _is_mark(path)]
        if is_status or paths:
            what, groups = What.STATUS if is_status else What.WRITTEN, dict.fromkeys(path[:2] for path in paths)
            names = tuple(map(path_text, paths)), tuple(map(path_text, groups))
            yield PastChange(manager.time, what, ObjectKey.of(obj), manager, *names)


def managed_fields(obj: Object, planned: Collection[str] = (), *, manager: str = RULEOP) -> list[ManagedField]:
    """The fields that ruleop sets, by its record or, without one, by the API server's. Not those that identify the
    object, nor ruleop's own metadata. `planned`: the fields that the next reconcile changes. It shows which of the
    missing fields another client has removed; others may be missing because the API server does not store them.
    `manager`: that of a child with `patch`, which has no record."""
    entries = [each for each in _entries(obj) if isinstance(each.get("fieldsV1"), Mapping)]
    record = read_record(obj) if manager == RULEOP else None
    if record is not None:
        paths = list(_recorded(record.fields.root, ()))
    else:
        paths = [path for each in entries if each["manager"] == manager for path in _listed(each["fieldsV1"], ())]
    found = []
    for path in dict.fromkeys(paths):
        if path in _IDENTITY or _is_mark(path):
            continue
        owners = _owners(entries, path) if _exists(obj, path) else []
        latest_first = sorted(owners, key=lambda each: (each.time, each.is_ruleop), reverse=True)
        text = path_text(path)
        by_others = bool(owners) and not any(each.is_ruleop for each in owners)
        is_removed = not owners and any(text == each or text.startswith((f"{each}.", f"{each}[")) for each in planned)
        found.append(ManagedField(text, tuple(latest_first), by_others or is_removed))
    return found


def _owners(entries: Sequence[Mapping[str, Any]], path: Sequence[Step]) -> list[LastWrite]:
    """The managers of a field; if there are none, those of a field above it: it may be owned as a whole."""
    exact = [_manager(each) for each in entries if _owns(each["fieldsV1"], path, exact=True)]
    return exact or [_manager(each) for each in entries if _owns(each["fieldsV1"], path, exact=False)]


def _exists(obj: Any, path: Sequence[Step]) -> bool:
    for step in path:
        if isinstance(step, str):
            found = obj.get(step) if isinstance(obj, Mapping) else None
        else:
            items = obj if isinstance(obj, list) else []
            found = next((each for each in items if isinstance(each, Mapping) and _has_keys(each, dict(step))), None)
        if found is None:
            return False
        obj = found
    return True


def _has_keys(item: Mapping[str, Any], keys: Mapping[str, Any]) -> bool:
    """A key that the item lacks has the default of the API."""
    return all(item.get(name, value) == value for name, value in keys.items())


def _is_mark(path: Sequence[Step]) -> bool:
    """Whether the field is ruleop's own metadata."""
    if path[:2] == ("metadata", "ownerReferences"):
        return True
    name = path[2] if len(path) > 2 and path[:2] in {("metadata", "labels"), ("metadata", "annotations")} else ""
    return name == MANAGED_BY or (isinstance(name, str) and name.startswith(RESERVED))


def _entries(obj: Object) -> list[Mapping[str, Any]]:
    found = (obj.get("metadata") or {}).get("managedFields")
    return [each for each in found or () if isinstance(each, Mapping) and each.get("manager")]


def _manager(entry: Mapping[str, Any]) -> LastWrite:
    return LastWrite(str(entry["manager"]), str(entry.get("operation", "")), str(entry.get("time") or ""))


def _recorded(fields: Fields, path: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """The fields of a record that have no fields below them."""
    if isinstance(fields, MapFields) and fields.members:
        for name, inner in fields.members.items():
            yield from _recorded(inner, (*path, name))
    elif isinstance(fields, KeyedFields) and fields.items:
        for key, inner in fields.items.items():
            yield from _recorded(inner, (*path, tuple(zip(fields.keys, map(_key_value, key), strict=True))))
    elif path:
        yield path


def _key_value(value: Any) -> Any:
    """A boolean or a float is recorded as the text of its JSON."""
    return orjson.loads(value[0]) if isinstance(value, tuple) else value


def _listed(fields: Mapping[str, Any], path: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """The fields of a set of the API server."""
    for name, inner in fields.items():
        step = _step(name)
        if step is not None:
            below = list(_listed(inner, (*path, step)))
            yield from below or [(*path, step)]  # nothing below: a value, or a set of values


def _step(name: str) -> Step | None:
    kind, _, rest = name.partition(":")
    if kind == "f":
        return rest
    return tuple(sorted(orjson.loads(rest).items())) if kind == "k" else None


def _owns(fields: Mapping[str, Any], path: Sequence[Step], *, exact: bool) -> bool:
    for number, step in enumerate(path):
        inner = _below(fields, step)
        if inner is None:
            return not exact and number > 0 and not fields
        fields = inner
    return True


def _below(fields: Mapping[str, Any], step: Step) -> Mapping[str, Any] | None:
    if isinstance(step, str):
        return fields.get(f"f:{step}")
    for name, inner in fields.items():
        if name.startswith("k:") and dict(step).items() <= orjson.loads(name[2:]).items():
            return inner if isinstance(inner, Mapping) else None
    return None


def path_text(path: Sequence[Step]) -> str:
    """The path as the differences of a plan write it: `spec.ports[port=80,protocol=TCP].targetPort`."""
    text = ""
    for step in path:
        if isinstance(step, str):
            piece = format_path((step,))
            text += f".{piece}" if text and not piece.startswith("[") else piece
        else:
            text += "[" + ",".join(f"{name}={_text(value)}" for name, value in step) + "]"
    return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
