"""The declarations of filters, tests and functions: all that the rest of ruleop knows of them.

Filters are declared beside their functions, in a table of each module; `filters.registry` joins them. The page of
templates lists the filters that have an example, with the parameters and the docstring of the function. The checker
refines what a filter gives where that depends on its input or arguments: `first` of a list of strings is a string.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


# -- declared kinds ----------------------------------------------------------------------------------------------------
#
# The words by which filters, tests, functions and methods declare what they take and give.
#
# `list of string`, `number or list`, `any`: the checker makes types of them. The kinds are those of JSON; an integer is
# a number here, and a scalar is what can be written as text.

KINDS: Final = frozenset({"null", "boolean", "integer", "number", "string", "mapping", "list", "other"})
"""All kinds of values. Macros and the like are `other`."""

_KINDS_OF_WORDS: Final = {
    **{kind: frozenset({kind}) for kind in KINDS},
    "number": frozenset({"integer", "number"}),
    "scalar": frozenset({"boolean", "integer", "number", "string"}),
    "any": KINDS,
}


@functools.cache
def declared_kinds(words: str) -> frozenset[str]:
    """The kinds that a declaration allows, without what it says of their items."""
    return frozenset().union(*(_KINDS_OF_WORDS[each.partition(" of ")[0]] for each in words.split(" or ")))


# -- declarations ------------------------------------------------------------------------------------------------------

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


# -- functions ---------------------------------------------------------------------------------------------------------
#
# The functions of templates: what each gives, and where its result comes from.
#
# The environment of templates has Jinja's functions, a project those of its files, and the scope of a custom resource
# the others, because their results depend on the cluster, a seed or the clock.


class Function(NamedTuple):
    """`gives` is in words of `declared_kinds`. A costly function is computed by this `package` of Python: until the
    object is created, it returns a placeholder."""

    gives: str
    of: Literal["jinja", "project", "block", "scope"] = "scope"
    changes: Literal["", "with time", "on every call"] = ""
    is_secret: bool = False
    package: str = ""
    fields: tuple[str, ...] = ()  # of a mapping of strings


FUNCTIONS: Final[Mapping[str, Function]] = {
    "range": Function("list of integer", "jinja"),
    "dict": Function("mapping", "jinja"),
    "namespace": Function("other", "jinja"),
    "cycler": Function("other", "jinja"),
    "joiner": Function("other", "jinja"),
    "file": Function("string", "project"),
    "render": Function("string", "project"),
    "super": Function("string", "block"),
    "caller": Function("string", "block"),
    "has_kind": Function("boolean"),
    "duration": Function("number"),
    "after": Function("boolean", changes="with time"),
    "within": Function("boolean", changes="with time"),
    "now": Function("string", changes="on every call"),
    "random_password": Function("string", changes="on every call", is_secret=True),
    "htpasswd": Function("string", changes="on every call", is_secret=True, package="bcrypt"),
    **dict.fromkeys(
        ("genCA", "genSignedCert", "genSelfSignedCert"),
        Function("mapping", changes="on every call", is_secret=True, package="cryptography", fields=("Cert", "Key")),
    ),
}

FUNCTION_NAMES: Final = frozenset(name for name, each in FUNCTIONS.items() if each.of != "block")
SCOPE_FUNCTIONS: Final = frozenset(name for name, each in FUNCTIONS.items() if each.of == "scope")
TIME_FUNCTIONS: Final = frozenset(name for name, each in FUNCTIONS.items() if each.changes == "with time")
"""A plan that has called one of them is made again when its result changes."""
NONDETERMINISTIC: Final = frozenset(name for name, each in FUNCTIONS.items() if each.changes == "on every call")
"""Allowed only in children that are created once and never updated."""
SECRET_FUNCTIONS: Final = frozenset(name for name, each in FUNCTIONS.items() if each.is_secret)
"""Functions whose results are secret wherever they are used."""
