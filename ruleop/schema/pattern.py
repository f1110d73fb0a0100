r"""Go's regular expressions in Python's engine. A schema's `pattern` is written for Go (RE2), and the two differ where it hurts:

- `$` is the end of the text; Python's also matches before a last newline. `\d`, `\w` and `\s` are ASCII;
- `[[:alpha:]]`, `\z` and `\x{1F600}` exist in Go only;
- look-around, back-references and possessive repeats exist in Python only: the API server refuses a CRD that has them.

So each token is either known to mean the same, or translated, or refused as the server does; with any other one (Unicode classes,
flags in the middle) the pattern is left unchecked, because a false alarm is worse than none.
"""

from __future__ import annotations

import functools
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}

_TOKEN = re.compile(
    r"""
      (?P<set>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])
    | (?P<escape>\\(?:x\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|.))
    | (?P<group>\(\?(?:P?<[A-Za-z_]\w*>|[is]*:|[is]+\)|.))
    | (?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})\??)
    | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SET_TOKEN = re.compile(r"\[:(?P<posix>\w+):\]|(?P<escape>\\(?:x[0-9A-Fa-f]{2}|.))|(?P<plain>.)", re.DOTALL)

_SAME_ESCAPES = frozenset("dDwWnrtfav")
_MOST_REPEATS = 1000


class InvalidPatternError(ValueError):
    """Not a regular expression that the API server would accept. The message says why."""


class _UncheckableError(Exception):
    pass


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Callable[[str], bool] | None:
    """Tells whether a text holds a match, as the API server does; None if that cannot be told here. Raises InvalidPatternError."""
    try:
        found = re.compile(_translate(pattern), re.ASCII).search
    except _UncheckableError:
        return None
    except re.error as error:
        raise InvalidPatternError(str(error)) from error
    return lambda text: found(text) is not None


def _translate(pattern: str) -> str:
    out: list[str] = []
    before = ""
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup or "", token.group()
        if kind == "set":
            out.append(_set(text))
        elif kind == "escape":
            out.append(_escape(text))
        elif kind == "group":
            out.append(_group(text, at_start=token.start() == 0))
        elif kind == "repeat":
            out.append(_repeat(text, before=before))
        elif text == "\\":
            raise InvalidPatternError("it ends in a lone backslash")
        else:
            # A brace that begins no repeat is a brace; Python would read {,5} as a repeat.
            out.append({"$": r"\Z", "{": r"\{"}.get(text, text))
        before = kind
    return "".join(out)


def _escape(text: str) -> str:
    name = text[1:]
    if name.isdigit() and name != "0":
        raise InvalidPatternError(f"{text} refers back to a group, which the API server's engine (RE2) does not know")
    if name == "z":
        return r"\Z"
    if name == "s":
        return r"[\t\n\f\r ]"
    if name == "S":
        return r"[^\t\n\f\r ]"
    if name.startswith("x") and len(name) > 1:
        code = int(name.strip("x{}"), 16)
        if code > sys.maxunicode:
            raise InvalidPatternError(f"{text} is beyond Unicode")
        return re.escape(chr(code))
    if name in ("A", "b", "B") or name in _SAME_ESCAPES or not name.isalnum():
        return text
    raise _UncheckableError


def _group(text: str, *, at_start: bool) -> str:
    if "<" in text and text.endswith(">"):
        return f"(?P<{text.partition('<')[2]}"
    if text.endswith(":") or (text.endswith(")") and at_start):
        return text
    if text[2] in "ismU-":
        raise _UncheckableError
    raise InvalidPatternError(f"{text}...) is not known to the API server's engine (RE2), which has no look-around")


def _repeat(text: str, *, before: str) -> str:
    if before == "repeat":
        raise InvalidPatternError(f"{text} repeats a repeat")
    if any(int(bound) > _MOST_REPEATS for bound in re.findall(r"\d+", text)):
        raise InvalidPatternError(f"{text} repeats more than {_MOST_REPEATS} times")
    return text


def _set(text: str) -> str:
    start = 2 if text.startswith("[^") else 1
    out = [text[:start]]
    body = text[start:-1]
    if "--" in body or "[:^" in body:
        raise _UncheckableError
    for token in _SET_TOKEN.finditer(body):
        if posix := token.group("posix"):
            if posix not in _POSIX:
                raise InvalidPatternError(f"[:{posix}:] is not a class of characters")
            out.append(_POSIX[posix])
        elif escape := token.group("escape"):
            out.append(_set_escape(escape))
        else:
            # Python keeps these for set operators to come, and warns; ] can only stand here as the first one.
            plain = token.group()
            out.append(f"\\{plain}" if plain in "[]&~|" else plain)
    return "".join(out) + "]"


def _set_escape(text: str) -> str:
    name = text[1:]
    if name == "s":
        return r"\t\n\f\r "
    if name in _SAME_ESCAPES or not name.isalnum() or (name.startswith("x") and len(name) == 3):
        return text
    raise _UncheckableError
