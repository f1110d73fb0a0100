"""Labels: valid keys and values, and requirements on them, as objects and the text of a selector have them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from ruleop.kubernetes.names import MAX_LABEL, MAX_NAME, QUALIFIED, SUBDOMAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any


Requirement: TypeAlias = tuple[str, str, frozenset[str]]
"""A label's key, an operator (In, NotIn, Exists, DoesNotExist, Gt, Lt) and values."""


Matches: TypeAlias = "Callable[[Mapping[str, str]], bool]"
"""Whether an object with these labels is selected."""


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def any_labels(_: Mapping[str, str]) -> bool:
    """The selector that matches all objects."""
    return True


def requirements_of(selector: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """Those of a label selector with `matchLabels` and `matchExpressions`."""
    return (
        *((key, "In", frozenset([value])) for key, value in (selector.get("matchLabels") or {}).items()),
        *(
            (each["key"], each["operator"], frozenset(each.get("values") or []))
            for each in selector.get("matchExpressions") or []
        ),
    )


def meets(labels: Mapping[str, str], requirements: Iterable[Requirement]) -> bool:
    return all(_holds(labels, key, operator, values) for key, operator, values in requirements)


def _holds(labels: Mapping[str, str], key: str, operator: str, values: frozenset[str]) -> bool:
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    if operator in ("Gt", "Lt"):
        return _compares(labels.get(key), operator, values)
    return (key in labels) == (operator == "Exists")


def _compares(value: str | None, operator: str, values: frozenset[str]) -> bool:
    try:
        number, limit = int(value or ""), int(next(iter(values)))
    except ValueError:
        return False
    return number > limit if operator == "Gt" else number < limit


# -- keys and values, in the words of the API server -----------------------------------------------------------------

NOT_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_KEY_FORM: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_NOT_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_QUALIFIED: Final = re.compile(QUALIFIED, re.ASCII)
_SUBDOMAIN: Final = re.compile(SUBDOMAIN, re.ASCII)


@lru_cache(maxsize=1024)
def key_problems(key: str, what: str = "a qualified name") -> tuple[str, ...]:
    """The reasons for which a text is not a qualified name: the key of a label, an annotation, a finalizer."""
    return tuple(_key_problems(key, what))


def _key_problems(key: str, what: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield f"{what} {_KEY_FORM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash and len(prefix) > MAX_NAME:
        yield f"prefix part must be no more than {MAX_NAME} bytes"
    elif slash and not _SUBDOMAIN.fullmatch(prefix):
        yield f"prefix part {NOT_SUBDOMAIN}"
    if not name:
        yield "name part must be non-empty"
    elif len(name) > MAX_LABEL:
        yield f"name part must be no more than {MAX_LABEL} bytes"
    if not _QUALIFIED.fullmatch(name):
        yield f"name part {_KEY_FORM}"


@lru_cache(maxsize=1024)
def label_value_problems(value: str) -> tuple[str, ...]:
    too_long = (f"must be no more than {MAX_LABEL} bytes",) if len(value) > MAX_LABEL else ()
    return too_long if not value or _QUALIFIED.fullmatch(value) else (*too_long, _NOT_VALUE)


# -- selectors in their text form ------------------------------------------------------------------------------------
#
# As requests and flags have them: `app=web,tier in (a,b),!old`. Mistakes have the API server's words.


_TOKEN: Final = re.compile(r"\s*(?:(==|!=|[=!(),<>])|([^=!(),<>\s]+)|$)")
_OPERATORS: Final[Mapping[str, str]] = {
    "in": "In",
    "notin": "NotIn",
    "=": "In",
    "==": "In",
    "!=": "NotIn",
    ">": "Gt",
    "<": "Lt",
}
_SYMBOLS: Final = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_NEGATIONS: Final[Mapping[str, str]] = {
    "In": "{key} notin ({values})",
    "NotIn": "{key} in ({values})",
    "Exists": "!{key}",
    "DoesNotExist": "{key}",
}
_LONGEST: Final = 2000  # characters of a selector that is made: it is part of a URL


def label_requirements(text: str) -> tuple[Requirement, ...]:
    """The requirements of a selector such as `app=web,tier in (a,b),!old`. Raises ValueError."""
    tokens = _Tokens(text)
    found: list[Requirement] = []
    while True:
        word = tokens.take()
        if word == "" and not found:
            return ()
        if word in _SYMBOLS - {"!"} or not word:
            if found:
                raise ValueError(f"found '{word}', expected: identifier after ','")
            raise ValueError(f"found '{word}', expected: !, identifier, or 'end of string'")
        found.append(_requirement(word, tokens))
        word = tokens.take()
        if not word:
            return tuple(found)
        if word != ",":
            raise ValueError(f"found '{word}', expected: ',' or 'end of string'")


def matched_by_none(selectors: Iterable[tuple[Requirement, ...]]) -> str:
    """A selector of all objects that none of these selectors matches, and perhaps of others: it has no `or`, so only a
    selector with a single requirement can be negated in it."""
    found = ""
    for selector in selectors:
        if len(selector) == 1 and (negation := _NEGATIONS.get(selector[0][1])) is not None:
            key, _, values = selector[0]
            longer = f"{found},{negation.format(key=key, values=','.join(sorted(values)))}".lstrip(",")
            found = longer if len(longer) <= _LONGEST else found
    return found


class _Tokens:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        position = 0
        while match := _TOKEN.match(text, position):
            self._tokens.append(match[1] or match[2] or "")
            position = match.end()
            if not self._tokens[-1]:
                break
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self) -> str:
        word = self.peek()
        self._at += 1
        return word


def _requirement(first: str, tokens: _Tokens) -> Requirement:
    absent = first == "!"
    key = tokens.take() if absent else first
    if not key or key in _SYMBOLS:
        raise _unparsable(f"found '{key}', expected: identifier")
    if problems := key_problems(key, "a valid label key"):
        raise _unparsable(f'<nil>: Invalid value: "{key}": {"; ".join(problems)}')
    if absent:
        return key, "DoesNotExist", frozenset()
    if tokens.peek() in ("", ","):
        return key, "Exists", frozenset()
    word = tokens.take()
    operator = _OPERATORS.get(word)
    if operator is None:
        raise _unparsable(f"found '{word}', expected: in, notin, =, ==, !=, gt, lt")
    values = _values(tokens) if word in ("in", "notin") else _value(tokens)
    if operator in ("Gt", "Lt") and not re.fullmatch(r"[+-]?[0-9]+", values[0]):
        raise _unparsable(
            f"values[0]: Invalid value: \"{values[0]}\": for 'Gt', 'Lt' operators, the value must be an integer"
        )
    for index, value in enumerate(sorted(set(values))):
        if problems := label_value_problems(value):
            raise _unparsable(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(problems)}')
    return key, operator, frozenset(values)


def _value(tokens: _Tokens) -> list[str]:
    if tokens.peek() in ("", ","):
        return [""]
    word = tokens.take()
    if word in _SYMBOLS:
        raise _unparsable(f"found '{word}', expected: identifier")
    return [word]


def _values(tokens: _Tokens) -> list[str]:
    """The values in parentheses. Where there is nothing between commas, the value is empty."""
    word = tokens.take()
    if word != "(":
        raise _unparsable(f"found '{word}' expected: '('")
    if tokens.peek() not in (")", ",") and (tokens.peek() in _SYMBOLS or not tokens.peek()):
        raise _unparsable(f"found '{tokens.peek()}', expected: ',', ')' or identifier")
    values: list[str] = []
    while True:
        if tokens.peek() in (",", ")"):
            values.append("")
        else:
            word = tokens.take()
            if word in _SYMBOLS or not word:
                raise _unparsable(f"found '{word}', expected: ',', or identifier")
            values.append(word)
        word = tokens.peek()
        if word not in (",", ")"):
            raise _unparsable(f"found '{word}', expected: ',' or ')'")
        tokens.take()
        if word == ")":
            return values


def _unparsable(problem: str) -> ValueError:
    return ValueError(f"unable to parse requirement: {problem}")
