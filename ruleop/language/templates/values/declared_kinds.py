"""The words by which filters, tests, functions and methods declare what they take and give.

`list of string`, `number or list`, `any`: the checker makes types of them. The kinds are those of JSON; an integer is a
number here, and a scalar is what can be written as text.
"""

from __future__ import annotations

import functools
from typing import Final

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
