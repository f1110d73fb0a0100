"""`metadata.managedFields`: which manager set which fields.

A manager is identified by its name, the operation and the subresource, and for updates by the version of the API as
well. Entries are read into a dict by that identity, and written in the server's order: applied ones first, then by
time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ruleop.kubernetes.schema.shape import EMPTY
from ruleop.localcluster.objects.fieldsets import (
    LEAF,
    SELF,
    FieldSet,
    InvalidFieldsError,
    check_fields,
    difference,
    without,
)

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema.shape import Shape

APPLY: Final = "Apply"
UPDATE: Final = "Update"

_STRIPPED: Final[FieldSet] = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {
        ".": LEAF,
        "f:name": LEAF,
        "f:namespace": LEAF,
        "f:creationTimestamp": LEAF,
        "f:selfLink": LEAF,
        "f:uid": LEAF,
        "f:clusterName": LEAF,
        "f:generation": LEAF,
        "f:managedFields": LEAF,
        "f:resourceVersion": LEAF,
    },
}
"""Fields of the server, which no manager owns."""


class Manager(NamedTuple):
    """The client that wrote, and its operation."""

    name: str
    operation: str
    api_version: str  # "" for an applied entry: it moves with its manager from version to version
    subresource: str

    def __str__(self) -> str:
        """The manager as a message about a conflict calls it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class Entry:
    """The fields that a manager owns."""

    api_version: str
    fields: FieldSet
    time: str = ""


Managers: TypeAlias = dict[Manager, Entry]


@dataclass(frozen=True, slots=True)
class Tracking:
    """The tracking of fields at one address of a kind. Built once for each."""

    api_version: str
    shape: Shape
    subresource: str = ""
    ignored: FieldSet = field(
        default_factory=dict
    )  # fields that a write at this address does not change: `ignored_fields`
    versions: tuple[tuple[str, Shape], ...] = ()
    """The other versions of the kind."""
    is_custom: bool = True
    """Whether the schema and the versions may have changed since the managers were recorded."""
    zero: Object = field(default_factory=lambda: EMPTY)
    """The fields that an empty object of the kind has."""

    def shape_in(self, api_version: str) -> Shape | None:
        """The shape in a version; None if the kind no longer has it, and its entries are dropped."""
        if api_version == self.api_version:
            return self.shape
        return next((shape for version, shape in self.versions if version == api_version), None)

    def manager(self, name: str, operation: str) -> Manager:
        version = self.api_version if operation == UPDATE else ""
        return Manager(name or "unknown", operation, version, self.subresource)


def ignored_fields(group: str, kind: str, *, subresource: str = "", has_status: bool) -> FieldSet:
    """The fields that a write at an address of a kind leaves as they are, so that they are not owned either.
    A group with a dot that is not Kubernetes' own is one of custom resources."""
    if subresource == "status":
        if kind == "Deployment":
            return {"f:spec": LEAF, "f:metadata": {"f:labels": LEAF}}
        if kind == "Pod":
            return {"f:spec": LEAF, "f:metadata": {"f:deletionTimestamp": LEAF, "f:ownerReferences": LEAF}}
        if _keeps_metadata(group):
            return {"f:spec": LEAF}
        return {"f:spec": LEAF, "f:metadata": LEAF}
    return {"f:status": LEAF} if has_status and subresource in ("", "finalize") else LEAF


def _keeps_metadata(group: str) -> bool:
    return "." not in group or group in {
        "networking.k8s.io",
        "certificates.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
    }


def read_managers(entries: JSON) -> Managers:
    """The managers of an object. Raises InvalidFieldsError for entries that the server would not write."""
    managers: Managers = {}
    for index, entry in enumerate(entries or ()):
        operation, api_version = entry.get("operation", ""), entry.get("apiVersion", "")
        if operation not in (APPLY, UPDATE):
            raise InvalidFieldsError("operation must be `Apply` or `Update`")
        if not api_version:
            raise InvalidFieldsError("apiVersion must not be empty")
        fields_type = entry.get("fieldsType", "")
        if not fields_type:
            raise InvalidFieldsError(f"missing fieldsType in managed fields entry {index}")
        if fields_type != "FieldsV1":
            raise InvalidFieldsError(f'invalid fieldsType "{fields_type}" in managed fields entry {index}')
        manager = Manager(
            entry.get("manager", ""),
            operation,
            api_version if operation == UPDATE else "",
            entry.get("subresource", ""),
        )
        managers[manager] = Entry(api_version, entry.get("fieldsV1") or LEAF, entry.get("time") or "")
    return managers


