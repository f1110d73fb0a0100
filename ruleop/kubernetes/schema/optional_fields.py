"""Fields that the documents of the built-in kinds declare as required, and the server accepts when they are missing.

The generator of the documents calls a field required if its Go type has no `omitempty`. The server does not read that
declaration: a missing field is Go's zero value, which validation then rejects, in most types, or does not. Found by
removing each required field from an object of each kind; `tests/cluster/test_typed_shapes.py` does the same. The
status of a built-in kind is not here: almost none of its required fields is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_CORE, _DEVICES, _STORAGE = (f"io.k8s.api.{group}.v1" for group in ("core", "resource", "storage"))
_CRDS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_SPEC = frozenset({"spec"})

OPTIONAL_FIELDS: Mapping[str, frozenset[str]] = {
    "io.k8s.api.apps.v1.ControllerRevision": frozenset({"revision"}),
    "io.k8s.api.batch.v1.PodFailurePolicy": frozenset({"rules"}),
    f"{_CORE}.HTTPHeader": frozenset({"value"}),
    f"{_CORE}.ISCSIPersistentVolumeSource": frozenset({"lun"}),
    f"{_CORE}.ISCSIVolumeSource": frozenset({"lun"}),
    f"{_CORE}.LimitRangeSpec": frozenset({"limits"}),
    f"{_CORE}.PreferredSchedulingTerm": frozenset({"preference"}),
    f"{_CORE}.SleepAction": frozenset({"seconds"}),
    f"{_CORE}.Sysctl": frozenset({"value"}),
    f"{_DEVICES}.DeviceClass": _SPEC,
    f"{_DEVICES}.ResourceClaim": _SPEC,
    f"{_DEVICES}.ResourceClaimTemplate": _SPEC,
    f"{_DEVICES}.ResourceClaimTemplateSpec": _SPEC,
    f"{_STORAGE}.CSIDriver": _SPEC,
    f"{_STORAGE}.TokenRequest": frozenset({"audience"}),
    f"{_CRDS}.CustomResourceDefinitionVersion": frozenset({"served"}),
}
