"""`ruleop explain` and `ruleop plan --live` on the real API server: what they read, and that they write nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from tests.cluster.example_projects import LiveExample
from tests.cluster.operator import eventually
from tests.cluster.pod import Pod
from tests.cluster.test_examples import APP
from tests.cluster.test_postgres import ORDERS

pytestmark = pytest.mark.usefixtures("app_kind")


@pytest.fixture
def stopped(control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl) -> Iterator[LiveExample]:
    """A CR whose children an operator has made, which then stopped."""
    with Pod(control_plane, APP.project, APP.permissions, tmp_path / "operator" / "log") as operator:
        found = LiveExample(APP, operator, namespace, kubectl)
        found.apply()
        found.wait_until_settled()
        recorded = "revision of the rules recorded"
        eventually("its rules to be recorded", lambda: recorded in {line["event"] for line in operator.log()})
        assert operator.terminate() == 0
        yield found


def ruleop(live_example: LiveExample, kubeconfig: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit status and the output of a command in the folder of the project."""
    operator = live_example.operator
    command = [sys.executable, "-m", "ruleop", *arguments, "--kubeconfig", str(kubeconfig)]
    command += ["-n", live_example.namespace]
    if arguments[0] == "plan":  # other tests have operators of the same name
        command += ["--operator-namespace", operator.home]
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=operator.project, check=False, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def lines_below(out: str, title: str) -> list[str]:
    lines = out.splitlines()
    start = lines.index(title) + 1
    return lines[start : [*lines, ""].index("", start)]


@pytest.mark.real_server("RBAC refuses")
def test_a_field_edited_by_hand_is_explained_and_planned_without_a_write(
    stopped: LiveExample, control_plane: ControlPlane
) -> None:
    admin, operator = control_plane.kubeconfig(), stopped.operator
    status, out, _ = ruleop(stopped, admin, "plan", "--live", "--all")
    assert (status, out) == (0, "0 of 1 would change.\n")
    stopped.admin.merge(stopped.path_of("deployments", "web-app"), {"spec": {"replicas": 5}}, "kubectl-edit")
    mark = control_plane.audit_log.mark()

    status, out, err = ruleop(stopped, admin, "explain", "app/web")
    assert (status, err) == (0, "")
    assert out.startswith(f"App {stopped.namespace}/web")
    (head, edited) = lines_below(out, "Fields")
    assert head.startswith("  Deployment/web-app ")
    assert edited.startswith("      spec.replicas  kubectl-edit (Update), ")
    assert lines_below(out, "Next reconcile")[:2] == ["  ~ patch Deployment/web-app", "        spec.replicas: 5 -> 2"]
    assert any("Synced" in line for line in lines_below(out, "Events"))

    status, out, _ = ruleop(stopped, admin, "plan", "--live", "apps.myapp.k8s.io", "-o", "json")
    assert status == 0
    (change,) = json.loads(out)["changes"]
    assert (change["field"], change["before"], change["after"]) == ("spec.replicas", "5", "2")

    # The same by the operator's own permissions, which are all that it needs.
    status, out, _ = ruleop(
        stopped, operator.kubeconfig, "explain", "apps/web", "-o", "json", "--operator-namespace", operator.home
    )
    document = json.loads(out)
    assert status == 0
    assert document["notes"] == ["not permitted to list: events"]
    assert [each["path"] for each in document["objects"][0]["fields"] if each["changed"]] == ["spec.replicas"]

    assert operator.requests(mark) != [], "the audit log has the reads of the operator's user"
    writes = [
        each
        for each in control_plane.audit(mark=mark, namespace=stopped.namespace)
        if each["verb"] in {"create", "update", "patch", "delete", "deletecollection"}
        and "ruleop" in each.get("userAgent", "")
    ]
    assert operator.writes(mark) == []
    assert writes == []


def test_a_changed_rule_is_planned_before_the_operator_has_it(
    stopped: LiveExample, control_plane: ControlPlane
) -> None:
    template = stopped.operator.project / "templates/app/deployment.yaml.j2"
    template.write_text(template.read_text().replace("image:", "imagePullPolicy: Always\n          image:"))
    status, out, _ = ruleop(stopped, control_plane.kubeconfig(), "plan", "--live", "--all")
    assert status == 0
    assert " ".join(out.split()) == (
        "App.myapp.k8s.io ~ patch Deployment deployment "
        "spec.template.spec.containers[name=web-app].imagePullPolicy: IfNotPresent -> Always "
        f"in 1: App {stopped.namespace}/web "
        "1 of 1 would change."
    )


