"""Why Services, Ingresses and NetworkPolicies are invalid. Word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.creation import answer_to_creation

if TYPE_CHECKING:
    from tests.contract.client import Server
    from tests.contract.recording import Recording

LABELS = {"app": "a"}
BACKEND = {"service": {"name": "a", "port": {"number": 80}}}


def service(*ports: dict[str, Any], **spec: Any) -> tuple[str, dict[str, Any]]:
    return "v1 Service services", {"selector": LABELS, "ports": list(ports or [{"port": 80}]), **spec}


def ingress(host: str = "a.example", **path: Any) -> tuple[str, dict[str, Any]]:
    path = {"path": "/", "pathType": "Prefix", "backend": BACKEND, **path}
    paths = [{name: value for name, value in path.items() if value is not None}]
    return of_ingress(rules=[{"host": host, "http": {"paths": paths}}])


def of_ingress(**spec: Any) -> tuple[str, dict[str, Any]]:
    return "networking.k8s.io/v1 Ingress ingresses", spec


def backend(**fields: Any) -> tuple[str, dict[str, Any]]:
    return ingress(backend={"service": fields})


def policy(*peers: dict[str, Any], **spec: Any) -> tuple[str, dict[str, Any]]:
    about = "networking.k8s.io/v1 NetworkPolicy networkpolicies"
    return about, {"podSelector": {}, **({"ingress": [{"from": list(peers)}]} if peers else {}), **spec}


MISTAKES = {
    "no ports": ("v1 Service services", {"selector": LABELS}),
    "two ports without names": service({"port": 80}, {"port": 81}),
    "two ports of one name": service({"name": "a", "port": 80}, {"name": "a", "port": 81}),
    "the same port twice": service({"name": "a", "port": 80}, {"name": "b", "port": 80}),
    "port 0": service({"port": 0}),
    "a port that is too large": service({"port": 70000}),
    "a name of a port with capitals": service({"port": 80, "name": "A"}),
    "an unknown protocol": service({"port": 80, "protocol": "HTTP"}),
    "target port 0": service({"port": 80, "targetPort": 0}),
    "a target port with capitals": service({"port": 80, "targetPort": "A_b"}),
    "a target port that is too long": service({"port": 80, "targetPort": "a-name-that-is-too-long"}),
    "a target port with two hyphens": service({"port": 80, "targetPort": "-a--b"}),
    "a node port without the type": service({"port": 80, "nodePort": 30080}),
    "an unknown type of a service": service(type="Internal"),
    "an unknown affinity": service(sessionAffinity="Sometimes"),
    "an unknown family": service(ipFamilies=["IPv5"]),
    "an unknown policy of families": service(ipFamilyPolicy="Both"),
    "a selector with a space": service(selector={"a b": "c"}),
    "an address that is none": service(clusterIP="x"),
    "an external address that is none": service(externalIPs=["x"]),
    "a headless service with node ports": service(clusterIP="None", type="NodePort"),
    "a traffic policy inside the cluster": service(externalTrafficPolicy="Local"),
    "ranges without a load balancer": service(loadBalancerSourceRanges=["10.0.0.0/8"]),
    "no external name": service(type="ExternalName"),
    "an external name with a space": service(type="ExternalName", externalName="a b"),
    "neither rules nor a backend": of_ingress(),
    "a host without paths": of_ingress(rules=[{"host": "a.example", "http": {"paths": []}}]),
    "no type of path": ingress(pathType=None),
    "an unknown type of path": ingress(pathType="Regex"),
    "a relative path": ingress(path="a"),
    "a relative path of another type": ingress(path="a", pathType="ImplementationSpecific"),
    "an exact path that is empty": ingress(path="", pathType="Exact"),
    "a path with dots": ingress(path="/a/../b"),
    "a path that ends in dots": ingress(path="/a/.."),
    "an empty backend": ingress(backend={}),
    "a backend without name": backend(port={"number": 80}),
    "a backend without port": backend(name="a"),
    "a backend with a port's name and number": backend(name="a", port={"number": 80, "name": "http"}),
    "a backend with a port that is too large": backend(name="a", port={"number": 80000}),
    "a backend with an invalid port's name": backend(name="a", port={"name": "A_b"}),
    "a backend of two kinds": ingress(backend={**BACKEND, "resource": {"kind": "a", "name": "b"}}),
    "a default backend of two kinds": of_ingress(defaultBackend={**BACKEND, "resource": {"kind": "a", "name": "b"}}),
    "a host with capitals": ingress("A.example"),
    "a host that is an address": ingress("192.0.2.1"),
    "a host with two wildcards": ingress("*.*.example"),
    "an invalid class": of_ingress(defaultBackend=BACKEND, ingressClassName="A_b"),
    "an invalid host of TLS": of_ingress(defaultBackend=BACKEND, tls=[{"hosts": ["a b"]}]),
    "an unknown type of a policy": policy(policyTypes=["Both"]),
    "a policy with a port that is too large": policy(ingress=[{"ports": [{"port": 70000}]}]),
    "a policy with a selector with a space": policy(podSelector={"matchLabels": {"a b": "c"}}),
    "an empty peer": policy({}),
    "a peer of two kinds": policy({"ipBlock": {"cidr": "10.0.0.0/24"}, "podSelector": {}}),
    "a peer with an unknown operator": policy({"podSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}),
    "a range that is none": policy({"ipBlock": {"cidr": "x"}}),
    "no range": policy({"ipBlock": {"cidr": ""}}),
    "an exception outside of its range": policy({"ipBlock": {"cidr": "10.0.0.0/24", "except": ["10.1.0.0/24"]}}),
    "an exception that is none": policy({"ipBlock": {"cidr": "10.0.0.0/24", "except": ["x"]}}),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_invalid_object_is_answered_with_its_causes(
    server: Server, namespace: str, name: str, recording: Recording
) -> None:
    about, spec = MISTAKES[name]
    recording.check(name, answer_to_creation(server, namespace, about, {"spec": spec}), namespace)


@pytest.mark.parametrize("name", ["1a", "a.b", "a" * 64])
def test_the_name_of_a_service_is_a_label(server: Server, namespace: str, name: str, recording: Recording) -> None:
    about, spec = service()
    found = answer_to_creation(server, namespace, about, {"spec": spec}, name)
    recording.check(f"called {name}", found, namespace)
