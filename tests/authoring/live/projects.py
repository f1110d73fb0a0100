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


SHOPS = {
    "watches.yaml": """\
- group: example.com
  version: v1
  kind: Shop
  observe:
    login: {version: v1, kind: Secret, name: "{{ spec.login }}"}
  children:
    config: {template: config.yaml.j2}
    db: {template: db.yaml.j2}
    web:
      template: web.yaml.j2
      waitFor: db.status.readyReplicas | default(0) >= 1 and login.data.password
    cert:
      template: cert.yaml.j2
      readyWhen: this.data.issued == 'yes' and this.data.serial is defined
    late: {template: late.yaml.j2, dependsOn: [db]}
""",
    "templates/config.yaml.j2": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}-config"}
data: {page: "{{ spec.page }}", token: "{{ spec.token }}"}
""",
    "templates/cert.yaml.j2": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}-cert"}
data: {issued: "no"}
""",
    "templates/late.yaml.j2": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}-late"}
data: {uid: "{{ config.metadata.uid }}"}
""",
    "crds/shops.yaml": definition("Shop"),
}
for _name in ("db", "web"):
    SHOPS[f"templates/{_name}.yaml.j2"] = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: "{{{{ metadata.name }}}}-{_name}"}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: "{{{{ metadata.name }}}}-{_name}"}}}}
  template:
    metadata:
      labels: {{app: "{{{{ metadata.name }}}}-{_name}"}}
      annotations: {{local.ruleop.dev/pod: "{{{{ spec.pod }}}}"}}
    spec: {{containers: [{{name: {_name}, image: "nginx:1.28"}}]}}
"""


def shop(name: str, pod: str = "ok") -> str:
    return (
        f"apiVersion: example.com/v1\nkind: Shop\nmetadata: {{name: {name}}}\n"
        f"spec: {{page: hello, login: login, token: t0ken, pod: {pod}}}\n"
    )
