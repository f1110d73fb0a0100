"""The bodies of a template: documents that together show each of its branches, and the branches that no document has.

Each branch is YAML by itself, because the tree of a template is parsed so. Two branches may still have the same key, or
be an entry and an item of one value, and nothing here knows which conditions exclude each other. A branch is broken
only if no outcomes of the conditions make a document with it.
"""

from __future__ import annotations

import contextlib
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from ruleop.errors import RuleError
from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates.bodies.body import Body, Node, PossibleText, Scalar, StandIn, Sum, Variant, as_text
from ruleop.language.templates.bodies.conditions import (
    Assignment,
    Atom,
    Both,
    Formula,
    Needs,
    Negation,
    Outcomes,
    Prefer,
    Solver,
    TooLarge,
)
from ruleop.language.templates.bodies.walk import BodyWalk, Branches
from ruleop.language.templates.values.cost import Exhausted
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.language.templates.bodies.body import Fragment, PossiblePart, Shown, Value
    from ruleop.language.templates.tree.templates import File


# -- kinds -------------------------------------------------------------------------------------------------------------
#
# The kinds that a template may render: they are watched, and roles are generated for them, before rendering.
#
# `apiVersion` and `kind` are literals, or a choice of literals: `kind: {{ 'Role' if spec.local else 'ClusterRole' }}`.
# Those belong together that can be in one document. Rendered objects are checked against this set.
#
# In the template of a status, the names of the outermost fields are literals: a field that the rules stop setting is
# removed, and its name must be known for that.

PLAIN_TEXT: Final = (
    "{} must be plain text, so that ruleop knows what to watch before it renders, or a choice of literals such as "
    "`{{{{ 'A' if spec.x else 'B' }}}}`"
)
COMPUTED: Final = (
    "a field of the status has a computed name, so ruleop could not remove it later: "
    "put it below a field with a fixed name"
)
NO_LIST: Final = "`kind: List` is not supported: write its items as documents, separated by ---"


class _Written(NamedTuple):
    """An apiVersion or a kind of a document that has not ended for certain."""

    key: str
    text: str
    needs: Needs
    ends: list[Needs]  # of ends of documents behind it


def kinds_of(documents: Sum, solver: Solver) -> tuple[frozenset[Kind], list[RuleError]]:
    """The kinds, and the mistakes in how they are written. Raises TooLarge."""
    found: set[Kind] = set()
    mistakes: list[RuleError] = []
    before: list[_Written] = []
    for part in documents.parts:
        if part.value is None:
            before = [each for each in before if each.needs[: len(part.needs)] != part.needs]
            for each in before:
                each.ends.append(part.needs)
        if (key := name_of(part)) not in ("apiVersion", "kind"):
            continue
        options = [*_texts(part.value, part.needs, solver)]
        if (
            not all(text for _, text in options)
            or solver.solve(part.needs, [needs for needs, _ in options]) is not None
        ):
            mistakes.append(RuleError(PLAIN_TEXT.format(key), part.site))
        elif key == "kind" and any(text == "List" for _, text in options):
            mistakes.append(RuleError(NO_LIST, part.site))
        here = [_Written(key, text, needs, []) for needs, text in options if text]
        for one, other in product(here, before):
            if other.key != key and solver.solve((*one.needs, *other.needs), other.ends) is not None:
                version, name = (one.text, other.text) if key == "apiVersion" else (other.text, one.text)
                found.add(Kind.parse(version, name))
        before += here
    return frozenset(found), mistakes


def name_of(part: PossiblePart) -> str:
    """The name of an entry; "" of anything else, and of an entry whose name is computed."""
    return str(part.key.value) if isinstance(part.key, Scalar) and part.key.is_literal else ""


def computed_fields(documents: Sum) -> Iterator[RuleError]:
    """The mistakes in the template of a status."""
    for part in documents.parts:
        if part.value is not None and part.kind in (dict, None) and not name_of(part):
            yield RuleError(COMPUTED, part.site)


def _texts(value: Value | Shown | None, needs: Needs, solver: Solver) -> Iterator[tuple[Needs, str]]:
    """The texts that a value may have; "" for one that is not known, and for any other value."""
    if isinstance(value, Sum):
        for part in value.parts:
            yield from _texts(part.value, (*needs, *part.needs), solver)
    elif isinstance(value, PossibleText):
        yield from _outcomes(value.fragments, needs, solver)
    else:
        yield needs, value.value if isinstance(value, Scalar) and isinstance(value.value, str) else ""


def _outcomes(fragments: Iterable[Fragment], needs: Needs, solver: Solver) -> list[tuple[Needs, str]]:
    """The texts of fragments, each of which may be there or not."""
    found = [(needs, "")]
    for what, own in fragments:
        if not isinstance(what, str):
            return [(needs, "")]
        is_there: Formula = True
        for formula, outcome in own:
            is_there = Both(is_there, formula if outcome else Negation(formula))
        found = [
            (further, text + what if outcome else text)
            for before, text in found
            for outcome in (True, False)
            if solver.solve(further := (*before, (is_there, outcome))) is not None
        ]
    return found


# -- documents ---------------------------------------------------------------------------------------------------------

_ALWAYS: Final[Needs] = ()
_TOO_LARGE: Final = "too many statements, with those of macros and includes: the kinds must be known before rendering"


