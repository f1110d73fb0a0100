"""The values of which a chart made its objects: what a template may read in place of what differs.

Every rendering has values of its own. A value is a candidate for a field where it is the field's in each of them. Names
decide between several candidates: `spec.service.port` is more likely the port of a Service than `spec.metrics.port`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.authoring.scaffold.inferred_schema import MAPS
from ruleop.authoring.scaffold.naming import expression, words
from ruleop.authoring.scaffold.trees import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Path: TypeAlias = tuple[str, ...]
MISSING: Final = object()
_SYNONYMS: Final = {
    "hpa": "autoscaler",
    "autoscaling": "autoscaler",
    "pdb": "disruption",
    "svc": "service",
    "sa": "account",
    "persistence": "volume",
    "storage": "volume",
    "metrics": "monitor",
}
_RELATED: Final = {"replicas": "autoscaler"}
"""Words that fields have to do with, besides their own."""
_SWITCHES: Final = frozenset({"enabled", "enable", "create", "disabled", "install"})
_DISTINCT_NUMBER: Final = 100
_DISTINCT_TEXT: Final = 4
_STEM: Final = 4


def merged(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Values with others over them, as Helm merges its values files: null removes a key."""
    found = dict(values)
    for key, value in others.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(found.get(key), Mapping):
            found[key] = merged(found[key], value)
        else:
            found[key] = value
    return found


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that expressions can read. `values`: what it is in each sample."""

    code: str
    path: Path  # in the values; of an item, the path of the list and that in the item
    values: tuple[Any, ...]
    is_local: bool = False  # a part of an item of a loop

    @property
    def varies(self) -> bool:
        return any(not same(self.values[0], each) for each in self.values)

    def score(self, about: Sequence[str]) -> tuple[int, int, int]:
        """A higher number for a name that suits a field whose path has these words, the last one being its own."""
        about = [*(_RELATED[each] for each in about if each in _RELATED), *about]
        last = words(self.path[-1]) if self.path[-1] not in _SWITCHES else words(self.path[-2]) if self.path[1:] else []
        own = [_SYNONYMS.get(each, each) for name in self.path if name not in _SWITCHES for each in words(name)]
        shared = sum(any(_are_alike(each, other) for other in about) for each in own)
        is_last = bool(last and about) and any(_are_alike(each, about[-1]) for each in last)
        return (int(is_last) + int(self.is_local), shared, shared - len(own))


@dataclass(frozen=True, slots=True)
class Condition:
    """The truth of a value, or of its opposite."""

    variable: Variable
    is_on: bool
    rank: tuple[int, ...]

    @property
    def code(self) -> str:
        return self.variable.code if self.is_on else f"not {self.variable.code}"

    @property
    def group(self) -> Path:
        """The path of the values that a switch turns on."""
        is_switch = isinstance(self.variable.values[0], bool)
        return self.variable.path[:-1] if self.is_on and is_switch else ()


def same(value: Any, other: Any) -> bool:
    """Whether two values are equal and of one type: `1`, `True` and `"1"` are three."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(same(each, other[key]) for key, each in value.items())
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(same, value, other))
    return type(value) is type(other) and bool(value == other)


def _are_alike(word: str, other: str) -> bool:
    return word == other or (len(word) >= _STEM and word[:_STEM] == other[:_STEM])


