"""Errors of expressions, inside a render and for its callers.

Inside a render a `Fault` has no place, because one value may be used in several: the slot that uses it adds one
(`Fault.at`). Callers get a `RenderError` with file, line and expression, or a `Waiting`, which is not a mistake.

A message that quotes a value, which may be a Secret's, has a second form without it: `redacted`. Who reports the error
decides which one is shown.

Python's type errors are reworded in the terms of templates: text, a number, a list, a mapping, null. Only types and
names of parameters are copied, because a value may be a Secret's.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, NoReturn, Self

import jinja2

from ruleop.errors import RenderError, RuleError, RuleopError, Site

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


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

    def __reduce__(self) -> tuple[type[RuleErrors], tuple[list[RuleError]]]:
        return RuleErrors, (self.mistakes,)


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


# -- places ------------------------------------------------------------------------------------------------------------


def fault_in(error: Exception) -> Fault:
    """The error of an expression as a fault. Raises what is not one."""
    if isinstance(error, (RecursionError, MemoryError)):
        raise error
    return fault_of(error) if isinstance(error, RenderError) else as_fault(error)


def as_fault(error: Exception) -> Fault:
    """The error of an expression as a fault, whose message contains no values."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, TypeError):
        return Fault(reworded(error) or "values of these types cannot be used together here")
    if isinstance(error, jinja2.TemplateError):
        return Fault(str(error.message))
    return Fault(f"this expression failed ({type(error).__name__})")


class located:  # noqa: N801 - used like a function; a class, because a generator is slow
    """`with located(site):` adds the site to errors that have none, and makes `RenderError` or `Waiting` of them."""

    __slots__ = ("expression", "site")

    def __init__(self, site: Site, expression: str = "") -> None:
        self.site = site
        self.expression = expression

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception):
            self.place(error)

    def place(self, error: Exception) -> None:
        """Raises the error with the site, unless it has one."""
        if isinstance(error, (RenderError, RuleErrors)):
            return
        if isinstance(error, RecursionError):
            message = "macros, includes or values are nested too deeply"
            raise RenderError(message, self.site, expression=self.expression) from None
        if isinstance(error, MemoryError):
            raise RenderError("the template needs too much memory", self.site, expression=self.expression) from None
        raise_for(as_fault(error), self.site, self.expression)


def template_line(frame: FrameType) -> Site | None:
    """The line of a template that a function of the tree evaluates in this frame; None for other code."""
    if not str(frame.f_globals.get("__name__", "")).startswith("ruleop.language.templates.tree."):
        return None
    names = frame.f_locals
    found = names.get("site") or getattr(names.get("place"), "site", None)
    return found if found is not None and found.line else None
