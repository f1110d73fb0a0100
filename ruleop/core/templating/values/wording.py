"""Rewords Python's type errors in the terms of templates: text, a number, a list, a mapping, null.

Only types and names of parameters are copied, because a value may be a Secret's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_NOUNS = {
    **dict.fromkeys(("str", "Text", "Dump"), "text"),
    **dict.fromkeys(("int", "float", "Exact", "Fraction"), "a number"),
    **dict.fromkeys(("list", "tuple", "range", "ListView", "ObjectsView"), "a list"),
    **dict.fromkeys(("dict", "MapView", "mapping"), "a mapping"),
    "bool": "a boolean",
    "NoneType": "null",
}


def _noun(python: str) -> str:
    return _NOUNS.get(python, "a value of this kind")


def _comparison(match: re.Match[str]) -> str:
    left, right = _noun(match[2]), _noun(match[3])
    if {left, right} == {"text", "a number"}:
        return f"{left} {match[1]} {right} is not possible; convert the text to a number with `| int`"
    return f"{left} {match[1]} {right} is not possible: compare numbers with numbers, text with text, lists with lists"


def _too_few(match: re.Match[str]) -> str:
    names = match[1].replace("'", "")
    return f"{names} is missing"


def _too_many(match: re.Match[str]) -> str:
    allowed = int(match[1]) - 1  # the value before the | is the first
    count = "no more arguments" if allowed < 1 else "one argument" if allowed == 1 else f"{allowed} arguments"
    return f"it takes {count} here"


_REWORDINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"'(<=?|>=?)' not supported between instances of '(\w+)' and '(\w+)'"), _comparison),
    (re.compile(r"'(\w+)' object is not iterable"), lambda match: f"needs a list, not {_noun(match[1])}"),
    (
        re.compile(r"object of type '(\w+)' has no len\(\)"),
        lambda match: f"needs text, a list or a mapping, not {_noun(match[1])}",
    ),
    (re.compile(r"bad operand type for .*: '(\w+)'"), lambda match: f"needs a number, not {_noun(match[1])}"),
    (re.compile(r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)"), _too_few),
    (re.compile(r"takes (?:from \d+ to )?(\d+) positional arguments? but"), _too_many),
    (re.compile(r"got an unexpected keyword argument '(\w+)'"), lambda match: f"unknown argument {match[1]}"),
    (re.compile(r"got multiple values for argument '(\w+)'"), lambda match: f"the argument {match[1]} is given twice"),
)


def reworded(error: TypeError) -> str:
    """The message in the terms of templates; "" if the error is not a known one."""
    text = str(error)
    for pattern, reword in _REWORDINGS:
        if match := pattern.search(text):
            return reword(match)
    return ""
