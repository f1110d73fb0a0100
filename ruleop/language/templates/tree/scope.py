"""The names that a template sees, from the innermost block to the whole render."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.language.templates.values.data import Lazy
from ruleop.language.templates.values.undefined import Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOTHING: Final = object()


class Scope:
    """The names of one pass of a loop, one call of a macro or one render; others are those of the scope around it."""

    __slots__ = ("defaults", "names", "outer", "root")

    def __init__(
        self,
        names: dict[str, Any],
        outer: Scope | None = None,
        root: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        """`root`: the names of the render, before a template sets any. `defaults`: those of all renders."""
        self.names = names
        self.outer = outer
        if outer is None:
            self.root: Mapping[str, Any] = {} if root is None else root
            self.defaults: Mapping[str, Any] = {} if defaults is None else defaults
        else:
            self.root, self.defaults = outer.root, outer.defaults

    def get(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name, _NOTHING)
            if found is not _NOTHING:
                return found.value() if type(found) is Lazy else found
            scope = scope.outer
        found = self.root.get(name, _NOTHING)
        if found is _NOTHING:
            found = self.defaults.get(name, _NOTHING)
            if found is _NOTHING:
                return Unknown(name=name)
        return found.value() if type(found) is Lazy else found

    def inner(self, names: dict[str, Any] | None = None) -> Scope:
        return Scope({} if names is None else names, self)

    def top(self) -> Scope:
        """The names that the template itself sets, without those of loops and macros."""
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope
