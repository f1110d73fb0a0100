"""Changes a proposed custom resource until it satisfies the CEL rules of its schema, where small changes do.

Most rules are about fields that belong together: exactly one of two, one that a type requires. So fields that a broken
rule names are added, removed, or set to a text or a number of the rule, and the first change that leaves no rule broken
is taken. The search is bounded: some rules mean more than that.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.instance import LIKELY, instance, matching_texts
from ruleop.authoring.scaffold.trees import replaced, value_at, without
from ruleop.kubernetes.cel import Verdict, cel_rules
from ruleop.kubernetes.crd.structural import default, schema_at
from ruleop.kubernetes.names import is_subdomain
from ruleop.kubernetes.schema.validation import validate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.scaffold.trees import TreePath
    from ruleop.kubernetes.cel import BrokenRule
    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.schema.openapi import Schema

_TRIALS: Final = 600
_DEPTH: Final = 8  # rules that are satisfied one after another
_TOGETHER: Final = 3  # fields that are added at once, if neither one nor all of them do
_CHAIN: Final = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*((?:\??\.[A-Za-z_]\w*)+)")
_WORD: Final = re.compile(r"(?<![\w'\"])[A-Za-z_]\w*")
_TEXT: Final = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_NUMBER: Final = re.compile(r"(?<![\w.'\"])-?\d+")
_ESCAPED: Final = re.compile(r"__(\w+?)__")
"""CEL writes the field `namespace` as `__namespace__`."""


def satisfying(obj: Mapping[str, Any], schema: Schema) -> Mapping[str, Any]:
    """The custom resource with as few broken rules as the search finds."""
    if validate(default(obj, schema), schema):
        return obj
    return _Search(schema).best(obj, _DEPTH)[0]


class _Search:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.rules = cel_rules(schema)
        self.trials = _TRIALS

    def best(self, obj: Mapping[str, Any], depth: int) -> tuple[Mapping[str, Any], int]:
        """The changed object, and the number of rules that it breaks."""
        broken = self._broken(obj)
        best = (obj, len(broken))
        if not broken or not depth:
            return best
        for change in _Changes(self.schema, obj, broken[0]).all():
            if not self.trials:
                break
            self.trials -= 1
            if not _has_identity(change, obj) or validate(default(change, self.schema), self.schema):
                continue
            if _identity(broken[0]) in map(_identity, self._broken(change)):
                continue
            tried = self.best(change, depth - 1)
            if tried[1] < best[1]:
                best = tried
            if not best[1]:
                break
        return best

    def _broken(self, obj: Mapping[str, Any]) -> list[BrokenRule]:
        found = self.rules.broken(default(obj, self.schema))
        return [each for each in found if each.verdict is not Verdict.NOT_EVALUATED and each.path[:1] != ("status",)]


def _has_identity(change: Mapping[str, Any], obj: Mapping[str, Any]) -> bool:
    """Whether it is of the same kind and has a name that an object can have."""
    name = value_at(change, ("metadata", "name"))
    same = all(change.get(key) == obj.get(key) for key in ("apiVersion", "kind"))
    return same and isinstance(name, str) and is_subdomain(name)


def _identity(broken: BrokenRule) -> tuple[Any, ...]:
    return broken.rule.path, broken.path


@dataclass(frozen=True, slots=True)
class _Changes:
    """Objects in which a broken rule may hold, the smallest changes first."""

    schema: Schema
    obj: Mapping[str, Any]
    broken: BrokenRule

    def all(self) -> Iterator[Mapping[str, Any]]:
        place = self._place()
        value = value_at(self.obj, place)
        if isinstance(value, Mapping):
            yield from self._of_fields([place])
        elif isinstance(value, list):
            yield from self._of_fields([(*place, index) for index in range(len(value))])
        if not isinstance(value, Mapping):
            yield from self._other_values_at(self.obj, place)

    def _place(self) -> TreePath:
        """The path of the value that has the rule. A rule may report a field of it."""
        more = len(self.broken.rule.field) if self.broken.verdict is Verdict.BROKEN else 0
        return self.broken.path[: len(self.broken.path) - more]

    def _of_fields(self, places: Iterable[TreePath]) -> Iterator[Mapping[str, Any]]:
        for place in places:
            present, missing = self._named(place)
            for path in missing:
                changed = self._with(self.obj, [path])
                yield changed
                if value_at(changed, path) == []:
                    yield from self._other_values_at(changed, path)
            yield self._with(self.obj, missing)
            for path in present:
                yield without(self.obj, path)
                for changed in self._other_values_at(self.obj, path):
                    yield changed
                    for each in missing:
                        yield self._with(changed, [each])
            for one, other in itertools.product(present, missing):
                yield self._with(without(self.obj, one), [other])
            for count in range(2, _TOGETHER + 1):
                for paths in itertools.combinations(missing, count):
                    yield self._with(self.obj, paths)

    def _named(self, place: TreePath) -> tuple[list[TreePath], list[TreePath]]:
        """The paths of fields that the rule names, below the place: those that have a value, and those that have
        none."""
        text = _TEXT.sub("''", self.broken.rule.rule)
        chains = [tuple(_field(each) for each in re.split(r"\??\.", chain)[1:]) for chain in _CHAIN.findall(text)]
        chains += [(_field(word),) for word in _WORD.findall(text)]
        if not any(self._is_field((*place, chain[0])) for chain in chains):
            properties = (schema_at(self.schema, place) or {}).get("properties") or {}
            chains = [(name,) for name in properties]
        present: dict[TreePath, None] = {}
        missing: dict[TreePath, None] = {}
        for chain in chains:
            path = place
            for name in chain:
                if not self._is_field((*path, name)):
                    break  # a function of CEL
                path = (*path, name)
            if path != place:
                (present if value_at(self.obj, path) is not None else missing)[path] = None
        return list(present), list(missing)

    def _is_field(self, path: TreePath) -> bool:
        return value_at(self.obj, path) is not None or schema_at(self.schema, path) is not None

    def _with(self, obj: Any, paths: Iterable[TreePath]) -> Any:
        """The object with these fields, and with those around them."""
        for path in paths:
            for length in range(1, len(path) + 1):
                if value_at(obj, path[:length]) is None:
                    name, around = str(path[length - 1]), value_at(obj, path[: length - 1]) or {}
                    added = instance(schema_at(self.schema, path[:length]) or {}, name)
                    obj = replaced(obj, {path[: length - 1]: {**around, name: added}})
        return obj

    def _other_values_at(self, obj: Any, path: TreePath) -> Iterator[Mapping[str, Any]]:
        for other in self._other_values(value_at(obj, path), schema_at(self.schema, path) or {}):
            yield replaced(obj, {path: other})

    def _other_values(self, value: JSON, schema: Schema) -> Iterator[JSON]:
        """Values of the same type: members of an enum, then what the rule compares with."""
        rule = self.broken.rule.rule
        if isinstance(value, bool):
            yield not value
        elif isinstance(value, int):
            named = [value_at(self.obj, path) for path in self._named(self._place())[0]]
            numbers = [*map(int, _NUMBER.findall(rule)), *(each for each in named if type(each) is int)]
            yield from dict.fromkeys(near for each in numbers for near in (each, each + 1, each - 1))
        elif isinstance(value, list):
            yield [*value, instance(schema.get("items") or {})]
            if value:
                yield value[:-1]
        elif isinstance(value, str):
            quoted = [one or other for one, other in _TEXT.findall(rule)]
            yield from schema.get("enum") or ()
            yield from quoted
            for pattern in quoted:
                yield from itertools.islice(matching_texts(pattern.replace("\\\\", "\\"), 1), 3)
            yield from LIKELY


def _field(word: str) -> str:
    escaped = _ESCAPED.fullmatch(word)
    return escaped[1] if escaped else word
