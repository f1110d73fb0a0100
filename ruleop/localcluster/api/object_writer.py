"""Creates, updates and deletes objects as the API server does: metadata, generation, defaults, status, finalizers.

Requests and controllers write through it. Nothing is asked of who writes: everybody may do everything."""

from __future__ import annotations

import secrets
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.completion import as_stored
from ruleop.kubernetes.kinds import SERVER_METADATA
from ruleop.kubernetes.schema import EMPTY
from ruleop.kubernetes.times import as_duration, timestamp
from ruleop.kubernetes.validation import FieldError, immutable_value, invalid_value
from ruleop.localcluster.api.bodies import check_name, check_namespace
from ruleop.localcluster.api.object_checks import (
    checked,
    completed,
    decoded,
    validate_metadata_update,
    validate_new_metadata,
)
from ruleop.localcluster.api.requests import DeleteOptions, WriteOptions
from ruleop.localcluster.object_store import CRDS, NAMESPACES, Name, Stored, stored, unstored
from ruleop.localcluster.objects import (
    NotTypedError,
    Tracking,
    apply,
    check_typed,
    ignored_fields,
    keep_unchanged,
    separate_entries,
    track_update,
    with_entries,
    zero_of,
)
from ruleop.localcluster.status_errors import (
    MODIFIED,
    Rejected,
    already_exists,
    conflict,
    forbidden,
    internal,
    invalid,
    invalid_named,
    not_found,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kubernetes.kinds import Kind, Object
    from ruleop.localcluster.kinds import ServedKind
    from ruleop.localcluster.object_store import Store


CONTROLLERS: Final = WriteOptions(manager="kube-controller-manager", field_validation="Ignore", is_stored=True)
SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_KEPT: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "namespace",
    "resourceVersion",
)


