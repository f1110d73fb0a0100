"""Jinja's parser, which is all that is used of its environment: nothing is compiled to Python. The parsed templates
become trees, which `templates.tree` evaluates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import TokenStream
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ruleop.language.templates.compile.tokens import SHELL_LENGTH, STAND_IN, Marked, PrintedTag, mark_up

if TYPE_CHECKING:
    from ruleop.language.templates.filters.registry import Callables


MAX_DIGITS: Final = 1000
"""Of an integer literal. Python parses at most 4300 digits; `hints` checks the size of the number."""


class ParserEnvironment(ImmutableSandboxedEnvironment):
    # Jinja computes an operation of constants where it only looks for names, unless a sandbox intercepts it.
    intercepted_binops = frozenset({"+", "*", "**", "%", "//", "/", "-"})

    def __init__(self, callables: Callables) -> None:
        super().__init__(autoescape=False, keep_trailing_newline=True, optimized=False, cache_size=0, auto_reload=False)
        self.marked: Marked | None = None
        self.filters, self.globals = callables.filters, callables.functions
        self.tests = callables.tests  # type: ignore[assignment]

    def _tokenize(self, source: str, name: str | None, filename: str | None = None, state: str | None = None) -> Any:
        if state is not None:
            return super()._tokenize(source, name, filename, state)
        raw = self.lexer.tokeniter(source.replace(SHELL_LENGTH, STAND_IN), name, filename)
        self.marked = mark_up(iter(raw))
        for line, kind, value in self.marked.tokens:
            if (kind == "integer" and len(value) > MAX_DIGITS) or (kind == "float" and math.isinf(float(value))):
                raise TemplateSyntaxError("number too large", line, name, filename)
        return TokenStream(self.lexer.wrap(iter(self.marked.tokens), name, filename), name, filename)

    def printed(self) -> list[PrintedTag]:
        """The printed expressions of the template that was just parsed."""
        return self.marked.printed if self.marked else []
