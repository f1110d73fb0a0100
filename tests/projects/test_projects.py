"""The example projects: each loads without a remark, and what it makes is what it made before, and is what Kubernetes takes.

Run `python -m tests.projects.snapshots` after a change that is meant, and look at the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ruleop.kinds import Kind, Object
from ruleop.rules import load_project
from ruleop.schema.crd_checks import check_crd
from ruleop.schema.fields import unknown_to_shape
from ruleop.schema.structural import default, unknown_fields
from ruleop.schema.table import builtin_shape
from ruleop.schema.validation import validate
from tests.projects.rendering import documents, render, render_children, snapshot
from tests.projects.snapshots import CASES, ROOT, Case

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROJECTS = sorted({case.project for case in CASES})
KAFKA = ROOT / "tests/projects/kafka"
EVENTS = KAFKA / "examples/events.yaml"
SHOP = ROOT / "tests/projects/shop"
WORDPRESS = ROOT / "examples/wordpress"
BACKUP = ROOT / "tests/projects/backup"


def title(case: Case) -> str:
    return f"{case.project or 'root'}:{case.cr}"


@pytest.mark.parametrize("project", PROJECTS)
def test_a_project_loads_without_a_remark(project: str) -> None:
    assert [str(warning) for warning in load_project(ROOT / project, environ={}).warnings] == []


@pytest.mark.parametrize("project", PROJECTS)
def test_its_definitions_are_accepted_as_they_are(project: str) -> None:
    for file in sorted((ROOT / project / "crds").iterdir()):
        for document in documents(file):
            assert [str(finding) for finding in check_crd(document)] == []


@pytest.mark.parametrize("project", PROJECTS)
def test_its_samples_fit_their_definitions(project: str) -> None:
    crds = {(crd.group, crd.kind): crd for crd in load_project(ROOT / project, environ={}).crds}
    files = sorted((ROOT / project / "examples").glob("*.yaml"))
    assert files
    for file in files:
        for cr in documents(file):
            kind = Kind.of(cr)
            version = crds[kind.group, kind.kind].version(kind.version)
            assert version is not None
            assert unknown_fields(cr, version.schema) == ()
            assert [str(finding) for finding in validate(default(cr, version.schema), version.schema)] == []


@pytest.mark.parametrize("case", CASES, ids=title)
def test_the_children_are_those_of_the_snapshot(case: Case) -> None:
    assert snapshot(case.render()) == case.file.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=title)
def test_the_status_has_room_in_the_schema(case: Case) -> None:
    [cr] = documents(case.cr_file)
    kind = Kind.of(cr)
    [crd] = [crd for crd in load_project(case.folder, environ={}).crds if (crd.group, crd.kind) == (kind.group, kind.kind)]
    version = crd.version(kind.version)
    assert version is not None
    full = {**default(cr, version.schema), "status": case.render().status or {}}
    assert unknown_fields(full, version.schema) == ()
    assert [str(finding) for finding in validate(full, version.schema)] == []


# -- what Kubernetes takes -----------------------------------------------------------------------------------------------------------------

OBJECTS = [
    pytest.param(obj, id=f"{title(case)}:{obj['kind']}/{obj['metadata']['name']}") for case in CASES for _, _, obj in case.render().children
]


@pytest.mark.parametrize("obj", OBJECTS)
def test_every_field_is_known(obj: Object) -> None:
    shape = builtin_shape(Kind.of(obj))
    if shape is not None:
        assert [str(finding) for finding in unknown_to_shape(obj, shape)] == []


@pytest.mark.parametrize("obj", OBJECTS)
def test_a_selector_matches_the_labels_of_its_own_pods(obj: Object) -> None:
    spec = obj.get("spec") or {}
    if obj["kind"] in {"Deployment", "StatefulSet"}:
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("obj", OBJECTS)
def test_a_pod_mounts_what_it_has_and_probes_ports_that_it_names(obj: Object) -> None:
    for pod, claims in pods_of(obj):
        volumes = {volume["name"] for volume in pod.get("volumes", ())} | claims
        mounted = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", ())}
        assert mounted == volumes
        for container in pod["containers"]:
            ports = {port.get("name") for port in container.get("ports", ())} | {
                port["containerPort"] for port in container.get("ports", ())
            }
            for probe in ("livenessProbe", "readinessProbe"):
                for action in container.get(probe, {}).values():
                    assert not isinstance(action, dict) or action["port"] in ports


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_service_finds_pods_and_the_ports_that_it_names(case: Case) -> None:
    made = [obj for _, _, obj in case.render().children]
    workloads = [obj for obj in made if obj["kind"] in {"Deployment", "StatefulSet"}]
    for service in (obj for obj in made if obj["kind"] == "Service"):
        if "statefulset.kubernetes.io/pod-name" in service["spec"]["selector"]:
            continue
        found = [obj for obj in workloads if service["spec"]["selector"].items() <= obj["spec"]["template"]["metadata"]["labels"].items()]
        assert len(found) == (0 if case.render().waiting else 1) or service["spec"].get("clusterIP") == "None"
        named = {
            port.get("name")
            for obj in found
            for pod, _ in pods_of(obj)
            for container in pod["containers"]
            for port in container.get("ports", ())
        }
        assert not found or {port["targetPort"] for port in service["spec"]["ports"] if isinstance(port.get("targetPort"), str)} <= named


def pods_of(obj: Object) -> Iterator[tuple[dict[str, Any], set[str]]]:
    """Each pod that an object describes, with the volumes that come from claims."""
    spec = obj.get("spec") or {}
    spec = spec["jobTemplate"]["spec"] if obj["kind"] == "CronJob" else spec
    if "template" in spec:
        yield spec["template"]["spec"], {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", ())}


# -- WordPress -----------------------------------------------------------------------------------------------------------------------------


def ids(children: list[tuple[str, str, Object]]) -> list[str]:
    return [child for child, _, _ in children]


def test_the_blog_waits_for_its_passwords_and_nothing_else_does() -> None:
    rendered = render(WORDPRESS, WORDPRESS / "examples/blog.yaml")
    assert ids(rendered.children) == ["password", "config", "dbService", "db", "uploads", "service", "ingress"]
    assert list(rendered.waiting) == ["app"]


def test_no_password_is_made_for_a_user_who_has_brought_one() -> None:
    assert "password" not in ids(render_children(WORDPRESS, WORDPRESS / "examples/small.yaml"))


# -- Kafka: fewer brokers, in three steps --------------------------------------------------------------------------------------------------


def test_new_brokers_wait_for_the_addresses_of_their_services() -> None:
    rendered = render(KAFKA, EVENTS)
    assert ids(rendered.children) == ["headless", "brokerService", "brokerService", "brokerService", "budget"]
    assert set(rendered.waiting) == {"config", "brokers"}


def kafka(*extra: Object) -> tuple[dict[str, list[Object]], dict[str, str]]:
    existing = documents(KAFKA / "existing/events-too-many-brokers.yaml")
    rendered = render(KAFKA, EVENTS, [*existing, *extra])
    children: dict[str, list[Object]] = {}
    for child, _, obj in rendered.children:
        children.setdefault(child, []).append(obj)
    return children, rendered.waiting


def drain(status: dict[str, Any]) -> Object:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "events-drain-5-to-3", "namespace": "default"}, "status": status}


def test_with_too_many_brokers_they_are_drained_and_stay() -> None:
    children, waiting = kafka()
    assert [job["metadata"]["name"] for job in children["drain"]] == ["events-drain-5-to-3"]
    assert len(children["brokerService"]) == 5
    assert list(waiting) == ["brokers"]


def test_brokers_stay_while_they_are_being_drained() -> None:
    children, waiting = kafka(drain({"active": 1}))
    assert "drain" in children
    assert list(waiting) == ["brokers"]


def test_drained_brokers_go() -> None:
    children, waiting = kafka(drain({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}))
    assert children["brokers"][0]["spec"]["replicas"] == 3
    assert waiting == {}


def test_when_they_are_gone_so_is_the_drain() -> None:
    existing = documents(KAFKA / "existing/events-too-many-brokers.yaml")
    existing[0]["spec"]["replicas"] = 3
    rendered = render(KAFKA, EVENTS, existing)
    assert ids(rendered.children) == ["headless", *["brokerService"] * 3, "config", "brokers", "budget"]
    assert rendered.waiting == {}


# -- the shop, and the backup --------------------------------------------------------------------------------------------------------------


def test_without_cert_manager_there_is_no_certificate_and_nobody_waits_for_it() -> None:
    rendered = render(SHOP, SHOP / "examples/shop.yaml", documents(SHOP / "existing/shop.yaml"))
    assert ids(rendered.children) == ["settings", "deployment", "autoscaler"]
    [deployment] = [obj for child, _, obj in rendered.children if child == "deployment"]
    assert "volumes" not in deployment["spec"]["template"]["spec"]
    assert rendered.waiting == {}


def test_with_cert_manager_the_shop_waits_for_its_certificate() -> None:
    existing = [obj for obj in documents(SHOP / "existing/shop.yaml") if obj["metadata"]["name"] != "shop-tls"]
    rendered = render(SHOP, SHOP / "examples/shop.yaml", existing, served=["cert-manager.io/v1/Certificate"])
    assert ids(rendered.children) == ["settings", "certificate"]
    assert set(rendered.waiting) == {"deployment", "autoscaler"}


def test_backups_are_purged_only_on_demand(tmp_path: Path) -> None:
    file = BACKUP / "examples/pg.yaml"
    kept = tmp_path / "kept.yaml"
    kept.write_text(file.read_text(encoding="utf-8").replace("Purge", "Keep"), encoding="utf-8")
    assert ids(render(BACKUP, file, final=True).children) == ["purge"]
    assert render(BACKUP, kept, final=True).children == []
