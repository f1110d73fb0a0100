"""ruleop's entries of managedFields, migrated before the first server-side apply of an object that it wrote otherwise,
and renamed when a manager gets another proof.

A create, a merge patch and a PUT leave an entry with the operation Update. Server-side apply removes only fields that
the same manager *applied*, so the entry is changed to Apply; otherwise a field that the rule drops would stay for ever.
A patch that sets the key of a list item again makes ruleop the owner of the whole item, including fields that others
set in it. So from an Update entry only fields in ruleop's record are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.kubernetes.merge.fields import Fields, KeyedFields, MapFields
from ruleop.operator.wire.client.requests import MANAGER

if TYPE_CHECKING:
    from ruleop.kubernetes.merge import FieldSet

Managed = Mapping[str, Any]
"""One entry of managedFields."""


def needs_migration(entries: Sequence[Managed]) -> bool:
    return any(_is_ruleop(entry) and entry.get("operation") == "Update" for entry in entries)


def migrated(entries: Sequence[Managed], recorded: FieldSet | None) -> list[Managed]:
    """The entries, with ruleop's joined to one Apply entry: the fields that it applied, and those that it updated and
    recorded."""
    own = [entry for entry in entries if _is_ruleop(entry)]
    fields: dict[str, Any] = {}
    for entry in own:
        found = entry.get("fieldsV1") or {}
        if recorded is not None and entry.get("operation") == "Update":
            found = _recorded(found, recorded.root)
        fields = _union(fields, found)
    applied = next((entry for entry in own if entry.get("operation") == "Apply"), own[0])
    return [
        *(entry for entry in entries if not _is_ruleop(entry)),
        {**applied, "operation": "Apply", "fieldsV1": fields},
    ]


def renamed(entries: Sequence[Managed], names: Mapping[str, str]) -> list[Managed]:
    """The entries, with other names for some managers that applied fields. Two of one name are joined."""
    found: dict[tuple[Any, ...], Managed] = {}
    for entry in entries:
        applied = entry.get("operation") == "Apply" and not entry.get("subresource")
        name = names.get(str(entry.get("manager"))) if applied else None
        new = {**entry, "manager": name} if name is not None else entry
        identity = tuple(new.get(part) for part in ("manager", "operation", "apiVersion", "subresource"))
        if (known := found.get(identity)) is not None:
            new = {**new, "fieldsV1": _union(known.get("fieldsV1") or {}, new.get("fieldsV1") or {})}
        found[identity] = new
    return list(found.values())


def _is_ruleop(entry: Managed) -> bool:
    return entry.get("manager") == MANAGER and not entry.get("subresource")


def _union(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _union(one.get(key) or {}, two.get(key) or {}) for key in {**one, **two}}


def _recorded(found: Mapping[str, Any], fields: Fields) -> dict[str, Any]:
    """The part of the server's field set that is in the record. Everything below a recorded single value is."""
    left: dict[str, Any] = {}
    for name, inner in found.items():
        if isinstance(fields, MapFields) and name.startswith("f:"):
            below = fields.members.get(name[2:])
        elif isinstance(fields, KeyedFields) and name.startswith("k:"):
            keys = orjson.loads(name[2:])
            below = fields.items.get(tuple(keys.get(key) for key in fields.keys))
        else:
            left[name] = inner
            continue
        if below is not None:
            left[name] = _recorded(inner, below)
    return left
