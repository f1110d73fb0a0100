"""Finds the custom resource to which an object belongs: as its child, or as something that a child has made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.kinds import GroupKind, Kind, ObjectKey
from ruleop.core.planning.model.marks import PART_OF, named_owner

if TYPE_CHECKING:
    from ruleop.authoring.live.reading.reader import Reader
    from ruleop.core.kinds import Object

MAX_LEVELS: Final = 6
"""A pod belongs to a replica set, that to a deployment, and that to a custom resource."""


async def find_owner(reader: Reader, obj: Object) -> Object | None:
    """None if no custom resource owns it. Raises ApiError."""
    for _ in range(MAX_LEVELS):
        is_child = PART_OF in (obj["metadata"].get("labels") or {})
        found = await _owner(reader, obj)
        if found is None or is_child:
            return found
        obj = found
    return None


async def _owner(reader: Reader, obj: Object) -> Object | None:
    """The object that the controller's ownerReference names, or else the annotation of ruleop."""
    namespace = obj["metadata"].get("namespace") or ""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            kind = Kind.parse(str(reference.get("apiVersion", "")), str(reference.get("kind", "")))
            resource = reader.resource(kind)
            place = namespace if resource is not None and resource.namespaced else ""
            return await reader.get(kind, ObjectKey(kind.group, kind.kind, place, str(reference.get("name", ""))))
    if (named := named_owner(obj)) is not None:
        preferred = reader.preferred(GroupKind(named[0].group, named[0].kind))
        return await reader.get(preferred, named[0]) if preferred is not None else None
    return None
