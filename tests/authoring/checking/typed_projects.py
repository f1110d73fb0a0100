"""A small project whose CRD has fields of every type, and what checking its types finds."""

from __future__ import annotations

import textwrap

from ruleop.authoring.checking.typing.watches import check_types
from ruleop.language.rules import Finding, Findings
from ruleop.language.rules.checking import build_with_sources

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apps.example.com}
spec:
  group: example.com
  names: {kind: App, plural: apps}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [size, image, hosts]
              properties:
                size: {type: integer}
                image: {type: string}
                hosts: {type: array, items: {type: string}}
                ports:
                  type: array
                  items:
                    type: object
                    required: [port]
                    properties: {name: {type: string}, port: {type: integer}}
                mode: {type: string, enum: [Production, Test], default: Test}
                debug: {type: boolean, default: false}
                memory: {x-kubernetes-int-or-string: true, default: 1Gi}
                ratio: {type: number, default: 1.5}
                labels: {type: object, additionalProperties: {type: string}, default: {}}
                more: {type: object, x-kubernetes-preserve-unknown-fields: true}
                note: {type: string}
                amount: {type: string, pattern: '^[0-9]+Gi$', default: 1Gi}
                nothing: {type: string, nullable: true, default: a}
                service: {type: object, default: {}, properties: {port: {type: integer, default: 80}, type: {type: string}}}
                tls:
                  type: object
                  required: [secret]
                  properties: {secret: {type: string}, issuer: {type: string}}
            status:
              type: object
              properties:
                ready: {type: integer}
                phase: {type: string}
                hosts: {type: array, items: {type: string}}
                conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
        - name: app
          image: app
"""

WATCH = """
- group: example.com
  version: v1
  kind: App
  vars: {registry: example.com, replicas: 3, zones: [a, b]}
"""


def findings(watch: str = "", *, crd: str = CRD, **templates: str) -> list[Finding]:
    """The findings of a project with this rest of the watch and these templates. `a` is a Deployment."""
    files = {
        "watches.yaml": WATCH.strip() + "\n" + textwrap.indent(textwrap.dedent(watch).strip("\n"), "  ") + "\n",
        "crds/apps.yaml": crd,
        "templates/a.yaml": DEPLOYMENT,
        **{f"templates/{name}.yaml": textwrap.dedent(text) for name, text in templates.items()},
    }
    loaded = build_with_sources(files, root="/project", environ={})
    found = Findings(files)
    check_types(loaded, found)
    return list(found.sorted())


def found_in(expression: str) -> list[str]:
    """The findings of one expression, as the value of a ConfigMap whose child loops over spec.hosts."""
    text = f"""\
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: a}}
    data:
      a: "{{{{ {expression} }}}}"
    """
    watch = """
    observe: {pods: {version: v1, kind: Pod, selector: {app: a}}}
    children:
      db: {template: a.yaml}
      extra: {template: extra.yaml, when: spec.debug}
      many: {template: many.yaml, forEach: "spec.ports | default([])"}
      body: {template: body.yaml, forEach: spec.hosts}
    """
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {ports: [{port: 80}]}\n"
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    return said(findings(watch, body=text, extra=service, many=config))


def said(found: list[Finding]) -> list[str]:
    return [f"{each.severity} {each.code}: {each.message}" for each in found]
