"""Errors of new objects whose fields have the right types."""

from __future__ import annotations

from ruleop.kubernetes.validation import creation_errors


def test_a_port_of_a_pod_on_the_network_of_its_host_needs_a_number() -> None:
    container = {"name": "a", "image": "a", "ports": [{"name": "http"}]}
    spec = {"hostNetwork": True, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    (error,) = creation_errors(pod)
    assert (error.reason, error.field) == ("FieldValueRequired", "spec.containers[0].ports[0].containerPort")
