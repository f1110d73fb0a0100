"""Compares what children and statuses render with the schemas of their kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jinja2 import nodes

from ruleop.checking.typing.bodies import Body, Literal, Members, Slot, Text, Whole, body_of_object
from ruleop.checking.typing.conformance import Conformance
from ruleop.checking.typing.report import Report, Source
from ruleop.checking.typing.types import UNKNOWN
from ruleop.checking.typing.variants import variants
from ruleop.kinds import Kind
from ruleop.templating.compile.compiler import printing_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.checking.typing.schema_nodes import Kinds, SchemaNode
    from ruleop.checking.typing.statements import Runner
    from ruleop.checking.typing.strings import Strings
    from ruleop.errors import Site
    from ruleop.templating import YamlNode


@dataclass(slots=True)
class BodyChecks:
    """Compares bodies after the types of their slots are known."""

    runner: Runner
    strings: Strings
    kinds: Kinds

    @property
    def report(self) -> Report:
        return self.runner.inference.report

    def template(self, name: str) -> None:
        """The objects that a template renders."""
        self._objects(list(self._bodies(name)))

    def object(self, node: YamlNode) -> None:
        self._objects([body_of_object(node, self._text)])

    def status_template(self, name: str, node: SchemaNode | None) -> None:
        self._status(list(self._bodies(name)), node)

    def status(self, value: YamlNode, node: SchemaNode | None) -> None:
        self._status([body_of_object(value, self._text)], node)

    def _bodies(self, name: str) -> Iterator[Body]:
        for variant in variants(self.runner.library, name, self.runner.printed):
            yield from variant.bodies()

    def _objects(self, found: list[Body]) -> None:
        by_kind: dict[Kind, Conformance] = {}
        for body in found:
            kind = kind_of_body(body)
            if kind is not None:
                conformance = by_kind.setdefault(kind, Conformance(kind.kind))
                conformance.check(body, self.kinds.node(kind), "")
        for conformance in by_kind.values():
            self._write(conformance)

    def _status(self, found: list[Body], node: SchemaNode | None) -> None:
        conformance = Conformance("the status", reports_unknown=False)
        for body in found:
            conformance.check(body, node, "status")
        self._write(conformance)

    def _write(self, conformance: Conformance) -> None:
        for problem in conformance.problems():
            site = problem.site
            if not site.column:
                site = self.report.place(Source(site, is_file=True), 1, problem.words)
            self.report.at(problem.code, problem.message, site, warn=problem.warn)

    def _text(self, text: str, site: Site) -> Whole | Text:
        """A string of watches.yaml with templates."""
        tree = self.strings.tree(text, site)
        slots = [self._slot(node, site) for node in printing_nodes(tree)]
        if any(not isinstance(node, nodes.Output) for node in tree.body):
            return Whole(Slot(UNKNOWN, text, site), site)
        has_text = any(isinstance(each, nodes.TemplateData) for output in tree.body for each in _nodes(output))
        if len(slots) == 1 and not has_text:
            return Whole(slots[0], site)
        return Text(tuple(slots), site, is_single=False)

    def _slot(self, node: nodes.Node, site: Site) -> Slot:
        place = getattr(node, "place", None)
        expression = place.expression if place is not None else ""
        return Slot(self.runner.printed.get(id(node), UNKNOWN), expression, site)


def _nodes(output: nodes.Node) -> list[nodes.Node]:
    return list(output.nodes) if isinstance(output, nodes.Output) else []


def kind_of_body(body: Body) -> Kind | None:
    """The kind of an object; None if it is not in plain text."""
    if not isinstance(body, Members):
        return None
    found = {
        member.name: member.body.value
        for member in body.members
        if isinstance(member.body, Literal) and isinstance(member.body.value, str)
    }
    version, kind = found.get("apiVersion"), found.get("kind")
    return Kind.parse(version, kind) if version and kind else None
