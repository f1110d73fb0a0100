"""Server-side apply, the tracking of fields by all other writes, and `metadata.managedFields`: which manager set which
fields.

A port of the server's field managers and of structured-merge-diff's updater. An object is given as the server stores
it, with defaults. The result of `apply` may have nulls, where a map lost its last field: it is decoded as a request is,
before defaults are filled in.

A manager is identified by its name, the operation and the subresource, and for updates by the version of the API as
well. Entries are read into a dict by that identity, and written in the server's order: applied ones first, then by
time."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import orjson

from ruleop.kubernetes.kinds import LAST_APPLIED
from ruleop.kubernetes.merge import same
from ruleop.kubernetes.validation import FieldError
from ruleop.localcluster.objects import fieldsets
from ruleop.localcluster.objects.fieldsets import (
    EMPTY,
    LEAF,
    SELF,
    FieldPath,
    FieldSet,
    InvalidFieldsError,
    check_fields,
    contains,
    difference,
    path_text,
    paths,
    without,
)
from ruleop.localcluster.objects.typed import Comparison, NotTypedError, check_typed, compare, field_set, merge, remove
from ruleop.localcluster.status_errors import Rejected, bad_request
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema import Shape


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


class FieldManager(NamedTuple):
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
class ManagedEntry:
    """The fields that a manager owns."""

    api_version: str
    fields: FieldSet
    time: str = ""


Managers: TypeAlias = dict[FieldManager, ManagedEntry]


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

    def manager(self, name: str, operation: str) -> FieldManager:
        version = self.api_version if operation == UPDATE else ""
        return FieldManager(name or "unknown", operation, version, self.subresource)


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
        if operation not in (APPLY, UPDATE) or not api_version or entry.get("fieldsType") != "FieldsV1":
            raise InvalidFieldsError(f"entry {index} of managedFields is not one that the server writes")
        manager = FieldManager(
            entry.get("manager", ""),
            operation,
            api_version if operation == UPDATE else "",
            entry.get("subresource", ""),
        )
        managers[manager] = ManagedEntry(api_version, entry.get("fieldsV1") or LEAF, entry.get("time") or "")
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


def _written(manager: FieldManager, entry: ManagedEntry) -> dict[str, JSON]:
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


def strip_entry(managers: Managers, manager: FieldManager) -> None:
    entry = managers[manager]
    fields = strip(entry.fields)
    if fields:
        managers[manager] = replace(entry, fields=fields)
    else:
        del managers[manager]


_MAX_ANNOTATIONS: Final = 256 * 1024
BEFORE_FIRST_APPLY: Final = "before-first-apply"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that another manager owns, with another value."""

    manager: FieldManager
    path: FieldPath

    @property
    def field(self) -> str:
        return path_text(self.path)

    @property
    def message(self) -> str:
        return f"conflict with {self.manager}"

    def as_cause(self) -> FieldError:
        return FieldError("FieldManagerConflict", self.message, self.field)


class NotConvertedError(Rejected):
    """500: the fields of a manager cannot be compared in the version in which it wrote."""

    def __init__(self, message: str) -> None:
        super().__init__(500, "", message)


class ApplyConflictError(Rejected):
    """409 Conflict, with a error for each field."""

    def __init__(self, conflicts: tuple[Conflict, ...]) -> None:
        self.conflicts = conflicts
        errors = [conflict.as_cause().document() for conflict in conflicts]
        super().__init__(409, "Conflict", _conflict_message(conflicts), {"causes": errors})


def apply(
    live: Object | None, config: Object, tracking: Tracking, *, manager: str, now: str, force: bool = False
) -> Object:
    """The object with the configuration applied, and its managedFields. If nothing changes, it is `live` itself.

    `now` is the time of new entries, as `managed.timestamp` writes it. The configuration has to be checked before
    (`validation.typed_errors`). Raises Rejected; a conflict is an ApplyConflictError.
    """
    _check_config(config, tracking)
    if live is None:
        fields = strip(field_set(config, tracking.shape), tracking.ignored)
        entries = {tracking.manager(manager, APPLY): ManagedEntry(tracking.api_version, fields, now)} if fields else {}
        return with_entries(config, write_managers(entries))
    managers = read_managers((live.get("metadata") or {}).get("managedFields"))
    body = without_managers(live)
    if not managers:
        managers = _updated(tracking.zero, body, {}, tracking, BEFORE_FIRST_APPLY, now)
    try:
        merged, after = _applied(body, config, managers, tracking, manager, now=now, force=force)
    except ApplyConflictError as error:
        remaining = _serious_conflicts(error.conflicts, body, tracking, manager)
        if remaining:
            raise ApplyConflictError(remaining) from None
        merged, after = _applied(body, config, managers, tracking, manager, now=now, force=True)
    if manager == "kubectl":
        merged = _with_last_applied(merged, config)
    return keep_unchanged(live, with_entries(merged, write_managers(after)))