class ObjectWriter:
    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        new_uid: Callable[[Object], str] = lambda _: str(uuid.uuid4()),
    ) -> None:
        """`new_uid`: of an object that is created."""
        self.store, self.clock, self.new_uid = store, clock, new_uid
        self.warnings: list[str] = []  # of the current request
        self._trackings: dict[tuple[Kind, str, int], Tracking] = {}

    # -- create -------------------------------------------------------------------------------------------------------

    def create(self, served: ServedKind, namespace: str, obj: Object, options: WriteOptions = CONTROLLERS) -> Stored:
        """Stores a new object."""
        obj = self._decoded(served, obj, options)
        check_namespace(obj, namespace, served)
        return self._created(served, namespace, obj, options)

    def _created(
        self,
        served: ServedKind,
        namespace: str,
        obj: Object,
        options: WriteOptions,
        *,
        managed: list[Any] | None = None,
        subresource: str = "",
    ) -> Stored:
        """`managed`: the managedFields of an object that is applied. `subresource`: at which it is created."""
        metadata, strategy = self._new_metadata(served, namespace, obj, is_applied=managed is not None), served.strategy
        generated = bool(metadata.get("name") and not obj["metadata"].get("name"))
        new: dict[str, Any] = {**obj, "metadata": metadata}
        if served.status_subresource:
            new.pop("status", None)
        errors = validate_new_metadata(served, metadata)
        if served.ends:
            message = "create not allowed while custom resource definition is terminating"
            raise forbidden(served.kind.group, served.plural, metadata.get("name", ""), message)
        new, found = checked(served, new, None)
        if not found:
            new = completed(served, new)
        if found or "name" not in metadata:  # fields of an invalid object cannot be tracked
            self.validate(served, new, None, [*errors, *found])
        if managed is None:
            new = self._tracked(served, None, new, "", options)
        else:
            new = with_entries(new, managed)
        new = as_stored(new, served.shape)
        if generated and (labels := new["metadata"].get("labels")):  # Go copies the object: see job_created
            new = {**new, "metadata": {**new["metadata"], "labels": dict(labels)}}
        new = strategy.create(new)
        if strategy.admit is not None and not subresource:
            new = strategy.admit(new, self.store)
        if new["metadata"].get("labels") != metadata.get("labels"):  # those of a Job
            errors = validate_new_metadata(served, new["metadata"])
        self.validate(served, new, None, [*errors, *found])
        given = obj["metadata"].get("resourceVersion", "")
        if options.dry_run and given:
            new["metadata"]["resourceVersion"] = given
        elif given.isdecimal() and int(given):  # others are ignored
            raise internal("resourceVersion should not be set on objects to be created")
        key = Name(metadata.get("namespace", ""), metadata["name"])
        if (existing := self.store.get(served.resource, key)) is not None:
            if generated:
                return self._created(served, namespace, obj, options, managed=managed)
            ends = "deletionTimestamp" in existing.obj["metadata"]
            raise already_exists(served.kind.group, served.plural, key.name, ends=ends)
        return served.seen(unstored(served.kept(new))) if options.dry_run else self._put(served, new)

    def _new_metadata(self, served: ServedKind, namespace: str, obj: Object, *, is_applied: bool) -> dict[str, Any]:
        metadata = dict(obj["metadata"])
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:58] + "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(5))
        for name in SERVER_METADATA if is_applied else SERVER_METADATA - {"managedFields"}:
            metadata.pop(name, None)
        if served.namespaced:
            metadata["namespace"] = namespace
            self.check_namespace(served, namespace, metadata.get("name", ""))
        else:
            metadata.pop("namespace", None)
        metadata |= {"uid": self.new_uid({**obj, "metadata": metadata}), "creationTimestamp": self._now()}
        if served.strategy.has_generation or served.is_custom:
            metadata["generation"] = 1
        return metadata

    def _put(self, served: ServedKind, new: dict[str, Any]) -> Stored:
        return served.seen(self.store.put(served.resource, served.kept(new)))

    def check_namespace(self, served: ServedKind, namespace: str, name: str) -> None:
        found = self.store.get(NAMESPACES, Name("", namespace))
        if found is None:
            raise not_found("", "namespaces", namespace)
        if found.obj["metadata"].get("deletionTimestamp"):
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = FieldError(
                "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
            )
            raise forbidden(served.kind.group, served.plural, name, message, [error])

    # -- update -------------------------------------------------------------------------------------------------------

    def update(
        self, served: ServedKind, old: Stored, obj: Object, subresource: str = "", options: WriteOptions = CONTROLLERS
    ) -> Stored:
        """Replaces an object, or its status, by a new one."""
        if not options.is_stored:
            obj = self._decoded(served, obj, options)
        check_name(obj, old.name.name)
        check_namespace(obj, old.name.namespace, served)
        return self._replaced(served, old, obj, subresource, options)

    def replace(
        self, served: ServedKind, name: Name, obj: Object, subresource: str, options: WriteOptions
    ) -> tuple[Stored, bool]:
        """Replaces the object at an address. Returns the object, and whether it is new: of some kinds, what is missing
        is created."""
        found = self.store.get(served.resource, name)
        old = served.seen(found) if found is not None else None
        obj = self._decoded(served, obj, options)
        check_namespace(obj, name.namespace, served)
        check_name(obj, name.name)
        if old is not None:
            return self._replaced(served, old, obj, subresource, options), False
        if not served.strategy.creates_on_update:
            raise not_found(served.kind.group, served.plural, name.name)
        obj["metadata"] = _without(obj["metadata"], {"resourceVersion"})  # ignored here, refused by a POST
        return self._created(served, name.namespace, obj, options, subresource=subresource), True

    def _replaced(
        self, served: ServedKind, old: Stored, obj: Object, subresource: str, options: WriteOptions
    ) -> Stored:
        given = dict(obj["metadata"])
        if options.is_patch and subresource == "status" and served.is_custom:
            given.pop("uid", None)  # the metadata of such a patch is ignored, except the version
        check_identity(served, old, given, options)
        metadata = _kept_metadata(old.obj["metadata"], given)
        new, errors = self._prepared(served, old, {**obj, "metadata": metadata}, subresource, options)
        new = self._tracked(served, old.obj, new, subresource, options)
        return self._updated(served, old, new, subresource, options, errors)

    def _prepared(
        self, served: ServedKind, old: Stored, new: dict[str, Any], subresource: str, options: WriteOptions
    ) -> tuple[dict[str, Any], list[FieldError]]:
        """The new version with what a write at this address keeps of the old one, decoded and with its defaults; and
        what is wrong with it."""
        if subresource == "status":
            new = self._with_status(served, old.obj, new)
        elif served.status_subresource:
            new.pop("status", None)
            if "status" in old.obj:
                new["status"] = old.obj["status"]
        if options.is_stored:
            return new, []
        new, errors = checked(served, new, old.obj)
        if subresource == "status" and served.kind.version != served.storage_version:
            new = self._with_status(served, old.obj, new)  # without the defaults of this version
        if errors:  # fields of an invalid object cannot be tracked
            self.validate(served, new, old.obj, errors)
        return completed(served, new, old.obj), errors

    def _updated(
        self,
        served: ServedKind,
        old: Stored,
        new: dict[str, Any],
        subresource: str,
        options: WriteOptions,
        errors: list[FieldError],
    ) -> Stored:
        """Stores a new version of an object whose fields are tracked."""
        strategy, before = served.strategy, old.obj
        new = as_stored(new, served.shape)
        if strategy.update is not None and subresource != "status":
            new = strategy.update(new, before)
        if strategy.admit is not None and strategy.allocates_on_update and subresource != "status":
            new = strategy.admit(new, self.store)
        if new["metadata"] != before["metadata"]:
            errors = [*validate_metadata_update(served, before["metadata"], new["metadata"]), *errors]
        self.validate(served, new, before, errors, subresource)
        new = self.with_generation(served, before, new, subresource)
        if keep_unchanged(before, new) is before and self._is_current(served, old):
            return old
        if options.dry_run:
            return served.seen(stored(served.kept(new), old.version))
        if is_finished(new):
            return stored(new, self.store.delete(served.resource, old.name).version)
        return self._put(served, new)

    def _is_current(self, served: ServedKind, old: Stored) -> bool:
        """Whether an object is stored in the version in which it would be stored now."""
        if not served.is_custom:
            return True
        found = self.store.get(served.resource, old.name)
        return found is None or found.obj["apiVersion"] == f"{served.kind.group}/{served.storage_version}"

    def _with_status(self, served: ServedKind, old: Object, new: dict[str, Any]) -> dict[str, Any]:
        """The old object with the new status. A custom resource keeps its metadata; a Deployment keeps its labels."""
        found = dict(old)
        if not served.is_custom:
            found["metadata"] = new["metadata"]
            if served.kind.kind == "Deployment":
                found["metadata"] = {**new["metadata"], "labels": old["metadata"].get("labels")}
                if "labels" not in old["metadata"]:
                    del found["metadata"]["labels"]
        elif "managedFields" in new["metadata"]:
            found["metadata"] = {**old["metadata"], "managedFields": new["metadata"]["managedFields"]}
        found.pop("status", None)
        if "status" in new:
            found["status"] = new["status"]
        return found

    def with_generation(self, served: ServedKind, old: Object, new: dict[str, Any], subresource: str) -> dict[str, Any]:
        if not (served.strategy.has_generation or served.is_custom):
            return new
        if served.is_custom:
            apart = {"metadata", "status"} if served.status_subresource else {"metadata"}
            changed = _without(old, apart) != _without(new, apart)
        else:
            strategy = served.strategy
            changed = any(old.get(name) != new.get(name) for name in strategy.counted)
            if subresource != "status":
                pair = old["metadata"], new["metadata"]
                changed = changed or any(pair[0].get(each) != pair[1].get(each) for each in strategy.counted_metadata)
        if not changed:
            return new
        generation = old["metadata"].get("generation", 0) + 1
        return {**new, "metadata": {**new["metadata"], "generation": generation}}

    # -- server-side apply --------------------------------------------------------------------------------------------

    def apply(
        self, served: ServedKind, name: Name, config: dict[str, Any], subresource: str, options: WriteOptions
    ) -> tuple[Stored, bool]:
        """Applies a configuration. Returns the object, and whether it is new."""
        old = self.store.get(served.resource, name)
        old = served.seen(old) if old is not None else None
        try:
            check_typed(config, served.shape)
        except NotTypedError as error:
            metadata = found if isinstance(found := config.get("metadata"), dict) else {}
            title = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
            kind = f"{served.kind.group}/{served.kind.version}, Kind={served.kind.kind}"
            raise internal(f"failed to create typed patch object ({title}; {kind}): {error}") from None
        if old is None:
            if subresource:
                raise not_found(served.kind.group, served.plural, name.name)
            return self._apply_new(served, name, config, options), True
        live = old.obj
        applied = apply(
            live,
            config,
            self._tracking(served, subresource),
            manager=options.manager,
            now=self._now(),
            force=options.force,
        )
        if applied is live and self._is_current(served, old):
            if not subresource:
                self.warnings += served.validator.warn(live, live)
            return old, False
        body, entries = separate_entries(applied)
        body = self._decoded(served, body, options)
        check_name(body, name.name)
        check_namespace(body, name.namespace, served)
        check_identity(served, old, body["metadata"], options)
        body["metadata"] = _kept_metadata(live["metadata"], body["metadata"])
        new, errors = self._prepared(served, old, body, subresource, options)
        return self._updated(served, old, with_entries(new, entries), subresource, options, errors), False

    def _apply_new(self, served: ServedKind, name: Name, config: dict[str, Any], options: WriteOptions) -> Stored:
        metadata = dict(config.get("metadata") or {})
        if uid := metadata.get("uid"):
            message = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(served.kind.group, served.plural, name.name, message)
        metadata.pop("resourceVersion", None)
        config = {**config, "metadata": metadata}
        applied = apply(None, config, self._tracking(served, ""), manager=options.manager, now=self._now())
        body, entries = separate_entries(applied)
        body = self._decoded(served, body, options)
        if name.name:
            check_name(body, name.name)
        check_namespace(body, name.namespace, served)
        return self._created(served, name.namespace, body, options, managed=entries)

    # -- delete -------------------------------------------------------------------------------------------------------

    def delete(self, served: ServedKind, old: Stored, options: DeleteOptions | None = None) -> tuple[Stored, bool]:
        """Deletes an object, or marks it as being deleted. Returns its last version, and whether it is gone."""
        options = options or DeleteOptions()
        check_preconditions(served, old, options)
        new = marked_as_deleted(served, old.obj, options, self.clock())
        if new is None:
            if options.dry_run:
                return old, True
            return served.seen(self.store.delete(served.resource, old.name)), True
        if new == old.obj:
            return old, False
        if options.dry_run:
            return stored(new, old.version), False
        return self._put(served, new), False

    # -- both ---------------------------------------------------------------------------------------------------------

    def _now(self) -> str:
        return timestamp(self.clock())

    def _decoded(self, served: ServedKind, obj: Object, options: WriteOptions) -> dict[str, Any]:
        """The object of a request. Raises Rejected if it cannot be decoded."""
        found, warnings = decoded(served, obj, options)
        self.warnings += warnings
        return found

    def validate(
        self, served: ServedKind, new: Object, old: Object | None, errors: list[FieldError], subresource: str = ""
    ) -> None:
        validator, of_status = served.validator, subresource == "status"
        found = [] if of_status else validator.validate(new, old)
        errors = found if found and old is None and served.strategy.checks_metadata_last else [*errors, *found]
        if errors:
            raise invalid(served.kind, new["metadata"].get("name", ""), errors)
        if not of_status:
            self.warnings += validator.warn(new, old)

    def _tracked(
        self, served: ServedKind, old: Object | None, new: dict[str, Any], subresource: str, options: WriteOptions
    ) -> dict[str, Any]:
        """The object with its managedFields after this write."""
        if not options.manager:
            return new
        tracking = self._tracking(served, subresource)
        # The real server leaves the time out where a custom resource is scaled.
        when = "" if served.is_custom and subresource == "scale" else self._now()
        return dict(track_update(old, new, tracking, manager=options.manager, now=when))

    def _tracking(self, served: ServedKind, subresource: str) -> Tracking:
        kind = served.kind
        key = kind, subresource, id(served)
        found = self._trackings.get(key)
        if found is None:
            ignored = ignored_fields(
                kind.group, kind.kind, subresource=subresource, has_status=served.status_subresource
            )
            found = self._trackings[key] = Tracking(
                kind.api_version,
                served.shape,
                subresource,
                ignored,
                served.shapes,
                is_custom=served.is_custom,
                zero=EMPTY if served.is_custom else zero_of(served.shape),
            )
        return found


