"""Characters that change what a terminal shows, and how each kind of output escapes them.

Control characters (C0, DEL, C1) can move the cursor, set a title or answer for the user; bidirectional and other format
characters show text in another order, or hide it. Values of custom resources can hold any of them. JSON and YAML escape
them in their own way, so that a document holds the same data; other text shows the escape.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

import orjson

_UNSAFE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})  # categories of Unicode
_PERHAPS_UNSAFE: Final = re.compile(r"[^\t\n -~]")


def is_safe(sign: str) -> bool:
    """Whether a terminal shows the character. A line break is not safe, a tab is."""
    return sign == "\t" or unicodedata.category(sign) not in _UNSAFE


def printable(text: str) -> str:
    """Text for one line, with visible escapes."""
    if text.isprintable():
        return text
    return "".join(sign if is_safe(sign) else sign.encode("unicode_escape").decode() for sign in text)


def printable_lines(text: str) -> str:
    r"""The same for text of several lines, which \n separates."""
    return "\n".join(map(printable, text.split("\n")))


def json_document(value: Any) -> str:
    """JSON for people and in files: the same bytes each time."""
    return printable_json(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())


def printable_json(document: str) -> str:
    """A JSON document, in which these characters occur only in strings."""
    return _PERHAPS_UNSAFE.sub(lambda found: _json_escape(found[0]), document)


def printable_yaml(document: str) -> str:
    """A YAML document, in which these characters occur only in double quotes."""
    return _PERHAPS_UNSAFE.sub(lambda found: _yaml_escape(found[0]), document)


def _json_escape(sign: str) -> str:
    if is_safe(sign):
        return sign
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _yaml_escape(sign: str) -> str:
    if is_safe(sign):
        return sign
    return f"\\u{ord(sign):04X}" if ord(sign) <= 0xFFFF else f"\\U{ord(sign):08X}"
