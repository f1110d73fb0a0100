"""Who else writes the fields that we want otherwise: read from an object's managedFields, which the API server keeps and our stores do not.

The entry of a manager holds the fields that it wrote last. Of a field that somebody removed nothing is kept; then the manager that wrote
the object last is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.kube.client.requests import MANAGER
from ruleop.merge import same

if TYPE_CHECKING:
    from ruleop.kinds import Object

_MISSING = object()
_NAMESAKE = "another ruleop or a webhook"  # who wrote, under our name, what we do not want


def opponents(metadata: Object, live: Object, wanted: Object) -> list[str]:
    """The managers that own what differs in `live` from what we want, or else the last other one that wrote it; sorted."""
    entries = [each for each in metadata.get("managedFields") or () if isinstance(each, Mapping) and each.get("manager")]
    found = {str(each["manager"]) for each in entries if each.get("fieldsV1") and _differs(each["fieldsV1"], live, wanted)}
    if not found:
        others = (each for each in entries if each["manager"] != MANAGER and each.get("subresource") != "status")
        last = max(others, key=lambda each: str(each.get("time") or ""), default=None)
        found = {str(last["manager"])} if last is not None else set()
    return sorted(_NAMESAKE if each == MANAGER else each for each in found)


def _differs(fields: Mapping[str, Any], live: Any, wanted: Any) -> bool:
    """Whether a field of this set is in what we want, with another value."""
    if wanted is _MISSING:
        return False
    if not fields:
        return not same(live, wanted)
    for name, inner in fields.items():
        kind, _, rest = name.partition(":")
        if kind == "f":
            one, two = _member(live, rest), _member(wanted, rest)
        elif kind == "k":
            keys = orjson.loads(rest)
            one, two = _item(live, keys), _item(wanted, keys)
        else:
            continue  # a member of a set is there or not, and being there is no difference
        if one is not _MISSING and _differs(inner, one, two):
            return True
    return False


def _member(value: Any, name: str) -> Any:
    return value.get(name, _MISSING) if isinstance(value, Mapping) else _MISSING


def _item(value: Any, keys: Mapping[str, Any]) -> Any:
    """The item with these keys; a key that the author left out is one that the server filled in."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping) and all(item.get(name, wanted) == wanted for name, wanted in keys.items()):
            return item
    return _MISSING
