"""PersistentVolumeClaims get a volume at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.kinds import is_being_deleted
from ruleop.localcluster.controllers.machinery import LocalController
from ruleop.localcluster.controllers.pods import claim_names
from ruleop.localcluster.kinds import CLAIM_PROTECTION, VOLUME_PROTECTION
from ruleop.localcluster.object_store import CLAIMS, CLASSES, PODS, VOLUMES, Name, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.localcluster.object_store import Stored, StoreEvent


_COMPONENT: Final = "persistentvolume-controller"


class ClaimProtection(LocalController):
    """A claim that is being deleted goes when no pod uses it."""

    resource = CLAIMS

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        if resource == CLAIMS:
            yield event.new.name
        elif resource == CLASSES and not event.deleted:
            yield from (each.name for each in self.machinery.store.all(CLAIMS))
        elif resource == PODS and event.deleted:
            yield from (Name(event.new.name.namespace, claim) for claim in claim_names(event.new.obj))

    def reconcile(self, found: Stored) -> None:
        name = found.name
        if not is_being_deleted(found.obj):
            return
        pods = self.machinery.store.all(PODS, name.namespace)
        # A pod that has no node yet does not use it, and the scheduler refuses it as long as the claim is there.
        if not any(name.name in claim_names(each.obj) and each.obj["spec"].get("nodeName") for each in pods):
            self.machinery.remove_finalizer(CLAIMS, found, CLAIM_PROTECTION)


class Volumes(ClaimProtection):
    def sync(self, name: Name) -> None:
        if self.machinery.store.get(CLAIMS, name) is None:
            self._release(name)
        super().sync(name)

    def reconcile(self, found: Stored) -> None:
        if is_being_deleted(found.obj):
            super().reconcile(found)
            return
        if (found.obj.get("status") or {}).get("phase") == "Bound":
            self._resize(found)
            return
        spec = found.obj["spec"]
        storage_class = spec.get("storageClassName", "")
        volume = spec.get("volumeName") or f"pvc-{found.uid}"
        if not spec.get("volumeName"):
            if not self._has_class(found, storage_class):
                return
            self._provision(found, volume, storage_class)
            found = self.machinery.update(CLAIMS, found, {**found.obj, "spec": {**spec, "volumeName": volume}})
        elif self.machinery.get(VOLUMES, "", volume) is None:
            return
        status = {
            "phase": "Bound",
            "accessModes": spec.get("accessModes") or [],
            "capacity": _requested(found),
        }
        self.machinery.update_status(CLAIMS, found, status)

    def _has_class(self, claim: Stored, storage_class: str) -> bool:
        """Whether there is the class of a claim; if not, an Event tells."""
        if not storage_class:
            message = "no persistent volumes available for this claim and no storage class is set"
            self.machinery.record(claim.obj, "FailedBinding", message, _COMPONENT)
        elif self.machinery.get(CLASSES, "", storage_class) is None:
            message = f'storageclass.storage.k8s.io "{storage_class}" not found'
            self.machinery.record(claim.obj, "ProvisioningFailed", message, _COMPONENT, type_="Warning")
        else:
            return True
        return False

    def _provision(self, claim: Stored, volume: str, storage_class: str) -> None:
        spec = claim.obj["spec"]
        if self.machinery.get(VOLUMES, "", volume) is not None:
            return
        made = self.machinery.create(
            VOLUMES,
            "",
            {
                "kind": "PersistentVolume",
                "apiVersion": "v1",
                "metadata": {"name": volume},
                "spec": {
                    "capacity": _requested(claim),
                    "accessModes": spec.get("accessModes") or [],
                    "claimRef": {
                        "kind": "PersistentVolumeClaim",
                        "apiVersion": "v1",
                        "namespace": claim.name.namespace,
                        "name": claim.name.name,
                        "uid": claim.uid,
                    },
                    "persistentVolumeReclaimPolicy": "Delete",
                    "storageClassName": storage_class,
                    "volumeMode": spec.get("volumeMode", "Filesystem"),
                    "hostPath": {"path": f"/local/{volume}", "type": ""},
                },
            },
        )
        self.machinery.update_status(VOLUMES, made, {"phase": "Bound"})
        message = f"Successfully provisioned volume {volume}"
        self.machinery.record(claim.obj, "ProvisioningSucceeded", message, "local-provisioner")

    def _resize(self, claim: Stored) -> None:
        status = claim.obj.get("status") or {}
        if status.get("phase") == "Bound" and status.get("capacity") != _requested(claim):
            self.machinery.update_status(CLAIMS, claim, {**status, "capacity": _requested(claim)})

    def _release(self, name: Name) -> None:
        """Deletes the volumes of a claim that is gone, if that is their policy."""
        for each in list(self.machinery.store.all(VOLUMES)):
            claim = each.obj["spec"].get("claimRef") or {}
            if (claim.get("namespace"), claim.get("name")) != name:
                continue
            if each.obj["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                self.machinery.delete(VOLUMES, each)
            else:
                self.machinery.update_status(VOLUMES, each, {"phase": "Released"})


class VolumeProtection(LocalController):
    """A volume is deleted when its claim is gone."""

    resource = VOLUMES

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        if resource == VOLUMES and not event.deleted and is_being_deleted(event.new.obj):
            yield event.new.name
        elif resource == CLAIMS and event.deleted:
            yield from (each.name for each in self.machinery.store.all(VOLUMES) if is_being_deleted(each.obj))

    def reconcile(self, found: Stored) -> None:
        claim = found.obj["spec"].get("claimRef") or {}
        gone = self.machinery.get(CLAIMS, claim.get("namespace", ""), claim.get("name", "")) is None
        if gone and is_being_deleted(found.obj):
            self.machinery.remove_finalizer(VOLUMES, found, VOLUME_PROTECTION)


def _requested(claim: Stored) -> dict[str, str]:
    requests = (claim.obj["spec"].get("resources") or {}).get("requests") or {}
    return {"storage": requests["storage"]} if "storage" in requests else {}
