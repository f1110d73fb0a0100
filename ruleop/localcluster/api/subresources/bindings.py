"""Bindings: a scheduler's choice of a node for a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.validation.field_errors import required, unsupported
from ruleop.localcluster.api.requests.request_objects import check_namespace, read_unstored
from ruleop.localcluster.status_errors import bad_request, conflict, internal

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.api.route import Route
    from ruleop.localcluster.http.message import Request
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.kinds.served_resources import Registry

_BINDING: Final = Kind("", "v1", "Binding")


def read_binding(
    request: Request, route: Route, served: Served, registry: Registry, warnings: list[str]
) -> dict[str, Any]:
    """The Binding in the body of a request. Raises Rejected."""
    binding = read_unstored(request, _BINDING, registry, warnings)
    check_namespace(binding, route.namespace, served)
    if (binding.get("metadata") or {}).get("name") != route.name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    errors = (
        []
        if target.get("kind") in (None, "", "Node")
        else [unsupported("target.kind", target["kind"], ("Node", "<empty>"))]
    )
    errors += [] if target.get("name") else [required("target.name")]
    if errors:
        raise internal(f"{errors[0].field}: {errors[0].message}")
    return binding


def bound(pod: Object, binding: Object) -> dict[str, Any]:
    """The pod on the node that a Binding names. Raises Rejected if it has one."""
    if node := pod["spec"].get("nodeName"):
        name = pod["metadata"]["name"]
        raise conflict("", "pods/binding", name, f'pod {name} is already assigned to node "{node}"')
    metadata, given = dict(pod["metadata"]), binding["metadata"]
    for field in ("labels", "annotations"):
        if given.get(field):
            metadata[field] = {**(metadata.get(field) or {}), **given[field]}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": binding["target"]["name"]}}
