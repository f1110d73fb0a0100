"""The exceptions. A message says what is wrong, where, and what to do. If it quotes a value, the exception also has a
form without it, `redacted`, for objects that may hold values of Secrets."""

from __future__ import annotations

import dataclasses
import traceback
from typing import TYPE_CHECKING

from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator


class RuleopError(Exception):
    """An error that a user can act on. Any other exception is an internal error."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the user's files. Lines and columns count from 1; 0 means unknown."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.path
        return f"{self.path}:{self.line}:{self.column}" if self.column else f"{self.path}:{self.line}"


NAMED = "named"
"""The reason of a cause of which only the field is known. A redacted message does not have that field."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that the API server finds wrong with an object."""

    field: str
    reason: str = ""  # the API's word for it: FieldValueInvalid
    message: str = dataclasses.field(default="", repr=False)  # may quote the field's value
    mutable: frozenset[str] = frozenset()  # names below the field that may change, where the server lists them


class RuleError(RuleopError):
    """A mistake in the project's files, found when they are loaded."""

    def __init__(self, message: str, site: Site) -> None:
        super().__init__(f"{site}: {message}")
        self.message = message
        self.site = site

    def __reduce__(self) -> tuple[type[RuleError], tuple[str, Site]]:
        return RuleError, (self.message, self.site)


class RenderError(RuleopError):
    """A template or expression that cannot be evaluated for this CR."""

    def __init__(self, message: str, site: Site, *, expression: str = "", redacted: str = "") -> None:
        super().__init__(f"{site}: {message}")
        self.message = message
        self.redacted = redacted or message
        self.site = site
        self.expression = expression


def traceback_lines(error: BaseException) -> Iterator[str]:
    """The type and the traceback of an exception and of its causes. A message is included only of errors of ruleop,
    without quoted values: that of any other exception may be a value of a Secret."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        message = f": {getattr(found, 'redacted', '') or found}" if isinstance(found, RuleopError) else ""
        yield f"{type(found).__name__}{message}"
        for frame in reversed(traceback.extract_tb(found.__traceback__)):
            yield f"  {frame.filename}:{frame.lineno} in {frame.name}"
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
        if found is not None:
            yield "caused by"
