"""The conditions of a template: which of them are equal, and which outcomes they can have together.

A condition is a formula over atoms. Equal expressions over the same variables are one atom, so they have one outcome
wherever they are tested; `not`, `and` and `or` are resolved, and a value equals one text at most. Everything else is
free: formulas may have outcomes together that no custom resource gives them, but never fewer than there are.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import names_in, walk
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

_PURE: Final = frozenset({"has_kind", "after", "within", "duration", "range", "dict"})
_STATEFUL: Final = frozenset({"next", "reset", "cycle", "changed"})
_MAX_STEPS: Final = 5_000  # of one search for outcomes
MAX_WORK: Final = 3_000_000  # of all searches for one template; a second or two


class TooLarge(Exception):  # noqa: N818 - describes the template
    """A template with too many statements, or too many conditions that depend on each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """A condition that is not resolved further. `rivals`: those of which one at most is true."""

    rivals: list[Atom] = field(default_factory=list, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    formula: Formula
    size: int = field(init=False, repr=False, compare=False)  # of the formulas in it

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size(((self.formula, True),)))


@dataclass(frozen=True, slots=True)
class _Joined:
    left: Formula
    right: Formula
    size: int = field(init=False, repr=False, compare=False)  # of the formulas in it

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size(((self.left, True), (self.right, True))))


class Both(_Joined):
    __slots__ = ()


class Either(_Joined):
    __slots__ = ()


Formula: TypeAlias = bool | Atom | Negation | Both | Either
Assignment: TypeAlias = dict[Atom, bool]
Needs: TypeAlias = tuple[tuple[Formula, bool], ...]
"""The outcomes of conditions with which something is in a body."""
Prefer: TypeAlias = "Callable[[Atom], bool]"
Options: TypeAlias = tuple[tuple[Needs, Any], ...]
"""The values that something may have; None is an unknown one."""


class Bound(NamedTuple):
    """A variable of a template: its values that are pieces of template, macros or modules, and its identity among the
    variables of its name."""

    options: Options
    identity: Hashable


Scope: TypeAlias = dict[str, Bound]


# -- outcomes ----------------------------------------------------------------------------------------------------------


class Outcomes:
    """The outcomes of all conditions in one variant of a template. They are decided when somebody asks."""

    def __init__(self, given: Assignment, prefer: Prefer) -> None:
        self.taken, self.prefer = given, prefer

    def are(self, needs: Needs) -> bool:
        return all(self._truth(formula) is outcome for formula, outcome in needs)

    def contradict(self, needs: Needs) -> bool:
        """Whether a condition that mattered has another outcome."""
        return _is_avoided(needs, self.taken)

    def _truth(self, formula: Formula) -> bool:
        while isinstance(known := _known(formula, self.taken), Atom):
            outcome = self.prefer(known)
            self.taken = _decided(self.taken, known, outcome) or _decided(self.taken, known, False) or self.taken
        return known


@dataclass(slots=True)
class Solver:
    """Searches for outcomes of the conditions of one template. All its work has a limit: a chain of hundreds of
    branches has tens of thousands of pairs of them."""

    left: int = MAX_WORK  # formulas that may still be evaluated, each with those in it

    def spend(self, work: int) -> None:
        """Raises TooLarge."""
        self.left -= work
        if self.left < 0:
            raise TooLarge

    def solve(self, needs: Needs, without: Sequence[Needs] = (), prefer: Prefer = lambda _: True) -> Assignment | None:
        """Outcomes with which these needs are met, and none of the others; None if there are none. Raises TooLarge."""
        self.spend(_size(needs))
        given: Assignment = {}
        open_needs: list[tuple[Formula, bool]] = []
        for formula, outcome in needs:
            if not _is_added(formula, outcome, given, open_needs):
                return None
        return self._completed(
            given, [*(((formula, not outcome),) for formula, outcome in open_needs), *without], prefer
        )

    def may_hold(self, needs: Needs) -> bool:
        """Whether these needs can be met, as far as the limit allows to know."""
        try:
            return self.solve(needs) is not None
        except TooLarge:
            return True

    def _completed(self, given: Assignment, without: Sequence[Needs], prefer: Prefer) -> Assignment | None:
        """The outcomes with more of them, so that none of `without` is met; None if that cannot be."""
        untried = [(given, 0)]
        for _ in range(_MAX_STEPS):
            if not untried:
                return None
            given, first = untried.pop()
            # Those before the first one are avoided, and further outcomes do not change that.
            while first < len(without) and self.is_avoided(without[first], given):
                first += 1
            if first == len(without):
                return given
            known = (_known(formula, given) for formula, _ in without[first])
            atom = next((each for each in known if isinstance(each, Atom)), None)
            if atom is not None:
                preferred = prefer(atom)
                further = (_decided(given, atom, outcome) for outcome in (not preferred, preferred))
                untried += [(each, first) for each in further if each is not None]
        raise TooLarge

    def is_avoided(self, needs: Needs, given: Assignment) -> bool:
        """Whether one of these outcomes differs already. Raises TooLarge."""
        self.spend(_size(needs))
        return _is_avoided(needs, given)


