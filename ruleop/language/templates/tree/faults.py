"""The errors of expressions, and their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jinja2

from ruleop.errors import RenderError
from ruleop.language.templates.values.faults import Fault, RuleErrors, fault_of, raise_for, reworded

if TYPE_CHECKING:
    from types import FrameType

    from ruleop.errors import Site


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
    if not str(frame.f_globals.get("__name__", "")).startswith(__name__.rpartition(".")[0]):
        return None
    names = frame.f_locals
    found = names.get("site") or getattr(names.get("place"), "site", None)
    return found if found is not None and found.line else None
