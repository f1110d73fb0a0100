"""Which objects a list, a watch or a deletecollection concerns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.localcluster.errors import bad_request

if TYPE_CHECKING:
    from ruleop.kinds import Object

Selection: TypeAlias = "Callable[[Object], bool]"

_SET: Final = re.compile(r"^\s*(\S+)\s+(in|notin)\s*\(([^)]*)\)\s*$")


def selection_of(query: Mapping[str, str]) -> Selection | None:
    """None selects all. Raises Rejected."""
    tests = [*_labels(query.get("labelSelector", "")), *_fields(query.get("fieldSelector", ""))]
    if not tests:
        return None
    return lambda obj: all(test(obj) for test in tests)


def _labels(selector: str) -> Iterator[Selection]:
    for term in _terms(selector):
        yield _on_labels(_label_test(term))


def _on_labels(test: Callable[[Mapping[str, str]], bool]) -> Selection:
    return lambda obj: test(obj["metadata"].get("labels") or {})


def _on_field(names: list[str], value: str, *, negated: bool) -> Selection:
    return lambda obj: (_text(obj, names) == value) != negated


def _terms(selector: str) -> list[str]:
    """The requirements of a selector: its commas outside parentheses separate them."""
    return [term.strip() for term in re.split(r",(?![^(]*\))", selector) if term.strip()]


def _label_test(term: str) -> Callable[[Mapping[str, str]], bool]:
    if (found := _SET.match(term)) is not None:
        key, operator, members = found[1], found[2], {each.strip() for each in found[3].split(",")}
        return (
            (lambda labels: labels.get(key) in members)
            if operator == "in"
            else (lambda labels: labels.get(key) not in members)
        )
    if "!=" in term:
        key, value = (part.strip() for part in term.split("!=", 1))
        return lambda labels: labels.get(key) != value
    if "=" in term:
        key, value = (part.strip() for part in re.split("==?", term, maxsplit=1))
        return lambda labels: labels.get(key) == value
    if term.startswith("!"):
        return lambda labels: term[1:].strip() not in labels
    if re.search(r"\s", term):
        raise bad_request(f"unable to parse requirement: {term!r}")
    return lambda labels: term in labels


def _fields(selector: str) -> Iterator[Selection]:
    for term in _terms(selector):
        negated = "!=" in term
        path, found, value = term.partition("!=" if negated else "=")
        if not found:
            raise bad_request(f"invalid field selector: {term!r}")
        names = path.strip().split(".")
        value = value.lstrip("=").strip()
        yield _on_field(names, value, negated=negated)


def _text(obj: Any, names: list[str]) -> str:
    for name in names:
        obj = obj.get(name) if isinstance(obj, Mapping) else None
    if isinstance(obj, bool):
        return str(obj).lower()
    return "" if obj is None else str(obj)
