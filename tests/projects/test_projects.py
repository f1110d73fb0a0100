"""The example projects: each loads without warnings, its plans equal their snapshots, and its objects are valid.

Run `python -m tests.projects.snapshots` after an intended change, and check the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ruleop.core.kinds import Kind, Object
from ruleop.core.schema.builtin.table import builtin_shape
from ruleop.core.schema.crd.crd_checks import check_crd
from ruleop.core.schema.crd.structural import default, unknown_fields
from ruleop.core.schema.shape import unknown_to_shape
from ruleop.core.schema.validation import validate
from tests.projects.rendering import documents, loaded, snapshot
from tests.projects.snapshots import CASES, ROOT, Case

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECTS = sorted({case.project for case in CASES})


def title(case: Case) -> str:
    return f"{case.project or 'root'}:{case.cr}"


@pytest.mark.parametrize("project", PROJECTS)
def test_a_project_loads_without_warnings(project: str) -> None:
    assert [str(warning) for warning in loaded(ROOT / project).findings] == []


@pytest.mark.parametrize("project", PROJECTS)
def test_the_crds_of_a_project_are_valid(project: str) -> None:
    for file in sorted((ROOT / project / "crds").glob("*")):
        for document in documents(file):
            assert [str(finding) for finding in check_crd(document)] == []


@pytest.mark.parametrize("project", PROJECTS)
def test_the_samples_of_a_project_fit_their_crds(project: str) -> None:
    crds = {(crd.group, crd.kind): crd for crd in loaded(ROOT / project).crds}
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
def test_the_rendered_children_equal_the_snapshot(case: Case) -> None:
    assert snapshot(case.plan()) == case.file.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=title)
def test_the_rendered_status_fits_the_schema(case: Case) -> None:
    [cr] = documents(case.cr_file)
    kind = Kind.of(cr)
    [crd] = [crd for crd in loaded(case.folder).crds if (crd.group, crd.kind) == (kind.group, kind.kind)]
    version = crd.version(kind.version)
    assert version is not None
    status = case.plan().status
    assert status is not None
    full = {**default(cr, version.schema), "status": status.status}
    assert unknown_fields(full, version.schema) == ()
    assert [str(finding) for finding in validate(full, version.schema)] == []


# -- validity ----------------------------------------------------------------------------------------------------------

OBJECTS = [
    pytest.param(obj, id=f"{title(case)}:{obj['kind']}/{obj['metadata']['name']}")
    for case in CASES
    for obj in documents(case.file)
]
"""From the snapshots, to which the plans are equal: planning all of them would delay every collection of tests."""


@pytest.mark.parametrize("obj", OBJECTS)
def test_rendered_objects_have_no_unknown_fields(obj: Object) -> None:
    shape = builtin_shape(Kind.of(obj))
    if shape is not None:
        assert [str(finding) for finding in unknown_to_shape(obj, shape)] == []


@pytest.mark.parametrize("obj", OBJECTS)
def test_a_selector_matches_the_labels_of_its_own_pods(obj: Object) -> None:
    spec = obj.get("spec") or {}
    if obj["kind"] in {"Deployment", "StatefulSet"}:
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("obj", OBJECTS)
def test_rendered_pods_mount_all_their_volumes_and_probe_existing_ports(obj: Object) -> None:
    for pod, claims in pods_of(obj):
        volumes = {volume["name"] for volume in pod.get("volumes", ())} | claims
        mounted = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", ())}
        assert mounted == volumes
        for container in pod["containers"]:
            ports = {port.get("name") for port in container.get("ports", ())} | {
                port["containerPort"] for port in container.get("ports", ())
            }
            for probe in ("livenessProbe", "readinessProbe"):
                for name, action in container.get(probe, {}).items():
                    assert not isinstance(action, dict) or name == "exec" or action["port"] in ports


@pytest.mark.parametrize("case", CASES, ids=title)
def test_rendered_services_select_pods_and_existing_ports(case: Case) -> None:
    made = [obj for _, _, obj in case.plan().rendered]
    workloads = [obj for obj in made if obj["kind"] in {"Deployment", "StatefulSet"}]
    for service in (obj for obj in made if obj["kind"] == "Service"):
        if "statefulset.kubernetes.io/pod-name" in service["spec"]["selector"]:
            continue
        found = [
            obj
            for obj in workloads
            if service["spec"]["selector"].items() <= obj["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert len(found) == 1 or service["spec"].get("clusterIP") == "None"
        named = {
            port.get("name")
            for obj in found
            for pod, _ in pods_of(obj)
            for container in pod["containers"]
            for port in container.get("ports", ())
        }
        assert (
            not found
            or {port["targetPort"] for port in service["spec"]["ports"] if isinstance(port.get("targetPort"), str)}
            <= named
        )


def pods_of(obj: Object) -> Iterator[tuple[dict[str, Any], set[str]]]:
    """Each pod template of an object, with the volumes of its claims."""
    spec = obj.get("spec") or {}
    spec = spec["jobTemplate"]["spec"] if obj["kind"] == "CronJob" else spec
    if "template" in spec:
        yield spec["template"]["spec"], {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", ())}
