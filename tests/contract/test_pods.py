"""What may change of a pod, and what the server fills in for what makes pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.client import MERGE, Reply, Server
from tests.contract.creation import CREATIONS
from tests.contract.workloads import LABELS, container, template
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def _account(server: Server, namespace: str) -> None:
    server.create(
        f"/api/v1/namespaces/{namespace}/serviceaccounts",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}},
    )


@pytest.fixture
def pod(server: Server, namespace: str) -> dict[str, Any]:
    """The pod as it was given, which exists."""
    spec = {
        "containers": [container(resources={"limits": {"cpu": "0.5"}})],
        "serviceAccountName": "a",
        "automountServiceAccountToken": False,
        "tolerations": [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 3}],
        "activeDeadlineSeconds": 600,
        "schedulerName": "nobody",  # the name of a node may not change either
    }
    found = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    server.create(f"/api/v1/namespaces/{namespace}/pods", found)
    return found


def test_a_pod_can_be_replaced_by_its_manifest_with_another_image(
    server: Server, namespace: str, pod: dict[str, Any]
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/a"
    before = server.get(path)
    pod["spec"]["containers"][0]["image"] = "b"
    after = server.replace(path, pod)
    assert after["spec"]["containers"][0].pop("image") == "b"
    assert before["spec"]["containers"][0].pop("image") == "a"
    assert {**after["spec"], "nodeName": ""} == {**before["spec"], "nodeName": ""}


@pytest.mark.parametrize("effect", ["NoExecute", ""])
def test_a_pod_that_tolerates_all_gets_no_other_tolerations(server: Server, namespace: str, effect: str) -> None:
    toleration = {"operator": "Exists", **({"effect": effect} if effect else {})}
    spec = {"containers": [container()], "tolerations": [toleration]}
    reply = answer(server, namespace, spec)
    assert reply.ok()["spec"]["tolerations"] == [toleration]


def test_the_priority_of_a_pod_is_that_of_its_class(server: Server, namespace: str) -> None:
    refused = answer(server, namespace, {"containers": [container()], "priority": 1}).refused(403, "Forbidden")
    assert "the integer value of priority (1) must not be provided" in refused["message"]
    assert answer(server, namespace, {"containers": [container()], "priority": 0}).ok()["spec"]["priority"] == 0


def answer(server: Server, namespace: str, spec: dict[str, Any]) -> Reply:
    spec = {"automountServiceAccountToken": False, "serviceAccountName": "a", **spec}
    return CREATIONS.create(server, namespace, "Pod", {"spec": spec})


CHANGES = {
    "an added toleration": ({"tolerations": [{"key": "a", "effect": "NoExecute"}, {"key": "b", "value": "c"}]}, ""),
    "another toleration": ({"tolerations": [{"key": "c"}]}, "spec.tolerations"),
    "an earlier deadline": ({"activeDeadlineSeconds": 500}, ""),
    "a later deadline": ({"activeDeadlineSeconds": 700}, "spec.activeDeadlineSeconds"),
    "no deadline": ({"activeDeadlineSeconds": None}, "spec.activeDeadlineSeconds"),
    "another grace period": ({"terminationGracePeriodSeconds": 5}, "spec"),
    "another policy": ({"restartPolicy": "Never"}, "spec"),
    "another container": ({"containers": [container(), container(name="b")]}, "spec.containers"),
    "an init container": ({"initContainers": [container(name="b")]}, "spec.initContainers"),
    "an image with a space": ({"containers": [container(image="b ")]}, "spec.containers[0].image"),
}


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize("change", CHANGES)
def test_few_fields_of_a_pod_may_change(server: Server, namespace: str, change: str) -> None:
    spec, refused = CHANGES[change]
    reply = server.send("PATCH", f"/api/v1/namespaces/{namespace}/pods/a?dryRun=All", {"spec": spec}, media=MERGE)
    if not refused:
        reply.ok()
    else:
        causes = reply.refused(422, "Invalid")["details"]["causes"]
        assert refused in {each["field"] for each in causes}


@pytest.mark.parametrize("own", [None, {"a": "b"}, {"c": "d"}])
def test_a_job_without_labels_gets_those_of_its_pods(
    server: Server, namespace: str, own: dict[str, str] | None
) -> None:
    spec = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": template(restartPolicy="Never")["spec"]}}
    metadata = {"name": "a", "labels": own} if own else {"name": "a"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    made = server.create(f"/apis/batch/v1/namespaces/{namespace}/jobs", job)
    assert made["metadata"]["labels"] == own if own else made["spec"]["template"]["metadata"]["labels"]
    labels = made["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:labels"]
    assert labels == {".": {}, **{f"f:{name}": {} for name in own or {"a": "b"}}}


STRATEGIES: list[tuple[str, Any, Any]] = [
    ("StatefulSet", None, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
    ("StatefulSet", {"type": "RollingUpdate"}, {"type": "RollingUpdate"}),
    ("StatefulSet", {"type": "OnDelete"}, {"type": "OnDelete"}),
    ("DaemonSet", None, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
    (
        "DaemonSet",
        {"rollingUpdate": {"maxUnavailable": "20%"}},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "20%"}},
    ),
    ("DaemonSet", {"type": "OnDelete"}, {"type": "OnDelete"}),
]


@pytest.mark.parametrize(("kind", "given", "stored"), STRATEGIES)
def test_the_strategy_of_updates_has_defaults(
    server: Server, namespace: str, kind: str, given: Any, stored: Any
) -> None:
    spec = {"selector": {"matchLabels": LABELS}, "template": template()}
    if given is not None:
        spec["updateStrategy"] = given
    made = server.create(
        f"/apis/apps/v1/namespaces/{namespace}/{kind.lower()}s",
        {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec},
    )
    assert made["spec"]["updateStrategy"] == stored


def test_the_creator_of_a_daemon_set_owns_the_number_of_its_template(server: Server, namespace: str) -> None:
    name = "deprecated.daemonset.template.generation"
    made = server.create(
        f"/apis/apps/v1/namespaces/{namespace}/daemonsets",
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "a"},
            "spec": {"selector": {"matchLabels": LABELS}, "template": template()},
        },
    )
    assert made["metadata"]["annotations"] == {name: "1"}
    owned = made["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]
    assert owned == {"f:annotations": {".": {}, f"f:{name}": {}}}


def test_a_condition_without_times_has_empty_ones(server: Server, namespace: str) -> None:
    spec = {"selector": {"matchLabels": LABELS}, "template": template(), "replicas": 0}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    server.create(path, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})
    given = {"type": "Tested", "status": "True"}
    made = server.merge(f"{path}/a/status?dryRun=All", {"status": {"conditions": [given]}})
    assert made["status"]["conditions"] == [{**given, "lastUpdateTime": None, "lastTransitionTime": None}]


def test_a_pod_of_another_scheduler_waits_until_it_is_bound(
    server: Server, namespace: str, pod: dict[str, Any]
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/a"
    metadata = {"name": "a", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": "n"}}

    def refused(code: int, **changes: Any) -> str:
        reply = server.send("POST", f"{path}/binding", {**binding, **changes})
        assert reply.status == code
        return str(reply.body["message"])

    assert refused(400, metadata={"name": "b"}) == "name in URL does not match name in Binding object"
    assert refused(500, target={"kind": "Node"}) == "target.name: Required value"
    server.create(f"{path}/binding", binding, dryRun="All")
    assert "nodeName" not in server.get(path)["spec"]
    assert server.create(f"{path}/binding", binding)["status"] == "Success"
    found = server.get(path)
    assert (found["spec"]["nodeName"], found["metadata"]["labels"]) == ("n", {"a": "b"})
    assert found["metadata"]["annotations"] == {"c": "d"}
    assert refused(409) == ('Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"')


def test_the_host_names_of_a_stateful_sets_template_are_its_controllers(server: Server, namespace: str) -> None:
    root = f"/apis/apps/v1/namespaces/{namespace}"
    for kind, accepted in (("StatefulSet", True), ("Deployment", False)):
        spec = {"selector": {"matchLabels": LABELS}, "template": template(hostname="ABC", subdomain="A_b")}
        obj = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
        reply = server.send("POST", f"{root}/{kind.lower()}s", obj, dryRun="All")
        assert (reply.status == 201) == accepted


def _messages(server: Server, namespace: str, reason: str) -> list[str]:
    events = server.get(f"/api/v1/namespaces/{namespace}/events")["items"]
    return [each["message"] for each in events if each["reason"] == reason]


def test_a_schedule_that_never_comes_is_reported(server: Server, namespace: str) -> None:
    schedule = "59 23 31 2 *"
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}}}
    obj = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}, "spec": spec}
    server.create(f"/apis/batch/v1/namespaces/{namespace}/cronjobs", obj)
    found = eventually("the Event", lambda: _messages(server, namespace, "InvalidSchedule"))
    assert found[0] == f"invalid schedule: {schedule} : time difference between two schedules is less than 1 second"


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_a_revision_keeps_the_annotations_that_its_owner_had(server: Server, namespace: str, kind: str) -> None:
    """`kubectl rollout history` shows the cause of a change."""
    root, cause = f"/apis/apps/v1/namespaces/{namespace}", "kubernetes.io/change-cause"
    metadata = {"name": "a", "annotations": {cause: "first"}}
    more = {"serviceName": "a"} if kind == "StatefulSet" else {}
    spec = {"selector": {"matchLabels": LABELS}, "template": template(), **more}
    path = f"{root}/{kind.lower()}s"
    server.create(path, {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec})

    def causes() -> list[tuple[int, str]]:
        items = server.get(f"{root}/controllerrevisions")["items"]
        return sorted((each["revision"], each["metadata"]["annotations"][cause]) for each in items)

    eventually("the first revision", lambda: causes() == [(1, "first")])
    change = {"metadata": {"annotations": {cause: "second"}}, "spec": {"template": template(container(image="b"))}}
    server.merge(f"{path}/a", change)
    eventually("the second revision", lambda: causes() == [(1, "first"), (2, "second")])


def test_a_daemon_sets_pods_run_on_a_cordoned_node_too(server: Server, namespace: str) -> None:
    spec = {"selector": {"matchLabels": LABELS}, "template": template()}
    obj = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a"}, "spec": spec}
    server.create(f"/apis/apps/v1/namespaces/{namespace}/daemonsets", obj)
    pods = eventually("its pods", lambda: server.get(f"/api/v1/namespaces/{namespace}/pods")["items"])
    assert [(each["key"].rpartition("/")[2], each["effect"]) for each in pods[0]["spec"]["tolerations"]] == [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ]


def test_a_replica_set_that_is_current_again_keeps_its_earlier_revisions(server: Server, namespace: str) -> None:
    root = f"/apis/apps/v1/namespaces/{namespace}"
    spec = {"selector": {"matchLabels": LABELS}, "template": template()}
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}
    server.create(f"{root}/deployments", obj)

    def revisions() -> list[tuple[str, str]]:
        prefix = "deployment.kubernetes.io/revision"
        annotations = [each["metadata"]["annotations"] for each in server.get(f"{root}/replicasets")["items"]]
        return sorted((each[prefix], each.get(f"{prefix}-history", "")) for each in annotations)

    eventually("the first", lambda: revisions() == [("1", "")])
    for image, expected in (
        ("b", [("1", ""), ("2", "")]),
        ("a", [("2", ""), ("3", "1")]),
        ("b", [("3", "1"), ("4", "2")]),
        ("a", [("4", "2"), ("5", "1,3")]),
    ):
        server.merge(f"{root}/deployments/a", {"spec": {"template": template(container(image=image))}})
        eventually(f"{image} is current", lambda expected=expected: revisions() == expected)
