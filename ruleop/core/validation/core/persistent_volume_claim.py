"""PersistentVolumeClaims: validation, warnings, and the fields that may change."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.schema.builtin.immutable_fields import claim_parts, immutable_changes, value_at
from ruleop.core.schema.quantity import parse_quantity
from ruleop.core.validation.field_errors import (
    forbidden_value,
    immutable_value,
    invalid_value,
    invalid_values,
    required,
    validate_one_of,
)
from ruleop.core.validation.fields.field_names import label_problems, subdomain_problems
from ruleop.core.validation.fields.label_selectors import shown_selector, validate_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEPRECATED: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
_REQUESTED: Final = "spec.resources.requests.storage"
_FORBIDDEN: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def with_sources_of_new(claim: dict[str, Any]) -> dict[str, Any]:
    return {**claim, "spec": with_sources(claim.get("spec") or {}, {})}


def with_sources(spec: Object, old: Object) -> dict[str, Any]:
    """`dataSource` and `dataSourceRef` are the same, where both can name it."""
    found = dict(spec)
    if (found.get("dataSourceRef") or {}).get("namespace") and not old.get("dataSourceRef"):
        del found["dataSourceRef"]  # needs a feature of the server that is not enabled
    source, reference = found.get("dataSource"), found.get("dataSourceRef")
    known = old.get("dataSource") or old.get("dataSourceRef")
    if source is not None and reference is None and not known and not _is_known_source(source):
        del found["dataSource"]  # older clients expect that it is ignored
        return found
    if source is not None and reference is None:
        found["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        found["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}
    return found


def _is_known_source(source: Object) -> bool:
    return (source.get("apiGroup") or "", source.get("kind")) in _SOURCES


def validate_persistent_volume_claim(new: Object, old: Object | None) -> list[FieldError]:
    errors = list(validate_claim_spec(new.get("spec") or {}, "spec"))
    return errors if old is None else [*errors, *_validate_change(new, old)]


def claim_warnings(new: Object, _old: Object | None) -> list[str]:
    found = []
    if _BETA_CLASS in (new["metadata"].get("annotations") or {}):
        found.append(f"metadata.annotations[{_BETA_CLASS}]: {_DEPRECATED}")
    return [*found, *storage_warnings(new.get("spec") or {}, "spec")]


def storage_warnings(spec: Object, field: str) -> Iterator[str]:
    resources = spec.get("resources") or {}
    for name in ("requests", "limits"):
        value = (resources.get(name) or {}).get("storage")
        amount = parse_quantity(value)
        if amount is not None and amount.denominator != 1:
            problem = f'fractional byte value "{value}" is invalid, must be an integer'
            yield f"{field}.resources.{name}[storage]: {problem}"


def validate_modes(modes: Sequence[str], field: str) -> Iterator[FieldError]:
    """Validates the access modes of a claim or of a volume."""
    for each in modes:
        yield from validate_one_of(field, each, _MODES)
    if "ReadWriteOncePod" in modes and any(each in _MODES and each != "ReadWriteOncePod" for each in modes):
        yield forbidden_value(field, "may not use ReadWriteOncePod with other access modes")


def validate_claim_spec(spec: Object, field: str) -> Iterator[FieldError]:
    """Validates a claim, and of the claims in a StatefulSet."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{field}.accessModes", "at least 1 access mode is required")
    yield from validate_label_selector(spec.get("selector"), f"{field}.selector")
    yield from validate_modes(modes, f"{field}.accessModes")
    requested = value_at(spec, "resources.requests.storage")
    amount = parse_quantity(requested)
    if requested is None:
        yield required(f"{field}.resources[storage]")
    elif amount is not None and amount <= 0:
        yield invalid_value(f"{field}.resources[storage]", requested, "must be greater than zero")
    yield from _validate_name(spec.get("storageClassName"), f"{field}.storageClassName")
    yield from validate_one_of(f"{field}.volumeMode", spec.get("volumeMode"), VOLUME_MODES, optional=True)
    for name in ("dataSource", "dataSourceRef"):
        if (source := spec.get(name)) is not None:
            yield from _validate_source(f"{field}.{name}", source)
    yield from _validate_name(spec.get("volumeAttributesClassName"), f"{field}.volumeAttributesClassName")


def _validate_name(name: str | None, field: str) -> Iterator[FieldError]:
    if name:
        yield from invalid_values(field, name, subdomain_problems(name))


def _validate_source(field: str, source: Object) -> Iterator[FieldError]:
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    for name in ("name", "kind"):
        if not source.get(name):
            yield required(f"{field}.{name}")
    if not group and kind != "PersistentVolumeClaim":
        yield invalid_value(field, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if group:
        yield from invalid_values(f"{field}.apiGroup", group, subdomain_problems(group))
    if namespace := source.get("namespace"):
        yield from invalid_values(f"{field}.namespace", namespace, label_problems(namespace))


def _validate_change(new: Object, old: Object) -> Iterator[FieldError]:
    changes = immutable_changes(new, old)
    if changes:
        after, before = claim_parts(new, old)
        yield forbidden_value("spec", f"{_FORBIDDEN}\n{_difference(before, after)}")
    requested, capacity = value_at(new, _REQUESTED), value_at(old, "status.capacity.storage")
    if _less(requested, value_at(old, _REQUESTED)) and not _less(capacity, requested):
        yield forbidden_value(_REQUESTED, "field can not be less than status.capacity")
    if "spec.volumeMode" in changes:
        yield immutable_value("volumeMode", new["spec"].get("volumeMode"))


def _less(one: Any, other: Any) -> bool:
    amount, limit = (parse_quantity(each if each is not None else 0) for each in (one, other))
    return amount is not None and limit is not None and amount < limit


def _difference(before: Object, after: Object) -> str:
    """The unified difference of both specs, as Go prints the server's internal type."""
    one, other = ([f"{line}\n" for line in json.dumps(_shown(each), indent=1).split("\n")] for each in (before, after))
    return "".join(list(difflib.unified_diff(one, other))[2:])


def _shown(spec: Object) -> dict[str, Any]:
    resources = spec.get("resources") or {}
    return {
        "AccessModes": spec.get("accessModes"),
        "Selector": shown_selector(spec.get("selector")),
        "Resources": {name.title(): resources.get(name) for name in ("limits", "requests")},
        "VolumeName": spec.get("volumeName", ""),
        "StorageClassName": spec.get("storageClassName"),
        "VolumeMode": spec.get("volumeMode"),
        "DataSource": _shown_source(spec.get("dataSource"), {}),
        "DataSourceRef": _shown_source(spec.get("dataSourceRef"), {"Namespace": "namespace"}),
        "VolumeAttributesClassName": spec.get("volumeAttributesClassName"),
    }


def _shown_source(source: Object | None, more: dict[str, str]) -> dict[str, Any] | None:
    if source is None:
        return None
    found = {"APIGroup": source.get("apiGroup"), "Kind": source.get("kind", ""), "Name": source.get("name", "")}
    return {**found, **{shown: source.get(name) for shown, name in more.items()}}
