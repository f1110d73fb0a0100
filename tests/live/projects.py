"""The projects of these tests."""

from __future__ import annotations

from tests.definitions import definition

SITES = {
    "watches.yaml": """\
- group: example.com
  version: v1
  kind: Site
  observe:
    pods: {version: v1, kind: Pod, selector: {matchLabels: {app: "{{ metadata.name }}"}}}
  children:
    config: {template: config.yaml.j2}
    web: {template: web.yaml.j2}
  status:
    pods: "{{ pods | length }}"
""",
    "templates/config.yaml.j2": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}-config"}
data: {page: "{{ spec.page }}"}
""",
    "templates/web.yaml.j2": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ metadata.name }}"}
spec:
  replicas: 2
  selector: {matchLabels: {app: "{{ metadata.name }}"}}
  template:
    metadata: {labels: {app: "{{ metadata.name }}"}}
    spec: {containers: [{name: web, image: "nginx:1.28"}]}
""",
    "crds/sites.yaml": definition("Site").replace("plural: sites", "plural: sites, shortNames: [st]"),
}


def site(name: str, page: str = "hello", namespace: str = "default") -> str:
    return (
        "apiVersion: example.com/v1\nkind: Site\n"
        f"metadata: {{name: {name}, namespace: {namespace}}}\nspec: {{page: {page}}}\n"
    )