@pytest.mark.real_server("RBAC refuses")
def test_a_server_dry_run_gets_the_servers_answers_and_writes_nothing(
    stopped: LiveExample, control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    """The writes of the audit log are dry runs, and no object has another version."""
    project, admin = stopped.operator.project, control_plane.kubeconfig()

    def versions() -> dict[str, str]:
        objects = [*stopped.list("deployments"), *stopped.list("services"), stopped.resource()]
        return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in objects}

    def ask(kubeconfig: Path, *arguments: str) -> tuple[int, str, str]:
        return ruleop(stopped, kubeconfig, "plan", "--live", "--server-dry-run", *arguments)

    before, mark = versions(), control_plane.audit_log.mark()
    deployment = project / "templates/app/deployment.yaml.j2"
    original = deployment.read_text()
    deployment.write_text(original.replace("image:", "imagePullPolicy: Always\n          image:"))
    service = next((project / "templates/app").glob("service*"))
    service.write_text(service.read_text().replace("spec:", "spec:\n  internalTrafficPolicy: Local", 1))
    status, out, err = ask(admin, "app/web")
    assert (status, err) == (0, "")
    assert out.count("      accepted by the server\n") == 2

    deployment.write_text(original.replace("app: myApp", "app: other"))
    status, out, _ = ask(admin, "--all")
    assert status == 1
    assert "spec.selector: Invalid value: " in out
    assert "field is immutable (422 Invalid); rejected change: spec.selector.matchLabels.app: " in out
    assert "\n2 writes by dry run: 1 accepted, 1 refused.\n1 of 1 would change, 1 with errors.\n" in out
    status, foreseen, _ = ruleop(stopped, admin, "plan", "--live", "--all")
    assert (status, "the API server would reject this change: spec.selector is immutable" in foreseen) == (1, True)

    watches = project / "watches.yaml"
    rules = watches.read_text()
    watches.write_text(rules.replace("  children:\n", "  apply: {onImmutable: recreate}\n  children:\n", 1))
    status, out, _ = ask(admin, "app/web")
    assert status == 0
    assert "- delete Deployment/web-app  an immutable field changed; will be recreated\n      accepted by the" in out
    watches.write_text(rules)

    kubectl("create", "clusterrole", f"{stopped.namespace}-reader", "--verb=get,list,watch", "--resource=*.*")
    binding = ("create", "clusterrolebinding", f"{stopped.namespace}-reader", "--user=tenant")
    kubectl(*binding, f"--clusterrole={stopped.namespace}-reader")
    status, out, _ = ask(control_plane.kubeconfig("tenant"), "app/web")
    kubectl("delete", f"clusterrolebinding/{stopped.namespace}-reader")  # other tests have the same tenant
    assert status == 1
    grant = f"grant this user patch on deployments.apps in namespace {stopped.namespace}"
    assert f"a dry run needs the permissions of the write: {grant} " in " ".join(out.split())

    writes = [
        each
        for each in control_plane.audit(mark=mark, namespace=stopped.namespace)
        if each["verb"] in {"create", "update", "patch", "delete"} and "ruleop" in each.get("userAgent", "")
    ]
    assert {each["verb"] for each in writes} == {"patch", "delete"}
    assert all("dryRun=All" in each["requestURI"] for each in writes)
    assert versions() == before


def test_without_rules_the_children_are_found_by_their_labels(
    stopped: LiveExample, control_plane: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    stopped.operator.project = tmp_path / "empty"
    status, out, _ = ruleop(stopped, control_plane.kubeconfig(), "explain", "app/web", "--name", "none")
    assert status == 0
    assert " Deployment/web-app" in out
    assert " Service/web-service" in out
    assert "no watches.yaml in this folder" in out


@pytest.mark.real_server("RBAC refuses")
def test_the_history_has_the_rules_the_edits_and_the_events(stopped: LiveExample, control_plane: ControlPlane) -> None:
    admin, operator = control_plane.kubeconfig(), stopped.operator
    stopped.admin.merge(stopped.path_of("deployments", "web-app"), {"spec": {"replicas": 5}}, "kubectl-edit")
    mark = control_plane.audit_log.mark()
    home = ("--operator-namespace", operator.home)
    status, out, err = ruleop(stopped, admin, "history", "app/web", "-o", "json", *home)
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert document["notes"] == []
    changes = document["changes"]
    assert [each["time"] for each in changes] == sorted(each["time"] for each in changes)
    found = {(each["what"], each.get("kind", ""), each.get("manager", "")) for each in changes}
    assert found >= {
        ("rules", "", ""),
        ("created", "App", ""),
        ("status", "App", "ruleop"),
        ("event", "App", ""),
        ("created", "Deployment", ""),
        ("written", "Deployment", "ruleop"),
        ("written", "Deployment", "kubectl-edit"),
        ("created", "Service", ""),
        ("written", "Service", "ruleop"),
    }
    (edit,) = (each for each in changes if each.get("manager") == "kubectl-edit")
    assert edit["fields"] == ["spec.replicas"]

    status, out, err = ruleop(stopped, operator.kubeconfig, "history", "app/web", *home)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split()[:2] == ["App", f"{stopped.namespace}/web"]
    assert any(" rules " in line and " revision " in line for line in lines), "its own permissions are enough"
    assert lines[-1] == "not permitted to list: events"
    assert operator.writes(mark) == []


@pytest.mark.real_server("as the other tests of this example")
def test_a_large_example_has_nothing_to_do_and_all_of_its_fields_are_ruleops(
    control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    """The API server completes and normalises what was written: none of that is a change."""
    control_plane.define(ORDERS.crd)
    with Pod(control_plane, ORDERS.project, ORDERS.permissions, tmp_path / "operator" / "log") as operator:
        found = LiveExample(ORDERS, operator, namespace, kubectl)
        found.apply()
        found.wait_until_settled()
        admin = control_plane.kubeconfig()
        assert ruleop(found, admin, "plan", "--live", "--all") == (0, "0 of 1 would change.\n", "")
        status, out, _ = ruleop(found, admin, "explain", "postgres/orders")
        assert status == 0
        (fields,) = lines_below(out, "Fields")
        assert fields.endswith("fields that ruleop sets are as it wrote them")
        kubectl("delete", "postgres", "--all", "--wait=true")
    control_plane.kubectl("delete", f"--filename={ORDERS.crd}", "--wait=true")
