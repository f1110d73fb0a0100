"""Creates, updates and deletes objects as the API server does: metadata, generation, defaults, status, finalizers.

Requests and controllers write through it. Nothing is asked of who writes: everybody may do everything.
"""

from __future__ import annotations

import re
import secrets
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from ruleop.kinds import SERVER_METADATA
from ruleop.localcluster.api.field_checks import checked
from ruleop.localcluster.api.options import DeleteOptions, WriteOptions
from ruleop.localcluster.clock import now, timestamp
from ruleop.localcluster.errors import (
    MODIFIED,
    Cause,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from ruleop.localcluster.objects.apply import apply, keep_unchanged, track_update
from ruleop.localcluster.objects.config_checks import check_config
from ruleop.localcluster.objects.managed import Tracking, ignored_fields
from ruleop.localcluster.store.store import Name, Resource, Stored, stored
from ruleop.merge.normalise import without_nulls

if TYPE_CHECKING:
    from ruleop.kinds import Kind, Object
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.store.store import Store

NAMESPACES: Final = Resource("", "namespaces")
CONTROLLERS: Final = WriteOptions(manager="kube-controller-manager", field_validation="Ignore")
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_LABEL_KINDS: Final = frozenset({("", "Namespace"), ("", "Service")})
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_KEPT: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


class Writer:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.warnings: list[str] = []  # of the current request
        self._trackings: dict[tuple[Kind, str, int], Tracking] = {}

    # -- create --------------------------------------------------------------------------------------------------------

    def create(
        self,
        served: Served,
        namespace: str,
        obj: Object,
        options: WriteOptions = CONTROLLERS,
        *,
        managed: list[Any] | None = None,
    ) -> Stored:
        """Stores a new object. `managed`: the managedFields of an object that is applied."""
        metadata = obj.get("metadata")
        metadata = dict(metadata) if isinstance(metadata, dict) else {}
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        generated = bool(not metadata.get("name") and metadata.get("generateName"))
        if generated:
            metadata["name"] = metadata["generateName"][:58] + _suffix()
        self._check_name(served, metadata)
        for name in SERVER_METADATA - {"managedFields"}:
            metadata.pop(name, None)
        if served.namespaced:
            metadata["namespace"] = namespace
            self._check_namespace(served, namespace, metadata["name"])
        else:
            metadata.pop("namespace", None)
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
        strategy = served.strategy
        if strategy.finalizers:
            given = metadata.get("finalizers") or []
            metadata["finalizers"] = [*given, *(each for each in strategy.finalizers if each not in given)]
        if strategy.has_generation or served.is_custom:
            metadata["generation"] = 1
        new: dict[str, Any] = {**obj, "metadata": metadata}
        if served.status:
            new.pop("status", None)
        new = strategy.default(self._checked(served, new, options))
        if managed is None:
            new = self._tracked(served, None, new, "", options)
        else:
            new = {**new, "metadata": {**new["metadata"], "managedFields": managed}}
        return self._created(served, new, options, generated=generated)

    def _created(self, served: Served, new: dict[str, Any], options: WriteOptions, *, generated: bool) -> Stored:
        """Stores a new object whose fields are tracked."""
        new = served.strategy.create(new)
        self._validate(served, new, None)
        metadata = new["metadata"]
        key = Name(metadata.get("namespace", ""), metadata["name"])
        if self.store.get(served.resource, key) is not None:
            if not generated:
                raise already_exists(served.kind.group, served.plural, key.name)
            name = metadata["generateName"][:58] + _suffix()
            again = {**new, "metadata": {**metadata, "name": name}}
            return self._created(served, again, options, generated=True)
        return stored(new, self.store.version) if options.dry_run else self.store.put(served.resource, new)

    def _check_name(self, served: Served, metadata: dict[str, Any]) -> None:
        name = metadata.get("name")
        if not name:
            raise invalid(
                served.kind,
                "",
                [Cause("FieldValueRequired", "Required value: name or generateName is required", "metadata.name")],
            )
        if not isinstance(name, str):
            raise bad_request("metadata.name must be a string")
        if served.kind.group == "rbac.authorization.k8s.io":
            if "/" in name or "%" in name or name in (".", ".."):
                message = f"Invalid value: \"{name}\": may not contain '/' or '%'"
                raise invalid(served.kind, name, [Cause("FieldValueInvalid", message, "metadata.name")])
            return
        label = (served.kind.group, served.kind.kind) in _DNS_LABEL_KINDS
        pattern, limit = (_LABEL, 63) if label else (_SUBDOMAIN, 253)
        if len(name) > limit:
            message = f'Invalid value: "{name}": must be no more than {limit} bytes'
            raise invalid(served.kind, name, [Cause("FieldValueInvalid", message, "metadata.name")])
        if not pattern.fullmatch(name):
            raise invalid(
                served.kind, name, [Cause("FieldValueInvalid", _name_message(name, label=label), "metadata.name")]
            )

    def _check_namespace(self, served: Served, namespace: str, name: str) -> None:
        found = self.store.get(NAMESPACES, Name("", namespace))
        if found is None:
            raise not_found("", "namespaces", namespace)
        if found.obj["metadata"].get("deletionTimestamp"):
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
            raise forbidden(served.kind.group, served.plural, name, message, [cause])

    # -- update --------------------------------------------------------------------------------------------------------

    def update(
        self, served: Served, old: Stored, obj: Object, subresource: str = "", options: WriteOptions = CONTROLLERS
    ) -> Stored:
        """Replaces an object, or its status, by a new one."""
        given = obj.get("metadata")
        given = dict(given) if isinstance(given, dict) else {}
        self._check_identity(served, old, given)
        before = old.obj["metadata"]
        metadata = {**given, "name": before["name"]}
        for name in (*_KEPT, "namespace"):
            metadata.pop(name, None)
            if name in before:
                metadata[name] = before[name]
        metadata.pop("selfLink", None)
        metadata["resourceVersion"] = before["resourceVersion"]
        new: dict[str, Any] = {**obj, "metadata": metadata}
        if subresource == "status":
            new = self._with_status(served, old.obj, new)
        elif served.status:
            new.pop("status", None)
            if "status" in old.obj:
                new["status"] = old.obj["status"]
        new = served.strategy.default(self._checked(served, new, options))
        new = self._tracked(served, old.obj, new, subresource, options)
        return self._updated(served, old, new, subresource, options)

    def _updated(
        self, served: Served, old: Stored, new: dict[str, Any], subresource: str, options: WriteOptions
    ) -> Stored:
        """Stores a new version of an object whose fields are tracked."""
        if served.strategy.update is not None and subresource != "status":
            new = served.strategy.update(new, old.obj)
        self._check_finalizers(served, old.obj, new)
        self._validate(served, new, old.obj)
        new = self._with_generation(served, old.obj, new)
        if keep_unchanged(old.obj, new) is old.obj:
            return old
        if options.dry_run:
            return stored(new, old.version)
        if _is_finished(new):
            self.store.put(served.resource, new)
            return self.store.delete(served.resource, old.name)
        return self.store.put(served.resource, new)

    def _check_identity(self, served: Served, old: Stored, given: dict[str, Any]) -> None:
        group, plural, name = served.kind.group, served.plural, old.name.name
        uid = given.get("uid")
        if uid and uid != old.uid:
            raise conflict(
                group, plural, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}"
            )
        version = given.get("resourceVersion")
        if version and version != str(old.version):
            raise conflict(group, plural, name, MODIFIED)

    def _with_status(self, served: Served, old: Object, new: dict[str, Any]) -> dict[str, Any]:
        """The old object with the new status. Of the metadata, a custom resource keeps everything."""
        found = dict(old)
        if not served.is_custom:
            found["metadata"] = {
                **old["metadata"],
                **{name: new["metadata"][name] for name in ("annotations", "managedFields") if name in new["metadata"]},
            }
        elif "managedFields" in new["metadata"]:
            found["metadata"] = {**old["metadata"], "managedFields": new["metadata"]["managedFields"]}
        found.pop("status", None)
        if "status" in new:
            found["status"] = new["status"]
        return found

    def _with_generation(self, served: Served, old: Object, new: dict[str, Any]) -> dict[str, Any]:
        if not (served.strategy.has_generation or served.is_custom):
            return new
        if served.is_custom:
            apart = {"metadata", "status"} if served.status else {"metadata"}
            changed = _without(old, apart) != _without(new, apart)
        else:
            changed = old.get("spec") != new.get("spec")
        if not changed:
            return new
        metadata = new["metadata"]
        return {**new, "metadata": {**metadata, "generation": metadata.get("generation", 0) + 1}}

    def _check_finalizers(self, served: Served, old: Object, new: Object) -> None:
        if not old["metadata"].get("deletionTimestamp"):
            return
        before = old["metadata"].get("finalizers") or []
        added = [each for each in new["metadata"].get("finalizers") or [] if each not in before]
        if added:
            listed = ", ".join(f'"{each}"' for each in added)
            message = (
                "Forbidden: no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            raise invalid(
                served.kind, old["metadata"]["name"], [Cause("FieldValueForbidden", message, "metadata.finalizers")]
            )

    # -- server-side apply ---------------------------------------------------------------------------------------------

    def apply(
        self, served: Served, name: Name, config: dict[str, Any], subresource: str, options: WriteOptions
    ) -> tuple[Stored, bool]:
        """Applies a configuration. Returns the object, and whether it is new."""
        old = self.store.get(served.resource, name)
        check_config(config, served.shape, served.kind)
        if old is None:
            if subresource:
                raise not_found(served.kind.group, served.plural, name.name)
            config = {**config, "metadata": {**(config.get("metadata") or {}), "name": name.name}}
            return self._apply_new(served, name, config, options), True
        self._check_identity(served, old, config.get("metadata") or {})
        applied = apply(
            old.obj,
            config,
            self._tracking(served, subresource),
            manager=options.manager,
            now=now(),
            force=options.force,
        )
        if applied is old.obj:
            return old, False
        new = dict(without_nulls(applied))
        if subresource == "status":
            new = self._with_status(served, old.obj, new)
        elif served.status:
            new.pop("status", None)
            if "status" in old.obj:
                new["status"] = old.obj["status"]
        new = served.strategy.default(self._checked(served, new, options))
        return self._updated(served, old, new, subresource, options), False

    def _apply_new(self, served: Served, name: Name, config: dict[str, Any], options: WriteOptions) -> Stored:
        applied = apply(None, config, self._tracking(served, ""), manager=options.manager, now=now())
        entries = applied["metadata"].get("managedFields")
        return self.create(served, name.namespace, without_nulls(applied), options, managed=entries)

    # -- delete --------------------------------------------------------------------------------------------------------

    def delete(self, served: Served, old: Stored, options: DeleteOptions | None = None) -> tuple[Stored, bool]:
        """Deletes an object, or marks it as being deleted. Returns its last version, and whether it is gone."""
        options = options or DeleteOptions()
        self._check_preconditions(served, old, options)
        metadata = dict(old.obj["metadata"])
        finalizers = [each for each in metadata.get("finalizers") or [] if each not in _dropped_by(options.propagation)]
        extra = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(options.propagation)
        if extra and extra not in finalizers:
            finalizers.append(extra)
        grace = self._grace(served, old.obj, options)
        waits = bool(finalizers) or grace > 0 or (served.resource == NAMESPACES and _holds(old.obj))
        if not waits:
            if options.dry_run:
                return old, True
            return self.store.delete(served.resource, old.name), True
        if finalizers or "finalizers" in metadata:
            metadata["finalizers"] = finalizers
        if not metadata["finalizers"] if "finalizers" in metadata else False:
            del metadata["finalizers"]
        if not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = timestamp(time.time() + grace)
            if served.resource != NAMESPACES:
                metadata["deletionGracePeriodSeconds"] = grace
            if "generation" in metadata:
                metadata["generation"] += 1
        elif grace < metadata.get("deletionGracePeriodSeconds", grace):
            metadata["deletionGracePeriodSeconds"] = grace
        new: dict[str, Any] = {**old.obj, "metadata": metadata}
        if served.resource == NAMESPACES:
            new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
        if new == old.obj:
            return old, False
        if options.dry_run:
            return stored(new, old.version), False
        return self.store.put(served.resource, new), False

    def _grace(self, served: Served, obj: Object, options: DeleteOptions) -> int:
        if served.strategy.grace is None:
            return 0
        return max(0, options.grace if options.grace is not None else served.strategy.grace(obj))

    def _check_preconditions(self, served: Served, old: Stored, options: DeleteOptions) -> None:
        group, plural, name = served.kind.group, served.plural, old.name.name
        if options.uid and options.uid != old.uid:
            raise conflict(
                group,
                plural,
                name,
                f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {old.uid}",
            )
        if options.resource_version and options.resource_version != str(old.version):
            raise conflict(
                group,
                plural,
                name,
                "Precondition failed: ResourceVersion in precondition: "
                f"{options.resource_version}, ResourceVersion in object meta: {old.version}",
            )

    # -- both ----------------------------------------------------------------------------------------------------------

    def _checked(self, served: Served, obj: dict[str, Any], options: WriteOptions) -> dict[str, Any]:
        found, warnings = checked(served, obj, options.field_validation)
        self.warnings += warnings
        return found

    def _validate(self, served: Served, new: Object, old: Object | None) -> None:
        causes = served.strategy.validate(new, old)
        if causes:
            raise invalid(served.kind, new["metadata"]["name"], causes)

    def _tracked(
        self, served: Served, old: Object | None, new: dict[str, Any], subresource: str, options: WriteOptions
    ) -> dict[str, Any]:
        """The object with its managedFields after this write."""
        tracking = self._tracking(served, subresource)
        return dict(track_update(old, new, tracking, manager=options.manager, now=now()))

    def _tracking(self, served: Served, subresource: str) -> Tracking:
        kind = served.kind
        key = kind, subresource, id(served)
        found = self._trackings.get(key)
        if found is None:
            ignored = ignored_fields(kind.group, kind.kind, subresource=subresource, has_status=served.status)
            found = self._trackings[key] = Tracking(kind.api_version, served.shape, subresource, ignored)
        return found


def _suffix() -> str:
    return "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))


def _without(obj: Object, names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in names}


def _dropped_by(propagation: str) -> tuple[str, ...]:
    return {"Orphan": (FOREGROUND,), "Foreground": (ORPHAN,), "Background": (ORPHAN, FOREGROUND)}.get(propagation, ())


def _holds(namespace: Object) -> bool:
    return bool((namespace.get("spec") or {}).get("finalizers"))


def _is_finished(obj: Object) -> bool:
    """Whether nothing keeps an object that is being deleted."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
        return not _holds(obj)
    return not metadata.get("deletionGracePeriodSeconds")


def _name_message(name: str, *, label: bool) -> str:
    if label:
        return (
            f'Invalid value: "{name}": a lowercase RFC 1123 label must consist of lower case alphanumeric '
            "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
            "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        )
    return (
        f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '
        "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
        r"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )
