"""Volumes, claims and classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.clock import now
from ruleop.localcluster.errors import Cause, forbidden_value, invalid_value, required, unsupported
from ruleop.localcluster.kinds.resources import CLASSES
from ruleop.localcluster.objects.names import subdomain_problems
from ruleop.schema.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.store.store import Store

DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
CLAIM_PROTECTION, VOLUME_PROTECTION = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"
_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ONE_POD: Final = "ReadWriteOncePod"
_VOLUME_MODES: Final = ("Block", "Filesystem")
_CLAIM_FORBIDDEN: Final = (
    "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
    "claims"
)


def _protected(obj: dict[str, Any], finalizer: str) -> dict[str, Any]:
    metadata = obj["metadata"]
    finalizers = metadata.get("finalizers") or []
    if finalizer in finalizers:
        return obj
    return {**obj, "metadata": {**metadata, "finalizers": [*finalizers, finalizer]}}


def claim_created(obj: dict[str, Any]) -> dict[str, Any]:
    return _protected({**obj, "status": {"phase": "Pending"}}, CLAIM_PROTECTION)


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
    if old is None:
        return list(claim_spec_causes(new["spec"], "spec"))
    before, after = dict(old["spec"]), dict(new["spec"])
    if not before.get("volumeName"):
        for spec in (before, after):
            spec.pop("volumeName", None)
    requested = [((spec.get("resources") or {}).get("requests") or {}).get("storage") for spec in (before, after)]
    causes = []
    if (old.get("status") or {}).get("phase") == "Bound":
        for spec in (before, after):
            spec.pop("resources", None)
            spec.pop("volumeAttributesClassName", None)
        if _smaller(requested[1], requested[0]):
            message = "Forbidden: field can not be less than status.capacity"
            causes.append(Cause("FieldValueForbidden", message, "spec.resources.requests.storage"))
    if before != after:
        causes.insert(0, Cause("FieldValueForbidden", _CLAIM_FORBIDDEN, "spec"))
    return causes


def claim_spec_causes(spec: Object, field: str) -> Iterator[Cause]:
    """Of a claim, and of the claims in a StatefulSet."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{field}.accessModes", "at least 1 access mode is required")
    if _ONE_POD in modes and len(set(modes)) > 1:
        yield forbidden_value(f"{field}.accessModes", f"may not use {_ONE_POD} with other access modes")
    for mode in modes:
        if mode not in _MODES:
            yield unsupported(f"{field}.accessModes", mode, _MODES)
    requested = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    amount = parse_quantity(requested)
    if requested is None:
        yield required(f"{field}.resources[storage]")
    elif amount is not None and amount <= 0:
        yield invalid_value(f"{field}.resources[storage]", requested, "must be greater than zero")
    if spec.get("volumeMode", "Filesystem") not in _VOLUME_MODES:
        yield unsupported(f"{field}.volumeMode", spec["volumeMode"], _VOLUME_MODES)
    if name := spec.get("storageClassName"):
        yield from (invalid_value(f"{field}.storageClassName", name, each) for each in subdomain_problems(name))


def _smaller(after: Any, before: Any) -> bool:
    new, old = parse_quantity(after), parse_quantity(before)
    return new is not None and old is not None and new < old


def volume_created(obj: dict[str, Any]) -> dict[str, Any]:
    status = {"phase": "Pending", "lastPhaseTransitionTime": now()}
    return _protected({**obj, "status": status}, VOLUME_PROTECTION)


def class_causes(new: Object, old: Object | None) -> list[Cause]:
    if old is None:
        return []
    return [
        Cause("FieldValueForbidden", f"Forbidden: updates to {name} are forbidden.", name)
        for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
        if new.get(name) != old.get(name)
    ]