def _kept_metadata(before: Object, given: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a new version, with those fields of the old one that no request changes."""
    for name in _KEPT:
        given.pop(name, None)
        if name in before:
            given[name] = before[name]
    return given


def _without(obj: Object, names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in names}


# -- deletion --------------------------------------------------------------------------------------------------------
#
# An object is removed, or waits for finalizers, its grace period or its contents. A write, too, may have conditions on
# the stored version of an object: its resourceVersion, uid and times of deletion.


_IMMORTAL: Final = ("default", "kube-system", "kube-public")


def check_identity(served: ServedKind, old: Stored, given: dict[str, Any], options: WriteOptions) -> None:
    group, plural, name = served.kind.group, served.plural, old.name.name
    version = given.get("resourceVersion") or "0"
    if not version.isdecimal():
        raise internal(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if int(version) == 0 and (served.is_custom or not served.strategy.unconditional_update):
        error = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid_named(group, plural, name, [error])
    uid, outdated = given.get("uid"), int(version) not in (0, old.version)
    if options.is_patch and outdated:  # of a patch, the version is compared first
        raise conflict(group, plural, name, MODIFIED)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if given.get(field) is not None and given[field] != old.obj["metadata"].get(field):
            raise _immutable(served, name, field, given[field])
    if uid and uid != old.uid:
        if options.is_patch:
            raise _immutable(served, name, "uid", uid)
        message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}"
        raise conflict(group, plural, name, message)
    if outdated:
        raise conflict(group, plural, name, MODIFIED)


def check_preconditions(served: ServedKind, old: Stored, options: DeleteOptions) -> None:
    group, kind, name = served.kind.group, served.kind.kind, old.name.name
    for what, asked, recorded, cause in (
        ("UID", options.uid, old.uid, "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, str(old.version), "modified"),
    ):
        if asked and asked != recorded:
            problem = f"the {what} in the precondition ({asked}) does not match the {what} in record ({recorded})"
            raise conflict(group, kind, name, f"{problem}. The object might have been {cause}")
    if served.resource == NAMESPACES and name in _IMMORTAL:
        raise forbidden(group, served.plural, name, "this namespace may not be deleted")


def _immutable(served: ServedKind, name: str, field: str, value: Any) -> Rejected:
    """The server checks this twice."""
    error = immutable_value(f"metadata.{field}", value)
    return invalid(served.kind, name, [error, error])


ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


def marked_as_deleted(served: ServedKind, old: Object, options: DeleteOptions, now: float) -> dict[str, Any] | None:
    """The object with what its deletion leaves to be done; None if nothing keeps it. `now`: in seconds."""
    metadata = dict(old["metadata"])
    finalizers = [each for each in metadata.get("finalizers") or [] if each not in _dropped_by(options.propagation)]
    finalizers += [each for each in served.strategy.finalizers if each not in finalizers]
    extra = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(options.propagation)
    if extra and extra not in finalizers:
        finalizers.append(extra)
    grace = _grace(served, old, options)
    waits = bool(finalizers) or grace > 0 or (served.resource == NAMESPACES and _holds(old))
    if not waits:
        return None
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
    _set_times(served, metadata, grace, now)
    new: dict[str, Any] = {**old, "metadata": metadata}
    if served.resource == NAMESPACES:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    elif served.resource == CRDS:
        new["status"] = _terminating(new.get("status") or {}, now)
    return new


def _set_times(served: ServedKind, metadata: dict[str, Any], grace: int, now: float) -> None:
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = timestamp(now + as_duration(grace))
        if served.resource not in (NAMESPACES, CRDS):
            metadata["deletionGracePeriodSeconds"] = grace
            if "generation" in metadata:
                metadata["generation"] += 1
    elif grace < metadata.get("deletionGracePeriodSeconds", grace):
        metadata["deletionGracePeriodSeconds"] = grace


def _grace(served: ServedKind, obj: Object, options: DeleteOptions) -> int:
    if served.strategy.grace is None:
        return 0
    grace = options.grace if options.grace is not None else served.strategy.grace(obj)
    return 1 if grace < 0 else grace


def _terminating(status: Object, now: float) -> dict[str, Any]:
    """The status of a CRD that is being deleted."""
    conditions = [each for each in status.get("conditions") or [] if each["type"] != "Terminating"]
    if len(conditions) < len(status.get("conditions") or []):
        return dict(status)
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    condition = {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": message,
        "lastTransitionTime": timestamp(now),
    }
    return {**status, "conditions": [*conditions, condition]}


def _dropped_by(propagation: str) -> tuple[str, ...]:
    return {"Orphan": (FOREGROUND,), "Foreground": (ORPHAN,), "Background": (ORPHAN, FOREGROUND)}.get(propagation, ())


def _holds(namespace: Object) -> bool:
    return bool((namespace.get("spec") or {}).get("finalizers"))


def is_finished(obj: Object) -> bool:
    """Whether nothing keeps an object that is being deleted."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
        return not _holds(obj)
    return not metadata.get("deletionGracePeriodSeconds")
