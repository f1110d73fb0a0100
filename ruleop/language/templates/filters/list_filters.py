"""Filters of lists and mappings. With an `attribute`, items that do not have it are skipped.

Those of lists as sets, and of lists of lists, are compatible with Ansible. Two items are equal if they are the same
JSON: 1, 1.0, "1" and true all differ.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from ruleop.language.templates.declarations import Filters, Trait
from ruleop.language.templates.values.cost import MAX_COMPARED, MAX_NODES, MAX_REPEAT, check_items, exceeded
from ruleop.language.templates.values.data import is_list, noun, plain, scalar_text
from ruleop.language.templates.values.faults import Fault
from ruleop.language.templates.values.operators import Group, MappingEntry, comparable, field_of, given, operate, reach
from ruleop.language.templates.values.undefined import UndefinedValue, Unknown

FILTERS: Final = Filters()
SIZED: Final = "list or mapping or string"
_BY_ATTRIBUTE: Final = Trait.WALKS_ITEMS | Trait.TAKES_ATTRIBUTE


def attributes(values: Iterable[Any], attribute: Any) -> Iterator[Any]:
    """The attribute of each item that has it."""
    for item in values:
        found = reach(item, attribute)
        if not isinstance(found, UndefinedValue):
            yield found


def _names(attribute: Any) -> list[Any]:
    return attribute.split(",") if isinstance(attribute, str) else [attribute]


def _sort_key(attribute: Any, case_sensitive: bool) -> Callable[[Any], Any]:
    names = _names(attribute)

    def key(item: Any) -> Any:
        found = [item] if attribute is None else [reach(item, name) for name in names]
        shown = [
            value.lower() if isinstance(value, str) and not case_sensitive else value
            for value in map(comparable, map(given, found))
        ]
        return shown[0] if len(shown) == 1 else tuple(shown)

    return key


def _items_with(value: Iterable[Any], attribute: Any) -> list[Any]:
    if attribute is None:
        return list(value)
    return [
        item for item in value if not any(isinstance(reach(item, name), UndefinedValue) for name in _names(attribute))
    ]


def _sorted(items: list[Any], key: Callable[[Any], Any], *, reverse: bool = False) -> list[Any]:
    keys, rounds = list(map(key, items)), len(items).bit_length()
    texts = sum(
        len(each) for found in keys for each in (found if type(found) is tuple else (found,)) if type(each) is str
    )
    if rounds * texts > MAX_COMPARED:
        raise exceeded("texts of {} characters to sort", texts, MAX_COMPARED // rounds)
    return [items[number] for number in sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)]


@FILTERS.declare("sort", SIZED, "list", _BY_ATTRIBUTE | Trait.SAME_ITEMS | Trait.SAME_TRUTH)
def sort(value: Iterable[Any], reverse: bool = False, case_sensitive: bool = False, attribute: Any = None) -> list[Any]:
    return _sorted(_items_with(value, attribute), _sort_key(attribute, case_sensitive), reverse=bool(reverse))


def identity(value: Any) -> bytes:
    """A digest of the canonical JSON of an item: it is short, and equal for items that are the same JSON."""
    found = orjson.dumps(plain(comparable(value)), option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(found, digest_size=16).digest()


@FILTERS.declare("unique", SIZED, "list", _BY_ATTRIBUTE | Trait.SAME_ITEMS | Trait.SAME_TRUTH)
def unique(value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> list[Any]:
    order = _sort_key(attribute, case_sensitive)
    return _distinct(_items_with(value, attribute), by=lambda item: identity(order(item)))


@FILTERS.declare("min", SIZED, traits=_BY_ATTRIBUTE | Trait.ONE_ITEM)
def least(value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> Any:
    items = _items_with(value, attribute)
    return min(items, key=_sort_key(attribute, case_sensitive)) if items else _empty_list("min")


@FILTERS.declare("max", SIZED, traits=_BY_ATTRIBUTE | Trait.ONE_ITEM)
def greatest(value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> Any:
    items = _items_with(value, attribute)
    return max(items, key=_sort_key(attribute, case_sensitive)) if items else _empty_list("max")


@FILTERS.declare("sum", SIZED, "number or list", _BY_ATTRIBUTE)
def total(value: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
    """The sum of numbers, or the concatenation of lists."""
    items = list(value) if attribute is None else list(attributes(value, attribute))
    if isinstance(start, (list, tuple)):
        result = list(start)
        for item in items:
            check_items(len(result) + len(item))
            result.extend(item)
        return result
    for item in items:
        if isinstance(item, str):
            raise Fault("sum adds numbers, or lists with start=[]; join text with `join`")
        start = operate("+", start, item)
    return start


@FILTERS.declare("first", SIZED, traits=Trait.ONE_ITEM)
def first(value: Any) -> Any:
    return next(iter(value), _empty_list("first"))


@FILTERS.declare("last", SIZED, traits=Trait.ONE_ITEM)
def last(value: Any) -> Any:
    if isinstance(value, str):
        return value[-1:] or _empty_list("last")
    items = list(value)
    return items[-1] if items else _empty_list("last")


def _empty_list(name: str) -> UndefinedValue:
    return Unknown(f"{name}: the list is empty; use `default(...)` if it may be", name=name)


@FILTERS.declare("reverse", SIZED, "list or string", Trait.SAME_ITEMS | Trait.SAME_TRUTH)
def reverse(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else list(value)[::-1]


@FILTERS.declare("groupby", SIZED, "list", _BY_ATTRIBUTE)
def groupby(value: Iterable[Any], attribute: Any, default: Any = None, case_sensitive: bool = False) -> list[Group]:
    def key_of(item: Any) -> Any:
        found = reach(item, attribute)
        return default if isinstance(found, UndefinedValue) and default is not None else found

    def order(item: Any) -> Any:
        key = comparable(given(key_of(item)))
        return key.lower() if isinstance(key, str) and not case_sensitive else key

    groups: dict[bytes, list[Any]] = {}
    for item in _sorted([item for item in value if not isinstance(key_of(item), UndefinedValue)], order):
        groups.setdefault(identity(order(item)), []).append(item)
    return [Group(key_of(members[0]), members) for members in groups.values()]


@FILTERS.declare("items", "mapping", "list", example=("spec.settings | items | map(attribute='value')", "[blue, true]"))
def items(value: Any) -> list[MappingEntry]:
    """The entries of a mapping."""
    if isinstance(value, Mapping):
        return list(map(MappingEntry._make, value.items()))
    raise Fault("items takes a mapping")


@FILTERS.declare(
    "dictsort",
    "mapping",
    "list",
    example=("spec.settings | dictsort | map(attribute='key') | join(' ')", "colour debug"),
)
def dictsort(value: Any, case_sensitive: bool = False, by: str = "key", reverse: bool = False) -> list[MappingEntry]:
    """The entries of a mapping, sorted."""
    position = {"key": 0, "value": 1}.get(by)
    if position is None:
        raise Fault("dictsort: by is 'key' or 'value'")
    order = _sort_key(None, case_sensitive)
    return _sorted(items(value), lambda entry: order(entry[position]), reverse=bool(reverse))


@FILTERS.declare("dict2items", "mapping", "list of mapping", example=("{'a': 1} | dict2items", "[{key: a, value: 1}]"))
def dict2items(value: Any, key_name: str = "key", value_name: str = "value") -> list[dict[str, Any]]:
    """The entries of a mapping, each as a mapping with a key and a value."""
    if not isinstance(value, Mapping):
        raise Fault("dict2items takes a mapping")
    if key_name == value_name:
        raise Fault("dict2items: the key and the value need different names")
    return [{key_name: key, value_name: item} for key, item in value.items()]


@FILTERS.declare(
    "items2dict", "list", "mapping", Trait.WALKS_ITEMS, example=("[{'key': 'a', 'value': 1}] | items2dict", "{a: 1}")
)
def items2dict(value: Any, key_name: str = "key", value_name: str = "value") -> dict[str, Any]:
    """The inverse of `dict2items`; the later of two equal keys wins."""
    if isinstance(value, (str, Mapping)):
        raise Fault("items2dict takes a list")
    return {scalar_text(given(field_of(item, key_name))): given(field_of(item, value_name)) for item in value}


def _chosen(name: str, value: Any, keys: tuple[Any, ...], *, keep: bool) -> Any:
    """The mapping, or each mapping of the list, with only the members whose keys are among those given, or without
    them."""
    names = {scalar_text(each) for key in keys for each in (key if is_list(key) else [key])}
    members = 0

    def part(item: Any) -> dict[str, Any]:
        nonlocal members
        if not isinstance(item, Mapping):
            raise Fault(f"{name} takes a mapping or a list of mappings, not {noun(item)}")
        members += len(item)
        if members > MAX_NODES:
            raise exceeded("mappings of {} members", members, MAX_NODES)
        return {key: member for key, member in item.items() if (key in names) is keep}

    return [part(given(item)) for item in value] if is_list(value) else part(value)


@FILTERS.declare(
    "pick keep_keys",
    "mapping or list",
    "mapping or list",
    Trait.PICKS_FIELDS,
    example=("spec.extraEnv | pick('name')", "[{name: DEBUG}]"),
)
def keep_keys(value: Any, target: Any, *more: Any) -> Any:
    """A mapping, or each mapping of a list, with only these of its keys."""
    return _chosen("keep_keys", value, (target, *more), keep=True)


@FILTERS.declare(
    "remove_keys",
    "mapping or list",
    "mapping or list",
    example=("spec.extraEnv | remove_keys('name')", '[{value: "1"}]'),
)
def remove_keys(value: Any, target: Any, *more: Any) -> Any:
    """A mapping, or each mapping of a list, without these of its keys."""
    return _chosen("remove_keys", value, (target, *more), keep=False)


@FILTERS.declare(
    "subelements",
    "mapping or list",
    "list of list",
    example=("[{'n': 1, 'l': [2, 3]}] | subelements('l') | map('last')", "[2, 3]"),
)
def subelements(value: Any, subelements: Any, skip_missing: bool = False) -> list[list[Any]]:
    """Each item, or value of a mapping, with each item of the list at this path in it."""
    items = list(value.values()) if isinstance(value, Mapping) else value
    if not is_list(items):
        raise Fault(f"subelements takes a list or a mapping, not {noun(value)}")
    rows: list[list[Any]] = []
    for item in items:
        found = item
        for part in subelements if is_list(subelements) else [subelements]:
            found = reach(found, part)
        if skip_missing and isinstance(found, UndefinedValue):
            continue
        if not is_list(inner := given(found)):
            raise Fault(f"subelements needs a list in each item, not {noun(inner)}")
        check_items(len(rows) + len(inner))
        rows.extend([item, each] for each in inner)
    return rows


@FILTERS.declare("batch", SIZED, "list of list", Trait.WALKS_ITEMS)
def batch(value: Iterable[Any], linecount: int, fill_with: Any = None) -> list[list[Any]]:
    items, size = list(value), int(linecount)
    if size < 1:
        raise Fault("batch takes a length of at least 1")
    batches = [items[at : at + size] for at in range(0, len(items), size)]
    if batches and fill_with is not None:
        check_items(size)
        batches[-1] += [fill_with] * (size - len(batches[-1]))
    return batches


@FILTERS.declare("slice", SIZED, "list of list", Trait.WALKS_ITEMS)
def slices(value: Iterable[Any], slices: int, fill_with: Any = None) -> list[list[Any]]:
    """The items in `slices` columns. If the number of items is not a multiple, the first columns have one more."""
    items, count = list(value), int(slices)
    check_items(count)
    if count < 1:
        raise Fault("slice takes a number of at least 1")
    size, more = divmod(len(items), count)
    columns, at = [], 0
    for number in range(count):
        column = items[at : at + size + (number < more)]
        at += len(column)
        columns.append([*column, fill_with] if fill_with is not None and more and number >= more else column)
    return columns


def _check_lists(name: str, *values: Any) -> None:
    for value in values:
        if not is_list(value):
            raise Fault(f"{name} takes lists, not {noun(value)}")


def _distinct(items: Iterable[Any], known: Iterable[bytes] = (), *, by: Callable[[Any], bytes] = identity) -> list[Any]:
    """The items without repetitions, and without items whose identity is in `known`."""
    seen, result = set(known), []
    for item in items:
        key = by(item)
        if key not in seen:
            seen.add(key)
            result.append(item)
    return result


@FILTERS.declare("difference", "list", "list", Trait.SAME_ITEMS, example=("[1, 2] | difference([2, 3])", "[1]"))
def difference(value: Any, other: Any) -> list[Any]:
    """The items that the other list does not have, without repetitions."""
    _check_lists("difference", value, other)
    return _distinct(value, map(identity, other))


@FILTERS.declare("intersect", "list", "list", Trait.SAME_ITEMS, example=("[1, 2] | intersect([2, 3])", "[2]"))
def intersect(value: Any, other: Any) -> list[Any]:
    """The items that both lists have, without repetitions."""
    _check_lists("intersect", value, other)
    shared = set(map(identity, other))
    return _distinct(item for item in value if identity(item) in shared)


@FILTERS.declare("union", "list", "list", example=("[1, 2] | union([2, 3])", "[1, 2, 3]"))
def union(value: Any, other: Any) -> list[Any]:
    """The items of both lists, without repetitions."""
    _check_lists("union", value, other)
    return _distinct(itertools.chain(value, other))


@FILTERS.declare("symmetric_difference", "list", "list", example=("[1, 2] | symmetric_difference([2, 3])", "[1, 3]"))
def symmetric_difference(value: Any, other: Any) -> list[Any]:
    """The items that only one of the lists has, without repetitions."""
    _check_lists("symmetric_difference", value, other)
    return [*_distinct(value, map(identity, other)), *_distinct(other, map(identity, value))]


@FILTERS.declare("flatten", "list", "list", example=("[1, [2, [3]]] | flatten", "[1, 2, 3]"))
def flatten(value: Any, levels: int | None = None, skip_nulls: bool = True) -> list[Any]:
    """The items of nested lists, down to `levels` if given, without nulls."""
    _check_lists("flatten", value)
    if levels is not None and int(levels) < 0:
        raise Fault("flatten takes levels from 0")
    result: list[Any] = []
    stack, steps = [(iter(value), levels)], 0
    while stack:
        items, left = stack[-1]
        item = next(items, stack)
        if item is stack:
            stack.pop()
            continue
        steps += 1
        if steps > MAX_NODES:
            raise exceeded("{} items to flatten", steps, MAX_NODES)
        if is_list(item) and left != 0:
            stack.append((iter(item), None if left is None else int(left) - 1))
        elif item is not None or not skip_nulls:
            result.append(item)
    return result


@FILTERS.declare("zip", "list", "list of list", example=("['a', 'b'] | zip([1, 2])", "[[a, 1], [b, 2]]"))
def zipped(value: Any, *others: Any) -> list[list[Any]]:
    """Lists of the first items, the second items and so on, up to the length of the shortest list."""
    _check_lists("zip", value, *others)
    return [list(row) for row in zip(value, *others, strict=False)]


@FILTERS.declare(
    "zip_longest",
    "list",
    "list of list",
    example=("['a', 'b'] | zip_longest([1], fillvalue='-')", "[[a, 1], [b, '-']]"),
)
def zipped_to_longest(value: Any, *others: Any, fillvalue: Any = None) -> list[list[Any]]:
    """As `zip`, up to the length of the longest list."""
    _check_lists("zip_longest", value, *others)
    return [list(row) for row in itertools.zip_longest(value, *others, fillvalue=fillvalue)]


@FILTERS.declare("product", "list", "list of list", example=("[1, 2] | product(['a'])", "[[1, a], [2, a]]"))
def product(value: Any, *others: Any, repeat: int = 1) -> list[list[Any]]:
    """Each combination of an item of each list, the last list varying fastest."""
    _check_lists("product", value, *others)
    if not 1 <= int(repeat) <= MAX_REPEAT:
        raise Fault(f"product takes a repeat from 1 to {MAX_REPEAT}")
    lists = [value, *others] * int(repeat)
    return [list(row) for row in itertools.product(*lists)]
