"""Checks of metadata that are the same for all kinds: names, labels, annotations, finalizers, owners."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import Cause, forbidden_value, invalid_value, invalid_values, required
from ruleop.localcluster.objects.names import (
    annotation_causes,
    key_problems,
    label_causes,
    label_problems,
    path_segment_problems,
    subdomain_problems,
)
from ruleop.names import LABEL_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kinds import Kind, Object
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


def creation_causes(served: Served, metadata: Object) -> list[Cause]:
    """Why the metadata of a new object is invalid."""
    prefix = metadata.get("generateName")
    return [
        *(_prefix_causes(served.kind, prefix) if prefix else ()),
        *name_causes(served.kind, metadata.get("name", "")),
        *_whole_causes(metadata),
        *_unqualified_causes(served, metadata),
    ]


def update_causes(served: Served, old: Object, new: Object, subresource: str) -> list[Cause]:
    """Why the metadata of a new version of an object is invalid: each cause as often as the server finds it."""
    whole, prefix = _whole_causes(new), new.get("generateName")
    added = _added_finalizer_causes(old, new)
    unqualified = _unqualified_causes(served, new)
    if not whole and not added and not unqualified and not prefix:
        return []
    changes = [*added, *(cause for cause in whole if not cause.field.startswith("metadata.finalizers"))]
    kind, is_status = (served.kind.group, served.kind.kind), subresource == "status"
    causes = [*whole, *changes]
    if kind == _BUDGET or (is_status and kind == ("batch", "CronJob")):
        return causes
    if is_status or kind not in _WHOLE_ONLY:
        causes += [*changes, *unqualified]
    if not is_status and kind in _WHOLE_ONLY | _WHOLE_TOO:
        causes += [*(_prefix_causes(served.kind, prefix) if prefix else ()), *whole, *unqualified]
    return causes


def finalizer_warnings(old: Object | None, new: Object) -> list[str]:
    """What the author of a custom resource should know of finalizers that are new."""
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


def _whole_causes(metadata: Object) -> list[Cause]:
    return [
        *label_causes(metadata.get("labels") or {}),
        *annotation_causes(metadata.get("annotations") or {}),
        *_owner_causes(metadata.get("ownerReferences") or []),
        *_finalizer_causes(metadata.get("finalizers") or []),
    ]


def _prefix_causes(kind: Kind, prefix: str) -> Iterator[Cause]:
    """A dash at the end of a prefix of names is followed by letters: Go replaces it, and the letter before it."""
    if (kind.group, kind.kind) not in _ANY_PREFIX:
        field = "metadata.generateName"
        for cause in name_causes(kind, prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix):
            yield Cause(cause.reason, cause.message, field)


def name_causes(kind: Kind, name: str) -> Iterator[Cause]:
    field = "metadata.name"
    if not name:
        yield required(field, "name or generateName is required")
    elif kind.group == _RBAC or (kind.group, kind.kind) == _BUDGET:
        yield from invalid_values(field, name, path_segment_problems(name))
    else:
        problems = label_problems(name) if (kind.group, kind.kind) in LABEL_KINDS else subdomain_problems(name)
        yield from invalid_values(field, name, problems)


def _owner_causes(owners: list[Mapping[str, Any]]) -> Iterator[Cause]:
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


def _finalizer_causes(finalizers: list[str]) -> Iterator[Cause]:
    for each in finalizers:
        for problem in key_problems(each, "a valid label key"):
            yield invalid_value("metadata.finalizers", each, problem)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        problem = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid_value("metadata.finalizers", finalizers, problem)


def _unqualified_causes(served: Served, metadata: Object) -> list[Cause]:
    if served.is_custom or (served.kind.group, served.kind.kind) in _PLAIN_FINALIZERS:
        return []
    problem = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid_value(f"metadata.finalizers[{index}]", each, problem)
        for index, each in enumerate(metadata.get("finalizers") or ())
        if "/" not in each and each not in _STANDARD_FINALIZERS
    ]


def _added_finalizer_causes(old: Object, new: Object) -> list[Cause]:
    """No finalizer may be added to an object that is being deleted."""
    added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if not added or "deletionTimestamp" not in old:
        return []
    listed = ", ".join(f'"{each}"' for each in added)
    problem = (
        f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    )
    return [forbidden_value("metadata.finalizers", problem)]
