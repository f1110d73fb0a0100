"""The conditions of a template: which of them are equal, and how one gets an outcome.

A condition is a formula over atoms. Equal expressions over the same variables are one atom, so they have one outcome
wherever they are tested; `not`, `and` and `or` are resolved, and a value equals one constant at most. Everything else
is free: a formula may have outcomes together that no custom resource gives it, but never fewer than there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import names_in, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

_PURE: Final = frozenset({"has_kind", "after", "within", "duration", "range", "dict"})
_STATEFUL: Final = frozenset({"next", "reset", "cycle", "changed"})


class Atom(NamedTuple):
    """A condition that is not resolved further. `variables` tell apart equal expressions over different values, and
    `equals` is the constant of a comparison."""

    expression: str
    variables: Hashable
    equals: Hashable = None


class Not(NamedTuple):
    formula: Formula


class Both(NamedTuple):
    left: Formula
    right: Formula


class Either(NamedTuple):
    left: Formula
    right: Formula


Formula: TypeAlias = bool | Atom | Not | Both | Either
Assignment: TypeAlias = dict[Atom, bool]
Needs: TypeAlias = tuple[tuple[Formula, bool], ...]
"""The outcomes of conditions with which something is in a body."""


class Bound(NamedTuple):
    """A variable of a template: its value if that is a piece of template, a macro or a module, and its identity among
    the variables of its name."""

    value: Any
    identity: Hashable


Scope: TypeAlias = dict[str, Bound]


class Outcomes:
    """The outcomes of the conditions in one body."""

    def __init__(self, given: Mapping[Atom, bool], prefer: Callable[[Atom], bool]) -> None:
        self.given, self.prefer = given, prefer
        self.taken: Assignment = {}
        self._texts = {atom[:2]: atom for atom, true in given.items() if true and isinstance(atom.equals, str)}

    def truth(self, formula: Formula) -> bool:
        if isinstance(formula, bool):
            return formula
        if isinstance(formula, Not):
            return not self.truth(formula.formula)
        if isinstance(formula, Both):
            return self.truth(formula.left) and self.truth(formula.right)
        if isinstance(formula, Either):
            return self.truth(formula.left) or self.truth(formula.right)
        if formula not in self.taken:
            self._take(formula, self.prefer(formula))
        return self.taken[formula]

    def assume(self, formula: Formula) -> None:
        """Prefers that a formula is true."""
        for atom, outcome in next(ways(((formula, True),)), {}).items():
            if atom not in self.taken:
                self._take(atom, outcome)

    def _take(self, atom: Atom, preferred: bool) -> None:
        """Sets the outcome of an atom: false if its value equals another text. Other constants may be equal: 1 and
        true."""
        outcome = self.given.get(atom, preferred)
        if outcome and isinstance(atom.equals, str):
            outcome = self._texts.setdefault(atom[:2], atom) == atom
        self.taken[atom] = outcome


def ways(needs: Needs, given: Assignment | None = None) -> Iterator[Assignment]:
    """The assignments with which each formula has its outcome."""
    if not needs:
        yield given or {}
        return
    for each in _ways(*needs[0], given or {}):
        yield from ways(needs[1:], each)


def _ways(formula: Formula, outcome: bool, given: Assignment) -> Iterator[Assignment]:
    if isinstance(formula, bool):
        if formula is outcome:
            yield given
    elif isinstance(formula, Atom):
        if given.get(formula, outcome) is outcome:
            yield {**given, formula: outcome}
    elif isinstance(formula, Not):
        yield from _ways(formula.formula, not outcome, given)
    elif isinstance(formula, Both) is outcome:  # both sides decide
        yield from ways(((formula.left, outcome), (formula.right, outcome)), given)
    else:
        yield from _ways(formula.left, outcome, given)
        yield from _ways(formula.right, outcome, given)


def atoms(formula: Formula) -> Iterator[Atom]:
    if isinstance(formula, Atom):
        yield formula
    elif not isinstance(formula, bool):
        for each in formula:
            yield from atoms(each)


@dataclass(slots=True)
class Conditions:
    """Reads the conditions of templates. What is known of an expression is kept, because many bodies are written."""

    _known: dict[int, tuple[str, tuple[str, ...], bool]] = field(default_factory=dict)

    def formula(
        self, node: syntax.Expr, scope: Scope, frame: Hashable, versions: Mapping[Hashable, Hashable]
    ) -> Formula:
        """`frame`: of a call whose result differs from one evaluation to the next. `versions`: of namespaces."""

        def formula(node: syntax.Expr) -> Formula:
            match node:
                case syntax.Const():
                    return bool(node.value)
                case syntax.Not():
                    return Not(formula(node.value))
                case syntax.And():
                    return Both(formula(node.left), formula(node.right))
                case syntax.Or():
                    return Either(formula(node.left), formula(node.right))
                case syntax.Compare(others=(syntax.Operand("eq" | "ne" as operator, syntax.Const(value)),)):
                    equals = value if isinstance(value, str) else (repr(value),)
                    equal = atom(node.first)._replace(equals=equals)
                    return equal if operator == "eq" else Not(equal)
            return atom(node)

        def atom(node: syntax.Expr) -> Atom:
            text, names, has_state = self._described(node)
            bound = [(name, scope[name].identity) for name in names if name in scope]
            variables: Hashable = tuple((name, identity, versions.get(identity)) for name, identity in bound)
            return Atom(text, (variables, id(node), frame) if has_state else variables)

        return formula(node)

    def _described(self, node: syntax.Expr) -> tuple[str, tuple[str, ...], bool]:
        """The text of an expression, the names in it, and whether its result may differ from one evaluation to the
        next."""
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = repr(node), tuple(sorted(names_in(node))), any(map(_has_state, walk(node)))
        return known


def _has_state(node: syntax.Node) -> bool:
    if not isinstance(node, syntax.Call):
        return False
    return node.method.name in _STATEFUL if node.method is not None else node.name not in _PURE
