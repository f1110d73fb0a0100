"""Objects of built-in kinds as the server stores them: with defaults, without empty fields, quantities canonical.

The server decodes an object into Go types, fills in defaults, and writes it again. Which empty fields are written, and
which defaults there are, depends on the types alone: `type_defaults` has them by the names of the types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.kinds.canonical_quantity import canonical_quantity
from ruleop.localcluster.kinds.type_defaults import ALWAYS_WRITTEN, FILLED, NOT_FILLED, TYPE_DEFAULTS
from ruleop.schema.derived_fields import ANYTHING, DERIVED

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.schema.shape import Shape

_ZEROS: Final[tuple[Any, ...]] = ("", False, 0)


def complete(obj: Object, shape: Shape) -> dict[str, Any]:
    """The object with its defaults. Its metadata stay as they are."""
    found = {name: value for name, value in obj.items() if name != "metadata"}
    return {"metadata": obj["metadata"], **_struct(found, shape, at_top=True)}


def _value(value: Any, shape: Shape) -> Any:
    if isinstance(value, dict):
        if shape.fields:
            return _struct(value, shape)
        if shape.values is not None:
            return {name: _value(each, shape.values) for name, each in value.items()}
        return value
    if isinstance(value, list):
        return [_value(each, shape.items) for each in value] if shape.items is not None else value
    return canonical_quantity(value) if shape.format == "quantity" else value


def _struct(value: dict[str, Any], shape: Shape, *, at_top: bool = False) -> dict[str, Any]:
    defaults = shape.defaults
    found: dict[str, Any] = {}
    for name, each in value.items():
        child = shape.fields.get(name)
        if child is None:
            found[name] = each
            continue
        if each is None:
            continue
        new = _value(each, child)
        if child.drops_empty and not new and name not in shape.required:
            continue
        if name in defaults and new in _ZEROS and new == defaults[name] and name not in shape.required:
            continue
        if new == "" and isinstance(defaults.get(name), str):
            continue
        found[name] = new
    skipped = NOT_FILLED.get(shape.name, ())
    for name, default in defaults.items():
        if name not in found and default not in _ZEROS and name not in skipped and not (at_top and name == "metadata"):
            found[name] = _value(default, shape.fields[name])
    for name, default in (TYPE_DEFAULTS.get(shape.name) or {}).items():
        if name not in found:
            found[name] = _value(default, shape.fields[name])
    if (fill := FILLED.get(shape.name)) is not None:
        fill(found)
    for name, default in (ALWAYS_WRITTEN.get(shape.name) or {}).items():
        found.setdefault(name, default)
    if shape.derived:
        _derive(found, shape.derived)
    return found


def _derive(found: dict[str, Any], type_name: str) -> None:
    """Fills in fields that follow from others. Lists on the way are new, so they may be changed."""
    for each in DERIVED[type_name]:
        if each.field == "hostPort":  # of templates that servers before 1.28 stored
            continue
        for holder in _holders(found, each.within):
            if each.field not in holder and (value := each.value(holder, found)) not in (None, ANYTHING):
                holder[each.field] = value


def _holders(value: Any, path: tuple[str, ...]) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [holder for each in value for holder in _holders(each, path)]
    if not isinstance(value, dict):
        return []
    return _holders(value.get(path[0]), path[1:]) if path else [value]
