"""The kinds that the contract is tested with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from tests import definitions
from tests.definitions import version


@dataclass(frozen=True)
class Sample:
    """A namespaced kind, an object of it, and changes of its spec and its status."""

    api_version: str
    kind: str
    plural: str
    spec: dict[str, Any]
    changed: dict[str, Any]  # a merge patch of the spec
    status: dict[str, Any]

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def title(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str, *names: str) -> str:
        root = "apis" if self.group else "api"
        return "/".join([f"/{root}/{self.api_version}/namespaces/{namespace}/{self.plural}", *names])

    def everywhere(self) -> str:
        return f"/{'apis' if self.group else 'api'}/{self.api_version}/{self.plural}"

    def obj(self, name: str = "a", **metadata: Any) -> dict[str, Any]:
        given = {"name": name, **metadata} if name else metadata
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": given, "spec": self.spec}


CONFIG_MAPS = Sample("v1", "ConfigMap", "configmaps", {}, {}, {})
INGRESSES = Sample(
    "networking.k8s.io/v1",
    "Ingress",
    "ingresses",
    {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    {"ingressClassName": "changed"},
    {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
)
WIDGETS = Sample(
    "contract.example.com/v1",
    "Widget",
    "widgets",
    {"size": 3, "colour": "red"},
    {"colour": "blue"},
    {"replicas": 2, "phase": "Ready"},
)
GADGETS = Sample("contract.example.com/v1", "Gadget", "gadgets", {"size": 1}, {"size": 2}, {"phase": "Ready"})
"""Without subresources, and served in two versions."""


def config_map(name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def crd(
    plural: str, kind: str, versions: list[dict[str, Any]], *, group: str = "contract.example.com", **spec: Any
) -> dict[str, Any]:
    return definitions.crd(kind, group, *versions, plural=plural, **spec)


_WIDGET = yaml.safe_load("""
type: object
properties:
  spec:
    type: object
    required: [size]
    properties:
      size: {type: integer, minimum: 1, maximum: 10}
      colour: {type: string, enum: [red, blue], default: red}
      replicas: {type: integer, default: 1}
      tags: {type: array, items: {type: string, maxLength: 5}, x-kubernetes-list-type: set}
      parts:
        type: array
        maxItems: 3
        items:
          type: object
          required: [name]
          properties: {name: {type: string, pattern: "^[a-z]+$"}, count: {type: integer, default: 1}}
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
      options: {type: object, x-kubernetes-preserve-unknown-fields: true}
      port: {x-kubernetes-int-or-string: true}
      labels: {type: object, additionalProperties: {type: string}}
      note: {type: string, nullable: true}
  status: {type: object, properties: {replicas: {type: integer}, phase: {type: string}, selector: {type: string}}}
""")
_GADGET = yaml.safe_load("""
type: object
properties:
  spec: {type: object, properties: {size: {type: integer}}}
  status: {type: object, properties: {phase: {type: string}}}
""")
_WIDGET_V1 = yaml.safe_load("""
subresources:
  status: {}
  scale:
    specReplicasPath: .spec.replicas
    statusReplicasPath: .status.replicas
    labelSelectorPath: .status.selector
additionalPrinterColumns:
  - {name: Size, type: integer, jsonPath: .spec.size}
  - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
  - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
selectableFields: [{jsonPath: .spec.colour}]
""")
CRDS = [
    crd("widgets", "Widget", [version("v1", _WIDGET, **_WIDGET_V1)]),
    crd("gadgets", "Gadget", [version("v1", _GADGET), version("v2", _GADGET, storage=False)]),
]
