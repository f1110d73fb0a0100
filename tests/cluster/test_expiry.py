"""A child that expires: the operator deletes it in time, and asks for nothing before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.operator import Operator, described, eventually, operator_of

RULES = """\
- group: example.com
  version: v1
  kind: Preview
  children:
    page:
      when: not after(metadata.creationTimestamp, spec.ttl)
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ metadata.name }}"}}
  status:
    expired: "{{ after(metadata.creationTimestamp, spec.ttl) }}"
"""
SPEC = "{type: object, properties: {ttl: {type: string}}}"
PATH = "/apis/example.com/v1/namespaces/NAMESPACE/previews"


@pytest.fixture
def operator(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Operator]:
    with operator_of(control_plane, tmp_path, "Preview", RULES, children=["configmaps"], spec=SPEC) as operator:
        yield operator


def create(operator: Operator, namespace: str, ttl: str) -> str:
    """The path of a preview that is shown."""
    path = PATH.replace("NAMESPACE", namespace)
    document = {"apiVersion": "example.com/v1", "kind": "Preview", "metadata": {"name": "a"}, "spec": {"ttl": ttl}}
    operator.admin.post(path, document)
    eventually("the status", lambda: operator.admin.get(f"{path}/a")["status"]["expired"] is False)
    assert "a" in pages(operator, namespace)
    return f"{path}/a"


def pages(operator: Operator, namespace: str) -> list[str]:
    found = operator.admin.get(f"/api/v1/namespaces/{namespace}/configmaps")["items"]
    return [each["metadata"]["name"] for each in found]


def test_a_child_is_deleted_when_its_time_has_passed(operator: Operator, namespace: str) -> None:
    preview = create(operator, namespace, "3s")
    eventually("the end", lambda: operator.admin.get(preview)["status"]["expired"])
    assert "a" not in pages(operator, namespace)


@pytest.mark.real_server("the audit log has the requests")
def test_nothing_is_asked_before_the_time_has_passed(operator: Operator, namespace: str) -> None:
    preview = create(operator, namespace, "10s")

    def settled() -> bool:
        return bool(operator.admin.get(preview)["status"]["conditions"][0]["reason"] == "Ready")

    eventually("it to be settled", settled)
    mark = operator.mark()
    eventually("the end", lambda: operator.admin.get(preview)["status"]["expired"])

    asked = [
        described(each) for each in operator.requests(mark, namespace) if each["objectRef"]["resource"] != "events"
    ]
    assert asked == ["get configmaps a", "delete configmaps a", "patch previews/status a"]
