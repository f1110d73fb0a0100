"""Services get their EndpointSlices and Endpoints; load balancers and Ingresses an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.kubernetes.kinds import is_being_deleted
from ruleop.localcluster.controllers.machinery import LocalController, is_over, is_ready, reference_to
from ruleop.localcluster.controllers.pods import NODE
from ruleop.localcluster.object_store import ENDPOINTS, INGRESSES, PODS, SERVICES, SLICES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.object_store import Name, Resource, Stored, StoreEvent

ADDRESS: Final = "192.0.2.100"


_ByLabel: TypeAlias = "dict[tuple[str, str, str], dict[Name, None]]"
"""Names of objects by namespace, label and value."""


class Services(LocalController):
    resource = SERVICES

    def __init__(self, machinery: Machinery) -> None:
        super().__init__(machinery)
        self._by_label: _ByLabel = {}  # Services, by a label that they select
        self._pods: _ByLabel = {}  # by their labels

    def concerned(self, resource: Resource, event: StoreEvent) -> Iterator[Name]:
        if resource == SERVICES:
            self._index(event)
            yield event.new.name
        elif resource == PODS:
            namespace, labels = event.new.name.namespace, _labels(event.new)
            self._index_pod(event)
            for label in labels.items():
                for name in self._by_label.get((namespace, *label), ()):
                    service = self.machinery.store.get(SERVICES, name)
                    if service is not None and service.obj["spec"]["selector"].items() <= labels.items():
                        yield name

    def _index_pod(self, event: StoreEvent) -> None:
        name = event.new.name
        before = set() if event.old is None else set(_labels(event.old).items())
        after = set() if event.deleted else set(_labels(event.new).items())
        for label in before - after:
            self._pods.get((name.namespace, *label), {}).pop(name, None)
        for label in after - before:
            self._pods.setdefault((name.namespace, *label), {})[name] = None

    def _index(self, event: StoreEvent) -> None:
        if event.old is not None and (label := _first_label(event.old)) is not None:
            self._by_label.get(label, {}).pop(event.old.name, None)
        if not event.deleted and (label := _first_label(event.new)) is not None:
            self._by_label.setdefault(label, {})[event.new.name] = None

    def sync(self, name: Name) -> None:
        endpoints = self.machinery.store.get(ENDPOINTS, name)
        if endpoints is not None and self.machinery.store.get(SERVICES, name) is None:
            self.machinery.delete(ENDPOINTS, endpoints)
        super().sync(name)

    def reconcile(self, found: Stored) -> None:
        if is_being_deleted(found.obj):
            return
        spec = found.obj["spec"]
        if spec.get("type") == "LoadBalancer":
            self.machinery.update_status(
                SERVICES, found, {"loadBalancer": {"ingress": [{"ip": ADDRESS, "ipMode": "VIP"}]}}
            )
        label = _first_label(found)
        if label is None or spec.get("type") == "ExternalName":
            return
        pods = [
            each.obj
            for pod in sorted(self._pods.get(label, ()))
            if (each := self.machinery.store.get(PODS, pod)) is not None
            and spec["selector"].items() <= _labels(each).items()
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
                "generateName": f"{name}-",
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
        slices = self.machinery.owned(SLICES, service.obj)
        self._put(SLICES, namespace, slice_, slices[0] if slices else None)
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
        self._put(ENDPOINTS, namespace, document, self.machinery.get(ENDPOINTS, namespace, name))

    def _put(self, resource: Resource, namespace: str, obj: dict[str, Any], old: Stored | None) -> None:
        if old is None:
            self.machinery.create(resource, namespace, obj)
        else:
            self.machinery.update(resource, old, {**obj, "metadata": {**old.obj["metadata"], **obj["metadata"]}})


class Ingresses(LocalController):
    resource = INGRESSES

    def reconcile(self, found: Stored) -> None:
        if not is_being_deleted(found.obj):
            self.machinery.update_status(INGRESSES, found, {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}})


def _labels(found: Stored) -> Mapping[str, str]:
    return found.obj["metadata"].get("labels") or {}


def _first_label(service: Stored) -> tuple[str, str, str] | None:
    """One label that all pods of a Service have: the last of its selector, which is the most specific one more often
    than the first."""
    selector = service.obj["spec"].get("selector")
    return (service.name.namespace, *list(selector.items())[-1]) if selector else None


def _port(port: Object, pods: list[Object]) -> dict[str, Any]:
    return {"port": _number(port, pods), "protocol": port.get("protocol", "TCP"), "name": port.get("name", "")}


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
