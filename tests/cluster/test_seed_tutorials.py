"""The seeds with CRDs as tutorials write them: without a status subresource, without room for conditions, without any status, or open to all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster.operator import Operator, eventually
from tests.cluster.seeds import INTERRUPTIONS, Life, Seed, foreign_deployment, rolled_out
from tests.cluster.test_seed_app import APP
from tests.cluster.test_seed_crontab import CRONTAB
from tests.cluster.test_seed_memcached import V1ALPHA1

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from controlplane.cluster import ControlPlane
    from controlplane.fixtures import Kubectl

STRING, INTEGER, OPEN = {"type": "string"}, {"type": "integer"}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


# As in the App operator's README: the Kubernetes sample controller's, one field of status, no subresource.
APP_SCHEMA = object_of(
    spec=object_of(deployment=object_of(name=STRING, image=STRING, replicas=INTEGER), service=object_of(name=STRING)),
    status=object_of(availableReplicas=INTEGER),
)
# As in the Kubernetes documentation of CustomResourceDefinitions: no status at all.
CRONTAB_SCHEMA = object_of(spec=object_of(cronSpec=STRING, image=STRING, replicas=INTEGER))
# As the first versions of Operator SDK made it.
MEMCACHED_SCHEMA = object_of(spec=object_of(size=INTEGER), status=object_of(nodes={"type": "array", "items": STRING}))


def tutorial(seed: Seed, folder: Path, schema: dict[str, Any], *, subresource: bool) -> Seed:
    """The seed with another CRD than its own."""
    crd = yaml.safe_load(seed.crd.read_text())
    (version,) = crd["spec"]["versions"]
    version.pop("additionalPrinterColumns", None)
    version["schema"] = {"openAPIV3Schema": schema}
    version["subresources"] = {"status": {}} if subresource else {}
    path = folder / "crd.yaml"
    path.write_text(yaml.safe_dump(crd))
    return replace(seed, crd=path, conditions=False)


class Tutorials:
    """Starts the operator of a seed whose CRD is a tutorial's, and ends it with the test."""

    def __init__(self, plane: ControlPlane, folder: Path, namespace: str, kubectl: Kubectl) -> None:
        self.plane, self.folder, self.namespace, self.kubectl = plane, folder, namespace, kubectl
        self.operator: Operator | None = None

    def begin(self, seed: Seed, schema: dict[str, Any], *, subresource: bool, definitions: bool = True) -> Life:
        seed = tutorial(seed, self.folder, schema, subresource=subresource)
        seed = replace(seed, rights=replace(seed.rights, definitions=definitions))
        self.plane.define(seed.crd)
        self.operator = Operator(self.plane, seed.project, seed.rights, self.folder / "log").__enter__()
        return Life(seed, self.operator, self.namespace, self.kubectl)

    def end(self) -> None:
        if self.operator is not None:
            try:
                self.operator.check()
            finally:
                self.operator.__exit__()
                self.plane.kubectl("delete", f"--filename={self.folder / 'crd.yaml'}", "--wait=true")


@pytest.fixture
def tutorials(control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl) -> Iterator[Tutorials]:
    started = Tutorials(control_plane, tmp_path, namespace, kubectl)
    yield started
    started.end()


def told_that_dropped(operator: Operator) -> list[str]:
    """What the operator said about fields of the status that the API server would drop."""
    return [line["message"] for line in operator.log() if line["event"] == "status fields missing from the schema"]


@INTERRUPTIONS
def test_an_app_without_the_status_subresource(tutorials: Tutorials, interruption: str) -> None:
    """The status goes through the resource itself, and holds what its schema has room for: no conditions, no observedGeneration."""
    life = tutorials.begin(APP, APP_SCHEMA, subresource=False)
    mark = life.operator.mark()
    with life.interrupted(interruption):
        life.apply()
    life.settled()
    assert life.resource()["status"] == {"availableReplicas": 2}
    with life.interrupted(interruption):
        life.admin.merge(life.path, {"spec": life.seed.edit}, "somebody")
    life.settled(life.seed.edited, life.seed.edited_status)
    # While it rolls out there may be one more, before and after there are three.
    rolled_out(life, life.seed.children[0])
    eventually("its status", lambda: life.resource()["status"] == {"availableReplicas": 3})
    assert not [write for write in life.operator.writes(mark, life.namespace) if "apps/status" in write]
    said = told_that_dropped(life.operator)
    assert len(said) == (1 if interruption == "running" else 3)  # once in each of its lives
    assert "status.conditions" in said[0]


