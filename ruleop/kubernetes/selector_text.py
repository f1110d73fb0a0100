"""Label selectors in their text form, as requests and flags have them: `app=web,tier in (a,b),!old`.

Mistakes have the API server's words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.names import MAX_LABEL, MAX_NAME, QUALIFIED, is_subdomain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kubernetes.labels import Requirement

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
_QUALIFIED: Final = re.compile(QUALIFIED, re.ASCII)


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
    if problem := _key_problem(key):
        raise _unparsable(f'<nil>: Invalid value: "{key}": {problem}')
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
        if problem := _value_problem(value):
            raise _unparsable(f'values[{index}][{key}]: Invalid value: "{value}": {problem}')
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


_KEY_FORM: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def _key_problem(key: str) -> str:
    *prefix, name = key.split("/")
    if len(prefix) > 1:
        return (
            f"a valid label key {_KEY_FORM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    if prefix and not prefix[0]:
        return "prefix part must be non-empty"
    if prefix and len(prefix[0]) > MAX_NAME:
        return f"prefix part must be no more than {MAX_NAME} bytes"
    if prefix and not is_subdomain(prefix[0]):
        return (
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
            "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation "
            r"is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    if not name:
        return f"name part must be non-empty; name part {_KEY_FORM}"
    problems = [f"name part must be no more than {MAX_LABEL} bytes"] if len(name) > MAX_LABEL else []
    if not _QUALIFIED.fullmatch(name):
        problems.append(f"name part {_KEY_FORM}")
    return "; ".join(problems)


def _value_problem(value: str) -> str:
    problems = [f"must be no more than {MAX_LABEL} bytes"] if len(value) > MAX_LABEL else []
    if value and not _QUALIFIED.fullmatch(value):
        problems.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )
    return "; ".join(problems)
