"""Validation of PersistentVolumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.core.schema.quantity import parse_quantity
from ruleop.core.validation.core.persistent_volume_claim import VOLUME_MODES, validate_modes
from ruleop.core.validation.core.volumes import validate_source
from ruleop.core.validation.field_errors import (
    forbidden_value,
    invalid_value,
    invalid_values,
    required,
    unsupported,
    validate_one_of,
)
from ruleop.core.validation.fields.field_names import subdomain_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_POLICIES: Final = ("Delete", "Recycle", "Retain")
_NO_SOURCES: Final = frozenset(
    {
        *("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"),
        *("storageClassName", "volumeAttributesClassName", "volumeMode"),
    }
)
_REQUIRED: Final = {"nfs": "path", "csi": "volumeHandle"}  # beside what a source of a pod needs


def validate_persistent_volume(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    if old is not None and spec == old.get("spec"):
        return
    if not (modes := spec.get("accessModes")):
        yield required("spec.accessModes")
    yield from validate_modes(modes or (), "spec.accessModes")
    yield from _validate_capacity(spec.get("capacity"))
    sources = [name for name in spec if name not in _NO_SOURCES and spec[name] is not None]
    for name in sources[1:]:
        yield forbidden_value(f"spec.{name}", "may not specify more than 1 volume type")
    for name in sources[:1]:
        yield from validate_source(name, spec[name], f"spec.{name}")
        if (needed := _REQUIRED.get(name)) and not spec[name].get(needed):
            yield required(f"spec.{name}.{needed}")
        if name == "nfs" and not spec[name].get("path", "").startswith("/"):
            yield invalid_value("spec.nfs.path", spec[name].get("path", ""), "must be an absolute path")
        if name == "local" and not spec.get("nodeAffinity"):
            yield required("spec.nodeAffinity", "Local volume requires node affinity")
    if not sources:
        yield required("spec", "must specify a volume type")
    policy, mode = spec.get("persistentVolumeReclaimPolicy"), spec.get("volumeMode")
    yield from validate_one_of("spec.persistentVolumeReclaimPolicy", policy, _POLICIES, optional=True)
    if policy == "Recycle" and (spec.get("hostPath") or {}).get("path") == "/":
        problem = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden_value("spec.persistentVolumeReclaimPolicy", problem)
    yield from validate_one_of("spec.volumeMode", mode, VOLUME_MODES, optional=True)
    if name := spec.get("storageClassName"):
        yield from invalid_values("spec.storageClassName", name, subdomain_problems(name))


def _validate_capacity(capacity: dict[str, Any] | None) -> Iterator[FieldError]:
    if not capacity:
        yield required("spec.capacity")
    if (capacity or {}).keys() != {"storage"}:
        yield unsupported("spec.capacity", capacity, ("storage",))
        return
    amount = parse_quantity((capacity or {}).get("storage"))
    if amount is not None and amount <= 0:
        yield invalid_value("spec.capacity[storage]", (capacity or {})["storage"], "must be greater than zero")
