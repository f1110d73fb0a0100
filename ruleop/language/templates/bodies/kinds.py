"""The kinds that a template may render: they are watched, and roles are generated for them, before rendering.

`apiVersion` and `kind` are literals, or a choice of literals: `kind: {{ 'Role' if spec.local else 'ClusterRole' }}`.
Those belong together that can be in one document. Rendered objects are checked against this set.

In the template of a status, the names of the outermost fields are literals: a field that the rules stop setting is
removed, and its name must be known for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.errors import RuleError
from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates.bodies.body import Scalar
from ruleop.language.templates.bodies.conditions import Both, Formula, Needs, Negation, solve
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


def kinds_of(documents: Sum) -> tuple[frozenset[Kind], list[RuleError]]:
    """The kinds, and the mistakes in how they are written."""
    written: dict[str, list[tuple[int, Needs, str]]] = {"apiVersion": [], "kind": []}
    ends: list[tuple[int, Needs]] = []
    mistakes: list[RuleError] = []
    for number, part in enumerate(documents.parts):
        key = name_of(part)
        if part.value is None:
            ends.append((number, part.needs))
        if key not in written:
            continue
        options = [*_texts(part.value, part.needs)]
        if not all(text for _, text in options) or solve(part.needs, [needs for needs, _ in options]) is not None:
            mistakes.append(RuleError(PLAIN_TEXT.format(key), part.site))
        elif key == "kind" and any(text == "List" for _, text in options):
            mistakes.append(RuleError(NO_LIST, part.site))
        written[key] += ((number, needs, text) for needs, text in options if text)
    found: set[Kind] = set()
    for at, needs, version in written["apiVersion"]:
        for other, more, name in written["kind"]:
            between = [each for number, each in ends if min(at, other) < number < max(at, other)]
            if solve((*needs, *more), between) is not None:
                found.add(Kind.parse(version, name))
    return frozenset(found), mistakes


def name_of(part: PossiblePart) -> str:
    """The name of an entry; "" of anything else, and of an entry whose name is computed."""
    return str(part.key.value) if isinstance(part.key, Scalar) and part.key.is_literal else ""


def computed_fields(documents: Sum) -> Iterator[RuleError]:
    """The mistakes in the template of a status."""
    yield from (RuleError(COMPUTED, part.site) for part in documents.parts if _is_computed(part))


def _is_computed(part: PossiblePart) -> bool:
    return part.value is not None and part.kind in (dict, None) and not name_of(part)


def _texts(value: Value | Shown | None, needs: Needs) -> Iterator[tuple[Needs, str]]:
    """The texts that a value may have; "" for one that is not known, and for what is no text."""
    if isinstance(value, Sum):
        for part in value.parts:
            yield from _texts(part.value, (*needs, *part.needs))
    elif isinstance(value, PossibleText):
        yield from _outcomes(value.fragments, needs)
    else:
        yield needs, value.value if isinstance(value, Scalar) and isinstance(value.value, str) else ""


def _outcomes(fragments: Iterable[Fragment], needs: Needs) -> list[tuple[Needs, str]]:
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
            if solve(further := (*before, (is_there, outcome))) is not None
        ]
    return found
