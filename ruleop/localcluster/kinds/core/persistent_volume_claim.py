"""Defaults that the server adds to a PersistentVolumeClaim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.core.validation.core.persistent_volume_claim import with_sources, with_sources_of_new
from ruleop.localcluster.kinds.core.persistent_volume import CLAIM_PROTECTION, DEFAULT_CLASS, protected
from ruleop.localcluster.kinds.resources import CLASSES

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.localcluster.store.object_store import Store


def claim_created(obj: dict[str, Any]) -> dict[str, Any]:
    return protected({**with_sources_of_new(obj), "status": {"phase": "Pending"}}, CLAIM_PROTECTION)


def claim_updated(new: dict[str, Any], old: Object) -> dict[str, Any]:
    return {**new, "spec": with_sources(new.get("spec") or {}, old.get("spec") or {})}


def admit_claim(claim: dict[str, Any], store: Store) -> dict[str, Any]:
    """The claim with the default class, if it names none."""
    spec = claim["spec"]
    if "storageClassName" in spec:
        return claim
    for each in store.all(CLASSES):
        if (each.obj["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true":
            return {**claim, "spec": {**spec, "storageClassName": each.name.name}}
    return claim