def current_managers(managers: Managers, tracking: Tracking) -> Managers:
    """The managers by today's schema: the owner of a field below a map or list that has become atomic owns the whole of
    it. Entries of versions that the kind does not have are left as they are, and dropped with the next change."""
    after: Managers = {}
    for manager, entry in managers.items():
        shape = tracking.shape_in(entry.api_version)
        fields = _without_atomic_parts(entry.fields, shape) if shape is not None else entry.fields
        after[manager] = entry if fields is entry.fields else replace(entry, fields=fields)
    return after


def _without_atomic_parts(fields: FieldSet, shape: Shape) -> FieldSet:
    changed: FieldSet | None = None
    declared, others, items = shape.fields, shape.values, shape.items
    for element, node in fields.items():
        if not node or element == SELF:
            continue
        inner = (declared.get(element[2:]) or others) if element[0] == "f" else items
        if inner is None or inner.type == "any":
            continue
        if inner.atomic or (inner.type == "list" and inner.list_type == "atomic"):
            kept = LEAF
        else:
            kept = _without_atomic_parts(node, inner)
        if kept is not node:
            changed = changed or dict(fields)
            changed[element] = kept
    return fields if changed is None else changed


def managers_of(live: Object | None, new: Object, tracking: Tracking) -> Managers:
    """The managers before an update, from the request's object where it names some and from the live object otherwise.
    An empty list, or a list of one empty entry, resets them."""
    recorded = ((live or {}).get("metadata") or {}).get("managedFields")
    requested = (new.get("metadata") or {}).get("managedFields")
    if tracking.subresource or requested is None or requested == recorded:
        return _readable(recorded)
    if not requested or requested == [{}]:
        return {}
    try:
        managers = read_managers(requested)
        for entry in managers.values():
            check_fields(entry.fields)
        return current_managers(managers, tracking) or _readable(recorded)
    except InvalidFieldsError:
        return _readable(recorded)


def _readable(entries: JSON) -> Managers:
    try:
        return read_managers(entries)
    except InvalidFieldsError:
        return {}


def write_managers(managers: Managers) -> list[JSON]:
    """The entries in the server's order."""
    rows = [(manager.operation, entry.time, manager, entry) for manager, entry in managers.items()]
    rows.sort(key=lambda row: (row[0], row[1], row[2].name, row[3].api_version, row[2].subresource))
    return [_written(manager, entry) for _, _, manager, entry in rows]


def _written(manager: Manager, entry: Entry) -> dict[str, JSON]:
    written: dict[str, JSON] = {
        "apiVersion": entry.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields,
        "manager": manager.name,
        "operation": manager.operation,
    }
    if manager.subresource:
        written["subresource"] = manager.subresource
    if entry.time:
        written["time"] = entry.time
    return written


def with_managers(obj: Object, managers: Managers) -> dict[str, JSON]:
    """The object with its managers written into it."""
    return with_entries(obj, write_managers(managers))


def with_entries(obj: Object, entries: list[JSON]) -> dict[str, JSON]:
    """The object with these managedFields in place of its own."""
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def separate_entries(applied: Object) -> tuple[Object, list[JSON]]:
    """The applied object, and its managedFields, which need not be decoded: they are the server's own."""
    return without_managers(applied), applied["metadata"].get("managedFields") or []


def without_managers(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def strip(fields: FieldSet, ignored: FieldSet = LEAF) -> FieldSet:
    """The fields that a manager can own."""
    return difference(without(fields, ignored) if ignored else fields, _STRIPPED)


def strip_entry(managers: Managers, manager: Manager) -> None:
    entry = managers[manager]
    fields = strip(entry.fields)
    if fields:
        managers[manager] = replace(entry, fields=fields)
    else:
        del managers[manager]
