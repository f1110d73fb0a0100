"""Regular expressions of users. They are RE2's, in which a match takes time linear in the text.

RE2 is loaded with the first of them: most rules have none, and an operator would hold 3 MiB for nothing.
"""

from __future__ import annotations

from typing import Any


class InvalidPatternError(ValueError):
    """A regular expression that RE2, and so the API server, would reject. The message is the reason."""


def compile_re2(pattern: str, *, memory: int | None = None) -> Any:
    """`memory`: the bytes that the program may take, and the automaton that it builds. Raises InvalidPatternError."""
    import re2  # noqa: PLC0415 - see above

    options = re2.Options()
    options.log_errors = False
    if memory is not None:
        options.max_mem = memory
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidPatternError(text) from error
