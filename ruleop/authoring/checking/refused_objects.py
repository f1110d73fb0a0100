"""Literals that the API server refuses although they have the right types: a schedule in words, a port out of range.

A body with a stand-in for each slot is validated as a new object is. An error is reported only if it cannot depend on
a slot: it is about a literal, and stays if slots have other values or that of the literal; or about a missing field
beside which there are literals alone. It has to be in all bodies that have its place, as some may never be rendered.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.desired_objects import path_of
from ruleop.kubernetes.builtin.builtin_types import typed_schema, typed_shape
from ruleop.kubernetes.schema import UNKNOWN, validate
from ruleop.kubernetes.validation import creation_errors
from ruleop.language.templates.bodies.body import BodyMembers, BodySpread, Items, Scalar

if TYPE_CHECKING:
    from ruleop.authoring.checking.dataflow.sources import Sources
    from ruleop.errors import Site
    from ruleop.kubernetes.schema import Shape
    from ruleop.kubernetes.validation import FieldError
    from ruleop.language.rules import Findings
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates.bodies.body import Body, FieldPath, Node, Printed

_NOT_FOUND: Final = "FieldValueNotFound"
_REQUIRED: Final = "FieldValueRequired"
_LABELS: Final = ("metadata", "labels")
_SELECTOR: Final = ("spec", "selector")
_VOLUMES: Final = frozenset({"volumes", "volumeClaimTemplates"})
_NO_TEXT: Final = frozenset({"byte", "date-time"})


@dataclass(frozen=True, slots=True)
class _StandIns:
    """Stand-ins for the values of a body's slots: words and numbers. Slots of other expressions have other words."""

    word: str
    number: int
    differ: bool = True


_ROUNDS: Final = (_StandIns("a", 2), _StandIns("b", 3000))


def check_refused_objects(sources: Sources, findings: Findings) -> None:
    for part in sources.body_parts:
        visits: Counter[Site] = Counter()
        found: Counter[tuple[Site, str]] = Counter()
        for body in sources.bodies(part):
            example = _Example.of(body, _ROUNDS[0])
            visits.update({place.site for place in example.places.values()})
            found.update(_certain(body, example, part))
        for (site, message), times in found.items():
            if times == visits[site]:
                findings.mistake("invalid-literal", message, site, start=part.site)


def _certain(body: Body, example: _Example, part: RulePart) -> set[tuple[Site, str]]:
    """The places and texts of the errors that no slot can change."""
    errors = example.errors()
    if not errors:
        return set()
    is_partial = part.child is not None and part.child.strategy == "server-side"
    others = _Example.of(body, _ROUNDS[1]).errors()
    return {
        (site, f"{each.field}: {each.message}")
        for each in errors
        if each in others and not (is_partial and each.reason == _REQUIRED) and (site := _site(body, example, each))
    }


def _site(body: Body, example: _Example, error: FieldError) -> Site | None:
    """The place of an error; None if a slot might change it."""
    path = path_of(error.field)
    if path[:1] == ("metadata",):
        return None
    place, parent = example.places.get(path), example.places.get(path[:-1])
    if place is None:
        is_missing = error.reason == _REQUIRED and parent is not None and example.is_whole(path[:-1])
        return parent.site if parent is not None and is_missing else None
    if not example.is_literal(path) or (path[-2:] == _LABELS and not example.is_literal(_SELECTOR)):
        return None
    if error.reason == _NOT_FOUND and not example.knows_volumes():
        return None
    value = example.at(path)
    if isinstance(value, str | int):
        same = _StandIns(str(value), value if isinstance(value, int) else 2, differ=False)
        if error not in _Example.of(body, same).errors():
            return None
    return place.site


@dataclass(frozen=True, slots=True)
class _Place:
    site: Site
    is_literal: bool  # a scalar without slots, or a mapping or list without members that are left out
    is_scalar: bool = False


