"""The CustomResourceDefinition of a new project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.scaffold.naming import plural
from ruleop.schema.crds import API_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kinds import Kind
    from ruleop.schema.openapi import Schema

_PROTECTED: Final = (".k8s.io", ".kubernetes.io")
_TEXT: Final[Schema] = {"type": "string"}
GENERATION: Final[Schema] = {"type": "integer", "format": "int64"}

CONDITIONS: Final[Schema] = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": _TEXT,
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": _TEXT,
            "message": _TEXT,
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": GENERATION,
        },
    },
}
"""The conditions that ruleop writes."""


def definition(
    kind: Kind, fields: Mapping[str, Schema], *, required: list[str], status: Mapping[str, Schema], longest: int
) -> dict[str, Any]:
    """The definition of a kind with these fields beside metadata. Names of its objects have at most `longest`
    characters, so that names of children that are made of them stay valid."""
    name = {
        "description": "Names of other objects are made of it.",
        "type": "string",
        "maxLength": longest,
        "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$",
    }
    schema: dict[str, Any] = {"type": "object"}
    if required:
        schema["required"] = required
    schema["properties"] = {
        "metadata": {"type": "object", "properties": {"name": name}},
        **fields,
        "status": {
            "type": "object",
            "properties": {**status, "observedGeneration": GENERATION, "conditions": CONDITIONS},
        },
    }
    metadata: dict[str, Any] = {"name": f"{plural(kind.kind)}.{kind.group}"}
    if f".{kind.group}".endswith(_PROTECTED):
        metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, not an API of the Kubernetes project"}
    return {
        "apiVersion": API_VERSION,
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": plural(kind.kind),
                "singular": kind.kind.lower(),
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _columns(status),
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _columns(status: Mapping[str, Schema]) -> list[dict[str, str]]:
    columns = [
        {"name": f"{name[0].upper()}{name[1:]}", "type": str(schema["type"]), "jsonPath": f".status.{name}"}
        for name, schema in status.items()
    ]
    ready = '.status.conditions[?(@.type=="Ready")].status'
    return [
        *columns,
        {"name": "Ready", "type": "string", "jsonPath": ready},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
