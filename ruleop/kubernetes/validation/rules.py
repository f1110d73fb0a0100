"""The rules of values, by the words for them in the tables: `needed`, `label`, `port`, `A|B`, `1..10`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ruleop.kubernetes.builtin.immutable_fields import immutable_changes, value_at
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.validation import field_names
from ruleop.kubernetes.validation.addresses import validate_address
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden_value,
    invalid_value,
    invalid_values,
    required,
    unsupported,
)

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
        return invalid_values(at.field, value, field_names.port_name_problems(value))
    return _PORT.check(value, at)


def _segment(value: Any, at: At) -> Errors:
    problems = field_names.path_segment_problems(value or "")
    return invalid_values(at.field, value, problems) if value else (required(at.field),)


def selector_errors(selector: Any, at: At) -> Iterator[FieldError]:
    if labels := selector.get("matchLabels"):
        yield from field_names.validate_labels(labels, at.child("matchLabels"))
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
        yield from invalid_values(f"{field}.key", key, field_names.key_problems(key))
        for number, value in enumerate(values or ()):
            yield from invalid_values(f"{field}.values[{number}]", value, field_names.label_value_problems(value))


def _config_keys(value: Any, at: At) -> Iterator[FieldError]:
    for key in value:
        yield from invalid_values(f"{at.field}[{key}]", key, field_names.config_key_problems(key))


_PORT: Final = between(1, 65535, given=True)
_NAMES: Final[dict[str, Callable[[str], Iterable[str]]]] = {
    "label": field_names.label_problems,
    "subdomain": field_names.subdomain_problems,
    "key": field_names.key_problems,
    "config-key": field_names.config_key_problems,
    "port-name": field_names.port_name_problems,
    "wildcard": field_names.wildcard_problems,
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
    "size": quantity(),
    "selector": FieldRule(selector_errors),
    "labels": FieldRule(lambda value, at: field_names.validate_labels(value, at.field)),
    "config-keys": FieldRule(_config_keys),
    "address": placed(lambda value, at: validate_address(at.field, value, (at.old,)) if value else ()),
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
