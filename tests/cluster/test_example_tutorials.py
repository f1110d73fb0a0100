"""The examples with CRDs as tutorials write them: without a status subresource, conditions or a status in the schema,
or with an open schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import INTERRUPTIONS, Example, LiveExample, foreign_deployment, rolled_out
from tests.cluster.operator import Operator, eventually
from tests.cluster.test_examples import APP, CRONTAB, V1ALPHA1

STRING, INTEGER, OPEN = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)


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


def tutorial(example: Example, folder: Path, schema: dict[str, Any], *, subresource: bool) -> Example:
    """The example with another CRD than its own."""
    crd = yaml.safe_load(example.crd.read_text())
    (version,) = crd["spec"]["versions"]
    version.pop("additionalPrinterColumns", None)
    version["schema"] = {"openAPIV3Schema": schema}
    version["subresources"] = {"status": {}} if subresource else {}
    path = folder / "crd.yaml"
    path.write_text(yaml.safe_dump(crd))
    return replace(example, crd=path, conditions=False)


class Tutorials:
    """Starts the operator of a example whose CRD is a tutorial's, and ends it with the test."""

    def __init__(self, plane: ControlPlane, folder: Path, namespace: str, kubectl: Kubectl) -> None:
        self.plane, self.folder, self.namespace, self.kubectl = plane, folder, namespace, kubectl
        self.operator: Operator | None = None

    def begin(
        self, example: Example, schema: dict[str, Any], *, subresource: bool, definitions: bool = True
    ) -> LiveExample:
        example = tutorial(example, self.folder, schema, subresource=subresource)
        example = replace(example, permissions=replace(example.permissions, definitions=definitions))
        self.plane.define(example.crd)
        self.operator = Operator(self.plane, example.project, example.permissions, self.folder / "log").__enter__()
        return LiveExample(example, self.operator, self.namespace, self.kubectl)

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
    """The log lines about fields of the status that the API server would drop."""
    return [line["message"] for line in operator.log() if line["event"] == "status fields missing from the schema"]


@INTERRUPTIONS
def test_an_app_without_the_status_subresource_is_reconciled(tutorials: Tutorials, interruption: str) -> None:
    """The status is written to the resource itself, and has the fields of its schema: no conditions, no
    observedGeneration."""
    live_example = tutorials.begin(APP, APP_SCHEMA, subresource=False)
    mark = live_example.operator.mark()
    with live_example.interrupted(interruption):
        live_example.apply()
    live_example.wait_until_settled()
    assert live_example.resource()["status"] == {"availableReplicas": 2}
    with live_example.interrupted(interruption):
        live_example.admin.merge(live_example.path, {"spec": live_example.example.edit}, "somebody")
    live_example.wait_until_settled(live_example.example.edited, live_example.example.edited_status)
    # While it rolls out there may be one more, before and after there are three.
    rolled_out(live_example, live_example.example.children[0])
    eventually("its status", lambda: live_example.resource()["status"] == {"availableReplicas": 3})
    assert not [write for write in live_example.operator.writes(mark, live_example.namespace) if "apps/status" in write]
    said = told_that_dropped(live_example.operator)
    assert len(said) == (1 if interruption == "running" else 3)  # once in each of its lives
    assert "status.conditions" in said[0]


@pytest.mark.parametrize("definitions", [True, False], ids=["definitions", "no-definitions"])
def test_a_status_whose_conditions_are_dropped_is_written_once(tutorials: Tutorials, definitions: bool) -> None:
    """Looking again, whatever the reason, finds nothing to write; also where ruleop may not read the definition."""
    live_example = tutorials.begin(APP, APP_SCHEMA, subresource=False, definitions=definitions)
    live_example.apply()
    live_example.wait_until_settled()
    eventually("its events", lambda: ("Normal", "Synced", "App synced successfully") in live_example.events())
    # What the server makes of a status is learned from its first answer.
    mark = live_example.operator.mark()
    for child in live_example.example.children:
        live_example.admin.merge(
            live_example.path_of(child.resource, child.name), {"metadata": {"labels": {"theirs": "too"}}}, "somebody"
        )
    if definitions:
        live_example.operator.kill()
        live_example.operator.start()
    # When a CR that is queued after the first one is reconciled, the first one has been reconciled, too.
    other = LiveExample(
        replace(live_example.example, name="second", spec=named_second(live_example.example.spec)),
        live_example.operator,
        live_example.namespace,
        live_example.kubectl,
    )
    other.apply()
    eventually("the other's status", lambda: other.resource().get("status", {}).get("availableReplicas") == 2)
    assert [
        write for write in live_example.operator.writes(mark, live_example.namespace) if write.endswith(" web")
    ] == []


