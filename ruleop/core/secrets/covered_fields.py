"""Two versions of an object, masked where its values come from a Secret: the data of a Secret itself, and the fields
that a template computed from one.

Items of lists are matched by name; where that is not possible, what is hidden in one item is hidden in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.kinds import LAST_APPLIED
from ruleop.core.merge import ANNOTATION
from ruleop.core.secrets.hidden_fields import HiddenItems, Whole
from ruleop.core.secrets.secret_values import AFTER, BEFORE, DATA_FIELDS, MASK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.core.kinds import Object
    from ruleop.core.secrets.hidden_fields import Hidden

_NOTHING: Final = object()
_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
_NOT_RENDERED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


def covered_secret(before: Object, after: Object) -> tuple[Object, Object]:
    """Two versions of a Secret without its values; fields that differ still differ."""
    sides = (before, after)
    hidden: dict[str, Hidden] = {
        which: {name: Whole.VALUE for each in sides if isinstance(each.get(which), Mapping) for name in each[which]}
        for which in DATA_FIELDS
        if any(each.get(which) is not None for each in sides)
    }
    if any(LAST_APPLIED in ((each.get("metadata") or {}).get("annotations") or {}) for each in sides):
        hidden["metadata"] = {"annotations": {LAST_APPLIED: Whole.VALUE}}
    old, new = _covered(before, after, hidden)
    return old, new


def covered_pair(before: Object, after: Object, hidden: Hidden) -> tuple[Object, Object]:
    """Two versions of an object, masked where one is hidden; fields that differ still differ."""
    fields: Hidden = hidden
    if isinstance(hidden, Whole):
        fields = {name: Whole.VALUE for name in {*before, *after} if name not in _IDENTITY}
    if _hides_names(hidden):  # the record of applied fields has them
        fields = _joined((fields, {"metadata": {"annotations": {ANNOTATION: Whole.VALUE}}})) or fields
    old, new = _covered(_without_removed(before, after), after, fields)
    return old, new


def _hides_names(hidden: Hidden) -> bool:
    """Whether names of fields, or fields of list items, which may be their keys, come from a Secret."""
    if isinstance(hidden, dict):
        return any(map(_hides_names, hidden.values()))
    return isinstance(hidden, HiddenItems) or hidden is Whole.NAMED


def _covered(before: Any, after: Any, hidden: Hidden) -> tuple[Any, Any]:
    """Both values, masked where they are hidden. Either may be _NOTHING."""
    if isinstance(hidden, dict) and all(side is _NOTHING or isinstance(side, Mapping) for side in (before, after)):
        return _covered_mappings(before, after, hidden)
    if isinstance(hidden, HiddenItems) and all(side is _NOTHING or isinstance(side, list) for side in (before, after)):
        return _covered_lists(before, after, hidden)
    words = (MASK, MASK) if before == after else (BEFORE, AFTER)
    return before if before is _NOTHING else words[0], after if after is _NOTHING else words[1]


def _covered_mappings(before: Any, after: Any, hidden: dict[str, Hidden]) -> tuple[Any, Any]:
    old, new = ({} if side is _NOTHING else dict(side) for side in (before, after))
    renamed = {name for name, inner in hidden.items() if inner is Whole.NAMED}
    if renamed:  # then the name of a field that is removed may be an earlier value
        renamed |= old.keys() - new.keys()
    for name, inner in hidden.items():
        pair = _covered(old.get(name, _NOTHING), new.get(name, _NOTHING), inner)
        for side, value in zip((old, new), pair, strict=True):
            if value is not _NOTHING:
                side[name] = value
    for number, name in enumerate(sorted(renamed), 1):
        for side in (old, new):
            if name in side:
                side[f"{MASK} ({number})"] = side.pop(name)
    return (before if before is _NOTHING else old), (after if after is _NOTHING else new)


def _covered_lists(before: Any, after: Any, hidden: HiddenItems) -> tuple[Any, Any]:
    left, right = ([] if side is _NOTHING else list(side) for side in (before, after))
    one: dict[Any, Any] | None = _by_name(left)
    two: dict[Any, Any] | None = _by_name(right)
    if one is None or two is None:  # by their positions, if there are as many; else no item is that of the other list
        one, two = dict(enumerate(left)), dict(enumerate(right, 0 if len(left) == len(right) else len(left)))
    old = [_covered_item(item, two.get(key, _NOTHING), hidden)[0] for key, item in one.items()]
    new = [_covered_item(one.get(key, _NOTHING), item, hidden)[1] for key, item in two.items()]
    return (before if before is _NOTHING else old), (after if after is _NOTHING else new)


def _covered_item(before: Any, after: Any, hidden: HiddenItems) -> tuple[Any, Any]:
    inner = _joined(_hidden_in(item, hidden) for item in (before, after) if item is not _NOTHING)
    return (before, after) if inner is None else _covered(before, after, inner)


def _hidden_in(item: Any, hidden: HiddenItems) -> Hidden | None:
    """The hidden parts of an item: as in the rendered item of the same name, or else in any of them."""
    same = [inner for rendered, inner in hidden.items if rendered == item or _have_one_name(rendered, item, inner)]
    return _joined(same or [inner for _, inner in hidden.items])


def _have_one_name(rendered: Any, item: Any, hidden: Hidden | None) -> bool:
    if not isinstance(rendered, Mapping) or not isinstance(item, Mapping) or isinstance(hidden, Whole):
        return False
    name = rendered.get("name")
    return isinstance(name, str) and name == item.get("name") and not (isinstance(hidden, dict) and "name" in hidden)


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """The items by their names; None if some have no name or the same."""
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    found = {name: item for name, item in zip(names, items, strict=True) if isinstance(name, str)}
    return found if len(found) == len(items) else None


def _joined(found: Iterable[Hidden | None]) -> Hidden | None:
    every = [each for each in found if each is not None]
    if not every:
        return None
    first, *rest = every
    for each in rest:
        if isinstance(first, dict) and isinstance(each, dict):
            names = {**first, **each}
            first = {name: _joined((first.get(name), each.get(name))) or Whole.VALUE for name in names}
        elif isinstance(first, HiddenItems) and isinstance(each, HiddenItems):
            first = HiddenItems(first.items + each.items)
        else:
            return Whole.VALUE
    return first


def _without_removed(before: Object, after: Object) -> Object:
    """The live object of a child that reads a Secret, with the values masked that the desired object does not have. The
    slots that they came from are not known, for example if the rule has changed."""
    shown = {
        name: _veiled(value, after.get(name, _NOTHING)) for name, value in before.items() if name not in _NOT_RENDERED
    }
    metadata = before.get("metadata")
    if isinstance(metadata, Mapping):
        others = after.get("metadata") or {}
        marks = {
            name: _veiled(metadata[name], others.get(name) or {})
            for name in ("labels", "annotations")
            if name in metadata
        }
        shown["metadata"] = {**metadata, **marks}
    return {name: shown.get(name, value) for name, value in before.items()}


def _veiled(before: Any, after: Any) -> Any:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return {name: _veiled(value, after.get(name, _NOTHING)) for name, value in before.items()}
    if isinstance(before, list) and isinstance(after, list):
        one, two = _by_name(before), _by_name(after)
        if one is not None and two is not None:
            return [
                _veiled(item, two[name]) if name in two else {"name": name, **_veiled(_rest(item), {})}
                for name, item in one.items()
            ]
        if len(before) == len(after):
            return [_veiled(*pair) for pair in zip(before, after, strict=True)]
        return [item if item in after else BEFORE for item in before]
    return BEFORE if after is _NOTHING else before


def _rest(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "name"}
