"""The operator's log of one CR: each write is one line with the name of what was done, and there are no other lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane, free_ports
from controlplane.fixtures import Kubectl

from tests.cluster.operator import Operator, Permissions, eventually
from tests.definitions import definition
from tests.folders import write_files
from tests.processes.operators import probe

TITLE = "Tale.example.com"
WATCHES = """
- group: example.com
  version: v1
  kind: Tale
  children:
    config: {template: config.yaml}
    secret:
      object: {apiVersion: v1, kind: Secret, metadata: {name: pass}, stringData: {password: "hunter2-{{ spec.text }}"}}
    service:
      object:
        apiVersion: v1
        kind: Service
        metadata: {name: web}
        spec: {selector: {app: web}, ports: [{port: 80, targetPort: "{{ spec.port }}"}]}
    taken:
      adopt: orphans
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: taken}, data: {text: "{{ spec.text }}"}}
    late:
      waitFor: spec.go
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: late}, data: {text: late}}
    extra:
      when: spec.extra
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {text: extra}}
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data:
  text: "{{ spec.text }}"
"""


class Tale:
    """A CR, and what the log says of it."""

    def __init__(self, operator: Operator, namespace: str, port: int) -> None:
        self.operator, self.admin, self.namespace, self.port = operator, operator.admin, namespace, port
        self.path = f"/apis/example.com/v1/namespaces/{namespace}/tales"
        self.core = f"/api/v1/namespaces/{namespace}"
        self.read = 0

    def edit(self, spec: dict[str, Any]) -> None:
        self.admin.merge(f"{self.path}/one", {"spec": spec}, "somebody")

    def lines(self) -> list[dict[str, Any]]:
        found = [line for line in self.operator.log()[self.read :] if line.get("resource") == f"{self.namespace}/one"]
        return [line for line in found if line["level"] != "debug"]

    def tells(self, *expected: tuple[Any, ...]) -> None:
        """Just these lines and no more, by the time that the CR is at rest: what was done, to what, and which
        fields."""
        eventually(f"{expected}", lambda: len(self.lines()) >= len(expected))
        rest = self.admin.get(f"{self.path}/one")["metadata"]["generation"]
        eventually(
            "the CR to be at rest", lambda: self.admin.get(f"{self.path}/one")["status"]["observedGeneration"] == rest
        )
        self.settle()
        found = self.lines()
        assert all(line["controller"] == TITLE and line["because"] for line in found)
        assert all(list(line)[:3] == ["timestamp", "level", "event"] for line in found)
        assert sorted(map(summary, found), key=str) == sorted(expected, key=str)
        self.read = len(self.operator.log())

    def settle(self) -> None:
        """Until another CR, made later, has been reconciled: one that cannot be rendered, so that it has no children of
        these names."""
        name = f"after-{self.read}"
        body = {"apiVersion": "example.com/v1", "kind": "Tale", "metadata": {"name": name}, "spec": {}}
        self.admin.post(self.path, body)
        mine = f"{self.namespace}/{name}"
        eventually("the other CR", lambda: any(line.get("resource") == mine for line in self.operator.log()))
        self.admin.delete(f"{self.path}/{name}")

    def metric(self, name: str, **labels: str) -> float:
        named = {f'{key}="{value}"' for key, value in {"controller": TITLE, **labels}.items()}
        series = [line for line in probe(self.port, "/metrics")[1].splitlines() if line.startswith(f"{name}{{")]
        (line,) = [line for line in series if set(line.partition("{")[2].partition("}")[0].split(",")) == named]
        return float(line.rpartition(" ")[2])


def summary(line: dict[str, Any]) -> tuple[Any, ...]:
    match line["event"]:
        case "reconciled":
            return "reconciled", line["reason"], line["written"], *line.get("waits", ())
        case "event recorded":
            return "event recorded", line["reason"]
        case event:
            return event, line.get("object", "").rpartition("/")[2], *line.get("fields", ())


@pytest.fixture
def tale(control_plane: ControlPlane, tmp_path: Path, namespace: str, kubectl: Kubectl) -> Iterator[Tale]:
    project = tmp_path / "rules"
    files = {"watches.yaml": WATCHES, "templates/config.yaml": CONFIG, "crds/tales.yaml": definition("Tale")}
    write_files(project, {path: textwrap.dedent(text).lstrip() for path, text in files.items()})
    permissions = Permissions(watched=["tales.example.com"], children=["configmaps", "secrets", "services"])
    (port,) = free_ports(1)
    (tmp_path / "at work").mkdir()
    with Operator(
        control_plane, project, permissions, tmp_path / "at work" / "log", "--metrics-bind-address", f"127.0.0.1:{port}"
    ) as operator:
        yield Tale(operator, namespace, port)
        operator.check()
    kubectl("delete", f"--filename={project / 'crds'}", "--wait=false", "--ignore-not-found")


def test_the_log_has_a_line_for_every_write(tale: Tale, control_plane: ControlPlane) -> None:
    # Of a kind that the cluster does not serve yet, once; and once more when it does.
    (missing,) = [line for line in tale.operator.log() if line["level"] == "warning"]
    assert (missing["event"], missing["kind"]) == ("watched kind is not served; install its CRD", "example.com/v1 Tale")
    control_plane.define(tale.operator.project / "crds")
    served = {"event": "kind is served; resumed", "kind": "example.com/v1 Tale"}
    eventually("the kind", lambda: any(served.items() <= line.items() for line in tale.operator.log()))

    # A creation, an adoption in a second round of the same pass, and a child that waits.
    orphan = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"}, "data": {"text": "theirs"}}
    tale.admin.post(f"{tale.core}/configmaps", orphan)
    spec = {"text": "one", "port": 8080, "go": False, "extra": False}
    tale.admin.post(
        tale.path, {"apiVersion": "example.com/v1", "kind": "Tale", "metadata": {"name": "one"}, "spec": spec}
    )
    tale.tells(
        ("created", "config"),
        ("created", "pass"),
        ("created", "web"),
        ("adopted", "taken", "data.text"),
        ("event recorded", "Adopted"),
        ("reconciled", "Waiting", 4, "late: waitFor: spec.go"),
    )

    # Children that waited are created, new ones too; those that are no longer desired are deleted.
    tale.edit({"go": True, "extra": True})
    tale.tells(("created", "late"), ("created", "extra"), ("reconciled", "Ready", 2), ("event recorded", "Synced"))
    tale.edit({"extra": False})
    tale.tells(("deleted", "extra"), ("event recorded", "Pruned"), ("reconciled", "Ready", 1))

    # An edit of the CR, and one of the rules.
    tale.edit({"text": "two"})
    tale.tells(
        ("patched", "config", "data.text"),
        ("patched", "pass", "data.password"),
        ("patched", "taken", "data.text"),
        ("reconciled", "Ready", 3),
    )
    (tale.operator.project / "templates" / "config.yaml").write_text(CONFIG + "  more: more\n")
    tale.tells(("patched", "config", "data.more"), ("reconciled", "Ready", 1))

    # Drift, and a child that somebody deleted.
    assert tale.metric("ruleop_drift_reverted_total") == 0
    tale.admin.merge(f"{tale.core}/services/web", {"spec": {"ports": [{"port": 80, "targetPort": 9999}]}}, "somebody")
    tale.tells(("drift reverted", "web", "spec.ports[port=80,protocol=TCP].targetPort"), ("reconciled", "Ready", 1))
    tale.admin.merge(f"{tale.core}/secrets/pass", {"data": {"password": "b3BlbiBzZXNhbWU="}}, "somebody")
    tale.tells(("drift reverted", "pass", "data.password"), ("reconciled", "Ready", 1))
    tale.admin.delete(f"{tale.core}/configmaps/late")
    tale.tells(("recreated: it was deleted", "late"), ("reconciled", "Ready", 1))
    # The text of the metrics is kept for a second.
    eventually("the metrics", lambda: tale.metric("ruleop_drift_reverted_total") == 3)
    assert tale.metric("ruleop_writes_total", action="adopt", outcome="done") == 1
    assert tale.metric("controller_runtime_reconcile_total", result="success") > 0

    # Nothing of it holds a value of the Secret, or stands under no name.
    text = tale.operator.log_file.read_text()
    assert [word for word in ("hunter2", "b3BlbiBzZXNhbWU=", "open sesame") if word in text] == []
    assert [line for line in tale.operator.log() if line["event"] == "event"] == []
