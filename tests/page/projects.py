"""The projects and custom resources of these tests."""

from __future__ import annotations

from typing import Any

from tests.definitions import definition

Object = dict[str, Any]

NOTES = {
    "watches.yaml": """\
- group: example.com
  version: v1
  kind: Note
  observe:
    login: {version: v1, kind: Secret, name: login}
  children:
    config: {template: config.yaml.j2}
    copy:
      template: copy.yaml.j2
      waitFor: spec.go | default(false)
""",
    "templates/config.yaml.j2": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}"}
data:
  text: "{{ spec.text }}"
""",
    "templates/copy.yaml.j2": """\
apiVersion: v1
kind: Secret
metadata: {name: "{{ metadata.name }}-copy"}
stringData:
  password: "{{ login.data.password | default('none') }}"
""",
    "crds/notes.yaml": definition("Note"),
}
"""A Secret is copied once `spec.go` is true."""

ROLLED_OUT = {
    "watches.yaml": """\
- group: example.com
  version: v1
  kind: Note
  rollout: {maxUnavailable: 1, failureThreshold: 0}
  children:
    config: {template: config.yaml.j2}
""",
    "templates/config.yaml.j2": NOTES["templates/config.yaml.j2"],
    "crds/notes.yaml": NOTES["crds/notes.yaml"],
}


def note(name: str, namespace: str = "default", **spec: Any) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "example.com/v1", "kind": "Note", "metadata": metadata, "spec": {"text": "hello", **spec}}


def url_of(name: str, **more: str) -> str:
    return f"/resource?kind=Note.example.com&namespace=default&name={name}" + "".join(
        f"&{key}={value}" for key, value in more.items()
    )