@dataclass(slots=True)
class _Example:
    """The object of a body with stand-ins for its slots. Fields for which nothing can stand are left out."""

    body: Body
    slots: _StandIns
    numbers: dict[str, int]  # of the expressions in it
    obj: dict[str, Any] = field(default_factory=dict)
    places: dict[FieldPath, _Place] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Body, slots: _StandIns) -> _Example:
        """Without an object, if the kind is not one of Kubernetes."""
        expressions = dict.fromkeys(each.place.expression for found in body.fields for each in found.slots)
        numbers = {expression: number for number, expression in enumerate(expressions)}
        found, shape = cls(body, slots, numbers), typed_shape(body.kind)
        if shape is not None and isinstance(body.document, BodyMembers):
            found.obj = {"metadata": {}, **found.mapping(body.document, shape, (), body.document.site)}
        return found

    def errors(self) -> list[FieldError]:
        """Those of an object whose fields have the right types."""
        schema = typed_schema(self.body.kind)
        return creation_errors(self.obj) if self.obj and schema is not None and not validate(self.obj, schema) else []

    def is_literal(self, path: FieldPath) -> bool:
        """Whether nothing at a path and below it depends on a slot."""
        return all(each.is_literal for at, each in self.places.items() if at[: len(path)] == path)

    def is_whole(self, path: FieldPath) -> bool:
        """Whether no member of a mapping is left out, and its scalars are literals."""
        nearby = {at: each for at, each in self.places.items() if at[: len(path)] == path and len(at) <= len(path) + 1}
        return all(each.is_literal for at, each in nearby.items() if at == path or each.is_scalar)

    def knows_volumes(self) -> bool:
        """Whether no volume is left out, nor a part of one."""
        above = [at for at in self.places if not _VOLUMES.isdisjoint(at) or at[-1:] in {("spec",), ("template",)}]
        return all(self.places[at].is_literal for at in above if not self.places[at].is_scalar)

    def at(self, path: FieldPath) -> Any:
        value: Any = self.obj
        for step in path:
            value = value[step]
        return value

    def value(self, node: Node, shape: Shape, path: FieldPath, site: Site) -> Any:
        if isinstance(node, BodyMembers):
            return self.mapping(node, shape, path, site)
        if isinstance(node, Items):
            found: list[Any] = []
            for item in node.members:
                member = (
                    self.value(item, shape.items or UNKNOWN, (*path, len(found)), item.site)
                    if not isinstance(item, BodySpread)
                    else None
                )
                found += [] if member is None else [member]
            self.places[path] = _Place(site, is_literal=len(found) == len(node.members))
            return found
        found_value = node.value if node.is_literal else self.stand_in(node, shape)
        if found_value is not None:
            self.places[path] = _Place(site, node.is_literal, is_scalar=True)
        return found_value

    def mapping(self, node: BodyMembers, shape: Shape, path: FieldPath, site: Site) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, entry in node.entries.items():
            inner = shape.fields.get(key) or shape.values or UNKNOWN
            values[key] = self.value(entry.value, inner, (*path, key), entry.key.site)
        found = {key: value for key, value in values.items() if value is not None}
        nulls = [entry for entry in node.entries.values() if isinstance(entry.value, Scalar) and _is_null(entry.value)]
        self.places[path] = _Place(site, is_literal=len(found) + len(nulls) == len(node.members))
        return found

    def stand_in(self, node: Scalar, shape: Shape) -> str | int | None:
        if shape.format in _NO_TEXT:
            return None
        if shape.enum:
            return shape.enum[0 if self.slots.number < _ROUNDS[1].number else -1]
        if shape.scalar == "string":
            return "".join(each if isinstance(each, str) else self.word(each) for each in node.pieces)
        if shape.scalar in ("integer", "number") or shape.format in ("quantity", "int-or-string"):
            text = "".join(each if isinstance(each, str) else str(self.slots.number) for each in node.pieces)
            return self.slots.number if node.whole else text
        return None

    def word(self, printed: Printed) -> str:
        if not self.slots.differ:
            return self.slots.word
        return f"{self.slots.word}{self.numbers[printed.place.expression]}"


def _is_null(node: Scalar) -> bool:
    return node.is_literal and node.value is None