def track_update(old: Object | None, new: Object, tracking: Tracking, *, manager: str, now: str) -> Object:
    """The new object of a create, a replacement or a patch, with managedFields for the fields that changed. For a
    create, `old` is None and the object is as it was sent, with defaults, before the server fills in its own fields.

    An object whose managers were reset stays without them until something is applied."""
    managers = managers_of(old, new, tracking)
    body = without_managers(new)
    if not managers and old is not None:
        return body
    before = tracking.zero if old is None else without_managers(old)
    try:
        return with_entries(body, write_managers(_updated(before, body, managers, tracking, manager, now)))
    except (NotConvertedError, InvalidFieldsError):  # the server drops the managers then, and carries out the update
        return body


def keep_unchanged(old: Object, new: Object) -> Object:
    """The old object, if the new one differs from it in nothing but the times of managedFields: such a write does not
    reach the store. Called after all defaults are filled in."""
    if new is old:
        return old
    if not _same_managers(old, new):
        return new
    return old if same(without_managers(old), without_managers(new)) else new


def _same_managers(old: Object, new: Object) -> bool:
    before = (old.get("metadata") or {}).get("managedFields") or []
    after = (new.get("metadata") or {}).get("managedFields") or []
    return len(before) == len(after) and all(
        a is b or _without_time(a) == _without_time(b) for a, b in zip(before, after, strict=True)
    )


