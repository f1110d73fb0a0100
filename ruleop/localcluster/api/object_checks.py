"""Checks of an object before it is stored: its fields, by the schema of its kind, and metadata, which are the same for
all kinds: names, labels, annotations, finalizers, owners.

Unknown fields go, with a warning or an error; defaults come. A body is decoded before anything else is checked: whether
the object exists, and whether it has the name in the path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.completion import complete
from ruleop.kubernetes.builtin.immutable_fields import value_at
from ruleop.kubernetes.crd import default, prune, unknown_fields
from ruleop.kubernetes.labels import key_problems
from ruleop.kubernetes.merge import with_integers
from ruleop.kubernetes.names import LABEL_KINDS
from ruleop.kubernetes.validation import (
    FieldError,
    forbidden_value,
    invalid_value,
    invalid_values,
    label_problems,
    path_segment_problems,
    required,
    subdomain_problems,
    validate_annotations,
    validate_labels,
    validate_rules,
)
from ruleop.localcluster.objects import (
    DecodingError,
    decode,
    decode_metadata,
    strict_problem,
    undecodable,
    unknown_field,
    validate_custom_resource,
)
from ruleop.messages import format_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.kinds import Kind, Object
    from ruleop.localcluster.api.requests import WriteOptions
    from ruleop.localcluster.kinds import ServedKind

_MOST_REPLICAS: Final = (1 << 31) - 1
_OWNER: Final = {"apiVersion": "", "kind": "", "name": "", "uid": ""}  # fields that Go writes even if they are empty


def decoded(served: ServedKind, obj: Object, options: WriteOptions) -> tuple[dict[str, Any], list[str]]:
    """The object as it is read from a request, without empty metadata, and warnings. Raises Rejected if it cannot be
    decoded."""
    try:
        found, unknown = (_decoded_custom if served.is_custom else _decoded_builtin)(served, obj)
    except DecodingError as error:
        raise undecodable(served.kind, error, options.undecodable) from None
    warnings = [*map(unknown_field, unknown)] if options.field_validation != "Ignore" else []
    if warnings and options.field_validation == "Strict":
        raise undecodable(served.kind, strict_problem(warnings), options.undecodable)
    found["metadata"] = _without_empty(found.get("metadata") or {}, served)
    return found, warnings


def _without_empty(metadata: dict[str, Any], served: ServedKind) -> dict[str, Any]:
    """Metadata as Go writes them. A number of zero is a pointer's. An empty list of managers resets those of a built-in
    kind."""
    kept = "" if served.is_custom else "managedFields"
    found = {name: value for name, value in metadata.items() if value or value == 0 or name == kept}
    if owners := found.get("ownerReferences"):
        found["ownerReferences"] = [
            each if _OWNER.keys() <= each.keys() else {**_OWNER, **each}
            for index, each in enumerate(owners)
            if each not in owners[:index]
        ]
    return found


def checked(served: ServedKind, obj: dict[str, Any], old: Object | None) -> tuple[dict[str, Any], list[FieldError]]:
    """A custom resource with the defaults of its schema, and why it is invalid. Others have no schema."""
    if not served.is_custom:
        return obj, []
    found = default(obj, served.schema)
    errors = [*validate_custom_resource(found, served.schema, old), *_validate_scale(served, found)]
    return found, [*errors, *validate_rules(found, served.schema, old, errors)]


def _validate_scale(served: ServedKind, obj: Object) -> list[FieldError]:
    """The reasons that the replicas of a custom resource, or those in its status, cannot be shown in its scale."""
    errors = []
    for path in (served.scale.replicas, served.scale.status_replicas):
        replicas = value_at(obj, path)
        if replicas is not None and (type(replicas) is not int or not 0 <= replicas <= _MOST_REPLICAS):
            problem = f"should be an integer from 0 to {_MOST_REPLICAS}"
            errors.append(invalid_value(f".{path}", replicas, problem))
    return errors


def with_defaults(served: ServedKind, obj: dict[str, Any], old: Object | None = None) -> dict[str, Any]:
    """The object with the defaults of its kind, valid or not."""
    if served.is_custom:
        return default(obj, served.schema)
    return completed(served, obj, old)


def completed(served: ServedKind, obj: dict[str, Any], old: Object | None = None) -> dict[str, Any]:
    """An object of a built-in kind with its defaults. Those of a custom resource come with its schema."""
    if served.is_custom or served.kind.kind == "CustomResourceDefinition":
        return served.validator.default(obj)
    return served.validator.default(complete(obj, served.shape, old))


def _decoded_builtin(served: ServedKind, obj: Object) -> tuple[dict[str, Any], list[str]]:
    found = decode(obj, served.shape)
    return found.obj, list(found.unknown)


def _decoded_custom(served: ServedKind, obj: Object) -> tuple[dict[str, Any], list[str]]:
    metadata = decode_metadata(obj.get("metadata"))
    whole = with_integers(dict(obj))
    found = prune({**whole, "metadata": metadata.obj}, served.schema)
    unknown = list(metadata.unknown)
    if len(found) != len(whole) or any(found[name] != whole[name] for name in found if name != "metadata"):
        unknown += [format_path(path) for path in unknown_fields(whole, served.schema)]
    return found, sorted(unknown)


_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_RBAC: Final = "rbac.authorization.k8s.io"
_BUDGET: Final = ("policy", "PodDisruptionBudget")
# Of these, and of custom resources, finalizers need not be qualified by a domain.
_PLAIN_FINALIZERS: Final = frozenset({_BUDGET, ("coordination.k8s.io", "Lease")})


def validate_new_metadata(served: ServedKind, metadata: Object) -> list[FieldError]:
    """Errors in the metadata of a new object."""
    return [
        *validate_name(served.kind, metadata.get("name", "")),
        *_validate_whole(metadata),
        *_validate_unqualified(served, metadata),
    ]


def validate_metadata_update(served: ServedKind, old: Object, new: Object) -> list[FieldError]:
    """Errors in the metadata of a new version of an object. The server reports some of them twice or thrice."""
    return [
        *_validate_added_finalizer(old, new),
        *_validate_whole(new),
        *_validate_unqualified(served, new),
    ]


def _validate_whole(metadata: Object) -> list[FieldError]:
    return [
        *validate_labels(metadata.get("labels") or {}),
        *validate_annotations(metadata.get("annotations") or {}),
        *_validate_owner(metadata.get("ownerReferences") or []),
        *_validate_finalizer(metadata.get("finalizers") or []),
    ]


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
        if owner.get("controller"):
            found = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                problem = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {found}"
                )
                yield invalid_value(field, owners, problem)
            controller = controller or found


def _validate_finalizer(finalizers: list[str]) -> Iterator[FieldError]:
    for each in finalizers:
        for problem in key_problems(each, "a valid label key"):
            yield invalid_value("metadata.finalizers", each, problem)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        problem = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid_value("metadata.finalizers", finalizers, problem)


def _validate_unqualified(served: ServedKind, metadata: Object) -> list[FieldError]:
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