def _is_added(formula: Formula, outcome: bool, given: Assignment, open_needs: list[tuple[Formula, bool]]) -> bool:
    """Adds the outcomes without which a need cannot be met, or the need itself where there are several ways to meet it.
    False if they contradict those that are given."""
    while isinstance(formula, Negation):
        formula, outcome = formula.formula, not outcome
    if isinstance(formula, bool):
        return formula is outcome
    if isinstance(formula, Atom):
        if formula in given:
            return given[formula] is outcome
        given[formula] = outcome
        rivals = formula.rivals if outcome else ()
        return not any(rival is not formula and given.setdefault(rival, False) for rival in rivals)
    if isinstance(formula, Both) is outcome:
        return all(_is_added(each, outcome, given, open_needs) for each in (formula.left, formula.right))
    open_needs.append((formula, outcome))
    return True


def _size(needs: Needs) -> int:
    """The number of formulas that are evaluated for these needs at most."""
    size = len(needs)
    for formula, _ in needs:
        if isinstance(formula, (Both, Either, Negation)):
            size += formula.size
    return size


def _is_avoided(needs: Needs, given: Assignment) -> bool:
    """Whether one of these outcomes differs already."""
    return any(_known(formula, given) is (not outcome) for formula, outcome in needs)


def _decided(given: Assignment, atom: Atom, outcome: bool) -> Assignment | None:
    """The outcomes with another one; None if it contradicts them."""
    if atom in given:
        return given if given[atom] is outcome else None
    found = {**given, atom: outcome}
    for rival in atom.rivals if outcome else ():
        if rival is not atom and found.setdefault(rival, False):
            return None
    return found


def _known(formula: Formula, given: Mapping[Atom, bool]) -> bool | Atom:
    """The outcome of a formula, or the first atom on which it depends."""
    if isinstance(formula, Atom):
        return given.get(formula, formula)
    if isinstance(formula, bool):
        return formula
    if isinstance(formula, Negation):
        known = _known(formula.formula, given)
        return known if isinstance(known, Atom) else not known
    deciding = isinstance(formula, Either)
    left = _known(formula.left, given)
    if left is deciding:
        return deciding
    right = _known(formula.right, given)
    return right if right is deciding or not isinstance(left, Atom) else left


def atoms(formula: Formula) -> Iterator[Atom]:
    if isinstance(formula, Atom):
        yield formula
    elif isinstance(formula, Negation):
        yield from atoms(formula.formula)
    elif isinstance(formula, (Both, Either)):
        yield from atoms(formula.left)
        yield from atoms(formula.right)


# -- conditions --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Conditions:
    """Reads the conditions of one template."""

    _atoms: dict[Hashable, Atom] = field(default_factory=dict)
    _rivals: dict[Hashable, list[Atom]] = field(default_factory=dict)
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
                    return Negation(formula(node.value))
                case syntax.And():
                    return Both(formula(node.left), formula(node.right))
                case syntax.Or():
                    return Either(formula(node.left), formula(node.right))
                case syntax.Compare(others=(syntax.Operand("eq" | "ne" as operator, syntax.Const(value)),)):
                    equal = self._atom(key(node.first), value if isinstance(value, str) else (repr(value),))
                    return equal if operator == "eq" else Negation(equal)
            return self._atom(key(node))

        def key(node: syntax.Expr) -> Hashable:
            text, names, has_state = self._described(node)
            bound = [(name, scope[name].identity) for name in names if name in scope]
            variables: Hashable = tuple((name, identity, versions.get(identity)) for name, identity in bound)
            return text, (variables, id(node), frame) if has_state else variables

        return formula(node)

    def special(self, identity: Hashable) -> Atom:
        """A condition that is not written as an expression."""
        return self._atom(("", identity))

    def _atom(self, key: Hashable, equals: Hashable = None) -> Atom:
        """The atom of an expression over variables, or of its equality with a constant."""
        found = self._atoms.get((key, equals))
        if found is None:
            rivals = self._rivals.setdefault(key, []) if isinstance(equals, str) else []
            found = self._atoms[key, equals] = Atom(rivals)
            rivals.append(found)
        return found

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
