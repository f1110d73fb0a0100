"""Checks of metadata that are the same for all kinds: names, labels, annotations, finalizers, owners."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import Cause, invalid_value
from ruleop.localcluster.objects.names import (
    key_problems,
    label_causes,
    label_problems,
    path_segment_problems,
    subdomain_problems,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kinds import Kind, Object

LARGEST_ANNOTATIONS: Final = 256 * 1024
_INVALID: Final = "FieldValueInvalid"
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
# Kinds whose names are single labels. Names of RBAC objects may have any letters but slashes.
_LABEL_KINDS: Final = frozenset({("", "Namespace"), ("", "Service")})
_LONGEST_CRON_JOB: Final = 52  # the names of its Jobs have eleven characters more
_RBAC: Final = "rbac.authorization.k8s.io"


def metadata_causes(kind: Kind, metadata: Object) -> list[Cause]:
    """Why the metadata of an object is invalid, apart from its name."""
    return [
        *label_causes(metadata.get("labels") or {}),
        *_annotation_causes(metadata.get("annotations") or {}),
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


def _annotation_causes(annotations: Mapping[str, str]) -> Iterator[Cause]:
    for key in annotations:
        for problem in key_problems(key.lower(), "a valid label key"):
            yield Cause(_INVALID, f'Invalid value: "{key}": {problem}', "metadata.annotations")
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > LARGEST_ANNOTATIONS:
        yield Cause(
            "FieldValueTooLong", f"Too long: may not be more than {LARGEST_ANNOTATIONS} bytes", "metadata.annotations"
        )


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
