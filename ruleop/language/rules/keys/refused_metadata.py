"""The fields of metadata that rules cannot set."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from ruleop.kubernetes.kinds import SERVER_METADATA

if TYPE_CHECKING:
    from collections.abc import Mapping

REFUSED_METADATA: Mapping[str, str] = MappingProxyType(
    {
        "generateName": "set metadata.name: ruleop finds objects by name",
        "ownerReferences": "ruleop writes the owner itself",
        "finalizers": "only the controller that removes a finalizer may set it",
        **dict.fromkeys(sorted(SERVER_METADATA), "the API server sets it; remove it"),
    }
)
"""The fields of metadata that a child cannot set, and what to do instead."""
