"""Encodes values of planning as JSON and decodes them: frozen dataclasses, named tuples, enums, tuples, sets and
mappings with any keys. Plain JSON stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Final

from ruleop.errors import Cause
from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
from ruleop.kubernetes.merge.server.learned import Answers, Learned
from ruleop.planning.changes.drift import Reverted
from ruleop.planning.history import ConflictingObject, History, Refusal, RefusedStatus, Writes
from ruleop.planning.late_plans import Late
from ruleop.planning.model.conditions import Condition
from ruleop.planning.model.observed import KindInfo, Served
from ruleop.planning.model.outcome import Failed, Failure
from ruleop.planning.rendering.synced import Synced

_TYPE: Final = "$type"
_CLASSES: Final[Mapping[str, Any]] = {
    each.__name__: each
    for each in (
        Answers,
        Cause,
        Condition,
        ConflictingObject,
        Failed,
        Failure,
        GroupKind,
        History,
        Kind,
        KindInfo,
        Late,
        Learned,
        ObjectKey,
        Refusal,
        RefusedStatus,
        Reverted,
        Served,
        Synced,
        Writes,
    )
}


def encode(value: Any) -> Any:
    if isinstance(value, Enum):
        return {_TYPE: type(value).__name__, "value": value.value}
    if is_dataclass(value):
        changed = {each.name: getattr(value, each.name) for each in fields(value) if not _is_default(value, each)}
        return {_TYPE: type(value).__name__, **{name: encode(member) for name, member in changed.items()}}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {_TYPE: type(value).__name__, "value": list(value)}
    if isinstance(value, tuple | frozenset | set):
        items = sorted(value, key=str) if isinstance(value, frozenset | set) else value
        return {_TYPE: "tuple" if isinstance(value, tuple) else "set", "value": [encode(each) for each in items]}
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value) and _TYPE not in value:
            return {name: encode(member) for name, member in value.items()}
        return {_TYPE: "mapping", "value": [[encode(name), encode(member)] for name, member in value.items()]}
    return [encode(each) for each in value] if isinstance(value, list) else value


def _is_default(value: Any, each: Any) -> bool:
    default = each.default
    if default is MISSING and each.default_factory is not MISSING:
        default = each.default_factory()
    found = getattr(value, each.name)
    return found is default or (type(found) is type(default) and found == default)


def decode(value: Any) -> Any:
    """The value that `encode` was given. Raises KeyError, TypeError or ValueError for other input."""
    if isinstance(value, list):
        return [decode(each) for each in value]
    if not isinstance(value, dict):
        return value
    name = value.get(_TYPE)
    if name is None:
        return {key: decode(member) for key, member in value.items()}
    if name == "tuple":
        return tuple(decode(each) for each in value["value"])
    if name == "set":
        return frozenset(decode(each) for each in value["value"])
    if name == "mapping":
        return {decode(key): decode(member) for key, member in value["value"]}
    class_ = _CLASSES[name]
    if issubclass(class_, Enum):
        return class_(value["value"])
    if issubclass(class_, tuple):
        return class_(*value["value"])
    return class_(**{key: decode(member) for key, member in value.items() if key != _TYPE})
