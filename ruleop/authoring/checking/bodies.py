"""The bodies of children before anything is rendered: those of their templates, and of the objects of watches.yaml."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.language.templates import TextTemplate
from ruleop.language.templates.bodies.body import Body, BodyField, Printed
from ruleop.language.templates.bodies.documents import possible
from ruleop.language.templates.bodies.possible import StandIn, as_text
from ruleop.language.templates.compile.picks import picked_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.language.rules.facts.scopes import RulePart
    from ruleop.language.templates.compile import Library


def bodies(part: RulePart, library: Library, stand_in: StandIn = as_text) -> tuple[Body, ...]:
    """The bodies of a child; of a template with several documents, those of each. `stand_in`: a value for a printed
    node, of the type that it prints if that is known: a mapping alone on its line is spread."""
    found = possible(part.compiled.name if isinstance(part.compiled, TextTemplate) else part.node, library)
    return found.bodies if stand_in is as_text else found.bodies_with(stand_in)


def fields_of(body: Body) -> Iterator[BodyField]:
    """The fields of a body, with those that a slot picks by name: `{{ spec | pick('cpu') }}` alone on its line."""
    for field in body.fields:
        (slot, *others) = field.pieces or ("",)
        names = picked_names(slot.node) if isinstance(slot, Printed) and not others else None
        if names is None:
            yield field
        for name in names or ():
            yield replace(field, path=(*field.path, name), whole=False, spread=False)
