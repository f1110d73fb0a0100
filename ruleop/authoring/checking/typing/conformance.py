"""Compares bodies of children and statuses with schemas: unknown keys, literals that a schema refuses, and values of
another type than their place."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.authoring.checking.typing.inference import Report, last_name
from ruleop.authoring.checking.typing.operators import field as field_of
from ruleop.authoring.checking.typing.types import (
    SCALARS,
    STRING,
    UNKNOWN,
    Dumped,
    Type,
    describe,
    item_of,
    kind_of,
    misfit,
    values_of,
)
from ruleop.errors import Site
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.schema import validate
from ruleop.language.rules.scopes import possible_in
from ruleop.language.templates import Origin
from ruleop.language.templates.bodies.body import BodyEntry, BodyMembers, BodySpread, Items, Node, Printed, Scalar
from ruleop.nearest import nearest
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.authoring.checking.typing.statements import Runner
    from ruleop.authoring.checking.typing.types import KindSchemas, SchemaNode
    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules.check_ids import Code
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates import syntax


# -- types of what is printed ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypedSlot:
    """A printed value, with its expression as written."""

    type: Type
    expression: str
    site: Site


class Typed(NamedTuple):
    """A body with the types of all that is printed."""

    document: Node
    types: Types


@dataclass(frozen=True, slots=True)
class Types:
    printed: Mapping[int, Type]  # by the ids of the nodes

    def slot(self, printed: Printed) -> TypedSlot:
        found = self.printed.get(id(printed.node), UNKNOWN) if printed.captured is None else STRING
        return TypedSlot(found, printed.place.expression, printed.place.site)

    def slots(self, text: Scalar) -> tuple[TypedSlot, ...]:
        return tuple(self.slot(each) for each in text.pieces if isinstance(each, Printed))

    def spreads(self, members: tuple[BodyEntry | Node | BodySpread, ...]) -> list[TypedSlot]:
        """The values whose entries or items are added."""
        return [self.slot(each.printed) for each in members if isinstance(each, BodySpread)]

    def may_have_others(self, body: BodyMembers) -> bool:
        """Whether not all keys of a mapping are known."""
        is_computed = any(isinstance(each, BodyEntry) and each.name is None for each in body.members)
        return is_computed or any(own_fields(each.type) is None for each in self.spreads(body.members))


def own_fields(found: Type) -> Mapping[str, Type] | None:
    """The fields of a mapping that a template made; None if it may have others."""
    is_made = found.kinds == {"mapping"} and found.node is None and found.values is None
    return found.fields if is_made else None


# -- comparison with schemas -------------------------------------------------------------------------------------------

_LOOP_WORDS: Final = frozenset({"forEach", "foreach", "each", "loop", "with_items", "withItems", "range"})
"""Keys with which other tools, or children, make loops."""
_MAX_DEPTH: Final = 6  # of values of slots that are compared
_KEYWORDS: Final = frozenset(
    {
        *("type", "enum", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"),
        *("exclusiveMinimum", "exclusiveMaximum", "x-kubernetes-int-or-string"),
    }
)
"""The keywords that restrict a scalar."""
_TYPE_ALONE: Final = frozenset({"type"})
_QUANTITY: Final = "a quantity such as 500m or 1Gi"


@dataclass(frozen=True, slots=True)
class TypeProblem:
    code: Code
    message: str
    site: Site
    words: tuple[str, ...] = ()  # one of them is at the place, as in `Report.add`; none: it is where `site` says
    warn: bool = False


Anchor = tuple[str, int, str]
"""A place in a template: its file, its line, and the key or value there."""


@dataclass(slots=True)
class Conformance:
    """The problems of one body in all its variants. One counts if every visit of its place has it: a variant may be one
    that no custom resource leads to. Parts that variants share are visited once."""

    kind: str  # for messages
    types: Types
    reports_unknown: bool = True
    requires: bool = True  # whether a required field has to be there
    visits: Counter[Anchor] = field(default_factory=Counter)
    found: dict[tuple[Anchor, TypeProblem], int] = field(default_factory=dict)
    compared: dict[Any, object] = field(default_factory=dict)  # with what keeps the ids in a key unique

    def problems(self) -> list[TypeProblem]:
        return [problem for (anchor, problem), times in self.found.items() if times == self.visits[anchor]]

    def check(self, body: Node, node: SchemaNode | None, path: str) -> None:
        if self._is_compared(body, id(body), node, path):
            return
        if isinstance(body, BodyMembers):
            self._members(body, node, path)
        elif isinstance(body, Items):
            self._items(body, node, path)
        elif body.is_literal:
            self._literal(body, node, path)
        elif body.whole:
            (slot,) = self.types.slots(body)
            self._slot(slot.type, node, path, slot)
        else:
            self._text(body, node, path)

    # -- containers ----------------------------------------------------------------------------------------------------

    def _members(self, body: BodyMembers, node: SchemaNode | None, path: str) -> None:
        if self._is_refused(body, "mapping", node, path):
            return
        for spread in self.types.spreads(body.members):
            self._slot(spread.type, node, path, spread)
            self._duplicates(body, spread, path)
        known = node if node is not None and "mapping" in node.kinds else None
        for member in body.members:
            if isinstance(member, BodySpread):
                continue
            name, site = member.name, member.key.site
            if name is None:
                for slot in self.types.slots(member.key):
                    self._scalar(slot, member.key)
                self.check(member.value, known.values if known is not None else None, f"{path}[]")
                continue
            below = known.member(name) if known is not None else None
            inner = f"{path}.{name}" if path else name
            if known is not None and below is None:
                below = known.values
                if below is None and not known.is_open and self.reports_unknown:
                    self._unknown(name, site, known, path)
                    continue
            self._visit(site, f"{name}:")
            self.check(member.value, below, inner)
        if known is not None and self.requires and not self.types.may_have_others(body):
            self._required(body, known, path)

    def _unknown(self, name: str, site: Site, node: SchemaNode, path: str) -> None:
        inner = f"{path}.{name}" if path else name
        close = nearest(name, node.names)
        hint = f" (did you mean {f'{path}.{close}' if path else close}?)" if close else ""
        if not close and name in _LOOP_WORDS and not site.path.startswith("templates/"):
            hint = ': a loop is a tag as a key, `"{% for each in spec.list %}":`'
        self._visit(site, f"{name}:")
        message = f"{inner} is not in the schema of {self.kind}{hint}"
        self._add(TypeProblem("unknown-field", message, site), f"{name}:")

    def _duplicates(self, body: BodyMembers, spread: TypedSlot, path: str) -> None:
        """Reports the keys of the mapping that are certainly spread into it too. An optional field may be the other
        half of a condition."""
        if spread.type.partial or spread.type.undefined is not None:
            return
        certain = {name for name, each in (own_fields(spread.type) or {}).items() if _has_value(each)}
        for name, member in body.entries.items():
            if name in certain and not self._may_be_null(member):
                inner = f"{path}.{name}" if path else name
                message = f"{spread.expression} adds {inner} a second time: merge the two with `combine`"
                self._add(TypeProblem("yaml", message, member.key.site), f"{name}:")

    def _may_be_null(self, member: BodyEntry) -> bool:
        """Whether the value of an entry may be null, which omits it."""
        value = member.value
        if not isinstance(value, Scalar) or not (value.is_literal or value.whole):
            return False
        return value.value is None if value.is_literal else not _has_value(self.types.slots(value)[0].type)

    def _required(self, body: BodyMembers, node: SchemaNode, path: str) -> None:
        names = {name for name, member in body.entries.items() if not _is_null(member.value)}
        names |= {name for each in self.types.spreads(body.members) for name in own_fields(each.type) or ()}
        if not path:
            names |= {"apiVersion", "kind", "metadata", "status"}
        place = Site(body.site.path)
        self._visit(place, path)
        for name in sorted(node.required - names):
            below = node.member(name)
            if below is None or (not node.builtin and below.schema.get("default") is not None):
                continue
            message = f"{f'{path}.{name}' if path else name} is required by the schema of {self.kind}"
            self._add(TypeProblem("invalid-literal", message, body.site), path, place)

    def _items(self, body: Items, node: SchemaNode | None, path: str) -> None:
        if self._is_refused(body, "list", node, path):
            return
        items = node.items if node is not None and "list" in node.kinds else None
        for spread in self.types.spreads(body.members):
            if items is not None and "list" in spread.type.kinds:
                self._slot(item_of(spread.type), items, f"{path}[]", spread)
        for number, each in enumerate(each for each in body.members if not isinstance(each, BodySpread)):
            self.check(each, items, f"{path}[{number}]")

    def _is_refused(self, body: Node, kind: str, node: SchemaNode | None, path: str) -> bool:
        self._visit(body.site, f"{last_name(path)}={kind}")
        if node is None or kind in node.kinds:
            return False
        message = f"{path} must be {describe(node.kinds - {'null'})}, not {describe([kind])}"
        self._add(TypeProblem("invalid-literal", message, body.site), f"{last_name(path)}={kind}")
        return True

    # -- values --------------------------------------------------------------------------------------------------------

    def _literal(self, body: Scalar, node: SchemaNode | None, path: str) -> None:
        if body.value is None:
            return
        anchor = f"{last_name(path)}={body.value!r}"
        self._visit(body.site, anchor)
        message = literal_problem(body.value, node) if node is not None else ""
        if message:
            self._add(TypeProblem("invalid-literal", f"{path} {message}", body.site), anchor)

    def _text(self, body: Scalar, node: SchemaNode | None, path: str) -> None:
        slots, is_single = self.types.slots(body), body.only is not None
        for slot in slots:
            self._scalar(slot, body)
        anchor = f'{last_name(path)}=""'
        self._visit(body.site, anchor)
        if node is None:
            return
        if "string" in node.kinds:
            for slot in slots:
                self._quantity(slot.type, node, path, slot, anchor, place=body.site)
            return
        how = "a value in quotes is a string: remove the quotes" if is_single else "text with slots is a string"
        message = f"{path} must be {describe(node.kinds - {'null'})}, and {how}"
        words = (*(slot.expression for slot in slots), last_name(path))
        self._add(TypeProblem("type-mismatch", message, body.site, words), anchor)

    def _scalar(self, slot: TypedSlot, body: Scalar) -> None:
        """A slot inside text, where only a scalar can be printed."""
        found = slot.type
        if not found.is_known or "other" in found.kinds or found.is_inserted:
            return
        is_single = body.only is not None
        anchor = f"~{slot.expression}"
        self._visit(slot.site, anchor)
        wrong, possible = misfit(found.kinds, SCALARS | {"null"} if is_single else SCALARS)
        if wrong:
            message = f"{slot.expression} {wrong}, which cannot be a part of text"
            self._add(TypeProblem("type-mismatch", message, slot.site, (slot.expression,), warn=possible), anchor)
        elif found.undefined is not None and found.undefined.reason == "omit" and not is_single:
            message = f"{slot.expression} can leave no value, which must be the whole value of a field: add an `else`"
            problem = TypeProblem("maybe-missing", message, slot.site, (slot.expression,), warn=bool(found.kinds))
            self._add(problem, anchor)

    def _slot(self, found: Type, node: SchemaNode | None, path: str, slot: TypedSlot) -> None:
        """Compares the type of a slot with its place."""
        is_declared = found.node is not None and found.fields is None and found.elements is None
        if not (is_declared and self._is_compared(found, found, node, path, slot.site, slot.expression)):
            self._value(found, node, path, slot)

    def _is_compared(self, what: object, *key: object) -> bool:
        """Whether the same was compared in another variant."""
        if key in self.compared:
            return True
        self.compared[key] = what
        return False

    def _value(self, found: Type, node: SchemaNode | None, path: str, slot: TypedSlot, *, depth: int = 0) -> None:
        """Compares the type of a value with its place."""
        kinds = found.kinds - {"null"}
        anchor = f"{last_name(path)}{'[]' * depth}={slot.expression}"  # an item is not its list
        self._visit(slot.site, anchor)
        if node is None or not found.is_known or not kinds or "other" in kinds or found.is_inserted:
            return
        allowed = node.kinds | ({"number"} if "integer" in node.kinds and "integer" in kinds else set())
        if found.node is not None and found.node.is_quantity:
            kinds = kinds & {"string"}  # as the API server writes it
        wrong = kinds - allowed
        if wrong:
            possible = bool(kinds & allowed)
            message = _mismatch(found, wrong, node, path, slot, possible=possible, nested=depth > 0)
            self._add(TypeProblem("type-mismatch", message, slot.site, (slot.expression,), warn=possible), anchor)
            return
        self._constants(found, node, path, slot, anchor)
        self._quantity(found, node, path, slot, anchor, place=slot.site)
        if depth < _MAX_DEPTH and node is not found.node:
            if "mapping" in kinds:
                self._fields(found, node, path, slot, depth)
            if "list" in kinds and node.items is not None and found.elements != ():
                self._value(item_of(found), node.items, f"{path}[]", slot, depth=depth + 1)

    def _fields(self, found: Type, node: SchemaNode, path: str, slot: TypedSlot, depth: int) -> None:
        own = found.fields if found.fields is not None and found.node is None else None
        names = list(own) if own is not None else sorted(found.node.names) if found.node is not None else []
        for name in names:
            below = node.member(name) or node.values
            inner = f"{path}.{name}" if path else name
            if below is not None:
                self._value(field_of(found, name).type.defined(), below, inner, slot, depth=depth + 1)
            elif not node.is_open and self.reports_unknown:
                self._visit(slot.site, f"{path}+{name}")
                close = nearest(name, node.names)
                hint = f" (did you mean {close}?)" if close else ""
                is_certain = own is not None and not found.partial
                verb = "sets" if is_certain else "can set"
                message = f"{slot.expression} {verb} {inner}, which is not in the schema of {self.kind}{hint}"
                problem = TypeProblem("unknown-field", message, slot.site, (slot.expression,), warn=not is_certain)
                self._add(problem, f"{path}+{name}")
        values = values_of(found)
        if values is not None and node.values is not None:
            self._value(values, node.values, f"{path}[]", slot, depth=depth + 1)

    def _constants(self, found: Type, node: SchemaNode, path: str, slot: TypedSlot, anchor: str) -> None:
        """Literals in an expression: `'Retain' if spec.keep else 'Delet'`."""
        if not found.constants or found.node is not None:
            return
        bad = {value: message for _, value in found.constants if (message := literal_problem(value, node))}
        if bad:
            message = f"{path} {bad[min(bad, key=str)]}"
            problem = TypeProblem("invalid-literal", message, slot.site, (slot.expression,))
            self._add(problem, anchor)

    def _quantity(self, found: Type, node: SchemaNode, path: str, slot: TypedSlot, anchor: str, *, place: Site) -> None:
        """A field of the custom resource that may be any text, where only quantities are allowed."""
        if not node.is_quantity or found.origin is not Origin.GIVEN or found.constants is not None:
            return
        if found.node is not None and found.node.is_any_text:
            what = found.path or slot.expression
            message = f"{what} may be any text, and {path} must be {_QUANTITY}: give the field a pattern"
            problem = TypeProblem("type-mismatch", message, slot.site, (slot.expression, last_name(path)), warn=True)
            self._add(problem, anchor, place)

    # -- findings ------------------------------------------------------------------------------------------------------

    def _visit(self, site: Site, what: str) -> None:
        self.visits[site.path, site.line, what] += 1

    def _add(self, problem: TypeProblem, what: str, place: Site | None = None) -> None:
        site = place or problem.site
        key = ((site.path, site.line, what), problem)
        self.found[key] = self.found.get(key, 0) + 1


_TEXT = re.compile(r"\)\s*$|\|\s*to_(?:nice_)?(?:yaml|json)\b")
"""An expression that results in text for a place that takes data: the call of a macro, or data as text."""


def _has_value(found: Type) -> bool:
    """Whether the value is never missing or null, which would omit its field."""
    return found.undefined is None and "null" not in found.kinds


def _is_null(body: Node) -> bool:
    """Whether the body omits its field."""
    return isinstance(body, Scalar) and body.is_literal and body.value is None


def _mismatch(
    found: Type, wrong: frozenset[str], node: SchemaNode, path: str, slot: TypedSlot, *, possible: bool, nested: bool
) -> str:
    allowed = node.kinds - {"null"}
    what = slot.expression if not nested else found.path or f"a value in {slot.expression}"
    advice = ""
    if not nested and "string" in allowed and wrong <= SCALARS:
        in_quotes = slot.site.column  # a string of watches.yaml, which keeps the type of its slot
        advice = ": use `| string`" if in_quotes else ": write it in quotes, or use `| string`"
    elif allowed == {"integer"} and wrong == {"string"}:
        advice = ": use `| int`, or change its type in the CRD"
    elif not nested and wrong == {"string"} and allowed <= {"mapping", "list"} and _TEXT.search(slot.expression):
        advice = ": data is inserted where `{{ x }}` is alone on its line, below the key"
    return f"{what} {'may be' if possible else 'is'} {describe(wrong)}, and {path} must be {describe(allowed)}{advice}"


def literal_problem(value: Any, node: SchemaNode) -> str:
    """The reason that the schema refuses a scalar; "" if it does not."""
    kind = kind_of(value)
    if kind == "null":
        return ""
    allowed = node.kinds - {"null"}
    if kind not in allowed and not (kind == "number" and "integer" in allowed and float(value).is_integer()):
        shown = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else value
        shown = shown if len(str(shown)) < 60 else describe([kind])
        advice = ": put it in quotes" if "string" in allowed and kind in SCALARS else ""
        if kind == "string" and allowed <= {"integer", "number", "boolean"}:
            advice = ": remove the quotes" if _reads_as(value, allowed) else ""
        return f"must be {describe(allowed)}, not {shown}{advice}"
    if node.is_quantity:
        return "" if parse_quantity(value) is not None else f'must be {_QUANTITY}, not "{value}"'
    if node.builtin and value == "":
        return ""  # the same as a missing value, in most fields
    schema = {key: each for key, each in node.schema.items() if key in _KEYWORDS}
    if schema.get("format") == "int-or-string" or schema.keys() <= _TYPE_ALONE:
        return ""
    found = validate(value, schema)
    return found[0].message if found else ""


def _reads_as(text: str, kinds: frozenset[str]) -> bool:
    try:
        float(text)
    except ValueError:
        return "boolean" in kinds and text.lower() in {"true", "false"}
    return True


@dataclass(slots=True)
class BodyChecks:
    """Compares bodies after the types of their slots are known."""

    runner: Runner
    kinds: KindSchemas

    @property
    def report(self) -> Report:
        return self.runner.inference.report

    def objects(self, part: RulePart, *, requires: bool = True) -> None:
        """The objects that a child renders. `requires`: a missing field cannot come from another manager."""
        by_kind: dict[Kind, Conformance] = {}
        types = Types(self.runner.printed)
        for body in possible_in(part, self.runner.library).bodies_with(self._stand_in):
            conformance = by_kind.setdefault(body.kind, Conformance(body.kind.kind, types, requires=requires))
            conformance.check(body.document, self.kinds.node(body.kind), "")
        for conformance in by_kind.values():
            self._write(conformance)

    def status(self, part: RulePart, node: SchemaNode | None) -> None:
        """The status, with the schema of the CRD. Fields that it does not declare are findings of loading."""
        conformance = Conformance("the status", Types(self.runner.printed), reports_unknown=False, requires=False)
        for body in self.typed(part):
            conformance.check(body.document, node, "status")
        self._write(conformance)

    def typed(self, part: RulePart) -> Iterator[Typed]:
        """The bodies of a part with the types of what is printed."""
        types = Types(dict(self.runner.printed))
        return (
            Typed(body.document, types) for body in possible_in(part, self.runner.library).bodies_with(self._stand_in)
        )

    def _stand_in(self, node: syntax.Printed) -> Any:
        """A value that is laid out as values of the node's type are."""
        found = self.runner.printed.get(id(node), UNKNOWN)
        if isinstance(found.code, Dumped):
            found = found.code.value
        kinds = found.kinds - {"null"}
        return {"": 0} if kinds == {"mapping"} else [0] if kinds == {"list"} else ""

    def _write(self, conformance: Conformance) -> None:
        for problem in conformance.problems():
            self.report.add(problem.code, problem.message, problem.site, *problem.words, warn=problem.warn)