def _without_time(entry: dict[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in entry.items() if name != "time"}


def _check_config(config: Object, tracking: Tracking) -> None:
    version = config.get("apiVersion")
    if version != tracking.api_version:
        raise bad_request(
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {version}, expected: {tracking.api_version}"
        )
    if (config.get("metadata") or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")


def _applied(
    live: Object,
    config: Object,
    managers: Managers,
    tracking: Tracking,
    name: str,
    *,
    now: str,
    force: bool,
) -> tuple[Object, Managers]:
    shape = tracking.shape
    identity = tracking.manager(name, APPLY)
    after = dict(_current(managers, live, tracking))
    last = after.get(identity)
    fields = field_set(config, shape)
    if tracking.ignored:
        fields = fieldsets.without(fields, tracking.ignored)
    after[identity] = ManagedEntry(tracking.api_version, fields, last.time if last else "")
    merged: Object = merge(live, config, shape)
    if last is not None:
        try:
            merged = _pruned(merged, after, fields, last, tracking)
        except NotConvertedError as error:
            raise NotConvertedError(f"failed to prune fields: {error.message}") from None
    after = _taken_over(after, compare(live, merged, shape), live, merged, tracking, identity, force=force)
    if identity in after:
        strip_entry(after, identity)
    unchanged = same(live, merged)
    if identity in after and not unchanged:
        after[identity] = replace(after[identity], time=now)
    return (live if unchanged else merged), after


def _updated(old: Object, new: Object, managers: Managers, tracking: Tracking, name: str, now: str) -> Managers:
    changes = compare(old, new, tracking.shape)
    after = _taken_over(_current(managers, old, tracking), changes, old, new, tracking, None, force=True)
    fields = strip(fieldsets.union(changes.modified, changes.added), tracking.ignored)
    if fields:
        identity = tracking.manager(name, UPDATE)
        previous = after.get(identity)
        joined = fieldsets.union(fields, previous.fields) if previous else fields
        after[identity] = ManagedEntry(tracking.api_version, joined, now)
    return after


def _current(managers: Managers, live: Object, tracking: Tracking) -> Managers:
    """The managers by today's schema. The live object has to fit each version in which one of them wrote."""
    if not tracking.is_custom:
        return managers
    for version in sorted({entry.api_version for entry in managers.values()} - {tracking.api_version}):
        shape = tracking.shape_in(version)
        if shape is None:
            raise NotConvertedError(f"request to convert CR to an invalid group/version: {version}")
        _convert(live, shape, "")
    return current_managers(managers, tracking)


def _taken_over(
    managers: Managers,
    changes: Comparison,
    old: Object,
    new: Object,
    tracking: Tracking,
    own: FieldManager | None,
    *,
    force: bool,
) -> Managers:
    """The managers without the fields that a write changes or removes. Raises ApplyConflictError unless forced."""
    if not managers:
        return {}
    by_version: dict[str, tuple[FieldSet, FieldSet] | None] = {
        tracking.api_version: _changed_and_removed(changes, tracking.ignored)
    }
    conflicts: list[Conflict] = []
    after: Managers = {}
    for manager, entry in managers.items():
        if manager == own:
            after[manager] = entry
            continue
        version = entry.api_version
        if version not in by_version:
            by_version[version] = _lost_in(version, old, new, tracking)
        lost = by_version[version]
        if lost is None:
            continue
        changed, removed = lost
        fields = entry.fields
        if changed:
            taken = fieldsets.intersection(fields, changed)
            if taken:
                conflicts += (Conflict(manager, path) for path in paths(taken))
                fields = fieldsets.difference(fields, taken)
        if removed:
            fields = fieldsets.difference(fields, removed)
        if fields is entry.fields:
            after[manager] = entry
        elif fields:
            after[manager] = replace(entry, fields=fields)
    if conflicts and not force:
        raise ApplyConflictError(tuple(sorted(conflicts, key=lambda conflict: conflict.manager)))
    if own is not None and not after[own].fields:
        del after[own]
    return after


def _lost_in(version: str, old: Object, new: Object, tracking: Tracking) -> tuple[FieldSet, FieldSet] | None:
    """The fields that a write changes and removes in another version; None if the kind no longer has it."""
    shape = tracking.shape_in(version)
    if shape is None:
        return None
    _convert(new, shape, "failed to convert new object: ")
    return _changed_and_removed(compare(old, new, shape), EMPTY)


def _convert(obj: Object, shape: Shape, step: str) -> None:
    """Raises NotConvertedError where an object has fields that another version does not declare."""
    try:
        check_typed(obj, shape)
    except NotTypedError as error:
        raise NotConvertedError(f"{step}{error}") from None


def _changed_and_removed(changes: Comparison, ignored: FieldSet) -> tuple[FieldSet, FieldSet]:
    changed = fieldsets.union(changes.modified, changes.added)
    if not ignored:
        return changed, changes.removed
    return fieldsets.without(changed, ignored), fieldsets.without(changes.removed, ignored)


def _pruned(merged: Object, managers: Managers, fields: FieldSet, last: ManagedEntry, tracking: Tracking) -> Object:
    """The merged object without what the manager applied before, does not apply now, and nobody else owns."""
    shape = tracking.shape_in(last.api_version)
    if shape is None:
        return merged
    if shape is not tracking.shape:
        _convert(merged, shape, "failed to convert merged object to last applied version: ")
    if not fieldsets.difference(last.fields, fields):
        return merged
    last_fields = fieldsets.named_members(last.fields, shape)
    whole = fieldsets.named_members(field_set(merged, shape), shape)
    pruned = remove(merged, last_fields, shape) or {}
    owned: dict[str, FieldSet] = {}
    for entry in managers.values():
        owned[entry.api_version] = fieldsets.union(owned.get(entry.api_version, EMPTY), entry.fields)
    for version in sorted(owned, key=lambda version: version != last.api_version):
        inner = tracking.shape_in(version)
        if inner is not None:
            kept = fieldsets.union(
                fieldsets.named_members(field_set(pruned, inner), inner),
                fieldsets.named_members(owned[version], inner),
            )
            everything = whole if inner is shape else fieldsets.named_members(field_set(merged, inner), inner)
            pruned = remove(merged, fieldsets.difference(everything, kept), inner) or {}
    dangling = fieldsets.difference(whole, fieldsets.named_members(field_set(pruned, shape), shape))
    result: Object = remove(merged, fieldsets.intersection(dangling, last_fields), shape) or {}
    return result


def _serious_conflicts(
    conflicts: tuple[Conflict, ...], live: Object, tracking: Tracking, manager: str
) -> tuple[Conflict, ...]:
    """The conflicts without those over fields that `kubectl apply` set client-side, for kubectl's own manager: their
    values are in an annotation."""
    written = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    if manager != "kubectl" or not written:
        return conflicts
    try:
        last = orjson.loads(written)
        if last.get("apiVersion") != tracking.api_version:
            return conflicts
        changes = compare(last, live, tracking.shape)
        allowed = field_set(last, tracking.shape)
    except (ValueError, AttributeError, InvalidFieldsError):
        return conflicts
    for changed in (changes.modified, changes.added, changes.removed):
        allowed = fieldsets.difference(allowed, changed)
    return tuple(conflict for conflict in conflicts if not contains(allowed, conflict.path))


def _with_last_applied(merged: Object, config: Object) -> Object:
    """Where the annotation of client-side apply is there, kubectl's manager keeps it up to date."""
    metadata = merged.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return merged
    applied = dict(config)
    own = (config.get("metadata") or {}).get("annotations")
    if own is not None:
        rest = {name: value for name, value in own.items() if name != LAST_APPLIED}
        applied["metadata"] = {**config["metadata"], "annotations": rest}
        if not rest:
            del applied["metadata"]["annotations"]
    text = orjson.dumps(applied, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE).decode()
    updated = {**annotations, LAST_APPLIED: text}
    if sum(len(name) + len(value) for name, value in updated.items()) > _MAX_ANNOTATIONS:
        del updated[LAST_APPLIED]
    return {**merged, "metadata": {**metadata, "annotations": updated}}


def _conflict_message(conflicts: tuple[Conflict, ...]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: {conflicts[0].message}: {conflicts[0].field}"
    by_manager: dict[FieldManager, list[str]] = {}
    for conflict in conflicts:
        by_manager.setdefault(conflict.manager, []).append(conflict.field)
    lines = []
    for manager in sorted(by_manager):
        lines += [f"conflicts with {manager}:", *(f"- {field}" for field in by_manager[manager])]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
