"""Services get their EndpointSlices and Endpoints; load balancers and Ingresses an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.controllers.machinery import is_being_deleted, reference_to
from ruleop.localcluster.controllers.pods import NODE, PODS
from ruleop.localcluster.controllers.replica_set import is_over, is_ready
from ruleop.localcluster.store.store import Name, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.store.store import Event, Stored

SERVICES: Final = Resource("", "services")
ENDPOINTS: Final = Resource("", "endpoints")
SLICES: Final = Resource("discovery.k8s.io", "endpointslices")
INGRESSES: Final = Resource("networking.k8s.io", "ingresses")
ADDRESS: Final = "192.0.2.100"


class Services:
    resource = SERVICES

    def __init__(self, machinery: Machinery) -> None:
        self.machinery = machinery

    def concerned(self, resource: Resource, event: Event) -> Iterator[Name]:
        if resource == SERVICES:
            yield event.new.name
        elif resource == PODS:
            labels = event.new.obj["metadata"].get("labels") or {}
            for each in self.machinery.store.all(SERVICES, event.new.name.namespace):
                selector = each.obj["spec"].get("selector")
                if selector and selector.items() <= labels.items():
                    yield each.name

    def sync(self, name: Name) -> None:
        found = self.machinery.store.get(SERVICES, name)
        if found is None:
            self._remove(name)
            return
        if is_being_deleted(found.obj):
            return
        spec = found.obj["spec"]
        if spec.get("type") == "LoadBalancer":
            self.machinery.update_status(
                SERVICES, found, {"loadBalancer": {"ingress": [{"ip": ADDRESS, "ipMode": "VIP"}]}}
            )
        if not spec.get("selector") or spec.get("type") == "ExternalName":
            return
        pods = [
            each.obj
            for each in self.machinery.store.all(PODS, name.namespace)
            if spec["selector"].items() <= (each.obj["metadata"].get("labels") or {}).items()
            and not is_over(each.obj)
            and (each.obj.get("status") or {}).get("podIP")
        ]
        self._write(found, pods)

    def _write(self, service: Stored, pods: list[Object]) -> None:
        name, namespace = service.name.name, service.name.namespace
        ports = service.obj["spec"].get("ports") or []
        endpoints = [
            {
                "addresses": [each["status"]["podIP"]],
                "conditions": {
                    "ready": is_ready(each) and not is_being_deleted(each),
                    "serving": is_ready(each),
                    "terminating": is_being_deleted(each),
                },
                "nodeName": NODE,
                "targetRef": _target(each),
            }
            for each in pods
        ]
        slice_ = {
            "kind": "EndpointSlice",
            "apiVersion": "discovery.k8s.io/v1",
            "metadata": {
                "name": f"{name}-local",
                "labels": {
                    "kubernetes.io/service-name": name,
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                },
                "ownerReferences": [reference_to(service.obj)],
            },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [_port(each, pods) for each in ports],
        }
        self._put(SLICES, namespace, slice_)
        ready = [each for each in pods if is_ready(each) and not is_being_deleted(each)]
        unready = [each for each in pods if each not in ready]
        subset: dict[str, Any] = {"ports": [_port(each, pods) for each in ports]}
        if ready:
            subset["addresses"] = [_address(each) for each in ready]
        if unready:
            subset["notReadyAddresses"] = [_address(each) for each in unready]
        document: dict[str, Any] = {"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": name}}
        if pods:
            document["subsets"] = [subset]
        self._put(ENDPOINTS, namespace, document)

    def _put(self, resource: Resource, namespace: str, obj: dict[str, Any]) -> None:
        old = self.machinery.get(resource, namespace, obj["metadata"]["name"])
        if old is None:
            self.machinery.create(resource, namespace, obj)
        else:
            self.machinery.update(resource, old, {**obj, "metadata": {**old.obj["metadata"], **obj["metadata"]}})

    def _remove(self, name: Name) -> None:
        found = self.machinery.store.get(ENDPOINTS, name)
        if found is not None:
            self.machinery.delete(ENDPOINTS, found)


class Ingresses:
    resource = INGRESSES

    def __init__(self, machinery: Machinery) -> None:
        self.machinery = machinery

    def concerned(self, resource: Resource, event: Event) -> Iterator[Name]:
        if resource == INGRESSES and not event.deleted:
            yield event.new.name

    def sync(self, name: Name) -> None:
        found = self.machinery.store.get(INGRESSES, name)
        if found is not None and not is_being_deleted(found.obj):
            self.machinery.update_status(INGRESSES, found, {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}})


def _port(port: Object, pods: list[Object]) -> dict[str, Any]:
    found: dict[str, Any] = {"port": _number(port, pods), "protocol": port.get("protocol", "TCP")}
    found["name"] = port.get("name", "")
    return found


def _number(port: Object, pods: list[Object]) -> int:
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for each in container.get("ports") or []:
                if each.get("name") == target:
                    found: int = each["containerPort"]
                    return found
    number: int = port["port"]
    return number


def _target(pod: Object) -> dict[str, Any]:
    metadata = pod["metadata"]
    return {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}


def _address(pod: Object) -> dict[str, Any]:
    return {"ip": pod["status"]["podIP"], "nodeName": NODE, "targetRef": _target(pod)}
