"""Python's own words about values that do not fit, in the words of those who write templates: text, a number, a list, a mapping, null.

Nothing but types and the names of parameters is taken over: a value may be a Secret's.
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


def _compared(match: re.Match[str]) -> str:
    left, right = _noun(match[2]), _noun(match[3])
    if {left, right} == {"text", "a number"}:
        return f"{left} {match[1]} {right} has no meaning; make a number of the text with `| int`"
    return f"{left} {match[1]} {right} has no meaning: numbers compare with numbers, text with text, lists with lists"


def _too_few(match: re.Match[str]) -> str:
    names = match[1].replace("'", "")
    return f"needs {names}, too"


def _too_many(match: re.Match[str]) -> str:
    most = int(match[1]) - 1  # what stands before the | is the first
    return f"it takes {'no more arguments' if most < 1 else 'one argument' if most == 1 else f'{most} arguments'} here"


_SAYINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"'(<=?|>=?)' not supported between instances of '(\w+)' and '(\w+)'"), _compared),
    (re.compile(r"'(\w+)' object is not iterable"), lambda match: f"needs a list, not {_noun(match[1])}"),
    (re.compile(r"object of type '(\w+)' has no len\(\)"), lambda match: f"needs text, a list or a mapping, not {_noun(match[1])}"),
    (re.compile(r"bad operand type for .*: '(\w+)'"), lambda match: f"needs a number, not {_noun(match[1])}"),
    (re.compile(r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)"), _too_few),
    (re.compile(r"takes (?:from \d+ to )?(\d+) positional arguments? but"), _too_many),
    (re.compile(r"got an unexpected keyword argument '(\w+)'"), lambda match: f"has no argument called {match[1]}"),
    (re.compile(r"got multiple values for argument '(\w+)'"), lambda match: f"was given {match[1]} twice"),
)


def reworded(error: TypeError) -> str:
    """What is wrong, for people; "" where Python says nothing that would help them."""
    text = str(error)
    for pattern, say in _SAYINGS:
        if match := pattern.search(text):
            return say(match)
    return ""
