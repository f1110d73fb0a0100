"""Checks of metadata that are the same for all kinds: names, labels, annotations, finalizers, owners."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import Cause, bad_request, invalid_value
from ruleop.localcluster.objects.go_text import type_name
from ruleop.localcluster.objects.names import (
    annotation_causes,
    key_problems,
    label_causes,
    label_problems,
    path_segment_problems,
    subdomain_problems,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kinds import Kind, Object

_INVALID: Final = "FieldValueInvalid"
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
# Kinds whose names are single labels. Names of RBAC objects may have any letters but slashes.
_LABEL_KINDS: Final = frozenset({("", "Namespace"), ("", "Service")})
_LONGEST_CRON_JOB: Final = 52  # the names of its Jobs have eleven characters more
_RBAC: Final = "rbac.authorization.k8s.io"

_TEXTS: Final = frozenset({"name", "generateName", "namespace", "uid", "resourceVersion"})
_MAPS: Final = frozenset({"labels", "annotations"})


def check_types(kind: Kind, metadata: Mapping[str, Any]) -> None:
    """Raises Rejected if a field is not of its Go type, in the words of Go's decoder."""
    if problem := type_problem(metadata, "ObjectMeta"):
        raise bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}')


def type_problem(metadata: Any, path: str) -> str:
    """The problem of metadata with a field that is not of its Go type; "" if there is none. `path` is where Go's
    decoder says that the metadata are."""
    if not isinstance(metadata, dict):
        return ""
    for name, value in metadata.items():
        found, desired = value, "string"
        if name in _MAPS and isinstance(value, dict):
            found = next((each for each in value.values() if each is not None and type(each) is not str), None)
        elif name == "finalizers":
            found, desired = None if type(value) is list else value, "[]string"
        elif name not in _TEXTS:
            continue
        if found is not None and (desired != "string" or type(found) is not str):
            return f"json: cannot unmarshal {type_name(found)} into Go struct field {path}.{name} of type {desired}"
    return ""


def metadata_causes(kind: Kind, metadata: Object) -> list[Cause]:
    """Why the metadata of an object is invalid, apart from its name."""
    return [
        *label_causes(metadata.get("labels") or {}),
        *annotation_causes(metadata.get("annotations") or {}),
        *_owner_causes(metadata.get("ownerReferences") or []),
        *_finalizer_causes(kind, metadata.get("finalizers") or []),
    ]


def name_causes(kind: Kind, name: str) -> Iterator[Cause]:
    field = "metadata.name"
    if not name:
        yield Cause("FieldValueRequired", "Required value: name or generateName is required", field)
    elif kind.group == _RBAC:
        for problem in path_segment_problems(name):
            yield Cause(_INVALID, f'Invalid value: "{name}": {problem}', field)
    else:
        problems = label_problems(name) if (kind.group, kind.kind) in _LABEL_KINDS else subdomain_problems(name)
        yield from (invalid_value(field, name, each) for each in problems)
    if (kind.group, kind.kind) == ("batch", "CronJob") and len(name) > _LONGEST_CRON_JOB:
        yield invalid_value(field, name, f"must be no more than {_LONGEST_CRON_JOB} characters")


def _owner_causes(owners: list[Mapping[str, Any]]) -> Iterator[Cause]:
    for owner in owners:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield Cause(_INVALID, 'Invalid value: "": must not be empty', f"metadata.ownerReferences.{name}")
    controllers = [f"{each.get('kind')}/{each.get('name')}" for each in owners if each.get("controller")]
    if len(controllers) > 1:
        yield Cause(
            _INVALID,
            f"Invalid value: {json.dumps(owners, separators=(',', ':'))}: Only one reference can have Controller set "
            f'to true. Found "true" in references for {controllers[0]} and {controllers[1]}',
            "metadata.ownerReferences",
        )


def _finalizer_causes(kind: Kind, finalizers: list[str]) -> Iterator[Cause]:
    for each in finalizers:
        for problem in key_problems(each, "a valid label key"):
            yield Cause(_INVALID, f'Invalid value: "{each}": {problem}', "metadata.finalizers")
    for index, each in enumerate(finalizers):
        if kind.group == "" and each and "/" not in each and each not in _STANDARD_FINALIZERS:
            yield Cause(
                _INVALID,
                f'Invalid value: "{each}": name is neither a standard finalizer name nor is it fully qualified',
                f"metadata.finalizers[{index}]",
            )
