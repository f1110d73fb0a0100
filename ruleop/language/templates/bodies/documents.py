"""The bodies of a template: documents that together show each of its branches, and the branches that no document has.

Each branch is YAML by itself, because the tree of a template is parsed so. Two branches may still have the same key, or
be an entry and an item of one value, and nothing here knows which conditions exclude each other. A branch is broken
only if no outcomes of the conditions make a document with it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ruleop.errors import RuleError
from ruleop.language.templates.bodies.body import Body, Node
from ruleop.language.templates.bodies.conditions import Assignment, Atom, Needs, Outcomes, Prefer, Solver, TooLarge
from ruleop.language.templates.bodies.kinds import kinds_of
from ruleop.language.templates.bodies.possible import StandIn, Sum, Variant, as_text
from ruleop.language.templates.bodies.walk import BodyWalk
from ruleop.language.templates.values.cost import Exhausted

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.templates.tree.templates import File

_ALWAYS: Final[Needs] = ()
_TOO_LARGE: Final = "too many statements, with those of macros and includes: the kinds must be known before rendering"


@dataclass(frozen=True)
class Possible:
    """The documents that one file of templates/ may give, or a value of watches.yaml."""

    walk: BodyWalk
    stream: Sum
    is_read: bool = True  # it has not too many statements

    @cached_property
    def kinds(self) -> tuple[frozenset[Kind], list[RuleError]]:
        """The kinds, and the mistakes in how they are written."""
        with contextlib.suppress(TooLarge, RecursionError):
            if self.is_read:
                return kinds_of(self.stream, Solver())
        return frozenset(), [RuleError(_TOO_LARGE, self.walk.file.place)]

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        return self.bodies_with(as_text)

    def bodies_with(self, stand_in: StandIn) -> tuple[Body, ...]:
        """The bodies, each once. `stand_in`: for values alone on their lines, of the types that they have."""
        found: dict[Node, set[int]] = {}
        try:
            for number, outcomes in enumerate(self._variants):
                for document in self._documents(outcomes, stand_in):
                    found.setdefault(document, set()).add(number)
        except (Exhausted, RecursionError):
            return ()
        return tuple(Body(document, frozenset(variants)) for document, variants in found.items())

    def _documents(self, outcomes: Outcomes, stand_in: StandIn) -> list[Node]:
        with self.walk.file.templates.state:
            return [*Variant(outcomes, stand_in).documents(self.stream)]

    @cached_property
    def _variants(self) -> list[Outcomes]:
        """Outcomes with which each branch is taken at least once, and at least once not, as far as that is possible."""
        counts: dict[Atom, list[int]] = {}
        found: list[Outcomes] = []

        def prefer(atom: Atom) -> bool:
            if atom in self.walk.assumed:
                return self.walk.assumed[atom]
            false, true = counts.get(atom, (0, 0))
            return true <= false

        for needs in (_ALWAYS, *(needs for routes in self.walk.routes.values() for needs in routes)):
            if all(each.contradict(needs) for each in found) and (given := self._solved(needs, prefer)) is not None:
                found.append(Outcomes(given, prefer))
                self._documents(found[-1], as_text)  # decides about all other conditions
                self.walk.solver.left -= self.walk.statements * len(found[-1].taken)
                for atom, outcome in found[-1].taken.items():
                    counts.setdefault(atom, [0, 0])[outcome] += 1
        return found

    @cached_property
    def _clashing(self) -> tuple[Needs, ...]:
        return tuple(dict.fromkeys(each.needs for each in self.walk.clashes))

    def _solved(self, needs: Needs, prefer: Prefer) -> Assignment | None:
        try:
            return self.walk.solver.solve(needs, self._clashing, prefer)
        except TooLarge:
            return None

    # -- branches that are never YAML ----------------------------------------------------------------------------------

    @cached_property
    def mistakes(self) -> tuple[RuleError, ...]:
        """The mistakes of the branches that are in no document."""
        if not self.walk.clashes:
            return ()
        broken: list[Needs] = []
        found: dict[tuple[str, str], RuleError] = {}
        with contextlib.suppress(TooLarge, RecursionError):  # with the mistakes that are found until then
            for branch, routes in self.walk.routes.items():
                if branch.has_body and all(map(self._is_broken, routes)):
                    found |= self._reasons([*routes], broken)
                    broken += routes
            if not broken and self._is_broken(_ALWAYS):
                found |= self._reasons([_ALWAYS], broken)
        return tuple(found.values())

    def _is_broken(self, needs: Needs) -> bool:
        """Whether there are outcomes with these, but none without clashes."""
        return self.walk.solver.solve(needs, self._clashing) is None and self.walk.solver.solve(needs) is not None

    def _reasons(self, routes: list[Needs], broken: list[Needs]) -> dict[tuple[str, str], RuleError]:
        """The clashes that are in each document with a branch or, if there is no such clash, the first that is in one.
        `broken`: other branches, whose mistakes are their own."""
        certain, may_be = [], []
        for clash in self.walk.clashes:
            for needs in routes:
                if self.walk.solver.solve((*needs, *clash.needs), broken) is not None:
                    may_be.append(clash.mistake)
                    certain += [clash.mistake] if self.walk.solver.solve(needs, [*broken, clash.needs]) is None else []
        return {(str(each.site), each.message): each for each in certain or may_be[:1]}


def possible_of(file: File) -> Possible:
    """The documents that a file of templates/ or a value of watches.yaml may give."""
    walk = BodyWalk(file)
    try:
        with file.templates.state:
            return Possible(walk, walk.documents())
    except (TooLarge, Exhausted, RecursionError):
        return Possible(BodyWalk(file), Sum(None), is_read=False)
