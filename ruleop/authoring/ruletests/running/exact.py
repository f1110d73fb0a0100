"""The objects that `exact` compares: without the fields that ruleop and the API server add to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.core.merge.lists import item_key
from ruleop.core.planning.changes.differences import NOTHING
from ruleop.core.planning.model.marks import MANAGED_BY, RESERVED, RULEOP
from ruleop.core.schema.shape import UNKNOWN

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON, Object
    from ruleop.core.schema.shape import Shape
    from ruleop.core.templating import YamlNode


def bare(obj: Object, expected: YamlNode) -> dict[str, Any]:
    """The object without what ruleop writes itself. Identity may be left out of an exact expectation."""
    members = expected.value if isinstance(expected.value, dict) else {}
    inner = members["metadata"].value if "metadata" in members else {}
    named_metadata = inner if isinstance(inner, dict) else {}
    metadata: dict[str, Any] = {}
    for name in ("name", "namespace"):
        if name in named_metadata:
            metadata[name] = obj["metadata"].get(name, NOTHING)
    for name in ("labels", "annotations"):
        own = {key: value for key, value in (obj["metadata"].get(name) or {}).items() if not _is_mark(key, value)}
        if own:
            metadata[name] = own
    kept = {name: value for name, value in obj.items() if name not in {"metadata", "status"}}
    for name in ("apiVersion", "kind"):
        if name not in members:
            kept.pop(name, None)
    return {**kept, "metadata": metadata} if metadata or "metadata" in members else kept


def _is_mark(key: str, value: str) -> bool:
    """Whether ruleop writes this label or annotation itself."""
    return key.startswith(RESERVED) or (key == MANAGED_BY and value == RULEOP)


def without_filled(found: JSON, sent: JSON, created: JSON, shape: Shape = UNKNOWN) -> JSON:
    """The value without what the server fills in. `created` is what it makes of the value that is sent."""
    if isinstance(found, dict) and isinstance(sent, dict) and isinstance(created, dict):
        return {
            name: without_filled(each, sent.get(name), created.get(name), _inner(shape, name))
            for name, each in found.items()
            if name in sent or created.get(name, NOTHING) != each
        }
    if not (isinstance(found, list) and isinstance(sent, list) and isinstance(created, list)):
        return found
    inner = shape.items or UNKNOWN
    if shape.list_type == "map":
        before, after = ({item_key(each, shape): each for each in items} for items in (sent, created))
        keys = [(item_key(each, shape), each) for each in found]
        return [
            without_filled(each, before.get(key), after.get(key), inner)
            for key, each in keys
            if key in before or after.get(key, NOTHING) != each
        ]
    if len(found) == len(sent) == len(created):
        return [without_filled(*each, inner) for each in zip(found, sent, created, strict=True)]
    return found


def _inner(shape: Shape, name: str) -> Shape:
    return shape.fields.get(name) or shape.values or UNKNOWN
