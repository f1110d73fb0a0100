"""Compares what children and statuses render with the schemas of their kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.authoring.checking.bodies import bodies
from ruleop.authoring.checking.typing.bodies.conformance import Conformance
from ruleop.authoring.checking.typing.bodies.typed_bodies import typed
from ruleop.authoring.checking.typing.type_findings import Report, Source
from ruleop.authoring.checking.typing.types import UNKNOWN, Dumped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import nodes

    from ruleop.authoring.checking.typing.bodies.schema_nodes import Kinds, SchemaNode
    from ruleop.authoring.checking.typing.bodies.typed_bodies import Body
    from ruleop.authoring.checking.typing.statements import Runner
    from ruleop.core.kinds import Kind
    from ruleop.core.rules.checks.scopes import Part


@dataclass(slots=True)
class BodyChecks:
    """Compares bodies after the types of their slots are known."""

    runner: Runner
    kinds: Kinds

    @property
    def report(self) -> Report:
        return self.runner.inference.report

    def objects(self, part: Part, *, requires: bool = True) -> None:
        """The objects that a child renders. `requires`: a missing field cannot come from another manager."""
        by_kind: dict[Kind, Conformance] = {}
        for body in bodies(part, self.runner.library, self._stand_in):
            conformance = by_kind.setdefault(body.kind, Conformance(body.kind.kind, requires=requires))
            conformance.check(typed(body, self.runner.printed), self.kinds.node(body.kind), "")
        for conformance in by_kind.values():
            self._write(conformance)

    def status(self, part: Part, node: SchemaNode | None) -> None:
        """The status, with the schema of the CRD. Fields that it does not declare are findings of loading."""
        conformance = Conformance("the status", reports_unknown=False, requires=False)
        for body in self.typed(part):
            conformance.check(body, node, "status")
        self._write(conformance)

    def typed(self, part: Part) -> Iterator[Body]:
        """The bodies of a part with the types of their slots."""
        return (typed(body, self.runner.printed) for body in bodies(part, self.runner.library, self._stand_in))

    def _stand_in(self, node: nodes.Node) -> Any:
        """A value that is laid out as values of the node's type are."""
        found = self.runner.printed.get(id(node), UNKNOWN)
        if isinstance(found.code, Dumped):
            found = found.code.value
        kinds = found.kinds - {"null"}
        return {"": 0} if kinds == {"mapping"} else [0] if kinds == {"list"} else ""

    def _write(self, conformance: Conformance) -> None:
        for problem in conformance.problems():
            source = Source(problem.site, is_file=not problem.site.column)
            site = self.report.place(source, 1, problem.words)
            self.report.at(problem.code, problem.message, site, warn=problem.warn)
