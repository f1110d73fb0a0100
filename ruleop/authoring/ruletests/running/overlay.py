"""Changes of objects in a test: a merge patch in which lists are merged by the keys that the API declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.core.merge.lists import item_key
from ruleop.core.schema.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.core.kinds import JSON


def overlaid(before: Mapping[str, Any], patch: Mapping[str, Any], shape: Shape = UNKNOWN) -> dict[str, Any]:
    """The object with the changes. A null removes a field."""
    result = dict(before)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _value(result.get(name), value, shape.fields.get(name) or shape.values or UNKNOWN)
    return result


def _value(before: JSON, value: JSON, shape: Shape) -> JSON:
    if isinstance(value, dict):
        return overlaid(before if isinstance(before, dict) else {}, value, shape)
    if isinstance(value, list) and isinstance(before, list) and shape.list_type == "map":
        return _items(before, value, shape)
    return value


def _items(before: list[JSON], patch: list[JSON], shape: Shape) -> list[JSON]:
    """The items with those of the patch: changed where the key is known, appended otherwise."""
    result = list(before)
    places = {item_key(item, shape): place for place, item in enumerate(before)}
    for item in patch:
        key = item_key(item, shape)
        if key is not None and key in places:
            result[places[key]] = _value(result[places[key]], item, shape.items or UNKNOWN)
        else:
            result.append(item)
    return result
