"""What is promised to the user of each example operator, whatever its kind: a test module a example says what its kind
and children are."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.operator import Operator, Permissions, eventually
from tests.cluster.server import Client, RefusedError

ROOT = Path(__file__).resolve().parent.parent.parent

PATHS = {
    "deployments": "/apis/apps/v1",
    "services": "/api/v1",
    "pods": "/api/v1",
    "cronjobs": "/apis/batch/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "configmaps": "/api/v1",
    "secrets": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "servicemonitors": "/apis/monitoring.coreos.com/v1",
}


@dataclass(frozen=True)
class Child:
    """An object that a CR becomes. `wanted` is the part of it that the rules say."""

    resource: str
    name: str
    wanted: dict[str, Any]
    by_hand: dict[str, Any]  # a merge patch of somebody who should not


@dataclass(frozen=True)
class Example:
    """One of the example operators, a CR of it, and what becomes of that CR."""

    project: Path
    crd: Path
    permissions: Permissions
    api_version: str
    resource: str
    kind: str
    name: str
    spec: dict[str, Any]
    children: tuple[Child, ...]
    status: dict[str, Any]  # what `status` holds when all is well, beside conditions and what is not known beforehand
    edit: dict[str, Any]  # a merge patch of the spec
    edited: tuple[Child, ...]
    edited_status: dict[str, Any]
    leftovers: tuple[str, ...]  # resources of which nothing may be left when the CR is gone
    conditions: bool = True  # whether the CRD has fields for them
    arguments: tuple[str, ...] = field(default=())

    @property
    def manifest(self) -> dict[str, Any]:
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": self.name}, "spec": self.spec}


class LiveExample:
    """One CR of an example, in a namespace of its own, and the operator that reconciles it."""

    def __init__(self, example: Example, operator: Operator, namespace: str, kubectl: Kubectl) -> None:
        self.example, self.operator, self.namespace, self.kubectl = example, operator, namespace, kubectl
        self.admin: Client = operator.admin
        self.path = f"/apis/{example.api_version}/namespaces/{namespace}/{example.resource}/{example.name}"

    def path_of(self, resource: str, name: str = "") -> str:
        return f"{PATHS[resource]}/namespaces/{self.namespace}/{resource}" + (f"/{name}" if name else "")

    def apply(self) -> None:
        self.kubectl("apply", "--filename=-", stdin=json.dumps(self.example.manifest))

    def resource(self) -> Any:
        return self.admin.get(self.path)

    def get(self, child: Child) -> Any:
        return self.admin.get(self.path_of(child.resource, child.name))

    def list(self, resource: str) -> list[Any]:
        return self.admin.get(self.path_of(resource))["items"]  # type: ignore[no-any-return]

    def exists(self, child: Child) -> bool:
        return child.name in {each["metadata"]["name"] for each in self.list(child.resource)}

    def condition(self, type_: str) -> dict[str, Any]:
        conditions = (self.resource().get("status") or {}).get("conditions") or []
        return next((each for each in conditions if each["type"] == type_), {})

    def wait_for_condition(self, type_: str, status: str, reason: str) -> dict[str, Any]:
        def holds() -> dict[str, Any] | None:
            found = self.condition(type_)
            return found if found.get("status") == status and found.get("reason") == reason else None

        return eventually(f"{type_}={status}, {reason}", holds)

    def wait_until_settled(
        self, children: tuple[Child, ...] | None = None, status: dict[str, Any] | None = None
    ) -> None:
        """Returns when the children are what the rules say, and the CR tells so."""
        for child in self.example.children if children is None else children:
            eventually(
                f"{child.resource}/{child.name} as wanted",
                lambda child=child: missing(child.wanted, self.get(child)) == "",
            )
        wanted = dict(self.example.status if status is None else status)
        eventually(f"status {wanted}", lambda: self._has_status(wanted))

    def _has_status(self, wanted: dict[str, Any]) -> bool:
        resource = self.resource()
        status = resource.get("status") or {}
        if missing(wanted, status):
            return False
        if not self.example.conditions:
            return True
        by_type = {each["type"]: each for each in status.get("conditions", [])}
        up_to_date = status.get("observedGeneration") == resource["metadata"]["generation"]
        return up_to_date and {
            each: by_type.get(each, {}).get("status") for each in ("Ready", "Reconciling", "Stalled")
        } == {
            "Ready": "True",
            "Reconciling": "False",
            "Stalled": "False",
        }

    def events(self) -> set[tuple[str, str, str]]:
        """Type, reason and message of each Event about the CR."""
        found = self.admin.get(f"/api/v1/namespaces/{self.namespace}/events")["items"]
        return {
            (each["type"], each["reason"], each["message"])
            for each in found
            if each["involvedObject"]["kind"] == self.example.kind
            and each["involvedObject"]["name"] == self.example.name
        }

    @contextlib.contextmanager
    def interrupted(self, interruption: str) -> Iterator[None]:
        """What the block does, while the operator runs on, or is killed as soon as it begins to work on it."""
        if interruption == "killed":
            with self.operator.killed_at_its_first_write(self.namespace):
                yield
        else:
            yield


def missing(wanted: Any, live: Any, path: str = "") -> str:
    """The paths at which `live` lacks the desired values. Items of lists are compared one by one."""
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            return f"{path}: {live!r}"
        return next(
            (found for key, value in wanted.items() if (found := missing(value, live.get(key), f"{path}.{key}"))), ""
        )
    if isinstance(wanted, list):
        if not isinstance(live, list) or len(live) != len(wanted):
            return f"{path}: {live!r}"
        return next(
            (
                found
                for i, (one, two) in enumerate(zip(wanted, live, strict=True))
                if (found := missing(one, two, f"{path}[{i}]"))
            ),
            "",
        )
    if isinstance(wanted, re.Pattern):
        return "" if isinstance(live, str) and wanted.fullmatch(live) else f"{path}: {live!r}"
    return "" if wanted == live and type(wanted) is type(live) else f"{path}: {live!r} is not {wanted!r}"


INTERRUPTIONS = pytest.mark.parametrize("interruption", ["running", "killed"])


@contextlib.contextmanager
def operating(example: Example, plane: ControlPlane, log: Path) -> Iterator[Operator]:
    """The example's operator, with its kind defined and known to the garbage collector. It ends in order, and has met
    nothing unexpected."""
    plane.define(example.crd)
    plane.restart_controllers(watching=[f"{example.resource}.{example.api_version.partition('/')[0]}"])
    with Operator(plane, example.project, example.permissions, log, *example.arguments) as operator:
        yield operator
        operator.check()
        assert operator.terminate() == 0
    plane.kubectl("delete", f"--filename={example.crd}", "--wait=true")


class ExampleTests:
    """A subclass names its example. Its tests share the operator; each has a namespace and a CR of its own."""

    example: ClassVar[Example]

    @pytest.fixture
    def live_example(self, operator: Operator, namespace: str, kubectl: Kubectl) -> LiveExample:
        return LiveExample(self.example, operator, namespace, kubectl)

    @INTERRUPTIONS
    def test_children_run_and_the_status_is_ready(self, live_example: LiveExample, interruption: str) -> None:
        with live_example.interrupted(interruption):
            live_example.apply()
        live_example.wait_until_settled()
        resource = live_example.resource()
        owner = {
            "apiVersion": live_example.example.api_version,
            "kind": live_example.example.kind,
            "name": live_example.example.name,
            "uid": resource["metadata"]["uid"],
        }
        for child in live_example.example.children:
            metadata = live_example.get(child)["metadata"]
            (reference,) = metadata["ownerReferences"]
            assert missing({**owner, "controller": True}, reference) == ""
            assert missing({"app.kubernetes.io/managed-by": "ruleop"}, metadata["labels"]) == ""
        # GitOps tools see no drift: nothing but the status is written on the CR.
        assert missing(live_example.example.spec, resource["spec"]) == ""
        assert "finalizers" not in resource["metadata"]
        assert set(resource["metadata"].get("annotations", {})) <= {"kubectl.kubernetes.io/last-applied-configuration"}
        assert "labels" not in resource["metadata"]

    @INTERRUPTIONS
    def test_an_edit_is_rolled_out_and_keeps_metadata_of_others(
        self, live_example: LiveExample, interruption: str
    ) -> None:
        live_example.apply()
        live_example.wait_until_settled()
        for child in live_example.example.children:
            patch = {"metadata": {"labels": {"theirs": "too"}, "annotations": {"example.com/note": "kept"}}}
            live_example.admin.merge(live_example.path_of(child.resource, child.name), patch, "somebody")
        with live_example.interrupted(interruption):
            live_example.admin.merge(live_example.path, {"spec": live_example.example.edit}, "somebody")
        live_example.wait_until_settled(live_example.example.edited, live_example.example.edited_status)
        for child in live_example.example.children:
            metadata = live_example.get(child)["metadata"]
            assert metadata["labels"]["theirs"] == "too"
            assert metadata["annotations"]["example.com/note"] == "kept"

    @INTERRUPTIONS
    def test_drift_is_reverted(self, live_example: LiveExample, interruption: str) -> None:
        live_example.apply()
        live_example.wait_until_settled()
        for child in live_example.example.children:
            with live_example.interrupted(interruption):
                live_example.admin.merge(live_example.path_of(child.resource, child.name), child.by_hand, "somebody")
            live_example.wait_until_settled()

    @INTERRUPTIONS
    def test_a_deleted_child_is_recreated(self, live_example: LiveExample, interruption: str) -> None:
        live_example.apply()
        live_example.wait_until_settled()
        for child in live_example.example.children:
            before = live_example.get(child)["metadata"]["uid"]
            with live_example.interrupted(interruption):
                live_example.admin.delete(live_example.path_of(child.resource, child.name))
            eventually(
                "another one in its place",
                lambda child=child, before=before: live_example.get(child)["metadata"]["uid"] != before,
            )
        live_example.wait_until_settled()

    @INTERRUPTIONS
    def test_a_conflicting_object_is_left_alone_until_it_is_deleted(
        self, live_example: LiveExample, interruption: str
    ) -> None:
        first, *others = live_example.example.children
        foreign = live_example.admin.post(live_example.path_of(first.resource), self.foreign(first))
        before = self.at_rest(live_example, first)
        with live_example.interrupted(interruption):
            live_example.apply()
        condition = live_example.wait_for_condition("Ready", "False", "ErrResourceExists")
        whose = f"already exists and is not managed by {live_example.example.kind} (it has no owner)"
        assert f" {first.name} in namespace {live_example.namespace} {whose}: " in condition["message"]
        assert live_example.condition("Stalled")["status"] == "True"
        for other in others:
            eventually(
                f"{other.name}, which is not concerned",
                lambda other=other: missing(other.wanted, live_example.get(other)) == "",
            )
        if interruption == "running":  # of an event nobody keeps a copy: one that a crash has overtaken is lost
            eventually(
                "an event", lambda: ("Warning", "ErrResourceExists", condition["message"]) in live_example.events()
            )
        assert live_example.get(first) == before
        if interruption == "killed":
            live_example.operator.kill()
        live_example.admin.delete(live_example.path_of(first.resource, first.name))
        if interruption == "killed":
            live_example.operator.start()
        live_example.wait_until_settled()
        assert live_example.get(first)["metadata"]["uid"] != foreign["metadata"]["uid"]

    @INTERRUPTIONS
    def test_a_deleted_cr_leaves_no_children(self, live_example: LiveExample, interruption: str) -> None:
        live_example.apply()
        live_example.wait_until_settled()
        mark = live_example.operator.mark()
        if interruption == "killed":
            live_example.operator.kill()
        live_example.kubectl(
            "delete",
            live_example.example.resource + "." + live_example.example.api_version.partition("/")[0],
            live_example.example.name,
            "--wait=true",
        )
        if interruption == "killed":
            live_example.operator.start()
        for resource in live_example.example.leftovers:
            eventually(
                f"no {resource} to be left",
                lambda resource=resource: [each["metadata"]["name"] for each in live_example.list(resource)] == [],
            )
        # The garbage collector does it: the operator may be away, and has nothing to write.
        assert live_example.operator.writes(mark, live_example.namespace) == []
        with pytest.raises(RefusedError):
            live_example.resource()

    # -- what a example may say otherwise ------------------------------------------------------------------------------

    def foreign(self, child: Child) -> dict[str, Any]:
        """An object of another owner with the child's name, which no controller keeps writing."""
        return foreign_deployment(child.name)

    def at_rest(self, live_example: LiveExample, child: Child) -> Any:
        """The object when its controllers have written what they write."""
        return rolled_out(live_example, child)


def pods(deployment: str, count: int) -> list[re.Pattern[str]]:
    """The names of a Deployment's pods."""
    return [re.compile(f"{deployment}-[a-z0-9]+-[a-z0-9]{{5}}")] * count


def foreign_deployment(name: str) -> dict[str, Any]:
    labels = {"app": "theirs"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "theirs", "image": "theirs:1"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def rolled_out(live_example: LiveExample, child: Child) -> Any:
    """A Deployment of which its controller has nothing more to say."""

    def done() -> Any:
        live = live_example.get(child)
        reasons = {each["reason"] for each in live.get("status", {}).get("conditions", [])}
        return live if "NewReplicaSetAvailable" in reasons else None

    return eventually("the deployment to be at rest", done)
