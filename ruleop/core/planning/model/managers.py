"""The field managers by which custom resources set fields of objects that belong to somebody else.

Each child with `patch` has a manager of its own, so that each field has one owner, and so that the fields of a child
that is gone are found again. The managedFields of an object are the only record of these fields: ruleop writes none of
its own on it. Who may write an object can also write this record, which then concerns only fields of his own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.core.merge.equality import canonical, fingerprint
from ruleop.core.names import PATCH_MANAGER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.core.kinds import JSON, Object
    from ruleop.core.planning.model.marks import Owner


def manager_of(owner: Owner, child: str) -> str:
    return f"{PATCH_MANAGER}{owner.part_of}:{child}"


def managers_on(live: Object) -> Iterator[tuple[str, str]]:
    """The managers of ruleop on an object: the label of the custom resource, and the id of the child."""
    for entry in _entries(live):
        part_of, separator, child = str(entry.get("manager")).removeprefix(PATCH_MANAGER).partition(":")
        if separator:
            yield part_of, child


def applied_fields(live: Object, manager: str) -> tuple[str, Mapping[str, Any]] | None:
    """The fields that a manager has applied, as the API server writes them, with their apiVersion."""
    for entry in _entries(live):
        if entry.get("manager") == manager:
            fields = entry.get("fieldsV1")
            return str(entry.get("apiVersion")), fields if isinstance(fields, Mapping) else {}
    return None


def _entries(live: Object) -> Iterator[Mapping[str, Any]]:
    for entry in patch_entries(live["metadata"].get("managedFields")):
        if entry.get("operation") == "Apply" and not entry.get("subresource"):
            yield entry


def patch_entries(managed: Iterable[Any] | None) -> list[Mapping[str, Any]]:
    """The part of managedFields that is about managers of ruleop."""
    return [
        each
        for each in managed or ()
        if isinstance(each, Mapping) and str(each.get("manager")).startswith(PATCH_MANAGER)
    ]


def values_of(value: JSON, fields: Any) -> JSON:
    """The part of a value that is in a field set of the API server; the items of a list in their order there. Who may
    write an object may also write a field set that the API server would not."""
    if not fields or not isinstance(fields, Mapping):
        return value
    if isinstance(value, dict):
        return {
            name[2:]: values_of(value[name[2:]], inner)
            for name, inner in fields.items()
            if name.startswith("f:") and name[2:] in value
        }
    if isinstance(value, list):
        items = _Items(fields)
        found = (items.part_of(position, item) for position, item in enumerate(value))
        return [item for item in found if item is not None]
    return value


class _Items:
    """The items of a list that are in a field set: by their position, their value, or their keys."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.exact: dict[bytes, Any] = {}
        self.keyed: dict[tuple[str, ...], dict[bytes, Any]] = {}
        for name, inner in fields.items():
            kind, _, text = name.partition(":")
            try:
                found = orjson.loads(text) if kind in {"i", "v", "k"} else None
            except ValueError:
                continue
            if kind == "k" and isinstance(found, dict):
                names = tuple(sorted(found))
                self.keyed.setdefault(names, {})[canonical([found[each] for each in names])] = inner
            elif kind in {"i", "v"}:
                self.exact[canonical([kind, found])] = inner

    def part_of(self, position: int, item: JSON) -> JSON:
        """The part of an item; None if it is not in the field set."""
        if self.exact:
            if canonical(["v", item]) in self.exact:
                return item
            if (place := canonical(["i", position])) in self.exact:
                return values_of(item, self.exact[place])
        if isinstance(item, dict):
            for names, known in self.keyed.items():
                key = canonical([item.get(name) for name in names])
                if key in known:
                    return values_of(item, known[key])
        return None


def fingerprint_of(live: Object, manager: str, desired: str) -> str:
    """A fingerprint of a desired object, and of what it became: the fields of the manager, and their values. There may
    be none: the server does not record a manager without fields."""
    found = applied_fields(live, manager)
    if found is None:
        return fingerprint([desired])
    version, fields = found
    return fingerprint([desired, version, dict(fields), values_of(dict(live), fields)])
