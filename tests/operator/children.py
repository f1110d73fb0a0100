"""An App, and objects that are its children or somebody else's."""

from __future__ import annotations

from typing import Any

from ruleop.kubernetes.kinds import Object
from ruleop.planning import Owner
from ruleop.planning.model.marks import PART_OF

APP: Object = {
    "apiVersion": "example.com/v1",
    "kind": "App",
    "metadata": {"name": "web", "namespace": "shop", "uid": "uid-of-web", "finalizers": ["somebody.else/has-one"]},
}


def child(name: str, *, kind: str = "ConfigMap", owner: Object | None = APP, **fields: Any) -> dict[str, Any]:
    """A child of the App; with another owner, or none, somebody else's object."""
    metadata: dict[str, Any] = {"name": name, "namespace": "shop"}
    if owner is not None:
        metadata |= {"labels": {PART_OF: Owner.of(owner).part_of}, "ownerReferences": [Owner.of(owner).reference()]}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}
