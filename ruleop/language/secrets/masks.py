"""Masks for the text of a plan.

Three things are masked: the data of Secrets; fields of other objects that can hold such data by their template; and
exact values of Secrets, wherever they are in a text that comes from outside, such as a message of the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import LAST_APPLIED, Object, ObjectKey
from ruleop.kubernetes.merge import ANNOTATION
from ruleop.language.secrets.secret_values import (
    AFTER,
    BEFORE,
    DATA_FIELDS,
    MASK,
    is_secret,
    leaves_of,
    longest_first,
    replaced,
)
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence


# -- hidden fields -----------------------------------------------------------------------------------------------------
#
# `hidden_fields.py` finds them.


@dataclass(frozen=True, slots=True)
class Hidden:
    """The hidden part of a value. A scalar is hidden if any part of its place is."""

    whole: bool = False
    names: Mapping[str, Hidden] = field(default_factory=dict)  # of the fields whose names are written out
    others: Hidden | None = None  # of all other fields
    named: bool = False  # the names of other fields may come from a Secret
    items: tuple[tuple[str, Hidden], ...] = ()  # of the items of a list, by their literal names; "" is any item

    def __bool__(self) -> bool:
        return self.whole or bool(self.others) or any(self.names.values()) or any(hidden for _, hidden in self.items)

    def member(self, name: str) -> Hidden:
        return WHOLE if self.whole else self.names.get(name, self.others or SHOWN)

    def item(self, item: Any) -> Hidden:
        if self.whole:
            return WHOLE
        name = item.get("name") if isinstance(item, Mapping) else None
        return any_of(hidden for known, hidden in self.items if known in ("", name))

    def hides_name(self, name: str) -> bool:
        return self.named and name not in self.names

    @property
    def hides_names(self) -> bool:
        """Whether names of fields, or fields of list items, which may be their keys, come from a Secret."""
        inner = (*self.names.values(), *((self.others,) if self.others is not None else ()))
        return self.named or any(hidden for _, hidden in self.items) or any(each.hides_names for each in inner)


SHOWN: Final = Hidden()
WHOLE: Final = Hidden(whole=True)


def hidden_texts(value: Any, hidden: Hidden) -> Iterator[str]:
    """The strings of a rendered value that are hidden."""
    if not hidden:
        return
    if isinstance(value, Mapping) and not hidden.whole:
        for name, member in value.items():
            if hidden.hides_name(name):
                yield name
            yield from hidden_texts(member, hidden.member(name))
    elif isinstance(value, list) and not hidden.whole:
        for item in value:
            yield from hidden_texts(item, hidden.item(item))
    else:
        yield from leaves_of(value)


def both(one: Hidden, two: Hidden, *, apart: bool = False) -> Hidden:
    """The union of two hidden parts. `apart`: of members of one collection, in which no name occurs twice, so that a
    computed name is none of those that are written out."""
    if one.whole or two.whole:
        return WHOLE
    names = {
        name: two.names[name]
        if apart and name not in one.names
        else one.names[name]
        if apart and name not in two.names
        else both(one.member(name), two.member(name))
        for name in {**one.names, **two.names}
    }
    others = [each.others for each in (one, two) if each.others is not None]
    return Hidden(
        names=names,
        others=any_of(others) if others else None,
        named=one.named or two.named,
        items=one.items + two.items,
    )


def any_of(found: Iterable[Hidden], *, apart: bool = False) -> Hidden:
    parts = list(found)
    while len(parts) > 1:  # by pairs: there may be thousands of entries
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [both(one, two, apart=apart) for one, two in pairs] + parts[len(parts) // 2 * 2 :]
    return parts[0] if parts else SHOWN


# -- covered fields ----------------------------------------------------------------------------------------------------
#
# Two versions of an object, masked where its values can come from a Secret. Fields that differ still differ.
#
# Items of lists are matched by name, else by position.

_NOTHING: Final = object()
_NOT_RENDERED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_MARKS: Final = frozenset({"labels", "annotations"})
_IDENTITY: Final = {
    "apiVersion": SHOWN,
    "kind": SHOWN,
    "metadata": Hidden(names={"name": SHOWN, "namespace": SHOWN}, others=WHOLE),
}
_OF_SECRETS: Final = Hidden(
    names={
        **dict.fromkeys(DATA_FIELDS, Hidden(others=WHOLE)),
        "metadata": Hidden(names={"annotations": Hidden(names={LAST_APPLIED: WHOLE})}),
    }
)
_RECORD: Final = Hidden(names={"metadata": Hidden(names={"annotations": Hidden(names={ANNOTATION: WHOLE})})})


def covered_secret(before: Object, after: Object) -> tuple[Object, Object]:
    """Two versions of a Secret without its values."""
    old, new = _Cover().pair(before, after, _OF_SECRETS)
    return old, new


def covered_pair(before: Object, after: Object, hidden: Hidden) -> tuple[Object, Object]:
    """Two versions of an object of a child that reads a Secret. Values that only the live object has are masked too:
    the fields that they came from are not known, for example if the rule has changed."""
    if hidden.whole or hidden.others:
        others = WHOLE if hidden.whole else hidden.others
        hidden = Hidden(names={**_IDENTITY, **hidden.names}, others=others, named=hidden.named)
    old, new = _Cover(veils=True).pair(before, after, hidden)
    if hidden.hides_names:  # the record of applied fields has them
        old, new = _Cover().pair(old, new, _RECORD)
    return old, new


@dataclass(frozen=True, slots=True)
class _Cover:
    text: Callable[[str], str] = str
    veils: bool = False

    def pair(self, before: Any, after: Any, hidden: Hidden, path: tuple[Any, ...] = ()) -> tuple[Any, Any]:
        """Both values; either may be _NOTHING."""
        sides = [side for side in (before, after) if side is not _NOTHING]
        if not hidden.whole and not (after is _NOTHING and self._is_veiled(path)):
            if all(isinstance(side, Mapping) for side in sides):
                return self._mappings(before, after, hidden, path)
            if all(isinstance(side, list) for side in sides):
                return self._lists(before, after, hidden, path)
            if not hidden:
                old, new = (self.text(side) if isinstance(side, str) else self._alone(side) for side in (before, after))
                return (BEFORE, AFTER) if _are_same(old, new) and before != after else (old, new)
        words = (MASK, MASK) if before == after else (BEFORE, AFTER)
        return before if before is _NOTHING else words[0], after if after is _NOTHING else words[1]

    def _is_veiled(self, path: tuple[Any, ...]) -> bool:
        if not self.veils or not path:
            return False
        return path[0] not in _NOT_RENDERED or (len(path) > 1 and path[0] == "metadata" and path[1] in _MARKS)

    def _alone(self, value: Any) -> Any:
        return self.pair(value, value, SHOWN)[1] if isinstance(value, (Mapping, list)) else value

    def _mappings(self, before: Any, after: Any, hidden: Hidden, path: tuple[Any, ...]) -> tuple[Any, Any]:
        left, right = ({} if side is _NOTHING else side for side in (before, after))
        old: dict[str, Any] = {}
        new: dict[str, Any] = {}
        number = 0
        for name in sorted({**left, **right}) if hidden.named else {**left, **right}:
            values = left.get(name, _NOTHING), right.get(name, _NOTHING)
            shown = self.text(name)
            if hidden.hides_name(name):
                shown, number = f"{MASK} ({number + 1})", number + 1
            for side, value in zip((old, new), self.pair(*values, hidden.member(name), (*path, name)), strict=True):
                if value is not _NOTHING:
                    side[shown] = value
        return (before if before is _NOTHING else old), (after if after is _NOTHING else new)

    def _lists(self, before: Any, after: Any, hidden: Hidden, path: tuple[Any, ...]) -> tuple[Any, Any]:
        left, right = ([] if side is _NOTHING else side for side in (before, after))
        one: dict[Any, Any] | None = _by_name(left)
        two: dict[Any, Any] | None = _by_name(right)
        if one is None or two is None:  # by position, if there are as many; else only equal items belong together
            one, two = dict(enumerate(left)), dict(enumerate(right))
            if len(left) != len(right):
                one = {}
                for number, item in enumerate(left):
                    at = right.index(item) if item in right else -1
                    one[at if at >= 0 and at not in one else ~number] = item
        found = {
            key: self._items(one.get(key, _NOTHING), two.get(key, _NOTHING), hidden, path) for key in {**one, **two}
        }
        old, new = [found[key][0] for key in one], [found[key][1] for key in two]
        return (before if before is _NOTHING else old), (after if after is _NOTHING else new)

    def _items(self, before: Any, after: Any, hidden: Hidden, path: tuple[Any, ...]) -> tuple[Any, Any]:
        inner = hidden.item(before if after is _NOTHING else after)
        if after is _NOTHING and isinstance(before, Mapping) and "name" in before and self._is_veiled((*path, 0)):
            shown, _ = self.pair(before["name"], before["name"], inner.member("name"))
            return {**dict.fromkeys(before, BEFORE), "name": shown}, after
        return self.pair(before, after, inner, (*path, 0))


def _are_same(one: Any, two: Any) -> bool:
    return one is not _NOTHING and two is not _NOTHING and bool(one == two)


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """The items by their names; None if some have no name or the same."""
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    found = {name: item for name, item in zip(names, items, strict=True) if isinstance(name, str)}
    return found if len(found) == len(items) else None


# -- masks -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Masks:
    """The masks of a plan besides those for the data of Secrets."""

    hidden: Mapping[ObjectKey, Hidden] = field(default_factory=dict)
    values: frozenset[str] = frozenset()

    def object(self, obj: Object) -> Object:
        return self.pair(obj, obj)[1]

    def pair(self, before: Object, after: Object) -> tuple[Object, Object]:
        """Two versions of one object, masked; fields that differ still differ."""
        old, new = covered_secret(before, after) if is_secret(before) or is_secret(after) else (before, after)
        hidden = self.hidden.get(ObjectKey.of(after)) if self.hidden else None
        if hidden:
            old, new = covered_pair(old, new, hidden)
        return self.texts(old, new)

    def texts(self, before: Any, after: Any) -> tuple[Any, Any]:
        """Two versions of plain data without known values of Secrets; fields that differ still differ."""
        return _Cover(self.text).pair(before, after, SHOWN) if self.values else (before, after)

    def text(self, text: str) -> str:
        """The text without known values of Secrets."""
        return self._words.get(text) or replaced(text, self._words)

    def all(self, value: Any) -> Any:
        """Plain data without known values of Secrets."""
        return self.texts(value, value)[1]

    @cached_property
    def _words(self) -> dict[str, str]:
        return longest_first(dict.fromkeys(self.values, MASK))


NO_MASKS: Final = Masks()


def without_data(value: Any, path: Sequence[object] = (), public: Container[str] = ()) -> Any:
    """A part of a Secret, at this path in it, with its values masked unless they are public."""
    if path and path[0] not in DATA_FIELDS:
        return value
    if isinstance(value, Mapping):
        return {name: without_data(member, (*path, name), public) for name, member in value.items()}
    return value if not path or str(value) in public else MASK
