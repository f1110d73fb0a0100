"""Tables of validation: the path of a field, and the rules of its value.

A table is a mapping of paths to rules, to other tables, or to several of both. In a path, `ports[]` means each item of
a list, `spec!` a part that is checked as an empty one when it is missing, and `a b` two fields with the same rules.
Rules are words (`needed`, `label`, `port`, `A|B`, `1..10`), and functions that yield the errors of a value.

Most values are valid, so the place of one is found out only when it has an error, but for rules that read the old
value. A table is compiled when it is first applied.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, Union

import orjson

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes, value_at
from ruleop.kubernetes.labels import key_problems, label_value_problems
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    config_key_problems,
    duplicate,
    forbidden_value,
    invalid_value,
    invalid_values,
    kind_problems,
    label_problems,
    letter_label_problems,
    path_segment_problems,
    port_name_problems,
    required,
    subdomain_problems,
    unsupported,
    validate_address,
    validate_labels,
    wildcard_problems,
)
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object


Errors: TypeAlias = Iterable[FieldError]


class At(NamedTuple):
    """The place of a value."""

    field: str
    old: Any  # the value of this path before an update
    root: Object  # the whole object
    old_root: Object | None

    def child(self, name: str) -> str:
        return f"{self.field}.{name}" if self.field and name else self.field or name


Check: TypeAlias = Callable[[Any, At], Errors]


@dataclass(frozen=True, slots=True)
class FieldRule:
    check: Check
    missing: bool = False  # it concerns a missing value too
    is_local: bool = True  # the verdict depends on the value alone: its place is found out only if there are errors


def missing(check: Check) -> FieldRule:
    return FieldRule(check, missing=True)


def placed(check: Check) -> FieldRule:
    """A rule that reads the old value, or the whole object."""
    return FieldRule(check, is_local=False)


def on_update(check: Check) -> FieldRule:
    """A rule that does not concern new objects."""
    return placed(lambda value, at: check(value, at) if at.old_root is not None else ())


def invalid(at: str, test: Callable[[Any], bool], words: str, *, shown: Any = None) -> FieldRule:
    """A field is valid only if the test holds for the value that it belongs to. `shown`: what the server quotes instead
    of the field."""

    def check(value: Any, place: At) -> Errors:
        given = value.get(at)
        is_valid = given is None or test(value)
        return () if is_valid else (invalid_value(place.child(at), given if shown is None else shown, words),)

    return FieldRule(check)


def forbids(at: str, test: Callable[[Any], bool], words: str) -> FieldRule:
    """A field may be there only if the test holds."""
    return FieldRule(
        lambda value, place: () if value.get(at) is None or test(value) else (forbidden_value(place.child(at), words),)
    )


def requires(at: str, test: Callable[[Any], bool], words: str) -> FieldRule:
    """A field has to be there if the test holds."""
    return FieldRule(
        lambda value, place: (required(place.child(at), words),) if not value.get(at) and test(value) else ()
    )


def holds(test: Callable[[Any], bool], words: str, *, shown: Any = None) -> FieldRule:
    """A value is valid if the test holds. `shown`: what the server quotes instead of the value."""
    return FieldRule(
        lambda value, at: () if test(value) else (invalid_value(at.field, value if shown is None else shown, words),)
    )


def needed(words: str = "") -> FieldRule:
    return missing(lambda value, at: () if value else (required(at.field, words),))


def one_of(*supported: str, given: bool = False) -> FieldRule:
    """`given`: the value may not be missing."""
    return FieldRule(
        lambda value, at: () if value in supported else (unsupported(at.field, value or "", supported),), given
    )


def named(problems: Callable[[str], Iterable[str]], *, empty: bool = True, given: bool = False) -> FieldRule:
    """A text without such problems. `empty`: it may be empty. `given`: a missing one counts as empty."""

    def check(value: Any, at: At) -> Errors:
        found = problems(value or "") if value or not empty else ()
        return invalid_values(at.field, value or "", found) if found else ()

    return FieldRule(check, given)


def between(least: int, most: int | None, words: str = "", *, given: bool = False) -> FieldRule:
    """A number. `given`: a missing one counts as 0."""
    words = words or (f"must be between {least} and {most}, inclusive" if most is not None else _LEAST[least])

    def check(value: Any, at: At) -> Errors:
        number = value or 0
        is_valid = not isinstance(number, int) or (least <= number and (most is None or number <= most))
        return () if is_valid else (invalid_value(at.field, number, words),)

    return FieldRule(check, given)


_LEAST: Final = {0: "must be greater than or equal to 0", 1: "must be greater than 0"}


def quantity(words: str = "must be greater than zero", *, least: int = 1) -> FieldRule:
    """A quantity above zero; with `least` 0, one that is not negative."""

    def check(value: Any, at: At) -> Errors:
        amount = parse_quantity(value)
        is_valid = amount is None or amount > 0 or (not least and not amount)
        return () if is_valid else (invalid_value(at.field, value, words),)

    return FieldRule(check)


def unique(key: str, *, empty: bool = False) -> FieldRule:
    """A list of which no two items have the same value of a field. `empty`: nor none."""

    def check(items: Any, at: At) -> Iterator[FieldError]:
        seen = set[Any]()
        for index, value in enumerate(each.get(key, "") for each in items) if len(items) > 1 else ():
            if value in seen and (value or empty):
                yield duplicate(f"{at.field}[{index}].{key}", value)
            seen.add(value)

    return FieldRule(check)


def union(what: str, *order: str, but: Iterable[str] | None = None) -> FieldRule:
    """One of these members of a value has to be there, and no other: the first in the order of the server. `but`: all
    other members belong to them too, except these."""

    def check(value: Any, at: At) -> Iterator[FieldError]:
        names = order if but is None else dict.fromkeys((*order, *value))
        given = [each for each in names if value.get(each) is not None and (but is None or each not in but)]
        if not given:
            yield required(at.field, f"must specify a {what} type")
        yield from (forbidden_value(at.child(each), f"may not specify more than 1 {what} type") for each in given[1:])

    return FieldRule(check)


def frozen(words: str = "field is immutable", *, at: str = "", forbidden: bool = False) -> FieldRule:
    """The fields of a kind that may not change. `at`: the field that the server names for all of them."""

    def check(_: Any, place: At) -> Iterator[FieldError]:
        new, changes = place.root, immutable_changes(place.root, place.old_root)
        for path in [at] if at and changes else changes:
            text = words.format(path)
            yield forbidden_value(path, text) if forbidden else invalid_value(path, value_at(new, path), text)

    return on_update(check)


_PERCENT: Final = re.compile(r"[0-9]+%")
_NOT_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def _amount(value: Any, at: At) -> Errors:
    """A number or a percentage, such as `maxSurge`."""
    if isinstance(value, str):
        return () if _PERCENT.fullmatch(value) else (invalid_value(at.field, value, _NOT_PERCENT),)
    return () if value >= 0 else (invalid_value(at.field, value, _LEAST[0]),)


def _part(value: Any, at: At) -> Errors:
    is_more = isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:-1]) > 100
    return (
        *_amount(value, at),
        *((invalid_value(at.field, value, "must not be greater than 100%"),) if is_more else ()),
    )


def number_of(value: str | int | None) -> int:
    """The number of a value that may be a percentage."""
    digits = str(value or 0).removesuffix("%")
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _port_or_name(value: Any, at: At) -> Errors:
    if isinstance(value, str):
        return invalid_values(at.field, value, port_name_problems(value))
    return _PORT.check(value, at)


def _segment(value: Any, at: At) -> Errors:
    problems = path_segment_problems(value or "")
    return invalid_values(at.field, value, problems) if value else (required(at.field),)


def selector_errors(selector: Any, at: At) -> Iterator[FieldError]:
    if labels := selector.get("matchLabels"):
        yield from validate_labels(labels, at.child("matchLabels"))
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        field, operator, values = f"{at.field}.matchExpressions[{index}]", each.get("operator", ""), each.get("values")
        if operator in ("In", "NotIn") and not values:
            yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden_value(f"{field}.values", words)
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            yield invalid_value(f"{field}.operator", operator, "not a valid selector operator")
        key = each.get("key", "")
        yield from invalid_values(f"{field}.key", key, key_problems(key))
        for number, value in enumerate(values or ()):
            yield from invalid_values(f"{field}.values[{number}]", value, label_value_problems(value))


def _config_keys(value: Any, at: At) -> Iterator[FieldError]:
    for key in value:
        yield from invalid_values(f"{at.field}[{key}]", key, config_key_problems(key))


_PORT: Final = between(1, 65535, given=True)
_NAMES: Final[dict[str, Callable[[str], Iterable[str]]]] = {
    "label": label_problems,
    "letter-label": letter_label_problems,
    "kind": kind_problems,
    "subdomain": subdomain_problems,
    "key": key_problems,
    "config-key": config_key_problems,
    "port-name": port_name_problems,
    "wildcard": wildcard_problems,
}
_RULES: Final = {
    **{name: named(problems) for name, problems in _NAMES.items()},
    **{f"given-{name}": named(problems, empty=False, given=True) for name, problems in _NAMES.items()},
    **{f"full-{name}": named(problems, empty=False) for name, problems in _NAMES.items()},
    "needed": needed(),
    "given": missing(lambda value, at: (required(at.field),) if value is None else ()),
    "filled": FieldRule(lambda value, at: () if value else (required(at.field),)),
    "segment": missing(_segment),
    "port": FieldRule(lambda value, at: _PORT.check(value, at) if value else ()),
    "port-or-name": missing(_port_or_name),
    "optional-port-or-name": FieldRule(_port_or_name),
    "amount": FieldRule(_amount),
    "part": FieldRule(_part),
    "mode": between(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive"),
    "selector": FieldRule(selector_errors),
    "labels": FieldRule(lambda value, at: validate_labels(value, at.field)),
    "config-keys": FieldRule(_config_keys),
    "given-address": missing(lambda value, at: validate_address(at.field, value or "")),
    "PROTOCOL": one_of("SCTP", "TCP", "UDP"),
}


def rule(word: str) -> FieldRule:
    """The rule for a word of a table. A value that may not be missing has one that ends with `!`; one that may be
    empty has an enumeration that begins with `|`."""
    if (found := _RULES.get(word)) is not None:
        return found
    least, dots, most = word.rstrip("!").partition("..")
    if dots:
        return between(int(least), int(most) if most else None, given=word.endswith("!"))
    values = one_of(*word.strip("!|").split("|"), given=word.endswith("!"))
    return FieldRule(lambda value, at: values.check(value, at) if value else ()) if word.startswith("|") else values


# -- tables ----------------------------------------------------------------------------------------------------------


Rows: TypeAlias = Union[str, Check, FieldRule, "Mapping[str, Rows]", "tuple[Rows, ...]"]


def is_new(_: Any, at: At) -> bool:
    return at.old_root is None


def is_changed(value: Any, at: At) -> bool:
    return at.old_root is None or value != at.old


def sub_table(
    rows: Rows,
    *,
    when: Callable[[Any, At], bool] = lambda *_: True,
    prepare: Callable[[Any, At], Any] | None = None,
    remembered: bool = False,
) -> FieldRule:
    """A table for a value that applies only `when` a test holds, or to the value that `prepare` makes of it. If it is
    `remembered`, it is not applied again to an equal value that had no errors: a Deployment's pods are those of its
    ReplicaSet, and often of other Deployments."""
    compiled = functools.cache(lambda: RuleTable(rows))

    @functools.lru_cache(maxsize=256)
    def is_valid(value: bytes) -> bool:
        return not compiled().errors(orjson.loads(value), _NOWHERE)

    def check(value: Any, at: At) -> Errors:
        if not when(value, at):
            return ()
        value = value if prepare is None else prepare(value, at)
        return () if remembered and is_valid(orjson.dumps(value)) else compiled().errors(value, at)

    return placed(check)


_NOWHERE: Final = At("", None, {}, None)
_Where: TypeAlias = "tuple[_Where, str | int] | None"
"""The steps to a value, the last one first."""
_Visit: TypeAlias = Callable[[Any, _Where, Any, At, list[FieldError]], None]
"""(value, its place, the old value, the place of the whole, errors): adds the errors of a value."""


class RuleTable:
    """A table that is ready to be applied."""

    def __init__(self, rows: Rows) -> None:
        node = _Node()
        _add(node, rows)
        self._visit = node.visitor()

    def errors(self, value: Any, at: At) -> list[FieldError]:
        found: list[FieldError] = []
        self._visit(value, None, at.old, at, found)
        return found


@dataclass(slots=True, eq=False)
class _Node:
    """The rules of one value, and those of its parts."""

    rules: list[FieldRule] = field(default_factory=list)
    fields: dict[str, _Node] = field(default_factory=dict)
    items: _Node | None = None
    is_filled: bool = False  # a missing value is checked as an empty one

    def visitor(self) -> _Visit:
        items = self.items.visitor() if self.items is not None else None
        fields = [(name, f".{name}", each.leaf(), each.visitor(), each.asks()) for name, each in self.fields.items()]
        is_filled, of_missing = self.is_filled, [each.check for each in self.rules if each.missing]
        local = [each.check for each in self.rules if each.is_local]
        others = [each.check for each in self.rules if not each.is_local]

        def visit(value: Any, where: _Where, old: Any, top: At, found: list[FieldError]) -> None:
            if value is None and not is_filled:
                for check in of_missing:
                    found += check(None, _place(where, old, top))
                return
            value = {} if value is None else value
            for check in local:
                if any(check(value, _NOWHERE)):
                    found += check(value, _place(where, old, top))
            for check in others:
                found += check(value, _place(where, old, top))
            if items is not None:
                for index, item in enumerate(value):
                    items(item, (where, index), old[index] if old and index < len(old) else None, top, found)
            for name, step, leaf, inner, asks in fields:
                member = value.get(name)
                if asks if member is None else leaf is None or any(leaf(member, _NOWHERE)):
                    inner(member, (where, step), old and old.get(name), top, found)

        return visit

    def asks(self) -> bool:
        """Whether a missing value may have errors."""
        return self.is_filled or any(each.missing for each in self.rules)

    def leaf(self) -> Check | None:
        """The rule of a value that has but this one: most values need no visit."""
        is_leaf = len(self.rules) == 1 and self.rules[0].is_local and not self.fields and self.items is None
        return self.rules[0].check if is_leaf else None


def _place(where: _Where, old: Any, top: At) -> At:
    if where is None:
        return top
    steps = []
    while where is not None:
        where, step = where
        steps.append(f"[{step}]" if isinstance(step, int) else step)
    path = "".join(reversed(steps))
    return At(top.field + path if top.field else path.removeprefix("."), old, top.root, top.old_root)


def _add(node: _Node, rows: Rows) -> None:
    if isinstance(rows, str):
        node.rules += map(rule, rows.split())
    elif isinstance(rows, tuple):
        for each in rows:
            _add(node, each)
    elif isinstance(rows, Mapping):
        for paths, inner in rows.items():
            for path in paths.split():
                _add(_below(node, path), inner)
    else:
        node.rules.append(rows if isinstance(rows, FieldRule) else FieldRule(rows))


def _below(node: _Node, path: str) -> _Node:
    """The part of a value at a path."""
    for step in path.split("."):
        if name := step.rstrip("![]"):
            node = node.fields.setdefault(name, _Node())
        node.is_filled |= step.endswith("!")
        if step.endswith("[]"):
            node.items = node.items or _Node()
            node = node.items
    return node
