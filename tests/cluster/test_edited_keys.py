"""`kubectl patch service` on a port's number, on the real API server: with each strategy, with `apply.own`, and where
nothing can be done.

No controllers run: the test is the other side.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.conftest import NewCluster
from tests.cluster.databases import Database, operating
from tests.cluster.operator import Operator, eventually

RULES = """
let:
  service:
    type: NodePort
    selector: {app: "{{ spec.app }}"}
    ports: [{name: postgres, port: 5432, targetPort: 5432}]
children:
"""
CHILDREN = {
    "merged": "{strategy: merge}",
    "applied": "{strategy: server-side}",
    "owned": "{own: [spec.ports]}",
    "owned-applied": "{strategy: server-side, own: [spec.ports]}",
}
POSTGRES = {"name": "postgres", "port": 5432, "protocol": "TCP", "targetPort": 5432}


def child(name: str, apply: str) -> str:
    return (
        f"  {name.replace('-', '_')}:\n    apply: {apply}\n    object:\n      apiVersion: v1\n      kind: Service\n"
        f'      metadata: {{name: "{{{{ metadata.name }}}}-{name}"}}\n      spec: "{{{{ service }}}}"\n'
    )


@pytest.fixture(scope="module")
def plane(new_cluster: NewCluster) -> Iterator[ControlPlane]:
    with new_cluster(controllers=False) as plane:
        yield plane
        plane.check()


@pytest.fixture(scope="module")
def operator(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    rules = RULES + "".join(child(name, apply) for name, apply in CHILDREN.items())
    with operating(plane, tmp_path_factory.mktemp("edited"), rules) as operator:
        yield operator
        operator.check()


@pytest.fixture(scope="module")
def database(operator: Operator) -> Database:
    found = Database(operator, "edited", "db", {"app": "db"})
    found.wait_until_ready()
    return found


def ports(database: Database, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = database.admin.get(database.service(f"db-{name}"))["spec"]["ports"]
    return found


def numbers(database: Database, name: str) -> list[int]:
    return [port["port"] for port in ports(database, name)]


def kubectl_patch(plane: ControlPlane, name: str, patch: Any) -> None:
    """Changes the number of the port with a JSON patch, as a person would."""
    plane.kubectl("--namespace=edited", "patch", "service", f"db-{name}", "--type=json", f"--patch={json.dumps(patch)}")


def to(port: int) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": "/spec/ports/0/port", "value": port}]


METRICS = [{"op": "add", "path": "/spec/ports/-", "value": {"name": "metrics", "port": 9187}}]


def writes(operator: Operator, mark: Any, name: str) -> list[str]:
    return [each for each in operator.writes(mark, "edited") if each.endswith(f" db-{name}")]


@pytest.mark.parametrize("name", CHILDREN)
def test_a_port_patched_by_hand_is_reverted(
    plane: ControlPlane, operator: Operator, database: Database, name: str
) -> None:
    (before,) = ports(database, name)
    mark = operator.mark()
    kubectl_patch(plane, name, to(6000))
    eventually("the port", lambda: ports(database, name) == [before])
    assert before == {**POSTGRES, "nodePort": before["nodePort"]}
    database.wait_until_ready()
    assert writes(operator, mark, name) == [f"patch services db-{name}"], "one write"


@pytest.mark.parametrize("name", CHILDREN)
def test_later_changes_of_the_rule_are_applied(
    plane: ControlPlane, operator: Operator, database: Database, name: str
) -> None:
    """For any repair and any of its operations, the next change of the rule keeps the port and its node port."""
    (before,) = ports(database, name)
    kubectl_patch(plane, name, to(6001))
    eventually("the port", lambda: ports(database, name) == [before])
    app = f"after-{name}"
    database.admin.merge(database.path, {"spec": {"app": app}}, "somebody")
    path = database.service(f"db-{name}")
    eventually("the change", lambda: database.admin.get(path)["spec"]["selector"]["app"] == app)
    assert ports(database, name) == [before]
    database.wait_until_ready()


@pytest.mark.parametrize("name", ["merged", "applied"])
def test_fields_of_others_in_a_port_survive_the_revert_and_a_rule_change(
    plane: ControlPlane, database: Database, name: str
) -> None:
    kubectl_patch(plane, name, [{"op": "add", "path": "/spec/ports/0/appProtocol", "value": "sql"}])
    (before,) = ports(database, name)
    kubectl_patch(plane, name, to(6004))
    eventually("the port", lambda: ports(database, name) == [before])
    database.admin.merge(database.path, {"spec": {"app": f"others-{name}"}}, "somebody")
    path = database.service(f"db-{name}")
    eventually("the change", lambda: database.admin.get(path)["spec"]["selector"]["app"] == f"others-{name}")
    assert ports(database, name) == [before]
    assert before["appProtocol"] == "sql"
    kubectl_patch(plane, name, [{"op": "remove", "path": "/spec/ports/0/appProtocol"}])
    database.wait_until_ready()


@pytest.mark.parametrize("name", ["merged", "applied"])
def test_a_port_added_by_others_is_kept(plane: ControlPlane, database: Database, name: str) -> None:
    kubectl_patch(plane, name, METRICS)
    kubectl_patch(plane, name, to(6002))
    eventually("the port", lambda: numbers(database, name) == [5432, 9187])
    kubectl_patch(plane, name, [{"op": "remove", "path": "/spec/ports/1"}])
    database.wait_until_ready()


@pytest.mark.parametrize("name", ["owned", "owned-applied"])
def test_a_port_of_others_is_removed_from_an_owned_list(plane: ControlPlane, database: Database, name: str) -> None:
    kubectl_patch(plane, name, METRICS)
    eventually("the port to go", lambda: numbers(database, name) == [5432])
    database.wait_until_ready()


def without_a_record(plane: ControlPlane, name: str) -> None:
    """The port is somebody else's for all that is known: the number and the record change at once."""
    remove = {"op": "remove", "path": "/metadata/annotations/ruleop.dev~1applied"}
    kubectl_patch(plane, name, [remove, *to(6003)])


