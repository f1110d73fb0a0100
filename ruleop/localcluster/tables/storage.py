"""The cells of volumes, claims and classes of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.localcluster.tables.printer import ColumnDefinition, Printer, printer
from ruleop.localcluster.tables.text import NONE, UNSET, age, annotation, is_being_deleted, name, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kinds import JSON, Object

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _volume(obj: Object, now: float) -> list[JSON]:
    desired = spec(obj)
    claim = desired.get("claimRef")
    return [
        name(obj),
        _size(desired.get("capacity")),
        _access_modes(desired.get("accessModes") or ()),
        desired.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        _class(obj),
        desired.get("volumeAttributesClassName", UNSET),
        status(obj).get("reason", ""),
        age(obj, now),
        desired.get("volumeMode", UNSET),
    ]


def _claim(obj: Object, now: float) -> list[JSON]:
    desired, of = spec(obj), status(obj)
    is_bound = bool(desired.get("volumeName"))
    return [
        name(obj),
        _phase(obj),
        desired.get("volumeName", ""),
        _size(of.get("capacity")) if is_bound else "",
        _access_modes(of.get("accessModes") or ()) if is_bound else "",
        _class(obj),
        desired.get("volumeAttributesClassName", UNSET),
        age(obj, now),
        desired.get("volumeMode", UNSET),
    ]


def _phase(obj: Object) -> str:
    return "Terminating" if is_being_deleted(obj) else status(obj).get("phase", "")


def _size(amounts: Object | None) -> str:
    return str((amounts or {}).get("storage", "0"))


def _access_modes(modes: Iterable[str]) -> str:
    found = set(modes)
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def _class(obj: Object) -> str:
    return annotation(obj, "volume.beta.kubernetes.io/storage-class") or spec(obj).get("storageClassName", "")


def _storage_class(obj: Object, now: float) -> list[JSON]:
    defaults = (f"storageclass.{group}kubernetes.io/is-default-class" for group in ("", "beta."))
    is_default = any(annotation(obj, key) == "true" for key in defaults)
    return [
        f"{name(obj)} (default)" if is_default else name(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
        age(obj, now),
    ]


def _driver(obj: Object, now: float) -> list[JSON]:
    desired = spec(obj)
    requests = desired.get("tokenRequests")
    return [
        name(obj),
        desired.get("attachRequired", True),
        desired.get("podInfoOnMount", False),
        desired.get("storageCapacity", False),
        UNSET if requests is None else ",".join(each.get("audience", "") for each in requests),
        desired.get("requiresRepublish", False),
        ",".join(desired.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now),
    ]


def _node(obj: Object, now: float) -> list[JSON]:
    return [name(obj), len(spec(obj).get("drivers") or ()), age(obj, now)]


def _attachment(obj: Object, now: float) -> list[JSON]:
    desired = spec(obj)
    volume = (desired.get("source") or {}).get("persistentVolumeName", "")
    attached = status(obj).get("attached", False)
    return [name(obj), desired.get("attacher", ""), volume, desired.get("nodeName", ""), attached, age(obj, now)]


def _attributes_class(obj: Object, now: float) -> list[JSON]:
    return [name(obj), obj.get("driverName", ""), age(obj, now)]


_ATTACHMENTS = printer("Name|Attacher|PV|Node|Attached:boolean|Age", _attachment)

STORAGE = {
    ("", "PersistentVolume"): printer(
        "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|"
        "VolumeMode+",
        _volume,
    ),
    ("", "PersistentVolumeClaim"): printer(
        "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode+", _claim
    ),
    ("storage.k8s.io", "StorageClass"): printer(
        "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age", _storage_class
    ),
    ("storage.k8s.io", "CSIDriver"): printer(
        "Name|AttachRequired:boolean|PodInfoOnMount:boolean|StorageCapacity:boolean|TokenRequests|"
        "RequiresRepublish:boolean|Modes|Age",
        _driver,
    ),
    ("storage.k8s.io", "CSINode"): printer("Name|Drivers:integer|Age", _node),
    # The attacher's column has the format of a name.
    ("storage.k8s.io", "VolumeAttachment"): Printer(
        (
            _ATTACHMENTS.columns[0],
            ColumnDefinition("Attacher", format="name"),
            *_ATTACHMENTS.columns[2:],
        ),
        _attachment,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): printer("Name|DriverName|Age", _attributes_class),
}
