"""The rules of a schema, held against a custom resource (apiextensions-apiserver, pkg/apiserver/schema/cel).

- A rule concerns each value of its schema that is not null. One that reads `oldSelf` applies only where the value
  before the update is known by the same path: never in a list without keys.
- A rule that does not read `oldSelf` does not concern a value that an update leaves as it was.
- A rule whose evaluation fails (a missing key, an overflow) rejects the object too, changed or not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.cel.cel_compiler import compile_rule
from ruleop.kubernetes.cel.parser import EvaluationError, InvalidRuleError, NotEvaluatedError
from ruleop.kubernetes.cel.values import Budget, OptionalValue, optional_of, same_json, to_value, type_of_schema
from ruleop.kubernetes.schema import SchemaFinding
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.cel.cel_compiler import CelProgram
    from ruleop.kubernetes.cel.values import CelType
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema import FieldPath, Schema

_STEPS_OF_A_RULE: Final = 100_000
_STEPS_OF_AN_OBJECT: Final = 1_000_000
_LONGEST_MESSAGE: Final = 5 * 1024
_STEP: Final = re.compile(r"\.([^.\[\]']+)|\['((?:[^'\\]|\\['\\])*)'\]")


class RuleVerdict(Enum):
    """The verdict of a rule on a value that is not known to be valid."""

    BROKEN = "broken"  # the rule is false
    FAILED = "failed"  # the rule has an error for the value
    NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True, slots=True)
class CelRule:
    """A rule of a schema, compiled; `problem` is why it is not. `is_invalid`: the server rejects the CRD for it."""

    path: FieldPath  # in the schema
    rule: str
    program: CelProgram | None
    problem: str
    is_invalid: bool
    message: str
    message_program: CelProgram | None
    reason: str
    field: tuple[str, ...]
    schema_type: str
    wrong_field: str = ""  # a `fieldPath` that the schema does not have
    is_old_optional: bool = False  # it also concerns what has no value before


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A value that a rule rejects, or of which nothing is known."""

    verdict: RuleVerdict
    rule: CelRule
    path: FieldPath
    field: str  # the path as the server writes it
    detail: str
    value: JSON = None  # of a scalar

    @property
    def finding(self) -> SchemaFinding:
        """The same in words for authors of rules."""
        rule = self.rule.rule
        if self.verdict is RuleVerdict.BROKEN:
            own = self.detail != f"failed rule: {rule}"
            return SchemaFinding(self.path, f"{self.detail} (rule: {rule})" if own else f"must satisfy the rule {rule}")
        what = "cannot be evaluated" if self.verdict is RuleVerdict.FAILED else "is not evaluated"
        return SchemaFinding(self.path, f"the rule {rule} {what}: {self.detail}")


@dataclass(frozen=True, slots=True)
class _Node:
    """The rules of a schema and of those inside it."""

    type: CelType
    rules: tuple[CelRule, ...]
    properties: Mapping[str, _Node]
    values: _Node | None  # of additionalProperties
    items: _Node | None

    def is_empty(self) -> bool:
        return not (self.rules or self.properties or self.values or self.items)

    def all_rules(self) -> Iterator[CelRule]:
        yield from self.rules
        for each in (*self.properties.values(), self.values, self.items):
            if each is not None:
                yield from each.all_rules()


class CelRules:
    """The compiled rules of the schema of a custom resource."""

    def __init__(self, schema: Schema) -> None:
        self._root = _node(schema, type_of_schema(schema, is_resource=True), ()) if _has_rules(schema) else None
        self.rules = tuple(self._root.all_rules()) if self._root is not None else ()
        self.invalid = tuple(each for each in self.rules if each.is_invalid)
        self.not_evaluated = tuple(each for each in self.rules if each.program is None and not each.is_invalid)

    def broken(self, obj: Object, old: Object | None = None) -> list[BrokenRule]:
        """The rules that a valid object breaks, and those that could not be evaluated for it."""
        if self._root is None:
            return []
        visit = _Visit(Budget(_STEPS_OF_AN_OBJECT))
        visit.node(self._root, obj, _Place((), ""), _Before(old, _Correlation(obj, old, self._root.type)))
        return visit.found


def cel_rules(schema: Schema) -> CelRules:
    """The rules of a schema, compiled once for each schema that is alive."""
    return _compiled(_Identity(schema))


@dataclass(frozen=True, slots=True, eq=False)
class _Identity:
    """A schema as a key of a cache: the same one, not one that is equal."""

    schema: Schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.schema is self.schema

    def __hash__(self) -> int:
        return id(self.schema)


@functools.lru_cache(maxsize=64)
def _compiled(key: _Identity) -> CelRules:
    return CelRules(key.schema)


