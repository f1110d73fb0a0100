"""Whether a write may replace the stored version of an object: its resourceVersion, uid and times of deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.core.validation.field_errors import immutable_value, invalid_value
from ruleop.localcluster.status_errors import MODIFIED, Rejected, conflict, internal, invalid, invalid_named

if TYPE_CHECKING:
    from ruleop.localcluster.api.requests.write_options import DeleteOptions, WriteOptions
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.store.object_store import Name, Stored

_FOLDERS: Final = {
    "customresourcedefinitions": "apiextensions.k8s.io/customresourcedefinitions",
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "services": "services/specs",
}
"""Where the key of a built-in kind in etcd has another name than the kind's plural."""


def check_identity(served: Served, old: Stored, given: dict[str, Any], options: WriteOptions) -> None:
    group, plural, name = served.kind.group, served.plural, old.name.name
    version = given.get("resourceVersion")
    if not version and (served.is_custom or not served.strategy.unconditional_update):
        error = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid_named(group, plural, name, [error])
    if version and not version.isdecimal():
        raise internal(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    uid, outdated = given.get("uid"), bool(version) and version != str(old.version)
    if options.is_patch and outdated:  # of a patch, the version is compared first
        raise conflict(group, plural, name, MODIFIED)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if given.get(field) is not None and given[field] != old.obj["metadata"].get(field):
            raise _immutable(served, name, field, given[field])
    if uid and uid != old.uid:
        if options.is_patch:
            raise _immutable(served, name, "uid", uid)
        raise conflict(
            group,
            plural,
            name,
            f"StorageError: invalid object, Code: 4, Key: {_storage_key(served, old.name)}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}",
        )
    if outdated:
        raise conflict(group, plural, name, MODIFIED)


def check_preconditions(served: Served, old: Stored, options: DeleteOptions) -> None:
    group, kind, name = served.kind.group, served.kind.kind, old.name.name
    if options.uid and options.uid != old.uid:
        raise conflict(
            group,
            kind,
            name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({old.uid}). "
            "The object might have been deleted and then recreated",
        )
    if options.resource_version and options.resource_version != str(old.version):
        raise conflict(
            group,
            kind,
            name,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({old.version}). The object might have been modified",
        )


def _immutable(served: Served, name: str, field: str, value: Any) -> Rejected:
    """The server checks this twice."""
    error = immutable_value(f"metadata.{field}", value)
    return invalid(served.kind, name, [error, error])


def _storage_key(served: Served, name: Name) -> str:
    """The key of an object in etcd, which some messages show."""
    folder = f"{served.kind.group}/{served.plural}" if served.is_custom else _FOLDERS.get(served.plural, served.plural)
    return "/".join(filter(None, ("/registry", folder, name.namespace, name.name)))
