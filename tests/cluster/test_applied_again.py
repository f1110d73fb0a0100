"""What is generated has the defaults of the API server wherever kubectl compares it: applied again, nothing changes."""

from __future__ import annotations

import json

import pytest
from controlplane.cluster import ControlPlane

from ruleop.authoring.generate.crds import installed_crds
from ruleop.authoring.generate.manifests import installation
from ruleop.kubernetes.kinds import Object
from ruleop.language.rules.checking import load_with_sources
from ruleop.language.rules.operator_choices import Choices
from tests.cluster.test_chart_and_manifests import CHOICES, PROJECTS
from tests.docs.messages import ROOT

pytestmark = pytest.mark.real_server("kubectl apply is compared with what the API server stores")

UNSERVED = "monitoring.coreos.com"  # the kinds of the Prometheus operator are not installed here
REPLACED = "poddisruptionbudget."  # kubectl sends the selector of any budget each time, whatever is stored
SOME = [each for each in PROJECTS if each.name in {ROOT.name, "wordpress", "teams", "postgres"}]


def namespaces(objects: list[Object]) -> list[Object]:
    found = dict.fromkeys(each["metadata"]["namespace"] for each in objects if each["metadata"].get("namespace"))
    made = {each["metadata"]["name"] for each in objects if each["kind"] == "Namespace"}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}} for each in found if each not in made]


def remove(plane: ControlPlane, objects: list[Object]) -> None:
    """All but kinds and namespaces, which take seconds each. A test that plays the kubelet would start the operator,
    and the policies would hold for everybody's custom resources."""
    removed = [each for each in objects if each["kind"] not in {"Namespace", "CustomResourceDefinition"}]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": removed})
    plane.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=text)


IMAGE_VOLUME = pytest.mark.newest("image volumes")


@pytest.mark.parametrize(
    "choices",
    [pytest.param(each, id=name, marks=IMAGE_VOLUME if each.rules_image else ()) for name, each in CHOICES.items()],
)
def test_applying_the_manifests_again_changes_nothing(control_plane: ControlPlane, choices: Choices) -> None:
    for project in SOME:
        loaded = load_with_sources(project, environ={})
        found = installation(loaded, choices, installed_crds(loaded))
        objects = [each for group in (*found.concerns.values(), *found.components.values()) for each in group]
        objects = [each for each in objects if not each["apiVersion"].startswith(UNSERVED)]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*namespaces(objects), *objects]})
        control_plane.kubectl("apply", "-f", "-", stdin=text)
        again = control_plane.kubectl("apply", "-f", "-", stdin=text).splitlines()
        remove(control_plane, objects)
        assert [line for line in again if not line.endswith(" unchanged") and not line.startswith(REPLACED)] == []
