"""The fields of the status that ruleop writes for every rule, as a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.schema.openapi import Schema

_TEXT: Final[Schema] = {"type": "string"}
_GENERATION: Final[Schema] = {"type": "integer", "format": "int64"}

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
            "observedGeneration": _GENERATION,
        },
    },
}
"""The conditions that ruleop writes."""

WRITTEN: Final[Mapping[str, Schema]] = {"observedGeneration": _GENERATION, "conditions": CONDITIONS}
"""The fields of the status that ruleop writes for every rule."""