@dataclass(slots=True)
class Values:
    """The values that the samples of a field have in common. `samples`: the rendering of each sample."""

    variables: list[Variable]
    samples: tuple[int, ...]
    groups: frozenset[Path] = frozenset()  # of switches that are on: values beside them are likely
    is_loop: bool = False
    all_vary: frozenset[str] = frozenset()  # the codes of what varies over all renderings
    renderings: int = 0

    @classmethod
    def of(cls, renderings: Sequence[Mapping[str, Any]]) -> Values:
        variables = [
            Variable(expression("spec", *path), path, tuple(found)) for path, found in _values_at(list(renderings))
        ]
        varying = frozenset(each.code for each in variables if each.varies)
        return cls(variables, tuple(range(len(renderings))), all_vary=varying, renderings=len(renderings))

    def only(self, indexes: Sequence[int], group: Path = ()) -> Values:
        """The values of some of the samples, which are those where a switch of the group is on."""
        variables = [replace(each, values=tuple(each.values[index] for index in indexes)) for each in self.variables]
        groups = self.groups | ({group} if group else set())
        samples = tuple(self.samples[index] for index in indexes)
        return replace(self, variables=variables, samples=samples, groups=groups)

    def inside(self, items: Variable, name: str) -> Values:
        """The values inside of a loop over a list, whose item has the name: a sample for each item."""
        indexes = [index for index, value in enumerate(items.values) for _ in value]
        outer = self.only(indexes)
        flat = [item for value in items.values for item in value]
        found = list(_values_at(flat)) if all(isinstance(each, dict) for each in flat) else []
        local = [
            Variable(_optional(expression(name, *path), path, flat, each), (*items.path, *path), tuple(each), True)
            for path, each in found
        ]
        if not found:
            local = [Variable(name, items.path, tuple(flat), True)]
        return replace(outer, variables=[*outer.variables, *local], is_loop=True)

    # -- candidates --------------------------------------------------------------------------------------------------

    def equal(self, found: Sequence[Any], about: Sequence[str]) -> list[Variable]:
        """The candidates for a field with these values, the best one first."""
        varies = any(not same(found[0], each) for each in found)
        known = [
            each
            for each in self.variables
            if all(map(same, each.values, found)) and (varies or self._is_likely(each, found[0], about))
        ]
        return _ranked(known, about)

    def _is_likely(self, variable: Variable, value: Any, about: Sequence[str]) -> bool:
        """Whether it is more than a coincidence that a value is that of a field, as nothing varies here."""
        is_last, shared, _ = variable.score(about)
        if variable.is_local:
            return is_last > 1
        is_partial = self.is_loop or len(self.samples) < self.renderings  # what varies elsewhere does not show here
        if variable.path[:-1] in self.groups and value not in ("", {}, []):
            return shared > 0 and is_last > 0
        if not is_partial or variable.code not in self.all_vary or isinstance(value, bool) or not value:
            return False
        is_distinct = value >= _DISTINCT_NUMBER if isinstance(value, int) else len(str(value)) >= _DISTINCT_TEXT
        return is_distinct or shared > 0

    def conditions(self, present: Sequence[bool], about: Sequence[str], body: Sequence[Any]) -> list[Condition]:
        """The conditions that are true in these samples only, the best one first. A switch is better than a value that
        happens to be empty, unless the value is the body."""
        found = []
        for variable in self.variables:
            if variable.code not in self.all_vary and not variable.is_local:
                continue
            truths = [bool(each) for each in variable.values]
            if truths not in (list(present), [not each for each in present]):
                continue
            is_switch = all(isinstance(each, bool) for each in variable.values)
            is_body = all(same(*each) for each in zip(variable.values, body, strict=True) if each[1] is not MISSING)
            is_on = truths == list(present)
            is_last, shared, others = variable.score(about)
            rank = (is_body and is_on, is_last, shared, is_switch, is_on, others)
            found.append(Condition(variable, is_on, rank))
        return sorted(found, key=lambda each: each.rank, reverse=True)

    def lists(self) -> Iterator[Variable]:
        yield from (each for each in self.variables if all(isinstance(value, list) for value in each.values))


def _optional(code: str, path: Path, items: list[Any], values: list[Any]) -> str:
    """The expression for a field of items, which some of them may lack."""
    if None not in (value_at(item, path) for item in items):
        return code
    empty = {dict: "{}", list: "[]", str: "''", bool: "false"}.get(type(values[0]), "0")
    return f"({code} | default({empty}))"


def _ranked(variables: list[Variable], about: Sequence[str]) -> list[Variable]:
    # Of two that suit equally well, the one nearer to the top: a whole mapping before its parts.
    return sorted(variables, key=lambda each: (*(-number for number in each.score(about)), len(each.path)))


def _values_at(trees: list[Any]) -> Iterator[tuple[Path, list[Any]]]:
    """Every path of the mappings, with its value in each of them: an empty one of the same type where there is none."""
    yield from _below((), trees)


def _below(path: Path, trees: list[Any]) -> Iterator[tuple[Path, list[Any]]]:
    for key in dict.fromkeys(str(key) for tree in trees if isinstance(tree, dict) for key in tree):
        found = [value_at(tree, (key,)) for tree in trees]
        given = next((each for each in found if each is not None), None)
        if given is None:
            continue
        if None in found and path and (not all(trees) or path[-1] in MAPS or not key.isidentifier()):
            continue  # a key of a map, which the schema does not declare
        found = [type(given)() if each is None else each for each in found]
        yield (*path, key), found
        if all(isinstance(each, dict) for each in found):
            yield from _below((*path, key), found)