def named_second(spec: dict[str, Any]) -> dict[str, Any]:
    return {name: {**part, "name": "second"} for name, part in spec.items()}


def test_a_name_conflict_is_an_event_if_there_are_no_conditions(tutorials: Tutorials) -> None:
    live_example = tutorials.begin(APP, APP_SCHEMA, subresource=False)
    deployment, _ = live_example.example.children
    live_example.admin.post(live_example.path_of("deployments"), foreign_deployment(deployment.name))
    before = rolled_out(live_example, deployment)
    live_example.apply()
    message = (
        f"Deployment {deployment.name} in namespace {live_example.namespace} already exists and is not managed by App "
        "(it has no owner): rename the child, delete the object, or use `adopt: orphans`"
    )
    eventually("an event", lambda: ("Warning", "ErrResourceExists", message) in live_example.events())
    assert live_example.get(deployment) == before
    live_example.admin.delete(live_example.path_of("deployments", deployment.name))
    live_example.wait_until_settled()


def test_a_crontab_without_a_status_is_reconciled(tutorials: Tutorials) -> None:
    """Nothing is written on the CR."""
    live_example = tutorials.begin(replace(CRONTAB, status={}, edited_status={}), CRONTAB_SCHEMA, subresource=False)
    mark = live_example.operator.mark()
    live_example.apply()
    live_example.wait_until_settled()
    live_example.admin.merge(live_example.path, {"spec": live_example.example.edit}, "somebody")
    live_example.wait_until_settled(live_example.example.edited, {})
    assert "status" not in live_example.resource()
    assert live_example.operator.writes(mark, live_example.namespace) == ["create cronjobs tidy", "patch cronjobs tidy"]
    assert len(told_that_dropped(live_example.operator)) == 1


def test_a_status_schema_with_only_nodes_gets_only_nodes(tutorials: Tutorials) -> None:
    live_example = tutorials.begin(V1ALPHA1, MEMCACHED_SCHEMA, subresource=True)
    live_example.apply()
    live_example.wait_until_settled()
    assert set(live_example.resource()["status"]) == {"nodes"}
    live_example.admin.merge(live_example.path, {"spec": live_example.example.edit}, "somebody")
    live_example.wait_until_settled(live_example.example.edited, live_example.example.edited_status)
    assert len(told_that_dropped(live_example.operator)) == 1


def test_a_kind_with_unknown_fields_allowed_gets_conditions(tutorials: Tutorials) -> None:
    live_example = tutorials.begin(V1ALPHA1, OPEN, subresource=True)
    live_example.example = replace(live_example.example, conditions=True)
    live_example.apply()
    live_example.wait_until_settled()
    assert told_that_dropped(live_example.operator) == []


def test_a_status_that_was_made_for_another_operator_is_written_as_far_as_it_fits(tutorials: Tutorials) -> None:
    condition = object_of(type={**STRING, "enum": ["Ready"]}, status=STRING, reason=STRING, message=STRING)
    nodes = MEMCACHED_SCHEMA["properties"]["status"]["properties"]["nodes"]
    conditions = {"type": "array", "items": condition}
    status = {**object_of(nodes=nodes, observedGeneration=STRING, conditions=conditions), "required": ["nodes"]}
    live_example = tutorials.begin(V1ALPHA1, object_of(spec=object_of(size=INTEGER), status=status), subresource=True)
    live_example.apply()
    live_example.wait_until_settled()
    written = live_example.resource()["status"]
    assert set(written) == {"nodes", "conditions"}
    assert [(each["type"], set(each)) for each in written["conditions"]] == [
        ("Ready", {"type", "status", "reason", "message"} & set(written["conditions"][0]))
    ]
    assert len(told_that_dropped(live_example.operator)) == 3


def test_a_status_without_a_required_field_is_never_sent(tutorials: Tutorials) -> None:
    status = {**MEMCACHED_SCHEMA["properties"]["status"], "required": ["version"]}
    schema = object_of(spec=object_of(size=INTEGER), status={**status, "x-kubernetes-preserve-unknown-fields": True})
    live_example = tutorials.begin(replace(V1ALPHA1, status={}, edited_status={}), schema, subresource=True)
    mark = live_example.operator.mark()
    live_example.apply()
    live_example.wait_until_settled()
    message = "the CRD of Memcached requires status.version, and no status is written without: set each in `status` of the rule"
    eventually("an event", lambda: ("Warning", "StatusNotWritten", message) in live_example.events())
    live_example.admin.merge(live_example.path, {"spec": live_example.example.edit}, "somebody")
    live_example.wait_until_settled(live_example.example.edited, {})
    assert not [write for write in live_example.operator.writes(mark, live_example.namespace) if "/status" in write]
    assert "status" not in live_example.resource()
