"""The bodies that a part of a watch may give, and what is printed in their metadata. Only checks ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.language.templates import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.language.rules.facts.scopes import RulePart
    from ruleop.language.templates.bodies.body import Printed
    from ruleop.language.templates.bodies.documents import Possible
    from ruleop.language.templates.compile import Library


def possible_in(part: RulePart, library: Library) -> Possible:
    """The documents that a part may give."""
    return library.possible(part.compiled.name if isinstance(part.compiled, TextTemplate) else part.node)


def metadata_slots(part: RulePart, name: str, library: Library) -> Iterator[Printed]:
    """The values that are printed in a field of the metadata of a child."""
    for body in possible_in(part, library).bodies:
        for field in body.fields:
            if field.path == ("metadata", name):
                yield from field.slots
