"""Server-side apply, and the tracking of fields by all other writes.

A port of the server's field managers and of structured-merge-diff's updater. An object is given as the server stores
it, with defaults. The result of `apply` may have nulls, where a map lost its last field: it is decoded as a request is,
before defaults are filled in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import orjson

from ruleop.kubernetes.kinds import LAST_APPLIED
from ruleop.kubernetes.merge.equality import same
from ruleop.kubernetes.validation.field_errors import FieldError
from ruleop.localcluster.objects import fieldsets
from ruleop.localcluster.objects.fieldsets import (
    EMPTY,
    FieldPath,
    FieldSet,
    InvalidFieldsError,
    contains,
    path_text,
    paths,
)
from ruleop.localcluster.objects.managed import (
    APPLY,
    UPDATE,
    Entry,
    Manager,
    Managers,
    Tracking,
    current_managers,
    managers_of,
    read_managers,
    strip,
    strip_entry,
    with_managers,
    without_managers,
)
from ruleop.localcluster.objects.typed import Comparison, NotTypedError, check_typed, compare, field_set, merge, remove
from ruleop.localcluster.status_errors import Rejected, bad_request

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema.shape import Shape

_MAX_ANNOTATIONS: Final = 256 * 1024
BEFORE_FIRST_APPLY: Final = "before-first-apply"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that another manager owns, with another value."""

    manager: Manager
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
        entries = {tracking.manager(manager, APPLY): Entry(tracking.api_version, fields, now)} if fields else {}
        return with_managers(config, entries)
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
    return keep_unchanged(live, with_managers(merged, after))


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
        return with_managers(body, _updated(before, body, managers, tracking, manager, now))
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
    after[identity] = Entry(tracking.api_version, fields, last.time if last else "")
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
        after[identity] = Entry(tracking.api_version, joined, now)
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
    own: Manager | None,
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


def _pruned(merged: Object, managers: Managers, fields: FieldSet, last: Entry, tracking: Tracking) -> Object:
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
    by_manager: dict[Manager, list[str]] = {}
    for conflict in conflicts:
        by_manager.setdefault(conflict.manager, []).append(conflict.field)
    lines = []
    for manager in sorted(by_manager):
        lines += [f"conflicts with {manager}:", *(f"- {field}" for field in by_manager[manager])]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
