"""Errors of expressions, inside a render and for its callers.

Inside a render a `Fault` has no place, because one value may be used in several: the slot that uses it adds one
(`Fault.at`). Callers get a `RenderError` with file, line and expression, or a `Waiting`, which is not a mistake.

A message that quotes a value, which may be a Secret's, has a second form without it: `redacted`. Who reports the error
decides which one is shown.
"""

from __future__ import annotations

import copy
from typing import NoReturn, Self

import jinja2

from ruleop.core.errors import RenderError, RuleError, RuleopError, Site


class Fault(jinja2.TemplateRuntimeError):
    """The reason why an expression has no value."""

    kind = "error"

    def __init__(self, reason: str, *, redacted: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.redacted = redacted or reason
        self.site: Site | None = None
        self.expression = ""

    def at(self, site: Site, expression: str) -> Self:
        """A copy with this place, or the fault itself if it has one. A copy, because the value may be used elsewhere
        too."""
        if self.site is not None:
            return self
        placed = copy.copy(self)
        placed.site = site
        placed.expression = expression
        return placed


class NotThereYet(Fault):
    """The value is not available yet: the render waits for `path`. `why` is one word for what is missing."""

    kind = "later"
    forbidden = False

    def __init__(self, path: str, *, why: str = "value") -> None:
        super().__init__(f"{path} is not available yet")
        self.path = path
        self.why = why


class NotPermitted(NotThereYet):
    """The value cannot be read: `path` is the message about the missing permission."""

    forbidden = True


class RuleErrors(RuleopError):  # noqa: N818 - several of them
    """Several mistakes at once."""

    def __init__(self, mistakes: list[RuleError]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


class Waiting(RenderError):  # noqa: N818 - not an error
    """The render needs a value that is not available yet, at `path`. Not a mistake."""

    def __init__(
        self, path: str, site: Site, *, expression: str = "", why: str = "value", forbidden: bool = False
    ) -> None:
        super().__init__(path if forbidden else f"{path} is not available yet", site, expression=expression)
        self.path = path
        self.why = why
        self.forbidden = forbidden  # a permission is missing; `path` says which


class LimitExceeded(RenderError):  # noqa: N818 - named for the condition
    """A render that exceeds a limit. Further renders of the same pass would probably exceed it too."""


def mistake(message: str, site: Site) -> RuleErrors:
    """An exception for a single mistake."""
    return RuleErrors([RuleError(message, site)])


def raise_for(fault: Fault, site: Site, expression: str = "") -> NoReturn:
    """Raises the fault as a RenderError or Waiting, with its own place or else the given one."""
    at = fault.site or site
    source = fault.expression or expression
    if isinstance(fault, NotThereYet):
        raise Waiting(fault.path, at, expression=source, why=fault.why, forbidden=fault.forbidden) from None
    message, redacted = (
        f"{{{{ {source} }}}}: {reason}" if source and not reason.startswith(source) else reason
        for reason in (fault.reason, fault.redacted)
    )
    error = LimitExceeded if fault.kind == "limit" else RenderError
    raise error(message, at, expression=source, redacted=redacted) from None


def fault_of(error: RenderError) -> Fault:
    """The inverse of `raise_for`: the error of one evaluation as a fault in another."""
    fault: Fault = Fault(error.message, redacted=error.redacted)
    if isinstance(error, Waiting):
        fault = (NotPermitted if error.forbidden else NotThereYet)(error.path, why=error.why)
    if isinstance(error, LimitExceeded):
        fault.kind = "limit"
    fault.site = error.site
    fault.expression = error.expression
    return fault
