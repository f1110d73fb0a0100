"""Objects that a custom resource names in a list: the operator, which may read them only, follows each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.operator import Operator, eventually, operator_of

RULES = """\
- group: example.com
  version: v1
  kind: Digest
  reach: cluster
  observe:
    parts: {version: v1, kind: ConfigMap, forEach: spec.parts, name: "{{ item }}", where: this.data.text is defined}
    everywhere: {version: v1, kind: ConfigMap, selector: {digest: "{{ metadata.name }}"}, namespaces: all}
    beside: {version: v1, kind: ConfigMap, where: this.data.text is defined}
  status:
    text: "{{ parts | map(attribute='data.text') | join(' ') }}"
    last: "{{ parts['b'].data.text }}"
    everywhere: "{{ everywhere | map(attribute='metadata.namespace') | sort }}"
    beside: "{{ beside | map(attribute='metadata.name') | join(' ') }}"
"""
SPEC = "{type: object, properties: {parts: {type: array, items: {type: string}}}}"


@pytest.fixture
def operator(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Operator]:
    with operator_of(control_plane, tmp_path, "Digest", RULES, observed=["configmaps"], spec=SPEC) as operator:
        yield operator


def test_each_object_of_a_list_is_followed(operator: Operator, namespace: str) -> None:
    digests, maps = f"/apis/example.com/v1/namespaces/{namespace}/digests", f"/api/v1/namespaces/{namespace}/configmaps"

    def add(name: str, **more: Any) -> None:
        operator.admin.post(maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more})

    def status(text: str, last: str | None, everywhere: list[str], beside: str) -> None:
        expected = {"text": text, "last": last, "everywhere": everywhere, "beside": beside}

        def reached() -> bool:
            found = operator.admin.get(f"{digests}/d")["status"]
            return {name: found.get(name) for name in expected} == expected

        eventually(f"the status {expected}", reached)

    document = {"apiVersion": "example.com/v1", "kind": "Digest", "metadata": {"name": "d"}}
    operator.admin.post(digests, {**document, "spec": {"parts": ["b", "a"]}})
    status("", None, [], "")
    add("a", data={"text": "world"})
    add("c", data={"text": "nobody"})
    status("world", None, [], "a c")
    add("b", metadata={"name": "b", "labels": {"digest": "d"}})
    status("world", None, [namespace], "a c")
    operator.admin.merge(f"{maps}/b", {"data": {"text": "hello"}}, "somebody")
    status("hello world", "hello", [namespace], "a b c")
    elsewhere = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{namespace}-x", "labels": {"digest": "d"}},
    }
    operator.admin.post("/api/v1/namespaces/default/configmaps", elsewhere)
    status("hello world", "hello", sorted([namespace, "default"]), "a b c")
    operator.admin.delete(f"/api/v1/namespaces/default/configmaps/{namespace}-x")
    operator.admin.merge(f"{digests}/d", {"spec": {"parts": ["a"]}}, "somebody")
    status("world", None, [namespace], "a b c")