@pytest.mark.parametrize("name", ["merged", "applied"])
def test_without_a_record_the_rejection_names_the_port_its_manager_and_remedies(
    plane: ControlPlane, database: Database, name: str
) -> None:
    without_a_record(plane, name)
    said = eventually(
        "the refusal", lambda: database.ready() if database.ready().get("reason") == "ApplyFailed" else None
    )["message"]
    assert (
        'spec.ports[0].name: Duplicate value: "postgres"' in said
        or 'spec.ports[1].name: Duplicate value: "postgres"' in said
    )
    assert said.endswith(
        "; spec.ports[port=6003,protocol=TCP] (set by kubectl-patch) has the same name as spec.ports[port=5432,protocol=TCP]: remove or "
        "change it by hand, or let the child own the whole list with `apply: {own: [spec.ports]}`"
    )
    kubectl_patch(plane, name, [{"op": "replace", "path": "/spec/ports/0/name", "value": "theirs"}])
    eventually("both", lambda: sorted(numbers(database, name)) == [5432, 6003])
    plane.kubectl(
        "--namespace=edited", "patch", "service", f"db-{name}", "--type=merge", f"--patch={json.dumps(only_ours())}"
    )
    database.wait_until_ready()


def only_ours() -> dict[str, Any]:
    return {"spec": {"ports": [POSTGRES]}}


@pytest.mark.parametrize("name", ["owned", "owned-applied"])
def test_without_a_record_the_port_is_removed_from_owned_lists(
    plane: ControlPlane, database: Database, name: str
) -> None:
    without_a_record(plane, name)
    eventually("the port", lambda: numbers(database, name) == [5432])
    database.wait_until_ready()
