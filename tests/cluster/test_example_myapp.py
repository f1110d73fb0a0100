"""MyApp: the least that a useful rule needs, end to end."""

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


def deployment(image: str, replicas: int) -> Child:
    labels = {"app": "mine"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
    wanted = {
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
        "status": {"readyReplicas": replicas, "updatedReplicas": replicas},
    }
    return Child("deployments", "mine", wanted, by_hand={"spec": {"replicas": 0}})


MYAPP = Example(
    project=ROOT / "examples/myapp",
    crd=ROOT / "examples/myapp/crds/myapps.myscheme.example.com.yaml",
    permissions=Permissions(watched=["myapps.myscheme.example.com"], children=["deployments.apps"]),
    api_version="myscheme.example.com/v1",
    resource="myapps",
    kind="MyApp",
    name="mine",
    spec={"replicas": 2, "image": "nginx:1.29"},
    children=(deployment("nginx:1.29", 2),),
    status={"replicas": 2},
    edit={"replicas": 1, "image": "nginx:1.30"},
    edited=(deployment("nginx:1.30", 1),),
    edited_status={"replicas": 1},
    leftovers=("deployments", "replicasets", "pods"),
)


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operating(MYAPP, control_plane, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running


class TestMyApp(ExampleTests):
    example = MYAPP

    def foreign(self, child: Child) -> dict[str, Any]:
        return foreign_deployment(child.name)

    def at_rest(self, live_example: LiveExample, child: Child) -> Any:
        return rolled_out(live_example, child)
