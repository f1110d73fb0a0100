"""The conditions of a template: which of them are equal, and how one gets an outcome.

A condition is a formula over atoms. Equal expressions over the same variables are one atom, so they have one outcome
wherever they are tested; `not`, `and` and `or` are resolved, and a value equals one constant at most. Everything else
is free: a formula may have outcomes together that no custom resource gives it, but never fewer than there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from jinja2 import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

MAX_WAYS: Final = 4
_SAME_TRUTH: Final = frozenset({"length", "count", "list", "sort", "dictsort", "unique", "reverse", "items"})
"""Filters whose result is empty when their value is."""
_PURE: Final = frozenset({"has_kind", "age", "after", "within", "duration", "range", "dict"})
_STATEFUL: Final = frozenset({"next", "reset", "cycle", "changed"})


class Atom(NamedTuple):
    """A condition that is not resolved further. `variables` tell apart equal expressions over different values, and
    `equals` is the constant of a comparison."""

    expression: str
    variables: Hashable
    equals: Hashable = None


Assignment: TypeAlias = dict[Atom, bool]


class Not(NamedTuple):
    formula: Formula


class Both(NamedTuple):
    left: Formula
    right: Formula


class Either(NamedTuple):
    left: Formula
    right: Formula


Formula: TypeAlias = bool | Atom | Not | Both | Either


class Bound(NamedTuple):
    """A variable of a template: its value if that is captured text, a macro, a module or a loop, and its identity among
    the variables of its name."""

    value: Any
    identity: Hashable


class Loop(NamedTuple):
    first: bool
    last: bool


Scope: TypeAlias = dict[str, Bound]


class Place(NamedTuple):
    """Where a condition is tested."""

    scope: Scope
    frame: Hashable  # of a call whose result differs from one evaluation to the next
    versions: Mapping[Hashable, Hashable]  # of namespaces


@dataclass(slots=True)
class Outcomes:
    """The outcomes of the conditions in one body."""

    given: Mapping[Atom, bool]
    prefer: Callable[[Atom], bool]
    taken: Assignment = field(default_factory=dict)
    _texts: dict[tuple[str, Hashable], Atom] = field(default_factory=dict)  # the text that each value equals

    def truth(self, formula: Formula) -> bool:
        if isinstance(formula, bool):
            return formula
        if isinstance(formula, Not):
            return not self.truth(formula.formula)
        if isinstance(formula, Both):
            return self.truth(formula.left) and self.truth(formula.right)
        if isinstance(formula, Either):
            return self.truth(formula.left) or self.truth(formula.right)
        found = self.taken.get(formula)
        if found is None:
            found = self._take(formula, self.given[formula] if formula in self.given else self.prefer(formula))
        return found

    def assume(self, formula: Formula) -> None:
        """Prefers that a formula is true."""
        for way in islice(ways(((formula, True),)), 1):
            for atom, outcome in way.items():
                if atom not in self.taken:
                    self._take(atom, self.given.get(atom, outcome))

    def _take(self, atom: Atom, outcome: bool) -> bool:
        """Sets the outcome of an atom: false if its value equals another text. Other constants may be equal: 1 and
        true."""
        if outcome and isinstance(atom.equals, str):
            outcome = self._texts.setdefault(atom[:2], atom) == atom
        self.taken[atom] = outcome
        return outcome


def changed(assignment: Assignment, way: Assignment) -> Assignment:
    """The assignment in which the atoms of `way` have their outcomes."""
    texts = {atom[:2] for atom, true in way.items() if true and isinstance(atom.equals, str)}
    others = {
        atom: true for atom, true in assignment.items() if not isinstance(atom.equals, str) or atom[:2] not in texts
    }
    return {**others, **way}


def ways(requirements: tuple[tuple[Formula, bool], ...]) -> Iterator[Assignment]:
    """Assignments with which each formula has its outcome."""
    found: list[Assignment] = [{}]
    for formula, outcome in requirements:
        options = list(islice(_ways(formula, outcome), MAX_WAYS))
        if len(options) == 1:
            found = [each for each in found if _added(each, options[0])]
        else:
            pairs = [({**each}, option) for each in found for option in options]
            found = [each for each, option in pairs if _added(each, option)][:MAX_WAYS]
    yield from found


def _added(assignment: Assignment, more: Assignment) -> bool:
    """Adds outcomes to an assignment. Returns whether none contradicts it."""
    return all(assignment.setdefault(atom, outcome) is outcome for atom, outcome in more.items())


def _ways(formula: Formula, outcome: bool) -> Iterator[Assignment]:
    if isinstance(formula, bool):
        if formula is outcome:
            yield {}
    elif isinstance(formula, Atom):
        yield {formula: outcome}
    elif isinstance(formula, Not):
        yield from _ways(formula.formula, not outcome)
    elif isinstance(formula, Both) is outcome:  # both sides decide
        yield from ways(((formula.left, outcome), (formula.right, outcome)))
    else:
        yield from _ways(formula.left, outcome)
        yield from _ways(formula.right, outcome)


@dataclass(slots=True)
class Conditions:
    """Reads the conditions of templates. What is known of an expression is kept, because many bodies are written."""

    _known: dict[int, tuple[str, tuple[str, ...], bool]] = field(default_factory=dict)
    _loops: dict[int, bool] = field(default_factory=dict)

    def formula(self, node: nodes.Node, place: Place) -> Formula:
        if isinstance(node, nodes.Const):
            return bool(node.value)
        if isinstance(node, nodes.Not):
            return Not(self.formula(node.node, place))
        if isinstance(node, (nodes.And, nodes.Or)):
            join = Both if isinstance(node, nodes.And) else Either
            return join(self.formula(node.left, place), self.formula(node.right, place))
        if isinstance(node, nodes.Compare) and len(node.ops) == 1:
            return self._comparison(node, place)
        bound = place.scope.get(_owner_of_place(node))
        if bound is not None and isinstance(bound.value, Loop) and isinstance(node, nodes.Getattr):
            return bound.value.first if node.attr == "first" else bound.value.last
        inner = _same_truth(node)
        return self.formula(inner, place) if inner is not node else self._atom(node, place)

    def _comparison(self, node: nodes.Compare, place: Place) -> Formula:
        operand = node.ops[0]
        if not isinstance(operand.expr, nodes.Const) or operand.op not in ("eq", "ne", "gt"):
            return self._atom(node, place)
        value = operand.expr.value
        if operand.op == "gt":
            counted = isinstance(node.expr, nodes.Filter) and node.expr.name in ("length", "count")
            return self.formula(node.expr, place) if counted and value == 0 else self._atom(node, place)
        atom = self._atom(node.expr, place)._replace(equals=value if isinstance(value, str) else (repr(value),))
        return atom if operand.op == "eq" else Not(atom)

    def _atom(self, node: nodes.Node, place: Place) -> Atom:
        known = self._known.get(id(node))
        if known is None:
            names = sorted({each.name for each in _with_below(node) if isinstance(each, nodes.Name)})
            known = self._known[id(node)] = repr(node), tuple(names), any(map(_has_state, _with_below(node)))
        text, names_, has_state = known
        bound = [(name, place.scope[name].identity) for name in names_ if name in place.scope]
        variables: Hashable = tuple((name, identity, place.versions.get(identity)) for name, identity in bound)
        return Atom(text, (variables, id(node), place.frame) if has_state else variables)

    def asks_for_place(self, loop: nodes.For) -> bool:
        """Whether a condition inside a loop asks for its first or last pass."""
        found = self._loops.get(id(loop))
        if found is None:
            tests: list[nodes.Node] = [each.test for each in loop.find_all(nodes.If)]
            tests += [each.test for each in loop.find_all(nodes.CondExpr)]
            asked = (_owner_of_place(each) for test in tests for each in _with_below(test))
            found = self._loops[id(loop)] = any(asked)
        return found


def _with_below(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    yield from node.find_all(nodes.Node)


def _owner_of_place(node: nodes.Node) -> str:
    """The name before `.first` or `.last`; "" of other expressions."""
    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) and node.attr in ("first", "last"):
        return node.node.name
    return ""


def _same_truth(node: nodes.Node) -> nodes.Node:
    """A part of the expression that is empty or false when all of it is."""
    while True:
        if isinstance(node, nodes.Filter) and node.node is not None and _keeps_truth(node):
            node = node.node
        elif isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr) and node.node.attr == "items":
            node = node.node.node
        else:
            return node


def _keeps_truth(node: nodes.Filter) -> bool:
    if node.name in ("default", "d"):
        others = [*node.args[:1], *(each.value for each in node.kwargs if each.key == "default_value")]
        return len(others) == 1 and _is_empty(others[0])
    return node.name in _SAME_TRUTH


def _is_empty(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Const):
        return not node.value
    return isinstance(node, (nodes.List, nodes.Dict)) and not node.items


def _has_state(node: nodes.Node) -> bool:
    if not isinstance(node, nodes.Call):
        return False
    if isinstance(node.node, nodes.Getattr):
        return node.node.attr in _STATEFUL
    return not isinstance(node.node, nodes.Name) or node.node.name not in _PURE
