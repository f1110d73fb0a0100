"""Checks of metadata that are the same for all kinds: names, labels, annotations, finalizers, owners."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import NOT_LABEL, Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kinds import Kind, Object

LARGEST_ANNOTATIONS: Final = 256 * 1024
_INVALID: Final = "FieldValueInvalid"
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
# Kinds whose names are single labels. Names of RBAC objects may have any letters but slashes.
_LABEL_KINDS: Final = frozenset({("", "Namespace"), ("", "Service")})
_RBAC: Final = "rbac.authorization.k8s.io"

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SERVICE: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_KEY_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

NOT_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NOT_SERVICE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_NOT_KEY_NAME: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_NOT_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def metadata_causes(kind: Kind, metadata: Object) -> list[Cause]:
    """Why the metadata of an object is invalid, apart from its name."""
    return [
        *_label_causes(metadata.get("labels") or {}),
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
    elif (kind.group, kind.kind) == ("", "Namespace") and "." in name and _SUBDOMAIN.fullmatch(name):
        yield Cause(_INVALID, f'Invalid value: "{name}": must not contain dots', field)
    else:
        label = (kind.group, kind.kind) in _LABEL_KINDS
        pattern, limit, problem = (_LABEL, 63, NOT_LABEL) if label else (_SUBDOMAIN, 253, NOT_SUBDOMAIN)
        if kind.kind == "Service" and not kind.group:
            pattern, problem = _SERVICE, _NOT_SERVICE
        if len(name) > limit:
            yield Cause(_INVALID, f'Invalid value: "{name}": must be no more than {limit} characters', field)
        if not pattern.fullmatch(name):
            yield Cause(_INVALID, f'Invalid value: "{name}": {problem}', field)


def path_segment_problems(name: str) -> Iterator[str]:
    if name in (".", ".."):
        yield f"may not be '{name}'"
    for letter in "/%":
        if letter in name:
            yield f"may not contain '{letter}'"


def _label_causes(labels: Mapping[str, str], field: str = "metadata.labels") -> Iterator[Cause]:
    for key, value in labels.items():
        for problem in key_problems(key):
            yield Cause(_INVALID, f'Invalid value: "{key}": {problem}', field)
        if len(value) > 63:
            yield Cause(_INVALID, f'Invalid value: "{value}": must be no more than 63 bytes', field)
        if not _VALUE.fullmatch(value):
            yield Cause(_INVALID, f'Invalid value: "{value}": {_NOT_VALUE}', field)


@lru_cache(maxsize=1024)
def key_problems(key: str, what: str = "a qualified name") -> tuple[str, ...]:
    """Why a text is not a qualified name: the key of a label, an annotation, a finalizer."""
    return tuple(_key_problems(key, what))


def _key_problems(key: str, what: str) -> Iterator[str]:
    parts = key.split("/")
    if len(parts) > 2:
        yield (
            f"{what} must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        )
        return
    if len(parts) == 2:
        if not parts[0]:
            yield "prefix part must be non-empty"
        elif not _SUBDOMAIN.fullmatch(parts[0]):
            yield f"prefix part {NOT_SUBDOMAIN}"
    if not parts[-1]:
        yield "name part must be non-empty"
    elif len(parts[-1]) > 63:
        yield "name part must be no more than 63 bytes"
    if not _KEY_NAME.fullmatch(parts[-1]):
        yield _NOT_KEY_NAME


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
