"""The keyword `pattern` of a schema: a regular expression in RE2 syntax, which the API server's engine (Go's) also has.

The time of a match is linear in the text, whatever the pattern.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import re2

if TYPE_CHECKING:
    from collections.abc import Callable


class InvalidPatternError(ValueError):
    """A regular expression that the API server would reject. The message is the reason."""


@functools.lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Returns a function that tests whether a text contains a match. Raises InvalidPatternError."""
    options = re2.Options()
    options.log_errors = False
    try:
        search = re2.compile(pattern, options).search
    except re2.error as error:
        raise InvalidPatternError(_reason(error)) from error

    def matches(text: str) -> bool:
        try:
            return search(text) is not None
        except UnicodeEncodeError:  # half of a surrogate pair, which the API server rejects as well
            return False

    return matches


def _reason(error: re2.error) -> str:
    reason = error.args[0] if error.args else b""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
