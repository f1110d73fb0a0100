"""The test `version`: the order of versions as in Ansible, loose or by the rules of SemVer.

Loosely, a version is its numbers and the texts between them: 1.9 is before 1.10, and 1.2 before 1.2.0. The `v` of a tag
does not count.
"""

from __future__ import annotations

import operator as operators
import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.templating.values.cost import METER
from ruleop.core.templating.values.data import scalar_text
from ruleop.core.templating.values.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LONGEST: Final = 256
_LOOSE_PART: Final = re.compile(r"([0-9]+|[a-z]+|\.)")
_NUMBER: Final = r"(0|[1-9][0-9]*)"
_SEMVER: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_OPERATORS: Final = {
    **dict.fromkeys(("==", "=", "eq"), operators.eq),
    **dict.fromkeys(("!=", "<>", "ne"), operators.ne),
    **dict.fromkeys(("<", "lt"), operators.lt),
    **dict.fromkeys(("<=", "le"), operators.le),
    **dict.fromkeys((">", "gt"), operators.gt),
    **dict.fromkeys((">=", "ge"), operators.ge),
}


def version(value: Any, other: Any, operator: str = "eq", *, version_type: str = "loose") -> bool:
    """Whether the version is before, after or the same as the other, as the operator asks."""
    if operator not in _OPERATORS:
        raise Fault("version takes one of the operators ==, !=, <, <=, > and >=")
    if version_type not in _READERS:
        raise Fault("version: version_type is 'loose' or 'semver'")
    read = _READERS[version_type]
    try:
        return bool(_OPERATORS[operator](read(value), read(other)))
    except TypeError:
        raise Fault("version: one version has a number where the other has text, so they have no order") from None


def _text(value: Any) -> str:
    text = scalar_text(value)
    if not 0 < len(text) <= _LONGEST:
        raise Fault(f"version takes versions of 1 to {_LONGEST} characters")
    METER.spend(2 + len(text))
    return text[1:] if text[0] == "v" and text[1:2].isdecimal() else text


def _loose(value: Any) -> list[int | str]:
    parts = (part for part in _LOOSE_PART.split(_text(value)) if part not in {"", "."})
    return [int(part) if part.isdecimal() else part for part in parts]


def _semver(value: Any) -> tuple[Any, ...]:
    match = _SEMVER.fullmatch(_text(value))
    if match is None:
        raise Fault("version: not a version by SemVer, such as 1.2.3 or 1.2.3-rc.1")
    *core, early = match.groups()
    parts = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in early.split(".")] if early else []
    return (*map(int, core), not early, parts)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {"loose": _loose, "semver": _semver, "semantic": _semver}
