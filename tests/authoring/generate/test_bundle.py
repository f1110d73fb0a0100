"""The bundle for the Operator Lifecycle Manager."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ruleop.cli.program import program

RULES = """\
- group: sites.example.com
  version: v1
  kind: Site
  schema:
    spec: {image: string | required=true}
  children:
    web: {template: web.yaml}
"""
WEB = """\
apiVersion: v1
kind: Service
metadata: {name: "{{ metadata.name }}"}
spec: {ports: [{port: 80}]}
"""
ABOUT = """\
name: sites
image: registry.example.com/sites:1.2.0
rules: image
about:
  title: Sites
  summary: Web sites by their names.
  provider: Example
  homepage: https://example.com
  maintainers: [{name: Ann, email: ann@example.com}]
  keywords: [web]
  icon: icon.svg
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "templates").mkdir(parents=True)
    (folder / "watches.yaml").write_text(RULES)
    (folder / "templates" / "web.yaml").write_text(WEB)
    return folder


def bundle(project: Path, *arguments: str) -> dict[str, Any]:
    out = project.parent / "bundle"
    ran = CliRunner().invoke(program, ["generate", "bundle", "-C", str(project), "--out", str(out), *arguments])
    assert ran.exit_code == 0, ran.output
    files = {each.relative_to(out).as_posix(): each.read_text() for each in out.rglob("*") if each.is_file()}
    return {path: yaml.safe_load(text) if path.endswith(".yaml") else text for path, text in files.items()}


def service_version(files: dict[str, Any]) -> dict[str, Any]:
    return next(each for path, each in files.items() if path.endswith(".clusterserviceversion.yaml"))  # type: ignore[no-any-return]


def test_the_page_of_a_catalogue_comes_from_about(project: Path) -> None:
    (project / "ruleop.yaml").write_text(ABOUT)
    (project / "icon.svg").write_text("<svg/>")
    found = service_version(bundle(project, "--version", "1.2.0", "--replaces", "1.1.0"))
    assert found["metadata"]["name"] == "sites.v1.2.0"
    spec = found["spec"]
    assert {name: spec[name] for name in ("displayName", "provider", "maintainers", "keywords", "replaces")} == {
        "displayName": "Sites",
        "provider": {"name": "Example"},
        "maintainers": [{"name": "Ann", "email": "ann@example.com"}],
        "keywords": ["web"],
        "replaces": "sites.v1.1.0",
    }
    assert spec["icon"] == [{"base64data": base64.b64encode(b"<svg/>").decode(), "mediatype": "image/svg+xml"}]
    (shown,) = json.loads(found["metadata"]["annotations"]["alm-examples"])
    assert (shown["kind"], list(shown["spec"])) == ("Site", ["image"])


def test_a_kind_whose_version_has_no_schema_is_shown_without_a_spec(project: Path) -> None:
    """`check` reports it; somebody else may have written the CRD."""
    (project / "watches.yaml").write_text(
        "- {group: example.com, version: v1, kind: Site, children: {web: {template: web.yaml}}}"
    )
    names = {"kind": "Site", "plural": "sites"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": None}]
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }
    (project / "crds").mkdir()
    (project / "crds" / "sites.yaml").write_text(yaml.safe_dump(crd))
    (shown,) = json.loads(service_version(bundle(project))["metadata"]["annotations"]["alm-examples"])
    assert (shown["kind"], "spec" in shown) == ("Site", False)


def test_the_operator_watches_the_namespaces_that_olm_chooses(project: Path) -> None:
    (project / "ruleop.yaml").write_text("namespaces: [a, b]\n")
    install = service_version(bundle(project))["spec"]["install"]["spec"]
    (container,) = install["deployments"][0]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["run", "--name=ruleop", "--leader-elect"]
    assert [each["name"] for each in container["env"]] == ["WATCH_NAMESPACE"]
    (cluster,) = install["clusterPermissions"]
    assert [rule["resources"] for rule in cluster["rules"]] == [["customresourcedefinitions"]]
    (chosen,) = install["permissions"]
    assert ["sites"] in [rule["resources"] for rule in chosen["rules"]]


def test_rules_in_a_config_map_are_a_part_of_the_bundle(project: Path) -> None:
    files = bundle(project)
    rules = files["manifests/ruleop-rules.configmap.yaml"]
    assert rules["data"]["watches.yaml"] == RULES
    assert "namespace" not in rules["metadata"]


def test_rules_in_the_image_are_not(project: Path) -> None:
    assert not [path for path in bundle(project, "--rules", "image") if "rules" in path]


@pytest.mark.slow
def test_the_same_project_gives_the_same_bytes_and_an_older_file_goes(project: Path) -> None:
    first = bundle(project)
    stale = project.parent / "bundle" / "manifests" / "old.yaml"
    stale.write_text("# Made by `ruleop generate bundle` from the rules and ruleop.yaml: change them there.\n")
    assert bundle(project) == first


def test_a_missing_icon_is_an_error_with_its_place(project: Path) -> None:
    (project / "ruleop.yaml").write_text(ABOUT)
    out = project.parent / "bundle"
    ran = CliRunner().invoke(program, ["generate", "bundle", "-C", str(project), "--out", str(out)])
    assert (ran.exit_code, out.exists()) == (2, False)
    assert "ruleop.yaml:11:9: error[RO101]: icon.svg: cannot be read: No such file or directory" in ran.stderr


def test_shards_are_refused(project: Path) -> None:
    (project / "ruleop.yaml").write_text("shards: 2\n")
    out = project.parent / "bundle"
    ran = CliRunner().invoke(program, ["generate", "bundle", "-C", str(project), "--out", str(out)])
    assert (ran.exit_code, out.exists()) == (1, False)
    assert "OLM runs no StatefulSet: remove `shards`, or install a chart" in ran.stderr


def test_files_of_somebody_else_in_its_folder_stay(project: Path) -> None:
    bundle(project)
    other = project.parent / "bundle" / "manifests" / "mine.yaml"
    other.write_text("kind: ConfigMap\n")
    ran = CliRunner().invoke(program, ["generate", "bundle", "-C", str(project), "--out", str(other.parent.parent)])
    assert (ran.exit_code, other.exists()) == (2, True)
    assert "mine.yaml was not made by `ruleop generate`: nothing was written" in ran.stderr


def test_the_chart_has_the_same_description(project: Path) -> None:
    (project / "ruleop.yaml").write_text(ABOUT)
    out = project.parent / "chart"
    ran = CliRunner().invoke(program, ["generate", "helm", "-C", str(project), "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    chart = yaml.safe_load((out / "Chart.yaml").read_text())
    assert (chart["description"], chart["home"]) == ("Web sites by their names.", "https://example.com")
    assert chart["maintainers"] == [{"name": "Ann", "email": "ann@example.com"}]
