"""PersistentVolumeClaims: what the server adds to one, why one is invalid, and what may change."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import (
    forbidden_value,
    immutable_value,
    invalid_value,
    invalid_values,
    required,
    unsupported,
)
from ruleop.localcluster.kinds.label_selectors import label_selector_causes, shown_selector
from ruleop.localcluster.kinds.resources import CLASSES
from ruleop.localcluster.kinds.storage import CLAIM_PROTECTION, DEFAULT_CLASS, protected
from ruleop.localcluster.objects.names import label_problems, subdomain_problems
from ruleop.schema.immutable_fields import claim_parts, immutable_changes
from ruleop.schema.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause
    from ruleop.localcluster.store.store import Store

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEPRECATED: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
_REQUESTED: Final = "spec.resources.requests.storage"
_FORBIDDEN: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def claim_created(obj: dict[str, Any]) -> dict[str, Any]:
    spec = _with_sources(obj.get("spec") or {}, {})
    return protected({**obj, "spec": spec, "status": {"phase": "Pending"}}, CLAIM_PROTECTION)


def claim_updated(new: dict[str, Any], old: Object) -> dict[str, Any]:
    return {**new, "spec": _with_sources(new.get("spec") or {}, old.get("spec") or {})}


def _with_sources(spec: Object, old: Object) -> dict[str, Any]:
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


def admit_claim(claim: dict[str, Any], store: Store) -> dict[str, Any]:
    """The claim with the default class, if it names none."""
    spec = claim["spec"]
    if "storageClassName" in spec:
        return claim
    for each in store.all(CLASSES):
        if (each.obj["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true":
            return {**claim, "spec": {**spec, "storageClassName": each.name.name}}
    return claim


def claim_causes(new: Object, old: Object | None) -> list[Cause]:
    causes = list(claim_spec_causes(new.get("spec") or {}, "spec"))
    return causes if old is None else [*causes, *_change_causes(new, old)]


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


def claim_spec_causes(spec: Object, field: str) -> Iterator[Cause]:
    """Of a claim, and of the claims in a StatefulSet."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{field}.accessModes", "at least 1 access mode is required")
    yield from label_selector_causes(spec.get("selector"), f"{field}.selector")
    for each in modes:
        if each not in _MODES:
            yield unsupported(f"{field}.accessModes", each, _MODES)
    if "ReadWriteOncePod" in modes and any(each in _MODES and each != "ReadWriteOncePod" for each in modes):
        yield forbidden_value(f"{field}.accessModes", "may not use ReadWriteOncePod with other access modes")
    requested = _requested(spec)
    amount = parse_quantity(requested)
    if requested is None:
        yield required(f"{field}.resources[storage]")
    elif amount is not None and amount <= 0:
        yield invalid_value(f"{field}.resources[storage]", requested, "must be greater than zero")
    yield from _name_causes(spec.get("storageClassName"), f"{field}.storageClassName")
    if (mode := spec.get("volumeMode")) is not None and mode not in _VOLUME_MODES:
        yield unsupported(f"{field}.volumeMode", mode, _VOLUME_MODES)
    for name in ("dataSource", "dataSourceRef"):
        if (source := spec.get(name)) is not None:
            yield from _source_causes(f"{field}.{name}", source)
    yield from _name_causes(spec.get("volumeAttributesClassName"), f"{field}.volumeAttributesClassName")


def _requested(spec: Object) -> Any:
    return ((spec.get("resources") or {}).get("requests") or {}).get("storage")


def _name_causes(name: str | None, field: str) -> Iterator[Cause]:
    if name:
        yield from invalid_values(field, name, subdomain_problems(name))


def _source_causes(field: str, source: Object) -> Iterator[Cause]:
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


def _change_causes(new: Object, old: Object) -> Iterator[Cause]:
    changes = immutable_changes(new, old)
    if changes:
        after, before = claim_parts(new, old)
        yield forbidden_value("spec", f"{_FORBIDDEN}\n{_difference(before, after)}")
    requested = _requested(new["spec"]), _requested(old["spec"])
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", 0)
    if _less(requested[0], requested[1]) and not _less(capacity, requested[0]):
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
