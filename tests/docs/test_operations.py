"""docs/operations.md agrees with the code: metrics, flags, log lines and reasons of waits."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from ruleop.cli.run import command
from ruleop.engine.manager.options import Options
from ruleop.planning.changes.writes import Verb
from ruleop.rules import load_project
from tests.docs.manifests import DEPLOYMENT, DOCUMENTS, PERMISSIONS, TEXT, keys, mounted
from tests.docs.messages import ROOT, announcements, constants, log_calls
from tests.docs.metrics import PAGE, table, written

if TYPE_CHECKING:
    from pathlib import Path


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_metric_has_a_row_and_every_row_a_metric() -> None:
    assert written(TEXT) == TEXT, "python -m tests.docs.metrics updates the table"


def test_alerts_use_existing_metrics() -> None:
    metrics = set(re.findall(r"^\| `(\w+)`", table(), re.MULTILINE))
    (alerts,) = (document for document in DOCUMENTS if "groups" in document)
    rules = alerts["groups"][0]["rules"]
    for rule in rules:
        asked = {
            word
            for word in re.findall(r"[a-z_]+", rule["expr"])
            if word.startswith(("ruleop_", "controller_", "leader_", "workqueue_"))
        }
        assert asked, rule["alert"]
        assert asked <= metrics, rule["alert"]
    on_page = re.findall(r"^\| (Ruleop\w+) \|", section("Alerts"), re.MULTILINE)
    assert on_page == [rule["alert"] for rule in rules], "each alert has its row"


def test_the_page_lists_all_reasons_of_waits() -> None:
    found = {"value"}  # by default
    for room in ("planning", "templating"):
        for file in (ROOT / "ruleop" / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.keyword) and node.arg == "why" and isinstance(node.value, ast.Constant):
                    found.add(node.value.value)
    sentence = section("Metrics").split("Reasons of `ruleop_waits`:")[1].split("\n\n")[0]
    on_page = set(re.findall(r"`(\w+)`", sentence)) - {"waitFor", "ruleop_resources"}
    assert on_page == found - {"changed", "released", "adopted"}


def test_flags_on_the_page_exist() -> None:
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert set(re.findall(r"`(--[a-z-]+)", TEXT)) - {"--cascade"} <= known


def test_log_events_on_the_page_exist() -> None:
    said = set(constants())
    events = [
        event
        for row in re.findall(r"^\| (`.*?) \|", section("The log"), re.MULTILINE)
        for event in re.findall(r"`(.+?)`", row)
    ]
    assert events
    assert [event for event in events if event not in said] == []


def test_every_log_event_is_on_the_page() -> None:
    on_page = {
        event
        for row in re.findall(r"^\| (`.*?) \|", section("The log"), re.MULTILINE)
        for event in re.findall(r"`(.+?)`", row)
    }
    announced = set(announcements())
    assert announced - on_page == set()
    assert {verb.done for verb in Verb} - on_page == set()
    assert "event" not in announced, "a line says what happened"


def test_log_lines_name_a_cr_in_one_form() -> None:
    named = {
        ast.unparse(keyword.value) for call in log_calls() for keyword in call.keywords if keyword.arg == "resource"
    }
    assert named <= {"str(request)", "str(Request.of(resource))"}
    assert len(named) == 2, "of which there are some"


def test_the_verbs_of_a_dry_run_are_on_the_page() -> None:
    text = section("A dry run")
    assert [verb.do for verb in Verb if verb.do not in text and "finalizer" not in verb.do] == []


def test_the_deployment_matches_the_operators_defaults() -> None:
    pod = DEPLOYMENT["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ports = {port["name"]: f":{port['containerPort']}" for port in container["ports"]}
    options = Options()
    assert ports == {"metrics": options.metrics_address, "health": options.health_address}
    assert pod["terminationGracePeriodSeconds"] > options.grace
    assert {container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")} == {
        "/healthz",
        "/readyz",
    }
    accounts = {document["metadata"]["name"] for document in PERMISSIONS if document["kind"] == "ServiceAccount"}
    assert accounts == {pod["serviceAccountName"]}
    (mount,) = container["volumeMounts"]
    assert f"WORKDIR {mount['mountPath']}\n" in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_mounted_configmap_contains_the_project(tmp_path: Path) -> None:
    """Every file of it, each at its place, and it loads without a warning."""
    files = mounted()
    assert list(files) == list(keys().values()), "each at the path that it has in the project"
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    folders = [path for folder in ("templates", "crds") for path in (ROOT / folder).rglob("*.*")]
    assert set(files) == {"watches.yaml", *(str(path.relative_to(ROOT)) for path in folders)}
    assert [str(warning) for warning in load_project(tmp_path, environ={}).findings] == []


def test_the_roles_grant_the_permissions_of_the_table() -> None:
    """What the table says of each group of kinds, the roles grant, and nothing more."""
    rows = re.findall(r"^\| (.+?) \| ([a-z, ]+?)(?:; .*?)? \| .*\|$", section("Permissions"), re.MULTILINE)
    table = {where: set(verbs.split(", ")) for where, verbs in rows if where != "on"}
    (cluster,) = (document for document in PERMISSIONS if document["kind"] == "ClusterRole")
    (own,) = (document for document in PERMISSIONS if document["kind"] == "Role")
    granted = {
        f"{resource}.{group}".rstrip("."): set(rule["verbs"])
        for document in (cluster, own)
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    watched = table["each watched kind"]
    children = table["each kind of child"]
    assert granted == {
        "apps.myapp.k8s.io": watched,
        "apps/status.myapp.k8s.io": table["its `/status`"],
        "memcacheds.cache.example.com": watched,
        "memcacheds/status.cache.example.com": table["its `/status`"],
        "deployments.apps": children,
        "services": children,
        "pods": table["each observed kind"],
        "customresourcedefinitions.apiextensions.k8s.io": table["`customresourcedefinitions.apiextensions.k8s.io`"],
        "events.events.k8s.io": table["`events.events.k8s.io`"],
        "configmaps": table["`configmaps` in the operator's namespace"],
        "leases.coordination.k8s.io": table["`leases.coordination.k8s.io` in the operator's namespace"],
    }


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", TEXT))))
def test_links_on_the_page_have_targets(link: str) -> None:
    file, _, anchor = link.partition("#")
    page = (PAGE.parent / file).resolve() if file else PAGE
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    if anchor:
        assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