@dataclass(frozen=True)
class Possible:
    """The documents that one file of templates/ may give, or a value of watches.yaml."""

    file: File
    branches: Branches
    stream: Sum
    is_read: bool = True  # it has not too many statements

    @cached_property
    def kinds(self) -> tuple[frozenset[Kind], list[RuleError]]:
        """The kinds, and the mistakes in how they are written."""
        with contextlib.suppress(TooLarge, RecursionError):
            if self.is_read:
                return kinds_of(self.stream, Solver())
        return frozenset(), [RuleError(_TOO_LARGE, self.file.place)]

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        return self.bodies_with(None)

    def bodies_with(self, stand_in: StandIn | None) -> tuple[Body, ...]:
        """The bodies, each once. `stand_in`: for values alone on their lines, of the types that they have."""
        found: dict[Node, set[int]] = {}
        try:
            for number, (outcomes, as_texts) in enumerate(self._variants):
                for document in as_texts if stand_in is None else self._documents(outcomes, stand_in):
                    found.setdefault(document, set()).add(number)
        except (Exhausted, RecursionError):
            return ()
        return tuple(Body(document, frozenset(variants)) for document, variants in found.items())

    def _documents(self, outcomes: Outcomes, stand_in: StandIn) -> list[Node]:
        with self.file.templates.state:
            return [*Variant(outcomes, stand_in).documents(self.stream)]

    @cached_property
    def _variants(self) -> list[tuple[Outcomes, list[Node]]]:
        """Outcomes with which each branch is taken at least once, and at least once not, as far as that is possible;
        with their documents."""
        counts: dict[Atom, list[int]] = {}
        found: list[tuple[Outcomes, list[Node]]] = []

        def prefer(atom: Atom) -> bool:
            if atom in self.branches.assumed:
                return self.branches.assumed[atom]
            false, true = counts.get(atom, (0, 0))
            return true <= false

        for needs in (_ALWAYS, *(needs for routes in self.branches.routes.values() for needs in routes)):
            if all(each.contradict(needs) for each, _ in found) and (given := self._solved(needs, prefer)) is not None:
                outcomes = Outcomes(given, prefer)
                found.append((outcomes, self._documents(outcomes, as_text)))  # decides about all other conditions
                self.branches.solver.left -= self.branches.statements * len(outcomes.taken)
                for atom, outcome in outcomes.taken.items():
                    counts.setdefault(atom, [0, 0])[outcome] += 1
        return found

    @cached_property
    def _clashing(self) -> tuple[Needs, ...]:
        return tuple(dict.fromkeys(each.needs for each in self.branches.clashes))

    def _solved(self, needs: Needs, prefer: Prefer) -> Assignment | None:
        try:
            return self.branches.solver.solve(needs, self._clashing, prefer)
        except TooLarge:
            return None

    # -- branches that are never YAML ----------------------------------------------------------------------------------

    @cached_property
    def mistakes(self) -> tuple[RuleError, ...]:
        """The mistakes of the branches that are in no document."""
        if not self.branches.clashes:
            return ()
        broken: list[Needs] = []
        found: dict[tuple[str, str], RuleError] = {}
        with contextlib.suppress(TooLarge, RecursionError):  # with the mistakes that are found until then
            for branch, routes in self.branches.routes.items():
                if branch.has_body and all(map(self._is_broken, routes)):
                    found |= self._reasons([*routes], broken)
                    broken += routes
            if not broken and self._is_broken(_ALWAYS):
                found |= self._reasons([_ALWAYS], broken)
        return tuple(found.values())

    def _is_broken(self, needs: Needs) -> bool:
        """Whether there are outcomes with these, but none without clashes."""
        return (
            self.branches.solver.solve(needs, self._clashing) is None and self.branches.solver.solve(needs) is not None
        )

    def _reasons(self, routes: list[Needs], broken: list[Needs]) -> dict[tuple[str, str], RuleError]:
        """The clashes that are in each document with a branch or, if none is found, the first that is in one.
        `broken`: other branches, whose mistakes are their own."""
        solver = self.branches.solver
        certain: list[RuleError] = []
        may_be: list[RuleError] = []
        ways: list[tuple[Needs, list[Assignment]]] = [(needs, []) for needs in routes]  # with outcomes of documents
        with contextlib.suppress(TooLarge):  # with those that are found until then
            for clash, (needs, documents) in product(self.branches.clashes, ways):
                is_avoidable = any(solver.is_avoided(clash.needs, each) for each in documents)
                if (is_avoidable and may_be) or solver.solve((*needs, *clash.needs), broken) is None:
                    continue
                may_be.append(clash.mistake)
                if not is_avoidable:
                    document = solver.solve(needs, [*broken, clash.needs])
                    if document is None:
                        certain.append(clash.mistake)
                    else:
                        documents.append(document)
        return {(str(each.site), each.message): each for each in certain or may_be[:1]}


def possible_of(file: File) -> Possible:
    """The documents that a file of templates/ or a value of watches.yaml may give."""
    walk = BodyWalk(file)
    try:
        with file.templates.state:
            return Possible(file, walk.branches, walk.documents())
    except (TooLarge, Exhausted, RecursionError):
        return Possible(file, Branches(), Sum(None), is_read=False)
