"""A rendering of a chart as a project: a custom resource of the release's name has the objects of the rendering."""

from __future__ import annotations

import difflib
from typing import Any

import pytest
import yaml

from ruleop.authoring.scaffold.manifests.application import Asked, application_project
from ruleop.authoring.scaffold.new_project import NewProject
from tests.authoring.scaffold.projects import planned, rendered
from tests.docs.messages import ROOT

WEB = ROOT / "tests" / "authoring" / "scaffold" / "web.yaml"
"""The chart of `helm create web`, as `helm template web` prints it with an Ingress, an autoscaler and resources."""


def made(objects: list[dict[str, Any]]) -> NewProject:
    return application_project(objects, Asked("example.com", "v1", "Web", "app"))


def without_marks(value: Any) -> Any:
    """An object without labels of Helm."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if not key.startswith("helm.sh/")}
        return {key: without_marks(each) for key, each in kept.items() if each != "Helm"}
    return [without_marks(each) for each in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_a_custom_resource_of_the_name_of_the_release_has_the_objects_of_the_rendering(tmp_path):
    objects = list(yaml.safe_load_all(WEB.read_text()))
    found = rendered(planned(made(objects), tmp_path))
    expected = {f"{each['kind']}/{each['metadata']['name']}": without_marks(each) for each in objects}
    del expected["Pod/web-test-connection"]
    for each in found.values():
        each["metadata"].pop("namespace", None)
    shown = [yaml.safe_dump(every).splitlines() for every in (expected, found)]
    assert list(difflib.unified_diff(*shown, lineterm="", n=2)) == []


def obj(kind: str, name: str, annotations: dict[str, str]) -> dict[str, Any]:
    labels = {"helm.sh/chart": "web-0.1.0", "app.kubernetes.io/managed-by": "Helm"}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": labels, "annotations": annotations}}


def test_hooks_tests_and_marks_of_helm_are_left_out_and_listed():
    migration = obj("Job", "web-migrate", {"helm.sh/hook": "pre-install,pre-upgrade"})
    kept = obj("ConfigMap", "web-kept", {"helm.sh/resource-policy": "keep", "meta.helm.sh/release-name": "web"})
    project = made([{**migration, "apiVersion": "batch/v1"}, kept, obj("Pod", "web-test", {"helm.sh/hook": "test"})])
    (child,) = project.children
    assert child.settings == {"deletion": "orphan"}
    assert "helm" not in str(child.template)
    assert project.notes == (
        (
            "Labels and annotations of Helm were left out: app.kubernetes.io/managed-by, helm.sh/chart, "
            "helm.sh/resource-policy, meta.helm.sh/release-name."
        ),
        "Job/web-migrate was left out: it is a hook of Helm (pre-install,pre-upgrade).",
        "Pod/web-test was left out: it is a test of the chart (test).",
    )
