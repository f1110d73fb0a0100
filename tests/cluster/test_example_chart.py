"""The chart of Memcached on an API server, by an operator with exactly the generated roles: each of its children, from
the first pod to the deletion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.example_projects import ROOT
from tests.cluster.generated_roles import GeneratedRoles, Life
from tests.cluster.operator import eventually
from tests.patching import patched

pytestmark = pytest.mark.real_server("RBAC refuses")

CHART = ROOT / "examples/memcached-chart"
RESOURCES = {
    "serviceaccounts": "/api/v1",
    "secrets": "/api/v1",
    "services": "/api/v1",
    "configmaps": "/api/v1",
    "deployments": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "horizontalpodautoscalers": "/apis/autoscaling/v2",
    "poddisruptionbudgets": "/apis/policy/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "servicemonitors": "/apis/monitoring.coreos.com/v1",
}
CHILDREN = {
    "serviceaccounts": {"carts-memcached", "pages-memcached", "sessions-memcached"},
    "secrets": {"carts-memcached"},
    "services": {"carts-memcached", "pages-memcached", "pages-memcached-metrics", "sessions-memcached"},
    "configmaps": {"pages-clients"},
    "deployments": {"carts-memcached", "sessions-memcached"},
    "statefulsets": {"pages-memcached"},
    "poddisruptionbudgets": {"pages-memcached"},
    "networkpolicies": {"carts-memcached", "pages-memcached", "sessions-memcached"},
    "servicemonitors": {"pages-memcached"},
}
ON_ANY_NODE = {"resourcesPreset": "none", "metrics": {"resourcesPreset": "none"}}
"""The simulated node has no ephemeral storage, which the presets ask for."""


def test_both_architectures_run_change_and_end(control_plane: ControlPlane, tmp_path: Path, namespace: str) -> None:
    with GeneratedRoles(control_plane, CHART, tmp_path / "operator" / "log") as operator:
        admin, life = operator.admin, Life(operator, CHART, namespace)
        path = f"/apis/charts.example.com/v1/namespaces/{namespace}/memcacheds"

        def made() -> dict[str, set[str]]:
            """The names of all children by their resources."""
            found = {}
            for resource, root in RESOURCES.items():
                listed = f"{root}/namespaces/{namespace}/{resource}?labelSelector=ruleop.dev/part-of"
                found[resource] = {each["metadata"]["name"] for each in admin.get(listed)["items"]}
            return {resource: names for resource, names in found.items() if names}

        def status(name: str) -> dict[str, Any]:
            """Of a custom resource that is ready with its current spec."""
            found = admin.get(f"{path}/{name}")
            status = found.get("status", {})
            ready = {each["type"]: each["status"] for each in status.get("conditions", ())}.get("Ready")
            is_current = status.get("observedGeneration") == found["metadata"]["generation"]
            return dict(status) if ready == "True" and is_current else {}

        life.define()
        control_plane.restart_controllers(watching=["memcacheds.charts.example.com"])
        operator.apply(*({**each, "spec": patched(each["spec"], ON_ANY_NODE)} for each in life.crs))
        eventually("all children", lambda: made() == CHILDREN)
        eventually("all to be ready", lambda: all(map(status, ("sessions", "carts"))))
        eventually("three pods", lambda: status("pages").get("readyReplicas") == 3)
        assert admin.get(f"{path}/pages")["status"]["host"] == f"pages-memcached.{namespace}.svc.cluster.local"

        admin.merge(f"{path}/sessions", {"spec": {"architecture": "high-availability"}}, "somebody")
        eventually("another kind", lambda: made()["statefulsets"] == {"pages-memcached", "sessions-memcached"})
        eventually("its old object to go", lambda: made()["deployments"] == {"carts-memcached"})
        eventually("its pod", lambda: status("sessions").get("readyReplicas") == 1)

        scaled = {"autoscaling": {"enabled": True}, "extraDeploy": [], "metrics": {"enabled": False}}
        admin.merge(f"{path}/pages", {"spec": scaled}, "somebody")
        eventually("an autoscaler", lambda: made().get("horizontalpodautoscalers") == {"pages-memcached"})
        workload = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/pages-memcached"
        admin.merge(workload, {"spec": {"replicas": 4}}, "somebody")
        eventually("four pods", lambda: status("pages").get("readyReplicas") == 4)
        eventually("the others to go", lambda: {"configmaps", "servicemonitors"}.isdisjoint(made()))

        life.delete()
        eventually("nothing to be left", lambda: made() == {})
        assert operator.refused() == set()
        operator.check()
    life.undefine()
