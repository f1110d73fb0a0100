"""PersistentVolumes, claims, StorageClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes, value_at
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    forbidden_value,
    immutable_value,
    invalid_value,
    required,
    unsupported,
)
from ruleop.kubernetes.validation.rows import Rows, is_changed, sub_table
from ruleop.kubernetes.validation.rules import frozen, holds, missing, needed, on_update, quantity, union
from ruleop.kubernetes.validation.tables.pods import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.validation.rules import At, Errors

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _modes(modes: Any, at: At) -> Iterator[FieldError]:
    yield from (unsupported(at.field, each, _MODES) for each in modes if each not in _MODES)
    if "ReadWriteOncePod" in modes and any(each in _MODES and each != "ReadWriteOncePod" for each in modes):
        yield forbidden_value(at.field, "may not use ReadWriteOncePod with other access modes")


def _requested(resources: Any, at: At) -> Errors:
    """The size that a claim requests: the server leaves `requests` out of its path."""
    size, place = ((resources or {}).get("requests") or {}).get("storage"), at._replace(field=f"{at.field}[storage]")
    return (required(place.field),) if size is None else quantity().check(size, place)


def _source_group(source: Any, at: At) -> Errors:
    kind, words = source.get("kind", ""), "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
    is_known = source.get("apiGroup") or kind == "PersistentVolumeClaim"
    return () if is_known else (invalid_value(at.field, kind, words),)


CLAIM_SPEC: Final[Rows] = {
    "accessModes": (needed("at least 1 access mode is required"), _modes),
    "selector": "selector",
    "resources": missing(_requested),
    "storageClassName volumeAttributesClassName": "subdomain",
    "volumeMode": "Block|Filesystem",
    "dataSource dataSourceRef": (
        {"name kind": "needed", "apiGroup": "subdomain"},
        _source_group,
    ),
    "dataSourceRef.namespace": "label",
}


def _update(claim: Any, at: At) -> Iterator[FieldError]:
    path = "spec.resources.requests.storage"
    if changes := immutable_changes(claim, at.old_root):
        words = "except resources.requests and volumeAttributesClassName for bound claims"
        yield forbidden_value("spec", f"spec is immutable after creation {words}")
    if "spec.volumeMode" in changes:
        yield immutable_value("volumeMode", value_at(claim, "spec.volumeMode"))
    size, before, capacity = (
        parse_quantity(value_at(*each) or 0)
        for each in ((claim, path), (at.old, path), (at.old, "status.capacity.storage"))
    )
    if size is not None and before is not None and capacity is not None and size < before and size <= capacity:
        yield forbidden_value(path, "field can not be less than status.capacity")


CLAIM: Final[Rows] = ({"spec!": CLAIM_SPEC}, on_update(_update))


def _capacity(capacity: Any, at: At) -> Errors:
    if (capacity or {}).keys() == {"storage"}:
        return quantity().check(capacity["storage"], at._replace(field=f"{at.field}[storage]"))
    wrong = unsupported(at.field, capacity, ("storage",))
    return (wrong,) if capacity else (required(at.field), wrong)


def _of_volume(spec: Any, at: At) -> Iterator[FieldError]:
    if spec.get("local") is not None and not spec.get("nodeAffinity"):
        yield required(at.child("nodeAffinity"), "Local volume requires node affinity")
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle" and (spec.get("hostPath") or {}).get("path") == "/":
        words = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden_value(at.child("persistentVolumeReclaimPolicy"), words)


_NO_SOURCES: Final = (
    *("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"),
    *("storageClassName", "volumeAttributesClassName", "volumeMode"),
)
VOLUME: Final[Rows] = {
    "spec!": sub_table(
        (
            {
                "accessModes": ("needed", _modes),
                "capacity": missing(_capacity),
                "persistentVolumeReclaimPolicy": "Delete|Recycle|Retain",
                "volumeMode": "Block|Filesystem",
                "storageClassName": "subdomain",
                "nfs.path csi.volumeHandle": "needed",
                "nfs.path": holds(lambda path: path.startswith("/"), "must be an absolute path"),
            },
            SOURCES,
            union("volume", but=_NO_SOURCES),
            _of_volume,
        ),
        when=is_changed,
    )
}
STORAGE_CLASS: Final = frozen("updates to {0} are forbidden.", forbidden=True)
