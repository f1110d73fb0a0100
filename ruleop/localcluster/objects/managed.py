"""`metadata.managedFields`: which manager set which fields.

A manager is identified by its name, the operation and the subresource, and for updates by the version of the API as
well. Entries are read into a dict by that identity, and written in the server's order: applied ones first, then by
time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ruleop.localcluster.objects.fieldsets import (
    LEAF,
    FieldSet,
    InvalidFieldsError,
    difference,
    parse_fields,
    union,
    without,
)

if TYPE_CHECKING:
    from ruleop.kinds import JSON, Object
    from ruleop.schema.shape import Shape

MAX_UPDATE_MANAGERS: Final = 10
ANCIENT_CHANGES: Final = "ancient-changes"
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
    """Who wrote, and how."""

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
    """How fields are tracked at one address of a kind. Built once for each."""

    api_version: str
    shape: Shape
    subresource: str = ""
    ignored: FieldSet = field(
        default_factory=dict
    )  # fields that a write at this address does not change: `ignored_fields`
    versions: tuple[tuple[str, Shape], ...] = ()
    """The other versions of the kind."""

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


def managers_of(live: Object | None, new: Object, *, subresource: str) -> Managers:
    """The managers before an update, from the request's object where it names some and from the live object otherwise.
    An empty list, or a list of one empty entry, resets them."""
    recorded = ((live or {}).get("metadata") or {}).get("managedFields")
    requested = (new.get("metadata") or {}).get("managedFields")
    if subresource or requested is None or requested == recorded:
        return _readable(recorded)
    if not requested or requested == [{}]:
        return {}
    try:
        managers = read_managers(requested)
        return {
            manager: replace(entry, fields=parse_fields(entry.fields)) for manager, entry in managers.items()
        } or _readable(recorded)
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
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name != "managedFields"}
    if managers:
        metadata["managedFields"] = write_managers(managers)
    return {**obj, "metadata": metadata}


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


def cap(managers: Managers) -> Managers:
    """At most ten updaters: the oldest of each version are joined into one."""
    updaters = [manager for manager in managers if manager.operation == UPDATE]
    if len(updaters) <= MAX_UPDATE_MANAGERS:
        return managers
    updaters.sort(key=lambda manager: (managers[manager].time, manager.name, manager.api_version, manager.subresource))
    capped, count = dict(managers), len(updaters)
    first: dict[str, Manager] = {}
    for manager in updaters:
        if count <= MAX_UPDATE_MANAGERS:
            break
        entry = capped[manager]
        if entry.api_version not in first:
            first[entry.api_version] = manager
            continue
        bucket = Manager(ANCIENT_CHANGES, UPDATE, entry.api_version, "")
        if bucket not in capped:
            capped[bucket] = capped.pop(first[entry.api_version])
        capped[bucket] = replace(entry, fields=union(entry.fields, capped[bucket].fields))
        del capped[manager]
        count -= 1
    return capped
