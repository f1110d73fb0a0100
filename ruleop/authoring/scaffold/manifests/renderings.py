"""Several renderings of one chart become one template: what differs is explained by their values.

A field that differs reads a value, a text has values in it, a list is a loop over a value, and what only some
renderings have depends on a value. What no value explains gets a field of the spec of its own, so that the template
renders each of them in any case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.inferred_schema import OPEN, infer
from ruleop.authoring.scaffold.manifests.chart_values import MISSING, Values, Variable, same
from ruleop.authoring.scaffold.manifests.text_alignment import (
    CHECKSUM,
    aligned,
    atoms,
    blocks,
    candidates,
    code_of,
    ends,
    has_expressions,
    identity,
    in_order,
    joined,
    reads_name,
    with_fallbacks,
)
from ruleop.authoring.scaffold.naming import camel, expression, free, free_id, singular, words
from ruleop.authoring.scaffold.unusable_input import ScaffoldError
from ruleop.authoring.scaffold.yaml_layout import Expr, Guarded, Joined, Repeated, Spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.authoring.scaffold.manifests.chart_values import Condition, Path
    from ruleop.authoring.scaffold.manifests.text_alignment import Atoms
    from ruleop.core.schema.openapi import Schema

_BOUNDED: Final = frozenset({"image", "args", "command", "serviceAccountName"})
"""Fields that decide which program runs, and what it may do."""
_WORD: Final = "([A-Za-z0-9][A-Za-z0-9._:/@-]*)?"
"""No option, no list of words and no text that a shell reads."""

_OF_QUANTITIES: Final = frozenset({"limits", "requests", "hard", "sizeLimit"})
"""Fields that have quantities, or are one."""
_QUANTITY: Final = r"[0-9]+(\.[0-9]+)?([KMGTPE]i|[numkMGTPE])?"


class _UnexplainedError(Exception):
    """No value explains a difference, at a place where the spec cannot have a field of its own."""


@dataclass(slots=True)
class Comparison:
    """The parts that the renderings have in common. `values` are theirs."""

    values: list[dict[str, Any]]
    used: list[Path] = field(default_factory=list)
    invented: list[Path] = field(default_factory=list)
    shown: list[tuple[str, str]] = field(default_factory=list)  # a field of the spec, and the place that reads it
    doubts: list[str] = field(default_factory=list)
    _all: Values = field(init=False)
    _place: str = ""
    _path: tuple[str, ...] = ()
    _bounded: set[Path] = field(default_factory=set)
    _quantities: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._all = Values.of(self.values)

    def child(self, title: str, bodies: Sequence[Any], about: Sequence[str]) -> tuple[Any, str]:
        """The template of an object of which there are these bodies, MISSING in some renderings; and the condition of
        its existence, empty if all have it."""
        self._place = title
        condition, inner = self._present(bodies, self._all, (*about,), ("enabled",))
        return self._value([each for each in bodies if each is not MISSING], inner, (*about,)), condition

    def name(self, name: str, rendering: int, title: str) -> str:
        """The expression of a value that is the name of an object in a rendering; empty if there is none."""
        self._place = title
        for variable in self._all.variables:
            if variable.code in self._all.all_vary and variable.values[rendering] == name:
                self._path = ("name",)
                self._use(variable)
                return variable.code
        return ""

    # -- the spec ----------------------------------------------------------------------------------------------------

    def spec(self, index: int) -> dict[str, Any]:
        """The fields of the spec that give one of the renderings."""
        found: dict[str, Any] = {}
        for path in self._fields():
            inside = found
            for name in path[:-1]:
                inside = inside.setdefault(name, {})
            inside[path[-1]] = self._known(path).values[index]
        return found

    def _fields(self) -> list[Path]:
        """The paths of the values that templates read, without those inside of others."""
        used = set(self.used)
        return [
            each.path
            for each in self._all.variables
            if each.path in used and not any(each.path[:length] in used for length in range(1, len(each.path)))
        ]

    def schemas(self) -> list[tuple[Path, Schema]]:
        """The schema of each field."""
        return [(path, self._schema(path)) for path in self._fields()]

    def _schema(self, path: Path) -> Schema:
        found = list(self._known(path).values)
        read_inside = any(each[: len(path)] == path != each for each in self.used)
        schema = infer(found, path[-1], defaults=False)
        if path in self._bounded and all(type(each) is int for each in found):
            return {"type": "integer"}
        if path in self._bounded and all(isinstance(each, str) and re.fullmatch(_WORD, each) for each in found):
            return {**schema, "pattern": f"^{_WORD}$"}
        if path in self._quantities and all(isinstance(each, str) and re.fullmatch(_QUANTITY, each) for each in found):
            return {**schema, "pattern": f"^{_QUANTITY}$"}
        if read_inside or schema.get("type") not in ("object", "array"):
            return schema
        return _opened(schema)

    def _known(self, path: Path) -> Variable:
        return next(each for each in self._all.variables if each.path == path and not each.is_local)

    # -- values ------------------------------------------------------------------------------------------------------

    def _value(self, found: list[Any], values: Values, path: tuple[str, ...]) -> Any:
        self._path, about = path, _words(path)
        known = values.equal(found, about)
        if known:
            return Expr(self._read(known, about))
        if all(same(found[0], each) for each in found) and not (values.is_loop or values.groups):
            return found[0]
        if all(isinstance(each, dict) for each in found):
            return self._mapping(found, values, path)
        if all(isinstance(each, list) for each in found):
            return self._list(found, values, path)
        if all(same(found[0], each) for each in found):
            return found[0]
        for explained in (self._converted(found, values, about), self._with_fallback(found, values, about)):
            if explained is not None:
                return explained
        return self._scalar(found, values, path)

    def _read(self, known: Sequence[Variable], about: Sequence[str]) -> str:
        """The expression of the best candidate, whose value the spec has from now on."""
        best, *others = known
        rivals = [
            each.code
            for each in others
            if each.score(about) == best.score(about) and each.path[: len(best.path)] != best.path
        ]
        if rivals and not best.is_local:
            self._doubt(best.code, rivals)
        self._use(best)
        return best.code

    def _use(self, variable: Variable) -> None:
        if variable.path not in self.used:
            self.used.append(variable.path)
        if not _BOUNDED.isdisjoint(self._path):
            self._bounded.add(variable.path)
        if not _OF_QUANTITIES.isdisjoint(self._path[-2:]):
            self._quantities.add(variable.path)
        if not variable.is_local and (variable.code, self._place) not in self.shown:
            self.shown.append((variable.code, self._place))

    def _doubt(self, code: str, rivals: Sequence[str]) -> None:
        what = f"{self._place} reads {code}, but {' or '.join(rivals)} would explain it as well"
        self.doubts.append(f"{what}: compare another rendering in which only one of them differs.")

    def _converted(self, found: list[Any], values: Values, about: Sequence[str]) -> Any:
        """A number or switch as text, or text as a number."""
        for convert, suffix in ((_as_text, ""), (_as_number, " | int")):
            shown = [replace(each, values=tuple(map(convert, each.values))) for each in values.variables]
            scope = replace(values, variables=shown)
            known = [each for each in scope.equal(found, about) if MISSING not in each.values]
            if known:
                code = self._read(known, about)
                return Expr(f"{code}{suffix}") if suffix else Joined((Expr(code),))
        return None

    def _with_fallback(self, found: list[Any], values: Values, about: Sequence[str]) -> Expr | None:
        """A value, or another one where it is empty."""
        for variable in sorted(values.variables, key=lambda each: each.score(about), reverse=True):
            pairs = list(zip(variable.values, found, strict=True))
            others = [other for value, other in pairs if not value]
            is_scalar = all(isinstance(each, (str, int, float, Expr, Joined)) for each in found)
            if not is_scalar or not others or len(others) == len(found) or isinstance(variable.values[0], bool):
                continue
            if all(same(*each) for each in pairs if each[0]) and all(same(each, others[0]) for each in others):
                self._use(variable)
                return Expr(f"{variable.code} or {code_of(others[0])}")
        return None

    def _scalar(self, found: list[Any], values: Values, path: tuple[str, ...]) -> Any:
        if all(isinstance(each, (str, Expr, Joined)) for each in found):
            return self._text([atoms(each) for each in found], values, path)
        choice = self._choice(found, values, path)
        return choice if choice is not None else self._invented(found, values, path)

    # -- text --------------------------------------------------------------------------------------------------------

    def _text(self, samples: list[Atoms], values: Values, path: tuple[str, ...]) -> Any:
        parts = self._aligned(samples, values, path)
        if parts is None and any("\n" in each for each in samples):
            parts = []
            for block in blocks(samples):
                parts += self._block(block, values, path)
        elif parts is None:
            parts = self._block(samples, values, path)
        return joined(parts)

    def _aligned(self, samples: list[Atoms], values: Values, path: tuple[str, ...]) -> list[str | Expr] | None:
        about = _words(path)
        ranked = sorted(values.variables, key=lambda each: each.score(about), reverse=True)
        known = list(candidates(ranked))
        parts = aligned(samples, known) or aligned(samples, [*known, *with_fallbacks(samples, known)])
        codes = [each.code.partition(" or ")[0] for each in parts or () if isinstance(each, Expr)]
        for each in ranked:
            if each.code in codes:
                self._use(each)
        return parts

    def _block(self, samples: list[Atoms], values: Values, path: tuple[str, ...]) -> list[str | Expr]:
        if all(each == samples[0] for each in samples):
            return list(samples[0])
        parts = self._aligned(samples, values, path)
        if parts is not None:
            return parts
        present = [bool(each) for each in samples]
        if not all(present) and (conditions := values.conditions(present, _words(path), [MISSING] * len(present))):
            indexes = [index for index, each in enumerate(present) if each]
            condition = self._first(conditions)
            inner = self._text([samples[index] for index in indexes], values.only(indexes, condition.group), path)
            return [Expr(f"{code_of(inner)} if {condition.code} else ''")]
        first, last = ends(samples)
        middles = [joined(each[first : len(each) - last]) for each in samples]
        choice = self._choice(middles, values, path)
        value = choice if choice is not None else self._invented(middles, values, path)
        return [*samples[0][:first], *atoms(value), *samples[0][len(samples[0]) - last :]]

    def _choice(self, found: list[Any], values: Values, path: tuple[str, ...]) -> Expr | None:
        """One of two values, by a switch."""
        if not all(isinstance(each, (str, bool, int, float, Expr, Joined)) for each in found):
            return None
        first = [same(each, found[0]) for each in found]
        others = [each for each, is_first in zip(found, first, strict=True) if not is_first]
        if not all(same(each, others[0]) for each in others):
            return None
        conditions = values.conditions(first, _words(path), [MISSING] * len(found))
        if not conditions:
            return None
        condition = self._first(conditions)
        yes, no = (found[0], others[0]) if condition.is_on else (others[0], found[0])
        return Expr(f"{code_of(yes)} if {condition.variable.code} else {code_of(no)}")

    # -- what only some have -----------------------------------------------------------------------------------------

    def _present(
        self, found: Sequence[Any], values: Values, path: tuple[str, ...], switch: tuple[str, ...]
    ) -> tuple[str, Values]:
        """The condition under which a value is not MISSING, and the values of those samples."""
        present = [each is not MISSING for each in found]
        if all(present):
            return "", values
        indexes = [index for index, each in enumerate(present) if each]
        about = _words(path)
        conditions = values.conditions(present, about, found)
        if not conditions:
            invented = self._invented([bool(each) for each in present], values, (*path, *switch))
            return invented.code, values.only(indexes)
        condition = self._first(conditions)
        return condition.code, values.only(indexes, condition.group)

    def _first(self, conditions: list[Condition]) -> Condition:
        """The best condition, whose value the spec has from now on."""
        best, *others = conditions
        rivals = [each.variable.code for each in others if each.rank[:-1] == best.rank[:-1]]
        if rivals:
            self._doubt(best.code, rivals)
        self._use(best.variable)
        return best

    def _mapping(self, found: list[dict[Any, Any]], values: Values, path: tuple[str, ...]) -> dict[Any, Any]:
        spread, found = self._spread_of_mapping(found, values, path)
        made: dict[Any, Any] = {}
        for key in in_order([list(each) for each in found]):
            members = [each.get(key, MISSING) for each in found]
            inside = (*path, str(key))
            if str(key).startswith(CHECKSUM):
                made[key] = members[0] if all(same(members[0], each) for each in members) else Expr(CHECKSUM)
                continue
            condition, inner = self._present(members, values, inside, ())
            value = self._value([each for each in members if each is not MISSING], inner, inside)
            made[key] = Guarded(condition, value) if condition else value
        if spread is not None:
            made[Spread(spread)] = None
        return made

    def _spread_of_mapping(
        self, found: list[dict[Any, Any]], values: Values, path: tuple[str, ...]
    ) -> tuple[str | None, list[dict[Any, Any]]]:
        """A value whose members are among those of the mapping, such as more labels; and the rest of the mapping."""
        everywhere = set(found[0]).intersection(*found[1:])
        some = {key for each in found for key in each} - everywhere
        about = _words(path)
        fitting = [
            variable
            for variable in values.variables
            if all(isinstance(each, dict) for each in variable.values)
            and variable.varies
            and all(
                key in mapping and same(mapping[key], each)
                for value, mapping in zip(variable.values, found, strict=True)
                for key, each in value.items()
            )
            and any(key in value for key in some for value in variable.values)
        ]
        fitting.sort(key=lambda each: each.score(about), reverse=True)
        if not fitting:
            return None, found
        code = self._read(fitting, about)
        rest = [
            {key: each for key, each in mapping.items() if key not in value}
            for mapping, value in zip(found, fitting[0].values, strict=True)
        ]
        return code, rest

    # -- lists -------------------------------------------------------------------------------------------------------

    def _list(self, found: list[list[Any]], values: Values, path: tuple[str, ...]) -> Any:
        loop = self._loop(found, values, path)
        if loop is not None:
            return [loop]
        for variable in sorted(values.lists(), key=lambda each: each.score(_words(path)), reverse=True):
            lengths = [len(each) for each in variable.values]
            ends_so = all(
                len(items) >= length and same(items[len(items) - length :], list(value))
                for items, value, length in zip(found, variable.values, lengths, strict=True)
            )
            if variable.varies and any(lengths) and ends_so:
                rest = [items[: len(items) - length] for items, length in zip(found, lengths, strict=True)]
                self._use(variable)
                first = self._items(rest, values, path) if any(rest) else []
                return [*(first if isinstance(first, list) else [Spread(first.code)]), Spread(variable.code)]
        return self._items(found, values, path)

    def _loop(self, found: list[list[Any]], values: Values, path: tuple[str, ...]) -> Repeated | None:
        """A list with an item for each one of a value."""
        for variable in sorted(values.lists(), key=lambda each: each.score(_words(path)), reverse=True):
            is_known = variable.code in values.all_vary or variable.is_local or variable.path[:-1] in values.groups
            lengths = [len(each) for each in variable.values]
            if not is_known or lengths != [len(each) for each in found] or not any(lengths):
                continue
            taken = {each.code.partition(".")[0] for each in values.variables}
            name = free_id(camel(singular(variable.path[-1])), taken)
            before = list(self.used), list(self.shown), list(self.doubts)
            try:
                items = [item for each in found for item in each]
                item = self._value(items, values.inside(variable, name), (*path, name))
            except _UnexplainedError:
                item = None
            if item is not None and reads_name(item, name):
                self._use(variable)
                return Repeated(name, variable.code, item)
            self.used, self.shown, self.doubts = before
        return None

    def _items(self, found: list[list[Any]], values: Values, path: tuple[str, ...]) -> Any:
        keyed = [[identity(item) for item in each] for each in found]
        if any(len(set(each)) < len(each) for each in keyed) or (
            len({len(each) for each in found}) == 1 and keyed.count(keyed[0]) < len(keyed)
        ):
            keyed = [[str(number) for number in range(len(each))] for each in found]
        order = in_order(keyed)
        if any(sorted(each, key=order.index) != each for each in keyed):
            return self._invented(found, values, path)
        made = []
        for key in order:
            members = [
                items[keys.index(key)] if key in keys else MISSING for keys, items in zip(keyed, found, strict=True)
            ]
            inside = (*path, key) if not key.isdigit() else path
            condition, inner = self._present(members, values, inside, ())
            value = self._value([each for each in members if each is not MISSING], inner, inside)
            made.append(Guarded(condition, value) if condition else value)
        return made

    # -- what no value explains --------------------------------------------------------------------------------------

    def _invented(self, found: list[Any], values: Values, path: tuple[str, ...]) -> Expr:
        """A field of the spec for a difference that no value explains."""
        if values.is_loop:
            raise _UnexplainedError
        if any(has_expressions(each) for each in found):
            raise ScaffoldError(
                f"{self._place}: no value explains how {'.'.join(path[2:]) or 'it'} differs, and it has names of other "
                "objects in it: leave this rendering out, and edit the template"
            )
        name = camel(*[each for each in path if each not in ("spec", "template", "metadata", "data")][-3:])
        taken = {each.path[0] for each in self._all.variables}
        own = (free(name, taken),)
        by_rendering = dict(zip(values.samples, found, strict=True))
        everywhere = tuple(by_rendering.get(number, found[0]) for number in range(len(self.values)))
        variable = Variable(expression("spec", *own), own, everywhere)
        self._all.variables.append(variable)
        self._all.all_vary |= {variable.code}
        self.invented.append(own)
        self._use(variable)
        return Expr(variable.code)


def _words(path: Sequence[str]) -> list[str]:
    return [word for each in path for word in words(each)]


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else MISSING


def _as_number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else MISSING


def _opened(schema: Schema) -> Schema:
    """The schema of a mapping or list that templates put into an object as a whole: its items are those of the API."""
    if schema.get("type") == "array":
        items = schema.get("items") or {}
        return {"type": "array", "items": {"type": "object", **OPEN}} if items.get("type") == "object" else schema
    return {"type": "object", **OPEN} if "properties" in schema and "description" not in schema else schema
