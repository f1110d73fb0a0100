"""Rendered objects that the API server would reject, by the schemas of their kinds.

Without a cluster nothing else would notice a port in quotes. Most cases of a project render the same objects, so what
was checked once is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.authoring.checking.desired_objects import with_violations
from ruleop.core.merge.equality import canonical

if TYPE_CHECKING:
    from ruleop.core.planning import Plan, Problem
    from ruleop.core.rules import Project, Rule


@dataclass(slots=True)
class Admission:
    """The checks of one project."""

    project: Project
    _known: dict[bytes, tuple[Problem, ...]] = field(default_factory=dict)

    def problems(self, plan: Plan, rule: Rule) -> tuple[Problem, ...]:
        """A problem for each field that the API server would reject or drop."""
        if not plan.rendered:
            return ()
        key = canonical([rule.digest, [[id_, obj] for id_, _, obj in plan.rendered]])
        found = self._known.get(key)
        if found is None:
            checked = with_violations(plan, rule, self.project)
            found = self._known[key] = checked.problems[len(plan.problems) :]
        return found
