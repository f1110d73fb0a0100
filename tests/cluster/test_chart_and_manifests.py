"""The chart and the manifests of a project install the same: what Helm renders is what kubectl applies."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane import programs

from ruleop.authoring.generate.chart_files import chart_files
from ruleop.authoring.generate.crds import installed_crds
from ruleop.authoring.generate.manifests import installation
from ruleop.authoring.generate.operator_roles import operator_roles, role_objects, service_account
from ruleop.kubernetes.kinds import Object
from ruleop.language.rules.checking import load_with_sources
from ruleop.language.rules.loading import Loaded
from ruleop.language.rules.operator_choices import Choices
from tests.docs.messages import ROOT
from tests.folders import write_files

pytestmark = pytest.mark.real_server("Helm's own templates; no server is asked")

NAME, NAMESPACE = "app-operator", "app-system"
PROJECTS = [
    ROOT,
    *(
        file.parent
        for folder in ("examples", "tests/projects")
        for file in sorted((ROOT / folder).glob("**/watches.yaml"))
    ),
]
PLAIN = Choices(name=NAME, namespace=NAMESPACE)
CHOICES = {
    "defaults": PLAIN,
    "some namespaces": replace(PLAIN, namespaces=("market", "blog")),
    "several replicas": replace(PLAIN, replicas=3),
    "no Lease": replace(PLAIN, leader_elect=False),
    "shards": replace(PLAIN, shards=3),
    "a selector": replace(PLAIN, selector="team in (a, b),!test-only"),
    "metrics for permitted users": replace(PLAIN, metrics_auth=True),
    "an image with the rules": replace(PLAIN, rules="image", image=f"example.com:5000/app:1@sha256:{'0' * 64}"),
    "an image of the rules": replace(PLAIN, rules_image=f"example.com/rules:1@sha256:{'0' * 64}"),
    "an image with a digest alone": replace(PLAIN, image=f"app@sha256:{'0' * 64}"),
    "an image without a tag": replace(PLAIN, image="localhost:5000/app", version="1.2.3"),
    "everything": replace(
        PLAIN, namespaces=("market",), replicas=2, metrics_auth=True, env={"A": '$(HOME) {{ a }}\n"b"', "B": ""}
    ),
}


@pytest.fixture(params=PROJECTS, ids=lambda path: path.name, scope="module")
def loaded(request: pytest.FixtureRequest) -> Loaded:
    return load_with_sources(request.param, environ={})


def helm(*arguments: str) -> str:
    command = [str(programs.program("helm")), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)
def test_helm_renders_the_objects_of_the_manifests(loaded: Loaded, choices: Choices, tmp_path: Path) -> None:
    crds = installed_crds(loaded)
    write_files(tmp_path, chart_files(loaded, choices, crds))
    chosen = ",".join(f"{each}.enabled=true" for each in ("metrics.serviceMonitor", "alerts", "dashboard", "policy"))
    text = helm("template", NAME, str(tmp_path), "--namespace", NAMESPACE, "--set", chosen)
    # The namespaces are chosen at the installation, so the chart grants in the cluster what is needed in other ones.
    roles = operator_roles(loaded, choices, elsewhere=False)
    found = replace(installation(loaded, choices, crds), rbac=(service_account(choices), *role_objects(roles, choices)))
    expected = [each for objects in (*found.concerns.values(), *found.components.values()) for each in objects]
    assert comparable(yaml.load_all(text, yaml.CSafeLoader)) == comparable(expected)
    assert "0 chart(s) failed" in helm("lint", "--strict", str(tmp_path))


@pytest.mark.parametrize(
    ("choices", "notes"),
    [
        (PLAIN, "make image IMAGE=registry.example.com/ruleop:"),
        (
            replace(PLAIN, rules="image"),
            "ruleop generate image --out . && docker build -t registry.example.com/ruleop:",
        ),
        (replace(PLAIN, image="registry.example.com/ruleop:1"), ""),
    ],
    ids=["the generic image", "an image with the rules", "another image"],
)
def test_the_notes_have_the_commands_that_build_and_push_the_image_while_no_registry_has_it(
    choices: Choices, notes: str, tmp_path: Path
) -> None:
    own = load_with_sources(ROOT, environ={})
    write_files(tmp_path, chart_files(own, choices, installed_crds(own)))
    _, _, shown = helm("install", NAME, str(tmp_path), "--dry-run=client").partition("NOTES:\n")
    assert ("No registry has the image ruleop:" in shown, "docker push registry" in shown) == (bool(notes), bool(notes))
    assert notes in shown


def comparable(objects: Iterable[Object]) -> dict[str, Object]:
    """By kind, namespace and name, without what a release names or labels otherwise."""
    found: dict[str, Object] = {}
    for each in objects:
        if each["kind"] in {"Namespace", "Pod"}:  # only kubectl makes the first; the second is the test of a release
            continue
        plain = without_labels(each)
        metadata = plain["metadata"]
        if "roleRef" in plain or "rules" in plain or "AdmissionPolicy" in each["kind"]:
            metadata["name"] = metadata["name"].removeprefix(f"{NAMESPACE}-")
        if "rules" in plain:  # the order of a role's rules means nothing
            plain["rules"] = sorted(plain["rules"], key=repr)
        if "roleRef" in plain:
            plain["roleRef"]["name"] = plain["roleRef"]["name"].removeprefix(f"{NAMESPACE}-")
        if "policyName" in plain.get("spec", {}):
            plain["spec"]["policyName"] = plain["spec"]["policyName"].removeprefix(f"{NAMESPACE}-")
        key = f"{each['kind']}/{metadata.get('namespace', '')}/{metadata['name']}"
        assert key not in found
        found[key] = plain
    return found


def without_labels(value: Any) -> Any:
    if isinstance(value, dict):
        left = {"labels", "matchLabels", "imagePullPolicy", "helm.sh/resource-policy"}
        left.add("ruleop.dev/shards")  # by which an upgrade keeps what was scaled
        if "ports" in value:  # a Service
            left.add("selector")
        kept = {key: without_labels(member) for key, member in value.items() if key not in left}
        return {key: member for key, member in kept.items() if key != "annotations" or member}
    return [without_labels(each) for each in value] if isinstance(value, list) else value
