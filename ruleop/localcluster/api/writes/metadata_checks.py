"""Checks of metadata that are the same for all kinds: names, labels, annotations, finalizers, owners."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.names import LABEL_KINDS
from ruleop.core.validation.field_errors import FieldError, forbidden_value, invalid_value, invalid_values, required
from ruleop.core.validation.fields.field_names import (
    key_problems,
    label_problems,
    path_segment_problems,
    subdomain_problems,
    validate_annotations,
    validate_labels,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.core.kinds import Kind, Object
    from ruleop.localcluster.kinds.served import Served

_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_RBAC: Final = "rbac.authorization.k8s.io"
_BUDGET: Final = ("policy", "PodDisruptionBudget")
_ANY_PREFIX: Final = frozenset({_BUDGET, ("", "ReplicationController"), (_RBAC, "Role"), (_RBAC, "RoleBinding")})
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")  # in Go's order

# The server checks the metadata of an update twice, and most kinds check what changed once more; these check all.
_WHOLE_ONLY: Final = frozenset({("", "LimitRange"), ("discovery.k8s.io", "EndpointSlice")})
_WHOLE_TOO: Final = frozenset(
    {
        *(
            ("", kind)
            for kind in ("ConfigMap", "Endpoints", "PersistentVolumeClaim", "Pod", "Secret", "ServiceAccount")
        ),
        *((_RBAC, kind) for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
        ("batch", "Job"),
        ("networking.k8s.io", "Ingress"),
    }
)
# Of these, and of custom resources, finalizers need not be qualified by a domain.
_PLAIN_FINALIZERS: Final = frozenset({_BUDGET, ("coordination.k8s.io", "Lease")})


def validate_new_metadata(served: Served, metadata: Object) -> list[FieldError]:
    """Errors in the metadata of a new object."""
    prefix = metadata.get("generateName")
    return [
        *(_validate_prefix(served.kind, prefix) if prefix else ()),
        *validate_name(served.kind, metadata.get("name", "")),
        *_validate_whole(metadata),
        *_validate_unqualified(served, metadata),
    ]


def validate_metadata_update(served: Served, old: Object, new: Object, subresource: str) -> list[FieldError]:
    """Errors in the metadata of a new version of an object: each error as often as the server finds it."""
    whole, prefix = _validate_whole(new), new.get("generateName")
    added = _validate_added_finalizer(old, new)
    unqualified = _validate_unqualified(served, new)
    if not whole and not added and not unqualified and not prefix:
        return []
    changes = [*added, *(error for error in whole if not error.field.startswith("metadata.finalizers"))]
    kind, is_status = (served.kind.group, served.kind.kind), subresource == "status"
    errors = [*whole, *changes]
    if kind == _BUDGET or (is_status and kind == ("batch", "CronJob")):
        return errors
    if is_status or kind not in _WHOLE_ONLY:
        errors += [*changes, *unqualified]
    if not is_status and kind in _WHOLE_ONLY | _WHOLE_TOO:
        errors += [*(_validate_prefix(served.kind, prefix) if prefix else ()), *whole, *unqualified]
    return errors


def finalizer_warnings(old: Object | None, new: Object) -> list[str]:
    """Warnings to the author of a custom resource about finalizers that are new."""
    before = () if old is None else old.get("finalizers") or ()
    warnings = []
    for each in sorted(set(new.get("finalizers") or ()) - set(before)):
        found = list(key_problems(each, "a valid label key"))
        if "/" not in each and each not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in each else ""
            found.append(
                f"prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer "
                "writers"
            )
        warnings += [f"metadata.finalizers: {json.dumps(each)}: {problem}" for problem in found]
    return warnings


def _validate_whole(metadata: Object) -> list[FieldError]:
    return [
        *validate_labels(metadata.get("labels") or {}),
        *validate_annotations(metadata.get("annotations") or {}),
        *_validate_owner(metadata.get("ownerReferences") or []),
        *_validate_finalizer(metadata.get("finalizers") or []),
    ]


def _validate_prefix(kind: Kind, prefix: str) -> Iterator[FieldError]:
    """A dash at the end of a prefix of names is followed by letters: Go replaces it, and the letter before it."""
    if (kind.group, kind.kind) not in _ANY_PREFIX:
        field = "metadata.generateName"
        for error in validate_name(kind, prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix):
            yield FieldError(error.reason, error.message, field)


def validate_name(kind: Kind, name: str) -> Iterator[FieldError]:
    field = "metadata.name"
    if not name:
        yield required(field, "name or generateName is required")
    elif kind.group == _RBAC or (kind.group, kind.kind) == _BUDGET:
        yield from invalid_values(field, name, path_segment_problems(name))
    else:
        problems = label_problems(name) if (kind.group, kind.kind) in LABEL_KINDS else subdomain_problems(name)
        yield from invalid_values(field, name, problems)


def _validate_owner(owners: list[Mapping[str, Any]]) -> Iterator[FieldError]:
    field, controller = "metadata.ownerReferences", ""
    for owner in owners:
        version = owner.get("apiVersion") or ""
        if version.count("/") > 1 or not version.rpartition("/")[2]:
            yield invalid_value(f"{field}.apiVersion", version, "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                yield invalid_value(f"{field}.{name}", "", "must not be empty")
        if (version, owner.get("kind")) == ("v1", "Event"):
            yield invalid_value(field, _in_order(owner), "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            found = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                problem = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {found}"
                )
                yield invalid_value(field, [*map(_in_order, owners)], problem)
            controller = controller or found


def _in_order(owner: Mapping[str, Any]) -> dict[str, Any]:
    return {name: owner[name] for name in _OWNER_FIELDS if name in owner}


def _validate_finalizer(finalizers: list[str]) -> Iterator[FieldError]:
    for each in finalizers:
        for problem in key_problems(each, "a valid label key"):
            yield invalid_value("metadata.finalizers", each, problem)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        problem = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid_value("metadata.finalizers", finalizers, problem)


def _validate_unqualified(served: Served, metadata: Object) -> list[FieldError]:
    if served.is_custom or (served.kind.group, served.kind.kind) in _PLAIN_FINALIZERS:
        return []
    problem = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid_value(f"metadata.finalizers[{index}]", each, problem)
        for index, each in enumerate(metadata.get("finalizers") or ())
        if "/" not in each and each not in _STANDARD_FINALIZERS
    ]


def _validate_added_finalizer(old: Object, new: Object) -> list[FieldError]:
    """No finalizer may be added to an object that is being deleted."""
    added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if not added or "deletionTimestamp" not in old:
        return []
    listed = ", ".join(f'"{each}"' for each in added)
    problem = (
        f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    )
    return [forbidden_value("metadata.finalizers", problem)]