@pytest.mark.parametrize("definitions", [True, False], ids=["definitions", "no-definitions"])
def test_a_status_that_loses_its_conditions_is_not_written_again_and_again(tutorials: Tutorials, definitions: bool) -> None:
    """Looking again, whatever the reason, finds nothing to write; also where ruleop may not read the definition."""
    life = tutorials.begin(APP, APP_SCHEMA, subresource=False, definitions=definitions)
    life.apply()
    life.settled()
    eventually("its events", lambda: ("Normal", "Synced", "App synced successfully") in life.events())
    # What the server makes of a status is learned from its first answer.
    mark = life.operator.mark()
    for child in life.seed.children:
        life.admin.merge(life.path_of(child.resource, child.name), {"metadata": {"labels": {"theirs": "too"}}}, "somebody")
    if definitions:
        life.operator.kill()
        life.operator.start()
    # Another CR, seen to after the one that was there before, shows that the operator has been through.
    other = Life(replace(life.seed, name="second", spec=named_second(life.seed.spec)), life.operator, life.namespace, life.kubectl)
    other.apply()
    eventually("the other's status", lambda: other.resource().get("status", {}).get("availableReplicas") == 2)
    assert [write for write in life.operator.writes(mark, life.namespace) if write.endswith(" web")] == []


def named_second(spec: dict[str, Any]) -> dict[str, Any]:
    return {name: {**part, "name": "second"} for name, part in spec.items()}


def test_an_obstacle_is_told_by_an_event_where_there_are_no_conditions(tutorials: Tutorials) -> None:
    life = tutorials.begin(APP, APP_SCHEMA, subresource=False)
    deployment, _ = life.seed.children
    life.admin.post(life.path_of("deployments"), foreign_deployment(deployment.name))
    before = rolled_out(life, deployment)
    life.apply()
    message = f'Resource "{deployment.name}" already exists and is not managed by App'
    eventually("an event", lambda: ("Warning", "ErrResourceExists", message) in life.events())
    assert life.get(deployment) == before
    life.admin.delete(life.path_of("deployments", deployment.name))
    life.settled()


def test_a_crontab_without_any_status(tutorials: Tutorials) -> None:
    """Nothing is written on the CR."""
    life = tutorials.begin(replace(CRONTAB, status={}, edited_status={}), CRONTAB_SCHEMA, subresource=False)
    mark = life.operator.mark()
    life.apply()
    life.settled()
    life.admin.merge(life.path, {"spec": life.seed.edit}, "somebody")
    life.settled(life.seed.edited, {})
    assert "status" not in life.resource()
    assert life.operator.writes(mark, life.namespace) == ["create cronjobs tidy", "patch cronjobs tidy"]
    assert len(told_that_dropped(life.operator)) == 1


def test_a_memcached_with_nodes_alone(tutorials: Tutorials) -> None:
    life = tutorials.begin(V1ALPHA1, MEMCACHED_SCHEMA, subresource=True)
    life.apply()
    life.settled()
    assert set(life.resource()["status"]) == {"nodes"}
    life.admin.merge(life.path, {"spec": life.seed.edit}, "somebody")
    life.settled(life.seed.edited, life.seed.edited_status)
    assert len(told_that_dropped(life.operator)) == 1


def test_a_kind_that_is_open_to_all_has_room_for_conditions(tutorials: Tutorials) -> None:
    life = tutorials.begin(V1ALPHA1, OPEN, subresource=True)
    life.seed = replace(life.seed, conditions=True)
    life.apply()
    life.settled()
    assert told_that_dropped(life.operator) == []