# -- compilation -----------------------------------------------------------------------------------------------------


def _has_rules(schema: Schema) -> bool:
    if schema.get("x-kubernetes-validations"):
        return True
    below = (*(schema.get("properties") or {}).values(), schema.get("additionalProperties"), schema.get("items"))
    return any(_has_rules(each) for each in below if isinstance(each, Mapping))


def _node(schema: Schema, type_: CelType, path: FieldPath) -> _Node:
    properties, others, items = schema.get("properties") or {}, schema.get("additionalProperties"), schema.get("items")
    below = {
        name: _node(each, type_.properties.get(name) or type_of_schema(each), (*path, "properties", name))
        for name, each in properties.items()
    }
    values, inner = (
        _node(each, type_.items or type_of_schema(each), (*path, keyword)) if isinstance(each, Mapping) else None
        for keyword, each in (("additionalProperties", others), ("items", items))
    )
    given = schema.get("x-kubernetes-validations") or ()
    return _Node(
        type_,
        tuple(
            _rule(each, type_, schema, (*path, "x-kubernetes-validations", index)) for index, each in enumerate(given)
        ),
        {name: each for name, each in below.items() if not each.is_empty()},
        values if values is not None and not values.is_empty() else None,
        inner if inner is not None and not inner.is_empty() else None,
    )


def _has_field(schema: Schema, field_path: str) -> bool:
    """Whether a schema declares what a `fieldPath` leads to."""
    for one, other in _STEP.findall(field_path):
        name, others = one or other.replace("\\", ""), schema.get("additionalProperties")
        inner = (schema.get("properties") or {}).get(name, others)
        if not isinstance(inner, Mapping):
            return False
        schema = inner
    return not _STEP.sub("", field_path)


def _rule(given: Mapping[str, Any], type_: CelType, schema: Schema, path: FieldPath) -> CelRule:
    field_path = given.get("fieldPath") or ""
    rule = given["rule"].strip()
    program, problem, is_invalid = None, "", False
    old = optional_of(type_) if given.get("optionalOldSelf") else type_
    try:
        program = _program(rule, type_, old, "bool")
    except NotEvaluatedError as error:
        problem = str(error)
    except InvalidRuleError as error:
        problem, is_invalid = str(error), True
    try:
        expression = given.get("messageExpression")
        message = _program(expression, type_, old, "string") if expression and program is not None else None
    except (NotEvaluatedError, InvalidRuleError):
        message = None
    return CelRule(
        path,
        rule,
        program,
        problem,
        is_invalid,
        (given.get("message") or "").strip(),
        message,
        given.get("reason") or "FieldValueInvalid",
        tuple(one or other.replace("\\", "") for one, other in _STEP.findall(field_path)),
        schema.get("type") or "",
        "" if _has_field(schema, field_path) else field_path,
        bool(given.get("optionalOldSelf")),
    )


def _program(text: str, type_: CelType, old: CelType, kind: str) -> CelProgram:
    if type_.kind == "hidden":
        raise NotEvaluatedError("its schema has no type")
    program = compile_rule(text, {"self": type_, "oldSelf": old})
    if program.type.kind != kind:
        message = f"the result is of type {program.type}, not {kind}"
        raise NotEvaluatedError(message) if program.type.kind == "dyn" else InvalidRuleError(message)
    return program


# -- evaluation ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    path: FieldPath
    field: str

    def child(self, name: str) -> _Place:
        return _Place((*self.path, name), f"{self.field}.{name}" if self.field else name)

    def at(self, key: str | int) -> _Place:
        return _Place((*self.path, key), f"{self.field}[{key}]")


@dataclass(frozen=True, slots=True)
class _Correlation:
    """A value and the one before an update, where both are known to be the same field (common/equality.go)."""

    new: JSON
    old: JSON
    type: CelType

    def key(self, name: str) -> _Correlation | None:
        inner = self.type.properties.get(name, self.type.items)
        if not (isinstance(self.new, Mapping) and isinstance(self.old, Mapping)) or inner is None:
            return None
        return _Correlation(self.new[name], self.old[name], inner) if name in self.new and name in self.old else None

    def index(self, index: int) -> _Correlation | None:
        if not isinstance(self.new, list) or not isinstance(self.old, list) or self.type.items is None:
            return None
        old = _with_keys_of(self.new[index], self.old, self.type)
        return _Correlation(self.new[index], old, self.type.items) if old is not None else None

    def is_unchanged(self, budget: Budget) -> bool:
        new, old = self.new, self.old
        if new is None or old is None:
            return new is old
        if isinstance(new, Mapping) and isinstance(old, Mapping):
            inner = [self.key(name) for name in new]
        elif isinstance(new, list) and isinstance(old, list) and self.type.list_type == "map":
            inner = [self.index(index) for index in range(len(new))]
        else:
            return same_json(new, old, budget)
        return len(new) == len(old) and all(each is not None and each.is_unchanged(budget) for each in inner)


