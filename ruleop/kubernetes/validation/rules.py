"""Tables of validation: the path of a field, and the rules of its value.

A table is a mapping of paths to rules, to other tables, or to several of both. In a path, `ports[]` means each item of
a list, `spec!` a part that is checked as an empty one when it is missing, and `a b` two fields with the same rules.

A key may have a condition on the value that its table describes: `ports if type=A|B`, `ports if type!=A|B` (an empty
choice is a missing field), `a if b` (which has a value) and `a if !b`. Without a path, the rules are those of the value
itself. A function may be such a condition, too.

Rules are words (`needed`, `unset`, `label`, `port`, `A|B`, `1..10`), which say by themselves what is wrong, and
functions that yield the errors of a value.

Errors are rare. A check yields them with the fields below its value, and they get their place on the way out. A table
is compiled when it is first applied.
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
from ruleop.kubernetes.validation import field_errors as forms
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    forbidden_value,
    invalid_value,
    invalid_values,
    required,
)
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator


Errors: TypeAlias = Iterable[FieldError]
Check: TypeAlias = Callable[[Any, Any], Errors]
"""The errors of a value, given the one before an update; None for a new one."""
Test: TypeAlias = Callable[[Any], Any]
Rows: TypeAlias = Union[str, Check, "FieldRule", Mapping[Any, Any], tuple[Any, ...]]
"""Words, a rule, a table by paths and conditions, or several of them."""


class FieldRule(NamedTuple):
    check: Check
    missing: bool = False  # it concerns a missing value too


def missing(check: Check) -> FieldRule:
    return FieldRule(check, missing=True)


# -- rules -----------------------------------------------------------------------------------------------------------


def invalid(words: str, field: str = "") -> Check:
    """Each value is refused, or one of its fields, which may be missing: mostly under a condition."""
    return lambda value, _: (invalid_value(field, value.get(field) if field else value, words),)


def lacking(words: str, field: str = "") -> Check:
    """As `invalid`, where something is missing that another client may set."""
    return lambda _value, _: (required(field, words),)


def fails(test: Test) -> Test:
    return lambda value: not test(value)


def one_of(*supported: str, given: bool = False) -> FieldRule:
    """`given`: the value may not be missing."""
    return FieldRule(
        lambda value, _: () if value in supported else (forms.unsupported("", value or "", supported),), given
    )


def named(problems: Callable[[str], Iterable[str]], *, empty: bool = True, given: bool = False) -> FieldRule:
    """A text without such problems. `empty`: it may be empty. `given`: a missing one counts as empty."""
    return FieldRule(
        lambda value, _: invalid_values("", value or "", problems(value or "")) if value or not empty else (), given
    )


def text(*rows: tuple[str, str]) -> FieldRule:
    """A text that matches patterns, with the words for each."""
    return named(forms.form(*rows))


def between(least: int, most: int | None = None, *, given: bool = False) -> FieldRule:
    """A number. `given`: a missing one counts as 0."""
    words = (
        f"must be greater than or equal to {least}"
        if most is None
        else f"must be between {least} and {most}, inclusive"
    )

    def check(value: Any, _: Any) -> Errors:
        number = value or 0
        is_valid = not isinstance(number, int) or (least <= number and (most is None or number <= most))
        return () if is_valid else (invalid_value("", number, words),)

    return FieldRule(check, given)


def _quantity(*, least: int) -> FieldRule:
    """A quantity above zero; with `least` 0, one that is not negative."""
    words = "must be greater than zero" if least else "must be greater than or equal to 0"

    def check(value: Any, _: Any) -> Errors:
        amount = parse_quantity(value)
        return () if amount is None or amount > 0 or amount == least == 0 else (invalid_value("", value, words),)

    return FieldRule(check)


def unique(key: str = "", *, by: Test | None = None, empty: bool = False) -> Check:
    """A list of which no two items have the same value of a field, or of `by`; without a key, no two are the same.
    `empty`: nor are two without a value."""

    def check(items: Any, _: Any) -> Iterator[FieldError]:
        seen = set[Any]()
        for index, item in enumerate(items if len(items) > 1 else ()):
            value = item.get(key, "") if key else item
            identity = value if by is None else by(item)
            if identity in seen and (identity or empty):
                yield forms.duplicate(f"[{index}].{key}" if key else f"[{index}]", value)
            seen.add(identity)

    return check


def union(*order: str, but: Iterable[str] | None = None, whole: bool = False) -> Check:
    """One of these members of a value has to be there, and no other: the first in the order of the server. `but`: all
    other members belong to them too, except these. `whole`: errors are those of the value."""

    def check(value: Any, _: Any) -> Iterator[FieldError]:
        names = order if but is None else dict.fromkeys((*order, *value))
        given = [each for each in names if value.get(each) is not None and (but is None or each not in but)]
        if not given:
            words = f"must specify one of {', '.join(order) or 'its kinds'}"
            yield invalid_value("", "", words) if whole else required("", words)
        for each in given[1:]:
            yield forbidden_value("" if whole else each, f"may not be set beside {given[0]}")

    return check


def frozen(at: str = "", words: str = "") -> Check:
    """The fields of a kind that may not change. `at`: the field that the server names for all of them. `words`: those
    by which its clients know what this is about."""

    def check(new: Any, old: Any) -> Iterator[FieldError]:
        changes = immutable_changes(new, old)
        for path in changes and [at] if at else changes:
            value = value_at(new, path.partition("[")[0])
            shown = [] if path.endswith("]") and value is None else value
            yield forbidden_value(path, words) if words else forms.immutable_value(path, shown)

    return check


_NOT_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_percent_problems: Final = forms.form(("[0-9]+%", _NOT_PERCENT))


def _amount(value: Any, _: Any) -> Errors:
    """A number or a percentage, such as `maxSurge`."""
    if isinstance(value, str):
        return invalid_values("", value, _percent_problems(value))
    return between(0).check(value, None)


def number_of(value: str | int | None) -> int:
    """The number of a value that may be a percentage."""
    digits = str(value or 0).removesuffix("%")
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _part(value: Any, _: Any) -> Iterator[FieldError]:
    yield from _amount(value, None)
    if isinstance(value, str) and value.endswith("%") and number_of(value) > 100:
        yield invalid_value("", value, "must not be greater than 100%")


def _port_or_name(value: Any, _: Any) -> Errors:
    if isinstance(value, str):
        return invalid_values("", value, forms.port_name_problems(value))
    return _PORT.check(value, None)


def _config_keys(value: Any, _: Any) -> Iterator[FieldError]:
    for key in value:
        yield from invalid_values(f"[{key}]", key, forms.config_key_problems(key))


_PORT: Final = between(1, 65535, given=True)
_NAMES: Final[dict[str, Callable[[str], Iterable[str]]]] = {
    "label": forms.label_problems,
    "letter-label": forms.letter_label_problems,
    "kind": forms.kind_problems,
    "subdomain": forms.subdomain_problems,
    "key": key_problems,
    "label-value": label_value_problems,
    "config-key": forms.config_key_problems,
    "port-name": forms.port_name_problems,
    "wildcard": forms.wildcard_problems,
    "segment": forms.path_segment_problems,
    "address": forms.address_problems,
    "external-address": forms.external_address_problems,
    "network": forms.network_problems,
}
_SELECTOR: Final[Rows] = {
    "matchLabels": "labels",
    "matchExpressions[]": {
        "key": "given-key",
        "values[]": "label-value",
        "operator": one_of("In", "NotIn", "Exists", "DoesNotExist", given=True),
        "values if operator=In|NotIn": "needed",
        "values if operator=Exists|DoesNotExist": "empty",
    },
}
_WORDS: Final[Mapping[str, Rows]] = {
    **{name: named(problems) for name, problems in _NAMES.items()},
    **{f"given-{name}": named(problems, empty=False, given=True) for name, problems in _NAMES.items()},
    **{f"full-{name}": named(problems, empty=False) for name, problems in _NAMES.items()},
    "given": missing(lambda value, _: (required(""),) if value is None else ()),
    "filled": FieldRule(lambda value, _: () if value else (required(""),)),
    "port": {bool: _PORT},
    "port-or-name": missing(_port_or_name),
    "optional-port-or-name": FieldRule(_port_or_name),
    "amount": FieldRule(_amount),
    "part": FieldRule(_part),
    "quantity": _quantity(least=0),
    "positive-quantity": _quantity(least=1),
    "mode": between(0, 0o777),
    "selector": _SELECTOR,
    "labels": FieldRule(lambda value, _: forms.validate_labels(value, "")),
    "config-keys": FieldRule(_config_keys),
    "PROTOCOL": "SCTP|TCP|UDP",
}


def _rows_of(word: str, when: str) -> Rows:
    """A value that may not be missing has a word that ends with `!`; one that may be empty has an enumeration that
    begins with `|`. `when`: the condition, for messages."""
    if (found := _WORDS.get(word)) is not None:
        return found
    if word == "needed":
        return missing(lambda value, _: () if value else (required("", when),))
    if word in ("unset", "empty"):
        error = forbidden_value("", f"may not be set {when}".rstrip())
        return FieldRule(lambda value, _: (error,) if value or word == "unset" else ())
    least, dots, most = word.rstrip("!").partition("..")
    if dots:
        return between(int(least), int(most) if most else None, given=word.endswith("!"))
    values = one_of(*word.strip("!|").split("|"), given=word.endswith("!"))
    return {bool: values} if word.startswith("|") else values


_CONDITION: Final = re.compile(r"(!?)([\w.]+)(?:(!?=)(.*))?")


def _condition(text: str) -> tuple[Test, str]:
    """The test of a condition, and its words."""
    match = _CONDITION.fullmatch(text)
    assert match is not None, text
    negation, path, relation, listed = match.groups()
    if relation is None:
        found = "missing" if negation else "given"
        return lambda value: (value_at(value, path) is None) == bool(negation), f"`{path}` is {found}"
    choices, is_other = frozenset(each or None for each in listed.split("|")), relation == "!="
    shown = " or ".join(filter(None, listed.split("|"))) or "missing"
    words = f"`{path}` is {'not ' if is_other else ''}{shown}"
    return lambda value: ((value_at(value, path) or None) in choices) != is_other, words


# -- tables ----------------------------------------------------------------------------------------------------------


def table(rows: Rows) -> Check:
    """The check of a value and its parts."""
    compiled = functools.cache(lambda: _Node.of(rows).check())

    def check(value: Any, old: Any) -> Errors:
        return compiled()(value, old)

    return check


def new(rows: Rows) -> Check:
    """Rules that do not concern an update."""
    check = table(rows)
    return lambda value, old: check(value, None) if old is None else ()


def changed(rows: Rows) -> Check:
    """Rules that do not concern a value that an update leaves as it was."""
    check = table(rows)
    return lambda value, old: check(value, old) if old is None or value != old else ()


def remembered(rows: Rows) -> Check:
    """Rules that are not applied again to an equal value: a Deployment's pods are those of its ReplicaSet, and often of
    other Deployments."""
    check = table(rows)

    @functools.lru_cache(maxsize=256)
    def errors(value: bytes) -> Errors:
        return tuple(check(orjson.loads(value), None))

    return lambda value, _: errors(orjson.dumps(value))


_SELECTOR_ERRORS: Final = table("selector")


def is_invalid(selector: Any) -> bool:
    return any(_SELECTOR_ERRORS(selector, None))


def _below_test(test: Test, check: Check) -> Check:
    return lambda value, old: check(value, old) if test(value) else ()


@dataclass(slots=True, eq=False)
class _Node:
    """The rules of one value, and those of its parts."""

    when: str = ""  # the condition, for messages
    rules: list[FieldRule] = field(default_factory=list)
    fields: dict[str, _Node] = field(default_factory=dict)
    items: _Node | None = None
    is_filled: bool = False  # a missing value is checked as an empty one

    @classmethod
    def of(cls, rows: Rows, when: str = "") -> _Node:
        node = cls(when)
        node.add(rows)
        return node

    def add(self, rows: Rows) -> None:
        if isinstance(rows, str):
            for word in rows.split():
                self.add(_rows_of(word, self.when))
        elif isinstance(rows, FieldRule):
            self.rules.append(rows)
        elif isinstance(rows, tuple):
            for each in rows:
                self.add(each)
        elif isinstance(rows, Mapping):
            for key, inner in rows.items():
                self._add_row(key, inner)
        else:
            self.rules.append(FieldRule(rows))

    def _add_row(self, key: Any, rows: Rows) -> None:
        paths, conditional, condition = f" {key}".partition(" if ") if isinstance(key, str) else ("", "", "")
        if isinstance(key, str) and not conditional:
            for path in paths.split():
                self._below(path).add(rows)
            return
        test, words = _condition(condition) if conditional else (key, "")
        below = _Node.of({paths: rows} if paths else rows, f"when {words}" if words else "")
        self.rules.append(FieldRule(_below_test(test, below.check())))

    def _below(self, path: str) -> _Node:
        """The part of a value at a path."""
        node = self
        for step in path.split("."):
            if name := step.rstrip("![]"):
                node = node.fields.setdefault(name, _Node(self.when))
            node.is_filled |= step.endswith("!")
            if step.endswith("[]"):
                node.items = node.items or _Node(self.when)
                node = node.items
        return node

    def asks(self) -> bool:
        """Whether a missing value may have errors."""
        return self.is_filled or any(each.missing for each in self.rules)

    def check(self) -> Check:
        if len(self.rules) == 1 and not self.fields and self.items is None and not self.is_filled:
            return self.rules[0].check  # most values have but one rule
        items = self.items.check() if self.items is not None else None
        fields = [(name, each.check(), each.asks()) for name, each in self.fields.items()]
        is_filled, of_missing = self.is_filled, [each.check for each in self.rules if each.missing]
        checks = [each.check for each in self.rules]

        def visit(value: Any, old: Any) -> Errors:
            found: list[FieldError] = []
            if value is None and not is_filled:
                for check in of_missing:
                    found += check(None, old)
                return found
            value = {} if value is None else value
            for check in checks:
                found += check(value, old)
            if items is not None:
                for index, item in enumerate(value):
                    if errors := items(item, old[index] if old and index < len(old) else None):
                        found += [each.below(f"[{index}]") for each in errors]
            for name, check, asks in fields:
                member = value.get(name)
                if (member is not None or asks) and (errors := check(member, old.get(name) if old else None)):
                    found += [each.below(name) for each in errors]
            return found

        return visit
