"""App: a Deployment and a Service from one CR, end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.example_projects import (
    ROOT,
    Child,
    Example,
    ExampleTests,
    LiveExample,
    foreign_deployment,
    operating,
    rolled_out,
)
from tests.cluster.operator import Operator, Permissions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.cluster import ControlPlane

LABELS = {"app": "myApp", "controller": "web"}


def deployment(image: str, replicas: int) -> Child:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web-app", "image": image}]}}
    wanted = {
        "spec": {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template},
        "status": {"readyReplicas": replicas, "updatedReplicas": replicas},
    }
    return Child("deployments", "web-app", wanted, by_hand={"spec": {"replicas": 7}})


SERVICE = Child(
    "services",
    "web-service",
    {"spec": {"selector": LABELS, "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}]}},
    by_hand={"spec": {"selector": {"app": "another"}}},
)

APP = Example(
    project=ROOT,
    crd=ROOT / "crds/apps.myapp.k8s.io.yaml",
    permissions=Permissions(
        watched=["apps.myapp.k8s.io", "memcacheds.cache.example.com"],
        children=["deployments.apps", "services"],
        observed=["pods"],
    ),
    api_version="myapp.k8s.io/v1",
    resource="apps",
    kind="App",
    name="web",
    spec={"deployment": {"name": "web-app", "image": "nginx:1.29", "replicas": 2}, "service": {"name": "web-service"}},
    children=(deployment("nginx:1.29", 2), SERVICE),
    status={"availableReplicas": 2},
    edit={"deployment": {"image": "nginx:1.30", "replicas": 3}},
    edited=(deployment("nginx:1.30", 3), SERVICE),
    edited_status={"availableReplicas": 3},
    leftovers=("deployments", "services", "replicasets", "pods"),
)


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operating(APP, control_plane, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running


class TestApp(ExampleTests):
    example = APP

    def foreign(self, child: Child) -> dict[str, Any]:
        return foreign_deployment(child.name)

    def at_rest(self, live_example: LiveExample, child: Child) -> Any:
        return rolled_out(live_example, child)
