"""Why an expression has no value, as its evaluation raises it; and what callers get to see of it.

Inside a render a `Fault` travels without a place, because one value may be used in many: the slot that uses it says where (`Fault.at`).
What leaves the room is a `RenderError` with file, line and expression, or a `Waiting`, which is no mistake. None of them ever holds a
value: a value may be a Secret's.
"""

from __future__ import annotations

import copy
from typing import NoReturn, Self

import jinja2

from ruleop.errors import RenderError, RuleError, RuleopError, Site


class Fault(jinja2.TemplateRuntimeError):
    """Why an expression has no value."""

    kind = "error"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.site: Site | None = None
        self.expression = ""

    def at(self, site: Site, expression: str) -> Self:
        """The same, said to be here, unless it knows better. A copy: what is broken may be used again elsewhere."""
        if self.site is not None:
            return self
        placed = copy.copy(self)
        placed.site = site
        placed.expression = expression
        return placed


class NotThereYet(Fault):
    """The value will come: what needs it waits for `path`. `why` is one word for it, where it is more than a value."""

    kind = "later"
    forbidden = False

    def __init__(self, path: str, *, why: str = "value") -> None:
        super().__init__(f"{path} is not there yet")
        self.path = path
        self.why = why


class NotPermitted(NotThereYet):
    """The value cannot be read: `path` is the sentence that says which permission is missing."""

    forbidden = True


class RuleErrors(RuleopError):  # noqa: N818 - several of them
    """Several mistakes at once."""

    def __init__(self, mistakes: list[RuleError]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


class Waiting(RenderError):  # noqa: N818 - no mistake
    """What is rendered needs something that is not there yet. Not a mistake: it waits for `path`."""

    def __init__(self, path: str, site: Site, *, expression: str = "", why: str = "value", forbidden: bool = False) -> None:
        super().__init__(path if forbidden else f"{path} is not there yet", site, expression=expression)
        self.path = path
        self.why = why
        self.forbidden = forbidden  # a permission is missing; `path` says which


class LimitExceeded(RenderError):  # noqa: N818 - reads as what it is
    """A render that costs more than one may: the next one of the same pass would cost as much again."""


def mistake(message: str, site: Site) -> RuleErrors:
    """One mistake, as what is raised for several."""
    return RuleErrors([RuleError(message, site)])


def raise_for(fault: Fault, site: Site, expression: str = "") -> NoReturn:
    """Raises the fault as what callers know, with its place, or else this one."""
    at = fault.site or site
    said = fault.expression or expression
    if isinstance(fault, NotThereYet):
        raise Waiting(fault.path, at, expression=said, why=fault.why, forbidden=fault.forbidden) from None
    message = f"{{{{ {said} }}}}: {fault.reason}" if said and not fault.reason.startswith(said) else fault.reason
    raise (LimitExceeded if fault.kind == "limit" else RenderError)(message, at, expression=said) from None


def fault_of(error: RenderError) -> Fault:
    """The other way about: an error that one evaluation ended with, as a value of the next one."""
    fault: Fault = Fault(error.message)
    if isinstance(error, Waiting):
        fault = (NotPermitted if error.forbidden else NotThereYet)(error.path, why=error.why)
    if isinstance(error, LimitExceeded):
        fault.kind = "limit"
    fault.site = error.site
    fault.expression = error.expression
    return fault
