"""Describes how two versions of an object differ, for display: one line per field, with its path.

List items are identified by the keys that the API declares, or by unique names, because a position is not informative:
`spec.ports[port=80,protocol=TCP].targetPort`. Patches do not come from here but from `ruleop.kubernetes.merge`.

A comparison may have an allowance. What it does not suffice for is not compared further: a list of a thousand items is
then one difference.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

import orjson

from ruleop.kubernetes.merge import canonical, is_stored_as, item_keys, item_path, same
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.language.templates.values.cost import Allowance
from ruleop.language.templates.yaml.yaml_writer import number_text, reads_as_text
from ruleop.messages import MAX_QUOTED, format_path
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON, Object

MAX_VALUE: Final = MAX_QUOTED
"""Characters of a value on one line. A longer value is cut, or shown field by field."""

MAX_ALIGNED: Final = 20_000
"""Comparisons of the items of two lists. Longer lists are compared by position, apart from their common ends."""

FOUND: Final = 8  # units of a difference
ITEM: Final = 2  # units of an item of a list
SCANNED: Final = 4  # members of a mapping that are compared for a unit
BYTES: Final = 256  # of canonical items that are compared for a unit

OUTER: Final = frozenset({"", "metadata"})
"""The mappings whose members are always named, so that ruleop's own metadata can be distinguished from other fields."""

MAX_OUTER: Final = 15
"""The number of those members that are named beyond the allowance."""


class Nothing(Enum):
    """A missing field; null is a value."""

    NOTHING = "nothing"


NOTHING: Final = Nothing.NOTHING
Value: TypeAlias = "JSON | Nothing"


@dataclass(frozen=True, slots=True)
class Difference:
    path: str
    before: Value
    after: Value


def differences(
    before: Object,
    after: Object,
    shape: Shape = UNKNOWN,
    *,
    partial: bool = False,
    allowance: Allowance | None = None,
) -> list[Difference]:
    """All fields that differ, in the order of their paths. `partial`: fields missing from `after` are unchanged."""
    found = _maps(before, after, shape, "", allowance=allowance or Allowance())
    return [each for each in found if not partial or each.after is not NOTHING]


def leaves(difference: Difference) -> Iterator[Difference]:
    """The difference; an added value that is too long for one line is split into its fields."""
    after = difference.after
    if difference.before is not NOTHING or _fits_line(after):
        yield difference
    elif isinstance(after, Mapping) and after:
        for name in after:
            yield from leaves(Difference(_member(difference.path, name), NOTHING, after[name]))
    elif isinstance(after, list) and after:
        names = _names(after)
        for index, item in enumerate(after):
            yield from leaves(Difference(f"{difference.path}[{names[index] if names else index}]", NOTHING, item))
    else:
        yield difference


def _fits_line(value: Value) -> bool:
    """Whether the value has at most `MAX_VALUE` characters. A large value is not printed to find out, because each
    level of it is asked."""
    return _rest_after(value, MAX_VALUE) >= 0 and len(flow(value)) <= MAX_VALUE


def _rest_after(value: Value, rest: int) -> int:
    """The characters that a value leaves of a line, at most; negative if it does not fit."""
    if isinstance(value, str):
        return rest - len(value)
    if not isinstance(value, (Mapping, list)):
        return rest
    rest -= 2
    for item in value:
        rest = _rest_after(item, rest) - 2
        if isinstance(value, Mapping):
            rest = _rest_after(value[item], rest)
        if rest < -2:
            return rest
    return rest + 2 if value else rest


def flow(value: Value) -> str:
    """A value as YAML on one line; strings are quoted only if YAML would read them as another type."""
    return _word(value) if isinstance(value, str) else _inside(value)