def _with_keys_of(item: JSON, old: Sequence[JSON], type_: CelType) -> JSON:
    """The item of a list with keys before an update."""
    keys = type_.map_keys
    if type_.list_type != "map" or not keys or not isinstance(item, Mapping):
        return None

    def identity(of: Mapping[str, Any]) -> list[Any] | None:
        found = [(type(of.get(key)), of.get(key)) for key in keys]
        return found if all(kind in (str, int, bool, float) for kind, _ in found) else None

    sought = identity(item)
    found = (each for each in old if isinstance(each, Mapping) and identity(each) == sought)
    return next(found, None) if sought is not None else None


@dataclass(frozen=True, slots=True)
class _Before:
    """The state of a value before an update: `old` for oldSelf, and whether it or a parent of it has changed."""

    old: JSON
    correlation: _Correlation | None
    parent: _Correlation | None = None

    def key(self, name: str) -> _Before:
        old = self.old.get(name) if isinstance(self.old, Mapping) else None
        return self._inner(old, self.correlation.key(name) if self.correlation else None)

    def index(self, item: JSON, index: int, type_: CelType) -> _Before:
        old = _with_keys_of(item, self.old, type_) if isinstance(self.old, list) else None
        return self._inner(old, self.correlation.index(index) if self.correlation else None)

    def _inner(self, old: JSON, correlation: _Correlation | None) -> _Before:
        return _Before(old, correlation, self.correlation or self.parent)

    def is_unchanged(self, budget: Budget) -> bool:
        nearest = self.correlation or self.parent
        return nearest is not None and nearest.is_unchanged(budget)


@dataclass(slots=True)
class _Visit:
    """One validation of one object."""

    budget: Budget
    found: list[BrokenRule] = field(default_factory=list)

    def node(self, node: _Node, value: JSON, place: _Place, before: _Before) -> None:
        if value is None:
            return
        for rule in node.rules:
            self.found += self._broken(node, rule, value, place, before)
        if isinstance(value, list):
            for index, item in enumerate(value):
                if node.items is not None:
                    self.node(node.items, item, place.at(index), before.index(item, index, node.type))
        elif isinstance(value, Mapping):
            for name, member in value.items():
                if name in node.properties:
                    self.node(node.properties[name], member, place.child(name), before.key(name))
                elif node.values is not None:
                    self.node(node.values, member, place.at(name), before.key(name))

    def _broken(self, node: _Node, rule: CelRule, value: JSON, place: _Place, before: _Before) -> Iterator[BrokenRule]:
        if not rule.rule:
            return
        if rule.program is None:
            yield BrokenRule(RuleVerdict.NOT_EVALUATED, rule, place.path, place.field, rule.problem)
            return
        uses_old = "oldSelf" in rule.program.names
        if uses_old and before.old is None and not rule.is_old_optional:
            return
        scalar = value if rule.schema_type not in ("object", "array") else None
        try:
            names = {"self": to_value(value, node.type)}
            old = () if before.old is None else (to_value(before.old, node.type),)
            if rule.is_old_optional:
                names["oldSelf"] = OptionalValue(old)
            elif old:
                (names["oldSelf"],) = old
            if rule.program.evaluate(names, Budget(_STEPS_OF_A_RULE, self.budget)) is True:
                return
            if not uses_old and before.is_unchanged(self.budget):
                return
            detail = rule.message or f"failed rule: {rule.rule}"
            if rule.message_program is not None:
                detail = _message(rule.message_program, names, self.budget) or detail
            for name in rule.field:
                place = place.child(name)
            yield BrokenRule(RuleVerdict.BROKEN, rule, place.path, place.field, detail, scalar)
        except EvaluationError as error:
            yield BrokenRule(RuleVerdict.FAILED, rule, place.path, place.field, str(error), scalar)
        except NotEvaluatedError as error:
            yield BrokenRule(RuleVerdict.NOT_EVALUATED, rule, place.path, place.field, str(error))
        except RecursionError:  # JSON may be nested a thousand levels deep
            yield BrokenRule(RuleVerdict.NOT_EVALUATED, rule, place.path, place.field, "the value is nested too deeply")


def _message(program: CelProgram, names: dict[str, Any], whole: Budget) -> str:
    """The text of a messageExpression, if the server uses it."""
    try:
        text = program.evaluate(names, Budget(_STEPS_OF_A_RULE, whole))
    except (EvaluationError, NotEvaluatedError):
        return ""
    text = str(text).strip()
    return text if "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE else ""
