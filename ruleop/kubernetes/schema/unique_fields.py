"""Fields that identify an item of a list beside its keys, by the names of the items' types.

No OpenAPI document declares them; they are rules of the API server's validation, collected from
k8s.io/kubernetes/pkg/apis (`field.Duplicate`, "must be unique") and of the allocation of node ports, for every list of
a built-in kind that is merged by keys. The other lists have none: environment variables, volumes, containers and host
aliases have no second field that must be unique, two mounts may share a volume, and lists without keys (Ingress rules,
ports of NetworkPolicies and EndpointSlices, HPA metrics) are replaced as a whole.

`tests/cluster/test_unique_fields.py` tests each entry against the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.schema.shape import Unique

if TYPE_CHECKING:
    from collections.abc import Mapping

_CORE = "io.k8s.api.core.v1"

UNIQUE: Mapping[str, tuple[Unique, ...]] = {
    # A Service's only port needs no name; of two ports both need one. 53/TCP and 53/UDP may have one node port.
    f"{_CORE}.ServicePort": (Unique("name", required=True), Unique("nodePort", sharing=("port",))),
    # Names are compared within one container only, host ports within the whole pod.
    f"{_CORE}.ContainerPort": (Unique("name"), Unique("hostPort", within=("protocol", "hostIP"))),
    f"{_CORE}.VolumeDevice": (Unique("name"),),
}
