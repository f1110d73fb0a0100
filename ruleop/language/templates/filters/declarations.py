"""The declarations of filters and tests, beside their functions: all that the rest of ruleop knows of them.

Each module of filters has a table of its own; `registry` joins them. The page of templates lists the filters that have
an example, with the parameters and the docstring of the function. The checker refines what a filter gives where that
depends on its input or arguments: `first` of a list of strings is a string.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, Literal, TypeAlias, TypeVar

Needs: TypeAlias = Literal["", "callables", "read_captured"]
Example: TypeAlias = tuple[str, str]
"""An expression, and its result in YAML."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Trait(Flag):
    """Properties of filters."""

    NONE = 0
    TAKES_UNDEFINED = auto()
    GIVES_ARGUMENT = auto()  # may return an argument as it is, also one that is undefined
    KEEPS_TEXT = auto()  # takes captured text and dumps as such; others take them as strings
    WALKS_ITEMS = auto()  # takes text as a list of its characters
    SAME_ITEMS = auto()  # a loop over the result reads the same fields as one over the input
    ONE_ITEM = auto()  # returns an item of its input
    TAKES_ATTRIBUTE = auto()
    SAME_TRUTH = auto()  # the result is true only if the input is
    PICKS_FIELDS = auto()  # of a mapping, by the names that are its arguments
    CHECKSUM = auto()  # the result is public, whatever it is computed from


@dataclass(frozen=True, slots=True)
class DeclaredFilter:
    """`takes` and `gives` are words of `declared_kinds`. The function gets what it needs as its first argument."""

    function: Callable[..., Any]
    takes: str = "any"
    gives: str = "any"
    traits: Trait = Trait.NONE
    needs: Needs = ""
    example: Example | None = None


@dataclass(frozen=True, slots=True)
class DeclaredTest:
    """`true_for`: the kinds for which it is true, where it is true for all their values and for no other; else "".
    `compares`: the operator of which it is a name."""

    function: Callable[..., Any]
    true_for: str = ""
    compares: str = ""
    needs: Needs = ""


class Filters(dict[str, DeclaredFilter]):
    def declare(
        self,
        names: str,
        takes: str = "any",
        gives: str = "any",
        traits: Trait = Trait.NONE,
        *,
        needs: Needs = "",
        example: Example | None = None,
    ) -> Callable[[_Function], _Function]:
        """Declares the function that follows as the filter of these names. The example is of the first one."""

        def declared(function: _Function) -> _Function:
            name, *others = names.split()
            self[name] = DeclaredFilter(function, takes, gives, traits, needs, example)
            self.update((other, DeclaredFilter(function, takes, gives, traits, needs)) for other in others)
            return function

        return declared