def _inside(value: Value) -> str:
    """A value inside brackets or braces, where more strings need quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_inside(name)}: {_inside(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_inside(item) for item in value) + "]"
    if isinstance(value, str):
        return _quoted(value) if any(sign in value for sign in ",[]{}:?") else _word(value)
    if isinstance(value, float):
        return number_text(value)
    return "" if value is NOTHING else orjson.dumps(value).decode()


def _word(text: str) -> str:
    plain = (
        text != "<<"
        and bool(text)
        and reads_as_text(text)
        and text.isprintable()
        and text == text.strip()
        and text[0] not in "-?:,[]{}#&*!|>'\"%@`"
    )
    return (
        text if plain and not any(sign in text for sign in (": ", " #", " -> ")) and text[-1] != ":" else _quoted(text)
    )


def _quoted(text: str) -> str:
    """The string in quotes, with all characters escaped that are not printable."""
    try:
        quoted = orjson.dumps(text).decode()
    except TypeError:  # half of a surrogate pair
        quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if quoted.isprintable():
        return quoted
    return "".join(
        sign if sign.isprintable() else f"\\U{ord(sign):08x}" if ord(sign) > 0xFFFF else f"\\u{ord(sign):04x}"
        for sign in quoted
    )


def _member(path: str, name: str) -> str:
    piece = format_path((name,))
    return f"{path}.{piece}" if path and not piece.startswith("[") else f"{path}{piece}"


def _maps(before: Object, after: Object, shape: Shape, path: str, *, allowance: Allowance) -> Iterator[Difference]:
    if not allowance.takes(1 + (len(before) + len(after)) // SCANNED):
        yield from _as_a_whole(before, after, path)
        return
    changed = [name for name in before if name not in after]
    changed += [name for name, value in after.items() if _may_differ(before.get(name, NOTHING), value)]
    if not allowance.takes(FOUND * len(changed)):
        yield from _as_a_whole(before, after, path)
        return
    for name in sorted(changed):
        inner = shape.fields.get(name) or shape.values or UNKNOWN
        if name not in after and name in shape.defaults and is_stored_as(before[name], shape.defaults[name], inner):
            continue  # the server sets the default again
        old, new = before.get(name, NOTHING), after.get(name, NOTHING)
        yield from _values(old, new, inner, _member(path, name), allowance=allowance)


def _may_differ(before: Value, after: Value) -> bool:
    """Whether they have to be compared: most values are the same object, or strings."""
    return before is not after and (type(after) is not str or before != after)


def _as_a_whole(before: Value, after: Value, path: str) -> Iterator[Difference]:
    """The difference of two values that are not compared further."""
    if before == after:
        return
    if path not in OUTER or not isinstance(before, Mapping) or not isinstance(after, Mapping):
        yield Difference(path, before, after)
        return
    changed = sorted(name for name in {*before, *after} if before.get(name, NOTHING) != after.get(name, NOTHING))
    for name in changed[:MAX_OUTER]:
        yield from _as_a_whole(before.get(name, NOTHING), after.get(name, NOTHING), _member(path, name))
    if len(changed) > MAX_OUTER:
        yield Difference(f"{path}.…" if path else "…", before, after)


def _values(before: Value, after: Value, shape: Shape, path: str, *, allowance: Allowance) -> Iterator[Difference]:
    if before is NOTHING or after is NOTHING:
        if before is not after:
            yield Difference(path, before, after)
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _maps(before, after, shape, path, allowance=allowance)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(before, after, shape, path, allowance=allowance)
    elif not same(before, after):
        yield Difference(path, before, after)


def _lists(
    before: list[JSON], after: list[JSON], shape: Shape, path: str, *, allowance: Allowance
) -> Iterator[Difference]:
    if not allowance.takes(ITEM * (len(before) + len(after))):
        yield from _as_a_whole(before, after, path)
        return
    left, right = _labels(before, shape), _labels(after, shape)
    if left is not None and right is not None:
        old, new = dict(zip(left, before, strict=True)), dict(zip(right, after, strict=True))
        labels = [*old, *(label for label in new if label not in old)]
        pairs = [(label, old.get(label, NOTHING), new.get(label, NOTHING)) for label in labels]
        yield from _pairs(before, after, pairs, shape, path, allowance=allowance)
        yield from _order(old, new, path)
    elif shape.list_type != "set" and len(before) == len(after):
        pairs = [(f"[{index}]", before[index], after[index]) for index in range(len(before))]
        yield from _pairs(before, after, pairs, shape, path, allowance=allowance)
    else:
        yield from _unnamed(before, after, shape, path, allowance=allowance)


def _pairs(
    before: list[JSON],
    after: list[JSON],
    pairs: list[tuple[str, Value, Value]],
    shape: Shape,
    path: str,
    *,
    allowance: Allowance,
) -> Iterator[Difference]:
    """Differences between the items of two lists that belong together, each with its label."""
    changed = [pair for pair in pairs if _may_differ(pair[1], pair[2])]
    if not allowance.takes(FOUND * len(changed)):
        yield from _as_a_whole(before, after, path)
        return
    for label, old, new in changed:
        yield from _values(old, new, shape.items or UNKNOWN, f"{path}{label}", allowance=allowance)


def _order(old: Mapping[str, JSON], new: Mapping[str, JSON], path: str) -> Iterator[Difference]:
    """The order of the items that are in both lists, by their labels."""
    common = [label for label in old if label in new], [label for label in new if label in old]
    if common[0] != common[1]:
        before, after = ([label.strip("[]") for label in labels] for labels in common)
        yield Difference(f"{path} (order)", before, after)


def _unnamed(
    before: list[JSON], after: list[JSON], shape: Shape, path: str, *, allowance: Allowance
) -> Iterator[Difference]:
    """Differences between sets, and between lists of different lengths, whose common items are aligned."""
    left, right = list(map(canonical, before)), list(map(canonical, after))
    if not allowance.takes((sum(map(len, left)) + sum(map(len, right))) // BYTES):
        yield from _as_a_whole(before, after, path)
        return
    pairs: list[tuple[str, Value, Value]] = []
    if shape.list_type == "set":
        known, desired = set(left), set(right)
        pairs += [("", item, NOTHING) for item, text in zip(before, left, strict=True) if text not in desired]
        pairs += [("", NOTHING, item) for item, text in zip(after, right, strict=True) if text not in known]
    else:
        for i1, i2, j1, j2 in _changed_ranges(left, right, allowance):
            paired = min(i2 - i1, j2 - j1)
            pairs += [(f"[{j1 + offset}]", before[i1 + offset], after[j1 + offset]) for offset in range(paired)]
            pairs += [(f"[{index}]", before[index], NOTHING) for index in range(i1 + paired, i2)]
            pairs += [(f"[{index}]", NOTHING, after[index]) for index in range(j1 + paired, j2)]
    yield from _pairs(before, after, pairs, shape, path, allowance=allowance)


def _changed_ranges(left: list[bytes], right: list[bytes], allowance: Allowance) -> Iterator[tuple[int, int, int, int]]:
    """The ranges of two lists that differ, as (start, end) of the left and of the right one."""
    ends = min(len(left), len(right))
    head = next((index for index in range(ends) if left[index] != right[index]), ends)
    tail = next((index for index in range(ends - head) if left[-1 - index] != right[-1 - index]), ends - head)
    left_end, right_end = len(left) - tail, len(right) - tail
    pairs = (left_end - head) * (right_end - head)
    # With equal items, the alignment begins again for each of them.
    if pairs > MAX_ALIGNED or not allowance.takes(pairs * min(left_end - head, right_end - head) // FOUND):
        yield head, left_end, head, right_end
        return
    matcher = difflib.SequenceMatcher(None, left[head:left_end], right[head:right_end], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            yield head + i1, head + i2, head + j1, head + j2


def _labels(items: list[JSON], shape: Shape) -> list[str] | None:
    """A label for each item; None if they are not unique."""
    if shape.list_type == "map":
        keys = item_keys(items, shape)
        labels = [item_path(key, shape) for key in keys if key is not None]
    else:
        labels = [f"[{name}]" for name in _names(items)]
    return labels if len(set(labels)) == len(items) else None


def _names(items: Iterable[JSON]) -> list[str]:
    """The unique `name` or `metadata.name` of each item, as in a StatefulSet's claim templates; empty if some item has
    none."""
    mappings = [item if isinstance(item, Mapping) else {} for item in items]
    for prefix, holders in (("name=", mappings), ("", [item.get("metadata") for item in mappings])):
        found = [holder.get("name") if isinstance(holder, Mapping) else None for holder in holders]
        names = [f"{prefix}{name}" for name in found if isinstance(name, str)]
        if names and len(set(names)) == len(found):
            return names
    return []
