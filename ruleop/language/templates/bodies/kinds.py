"""The kinds that a template may render: they are watched, and roles are generated for them, before rendering.

`apiVersion` and `kind` are literals, or a choice of literals: `kind: {{ 'Role' if spec.local else 'ClusterRole' }}`.
Those belong together that can be in one document. Rendered objects are checked against this set.

In the template of a status, the names of the outermost fields are literals: a field that the rules stop setting is
removed, and its name must be known for that.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from ruleop.errors import RuleError
from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates.bodies.body import Scalar
from ruleop.language.templates.bodies.conditions import Both, Formula, Needs, Negation, Solver
from ruleop.language.templates.bodies.possible import PossibleText, Sum

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.language.templates.bodies.possible import Fragment, PossiblePart, Shown, Value

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
    yield from (RuleError(COMPUTED, part.site) for part in documents.parts if _is_computed(part))


def _is_computed(part: PossiblePart) -> bool:
    return part.value is not None and part.kind in (dict, None) and not name_of(part)


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
