"""The health of a project's kinds for Argo CD: which kinds have one, and where it stands."""

from __future__ import annotations

from typing import Any

import yaml

from ruleop.authoring.generate.crds import argocd_text, health_kinds, health_script, installed_crds
from ruleop.language.rules.checking import build_with_sources
from tests.authoring.generate.projects import CONFIG, WATCHES, project
from tests.definitions import definition


def kinds(watches: str, **crds: str) -> tuple[list[str], list[str]]:
    files = {f"crds/{name}.yaml": text for name, text in crds.items()}
    loaded = build_with_sources(
        {"watches.yaml": watches, "templates/config.yaml": CONFIG, **files}, root="", environ={}
    )
    found, notes = health_kinds(loaded, installed_crds(loaded))
    return [str(each) for each in found], notes


def test_each_kind_has_an_entry_with_the_script() -> None:
    loaded = project()
    found, notes = health_kinds(loaded, installed_crds(loaded))
    document: Any = yaml.safe_load(argocd_text(found, "gitops"))
    assert notes == []
    assert document["kind"] == "ConfigMap"
    assert document["metadata"]["name"] == "argocd-cm"
    assert document["metadata"]["namespace"] == "gitops"
    assert document["data"] == {"resource.customizations.health.example.com_Site": health_script()}


def test_a_kind_with_two_watches_has_one_entry() -> None:
    named = WATCHES.replace("  kind: Site\n", "  kind: Site\n  name: red\n  selector: {team: red}\n")
    other = WATCHES.replace("  kind: Site\n", "  kind: Site\n  name: blue\n  selector: {team: blue}\n")
    other = other[: other.index("  schema:")] + other[other.index("  validate:") :]
    assert kinds(named + other) == (["example.com/v1 Site"], [])


def test_the_health_of_a_kind_without_status_is_left_to_argo_cd() -> None:
    silent = WATCHES.replace("  kind: Site\n", "  kind: Site\n  manageStatus: false\n")
    assert kinds(silent) == ([], ["Site: the rules write no status, so its health is left to Argo CD"])


def test_the_health_of_a_kind_whose_crd_has_no_conditions_is_left_to_argo_cd() -> None:
    watches = "- {group: example.com, version: v1, kind: Site, children: {config: {template: config.yaml}}}\n"
    site = definition("Site", status="{type: object, properties: {phase: {type: string}}}")
    assert kinds(watches, site=site) == (
        [],
        ["Site: its CRD does not allow the condition Ready, so its health is left to Argo CD"],
    )
