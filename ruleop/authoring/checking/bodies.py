"""The bodies of children before anything is rendered: those of their templates, and of the objects of watches.yaml."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.core.templating import TextTemplate, Tree, YamlNode, syntax
from ruleop.core.templating.bodies.body import Body, Field, Printed
from ruleop.core.templating.bodies.body_writer import StandIn, Writer, as_text
from ruleop.core.templating.bodies.branch_conditions import Conditions, Outcomes
from ruleop.core.templating.bodies.search import bodies_of_file
from ruleop.core.templating.bodies.sources import Sources
from ruleop.core.templating.compile.picks import picked_names
from ruleop.core.templating.tree.marks import ALONE, CLOSE, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.errors import Site
    from ruleop.core.rules.facts.scopes import Part
    from ruleop.core.templating import Library


def bodies(part: Part, library: Library, stand_in: StandIn = as_text) -> tuple[Body, ...]:
    """The bodies of a child; of a template with several documents, those of each. `stand_in`: a value for a printed
    node, of the type that it prints if that is known: a mapping alone on its line is spread."""
    if isinstance(part.compiled, TextTemplate):
        return tuple(bodies_of_file(part.compiled.name, library, stand_in))
    return tuple(_Marker(library).body(each) for each in _of_each_kind(part))


def fields_of(body: Body) -> Iterator[Field]:
    """The fields of a body, with those that a slot picks by name: `{{ spec | pick('cpu') }}` alone on its line."""
    for field in body.fields:
        (slot, *others) = field.pieces or ("",)
        names = picked_names(slot.node) if isinstance(slot, Printed) and not others else None
        if names is None:
            yield field
        for name in names or ():
            yield replace(field, path=(*field.path, name), whole=False, spread=False)


def _of_each_kind(part: Part) -> Iterator[YamlNode]:
    """The object as it is for each of the kinds that it can have."""
    node, members = part.node, part.node.value
    if not isinstance(part.compiled, Tree) or not isinstance(members, dict) or len(part.compiled.kinds) < 2:
        yield node
        return
    for kind in sorted(part.compiled.kinds):
        chosen = {"apiVersion": kind.api_version, "kind": kind.kind}
        plain = {key: YamlNode(text, members[key].site, plain=True) for key, text in chosen.items()}
        yield YamlNode({**members, **plain}, node.site, node.key_sites)


class _Marker:
    """Replaces the templates in the strings of an object by marks."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.printed: list[Printed] = []
        self.chosen: set[Site] = set()

    def body(self, node: YamlNode) -> Body:
        return Body(self._node(node), tuple(self.printed), frozenset(self.chosen))

    def _node(self, node: YamlNode) -> YamlNode:
        value = node.value
        if isinstance(value, str):
            text, alone = self._text(value, node.site)
            return YamlNode(text, node.site, plain=alone)
        if isinstance(value, list):
            return YamlNode([self._node(item) for item in value], node.site)
        if isinstance(value, dict):
            members, sites = {}, {}
            for key, member in value.items():
                text, alone = self._text(key, node.key_sites[key])
                if alone and member.value is None:
                    text = VALUE.sub(rf"{ALONE}\1{CLOSE}", text)
                members[text], sites[text] = self._node(member), node.key_sites[key]
            return YamlNode(members, node.site, sites)
        return node

    def _text(self, text: str, site: Site) -> tuple[str, bool]:
        """The text with marks, and whether it is one slot, which keeps its type."""
        if "{{" not in text and "{%" not in text:
            return text, False
        outcomes = Outcomes({}, bool)
        writer = Writer(Sources(self.library), site.path, outcomes, Conditions(), printed=self.printed)
        tree = self.library.written_string(text, site)
        if syntax.has_control(tree):
            self.chosen.add(site)
        with self.library.templates.state:
            marked = writer.string(tree)
        return marked, VALUE.fullmatch(marked) is not None
