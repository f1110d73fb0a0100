"""Label and field selectors of list and watch requests, as predicates over objects.

Mistakes raise Rejected with the real server's message. Fields are those of the index of a kind: a selector by any other
field is an error, not an empty result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from ruleop.core.labels import Requirement, meets
from ruleop.core.names import MAX_LABEL, MAX_NAME, QUALIFIED, is_subdomain
from ruleop.localcluster.status_errors import bad_request

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON, Kind, Object

Predicate: TypeAlias = Callable[["Object"], bool]

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
_QUALIFIED: Final = re.compile(QUALIFIED, re.ASCII)

_COMMON: Final = ("metadata.name", "metadata.namespace")
_INVOLVED: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    ("", "Node"): ("spec.unschedulable",),
    ("", "ReplicationController"): ("status.replicas",),
    ("", "Event"): (
        *(f"involvedObject.{name}" for name in _INVOLVED),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("events.k8s.io", "Event"): (
        *(f"regarding.{name}" for name in _INVOLVED),
        "reason",
        "reportingController",
        "source",
        "type",
    ),
    ("", "Namespace"): ("status.phase",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
    ("batch", "Job"): ("status.successful",),
    ("certificates.k8s.io", "CertificateSigningRequest"): ("spec.signerName",),
}
"""The fields by which the server selects objects of a kind, beside their names and namespaces."""

_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "status.successful": ("status", "succeeded"),
    "source": ("source", "component"),
}
"""Fields that the object has under another name."""


def label_selector(text: str) -> Predicate | None:
    """A predicate; None for a selector that selects everything. Raises Rejected."""
    requirements = label_requirements(text)
    if not requirements:
        return None
    if all(operator == "In" and len(values) == 1 for _, operator, values in requirements):
        return _with_labels([(key, next(iter(values))) for key, _, values in requirements])
    return lambda obj: meets((obj.get("metadata") or {}).get("labels") or {}, requirements)


def _with_labels(pairs: list[tuple[str, str]]) -> Predicate:
    def selects(obj: Object) -> bool:
        labels = (obj.get("metadata") or {}).get("labels") or {}
        return all(labels.get(key) == value for key, value in pairs)

    return selects


def label_requirements(text: str) -> tuple[Requirement, ...]:
    """The requirements of a selector such as `app=web,tier in (a,b),!old`. Raises Rejected."""
    tokens = _Tokens(text)
    found: list[Requirement] = []
    while True:
        word = tokens.take()
        if word == "" and not found:
            return ()
        if word in _SYMBOLS - {"!"} or not word:
            if found:
                raise bad_request(f"found '{word}', expected: identifier after ','")
            raise bad_request(f"found '{word}', expected: !, identifier, or 'end of string'")
        found.append(_requirement(word, tokens))
        word = tokens.take()
        if not word:
            return tuple(found)
        if word != ",":
            raise bad_request(f"found '{word}', expected: ',' or 'end of string'")


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


def _unparsable(problem: str) -> Exception:
    return bad_request(f"unable to parse requirement: {problem}")


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


# Field selectors


def field_selector(text: str, kind: Kind, *, custom: bool = False, selectable: Iterable[str] = ()) -> Predicate | None:
    """A predicate; None for a selector that selects everything. `selectable` are the selectableFields of a custom kind,
    as paths without the leading dot. Raises Rejected."""
    terms = field_terms(text)
    own = _FIELDS.get((kind.group, kind.kind), ())
    known = {*_COMMON, *own, *selectable}
    tests = []
    for path, value, negated in terms:
        if path not in known:
            raise bad_request(_unknown_field(path, kind, custom=custom, selectable=tuple(selectable)))
        tests.append((_ELSEWHERE.get(path) or tuple(path.split(".")), value, negated))
    if not tests:
        return None
    return lambda obj: all((_field_text(obj, names) == value) != negated for names, value, negated in tests)


def field_terms(text: str) -> list[tuple[str, str, bool]]:
    """The terms of a selector: path, value, and whether it is `!=`. Raises Rejected."""
    terms = []
    for part in sorted(re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)):
        match = re.search(r"!=|==|=", part)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append((part[: match.start()], _unescaped(part[match.end() :]), match[0] == "!="))
    return terms


def _unescaped(value: str) -> str:
    found, characters = [], iter(value)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", ",", "="):
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{escaped}")
            found.append(escaped)
        elif character in ",=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            found.append(character)
    return "".join(found)


def _unknown_field(path: str, kind: Kind, *, custom: bool, selectable: tuple[str, ...]) -> str:
    if custom:
        return f"field label not supported: {path}"
    if kind.kind == "Job" and kind.group == "batch":
        return f'field label "{path}" not supported for Job'
    if (kind.group, kind.kind) in _FIELDS or selectable:
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _field_text(obj: Object, names: tuple[str, ...]) -> str:
    value: JSON = obj
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return _zero_text(names)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _zero_text(names: tuple[str, ...]) -> str:
    """The text of a missing field in Go."""
    if names[-1] in ("unschedulable", "hostNetwork"):
        return "false"
    return "0" if names[-1] in ("replicas", "succeeded") else ""
