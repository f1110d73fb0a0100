"""CEL of kro as Jinja that means the same, or an InexpressibleError.

A missing field is the same in both: an error of the custom resource below `schema`, and something to wait for below
another resource. So most care is for what a missing field must not decide: `&&` and `||` of CEL look at both of their
sides, so that the side that always has a value is written first; `has()` and `?.` ask only for the last field. Where a
difference remains in a rare case, it is a remark.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.kro import jinja_terms as terms
from ruleop.authoring.scaffold.kro.jinja_terms import (
    COMPARED,
    FILTERED,
    FUNCTIONS,
    METHODS,
    NAMED,
    PRODUCT,
    SUM,
    WHOLE,
    InexpressibleError,
    JinjaTerm,
)
from ruleop.kubernetes.cel import (
    CelCall,
    CelMacro,
    CelName,
    InvalidRuleError,
    ListLiteral,
    Literal,
    MapLiteral,
    NotEvaluatedError,
    Select,
    parse,
)
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.cel import Node
    from ruleop.kubernetes.schema import Schema

_TESTS: Final = {"==": "equalto", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "in": "in"}
_SWAPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_INVERSE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_OF_CONDITIONS: Final = frozenset({"type", "status"})
"""Each condition in a status has them."""
_CALLS: Final = {
    **dict.fromkeys(("&&", "||"), "_logical"),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), "_compared"),
    **dict.fromkeys(("+", "-", "*", "/", "%"), "_arithmetic"),
    **dict.fromkeys(("[]", "[?]"), "_index"),
    "?:": "_conditional",
    "!_": "_not",
    "-_": "_negative",
}
"""The methods that translate operators."""


@dataclass(frozen=True, slots=True)
class JinjaNames:
    """The names that an expression can read. `ids`: those of resources, with the ids of the children."""

    spec: Schema
    ids: Mapping[str, str]
    variables: Mapping[str, JinjaTerm] = field(default_factory=dict)

    def root(self, name: str) -> JinjaTerm:
        if name in self.variables:
            return self.variables[name]
        if name in self.ids:
            return JinjaTerm(self.ids[name], certain=True)
        raise InexpressibleError(f"there is no counterpart of {name}")


@dataclass(frozen=True, slots=True)
class Translated(JinjaTerm):
    ids: frozenset[str] = frozenset()  # the resources that it reads
    remarks: tuple[str, ...] = ()


def translated(text: str, names: JinjaNames, *, lenient: bool = False) -> Translated:
    """`lenient`: a missing value counts as false. Raises InexpressibleError."""
    try:
        node = parse(text)
    except (InvalidRuleError, NotEvaluatedError) as error:
        raise InexpressibleError(str(error)) from None
    translation = _Translation(names, lenient=lenient)
    term = translation.optional(node)
    remarks = tuple(dict.fromkeys(translation.remarks))
    return Translated(term.code, term.level, schema=term.schema, ids=frozenset(translation.ids), remarks=remarks)


def names_in(text: str) -> frozenset[str]:
    """The variables that an expression reads; none if it is not CEL that is understood."""
    try:
        return frozenset(_names(parse(text)))
    except (InvalidRuleError, NotEvaluatedError):
        return frozenset()


def _names(part: Any) -> Iterator[str]:
    """The names in a part of a syntax tree."""
    if isinstance(part, CelName):
        yield part.name
        return
    inner = part if isinstance(part, tuple) else [getattr(part, each) for each in getattr(part, "__slots__", ())]
    for each in inner:
        yield from _names(each)


@dataclass(slots=True)
class _Translation:
    names: JinjaNames
    ids: set[str] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)
    lenient: bool = False  # whether a missing value in this place counts as false
    present: frozenset[str] = frozenset()  # code of values that a test before has found

    def optional(self, node: Node) -> JinjaTerm:
        """The value of a whole expression: one that is optional leaves out its field."""
        if _is_optional(node):
            base, conditions, value = self._chain(node)
            if base.certain:
                return terms.filtered(value, "default(omit)", value.kind)
            return terms.chosen(terms.both(conditions), value, JinjaTerm("omit", certain=True))
        return self.value(node)

    def value(self, node: Node) -> JinjaTerm:
        before = self.lenient
        self.lenient = before and (
            isinstance(node, CelMacro) or (isinstance(node, CelCall) and node.name in ("&&", "||"))
        )
        found = self._value(node)
        self.lenient = before
        return found

    def _value(self, node: Node) -> JinjaTerm:
        if isinstance(node, Literal):
            return terms.constant(node.value)
        if isinstance(node, CelName):
            return self._name(node.name)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, CelMacro):
            return self._macro(node)
        if isinstance(node, ListLiteral):
            items = [self.value(each) for each in node.items]
            code = f"[{', '.join(each.code for each in items)}]"
            return JinjaTerm(code, kind="list", certain=all(each.certain for each in items))
        if isinstance(node, MapLiteral):
            return self._map(node)
        if node.target is None and node.name in _CALLS:
            found: JinjaTerm = getattr(self, _CALLS[node.name])(node)
            return found
        return self._function(node)

    # -- names and fields ----------------------------------------------------------------------------------------------

    def _name(self, name: str) -> JinjaTerm:
        if name == "schema":
            raise InexpressibleError("the custom resource as a whole is another object")
        found = self.names.root(name)
        if name in self.names.ids and name not in self.names.variables:
            self.ids.add(name)
        return found

    def _select(self, node: Select) -> JinjaTerm:
        if node.tests:
            if _is_optional(node.operand):
                raise InexpressibleError("has() of an optional value")
            return terms.is_set(self.value(node.operand), _plain_name(node.field))
        if _is_optional(node):
            raise InexpressibleError("an optional value is used without orValue()")
        if isinstance(node.operand, CelName) and node.operand.name == "schema" and "schema" not in self.names.variables:
            return self._of_instance(node.field)
        return self._known(terms.member(self.value(node.operand), _plain_name(node.field)))

    def _of_instance(self, name: str) -> JinjaTerm:
        if name == "spec":
            return terms.described("spec", self.names.spec, certain=True)
        if name == "metadata":
            text = {"type": "string"}
            return JinjaTerm(
                "metadata",
                kind="map",
                schema={"properties": {"name": text, "namespace": text}, "required": ["name", "namespace"]},
                certain=True,
            )
        if name in ("apiVersion", "kind"):
            return JinjaTerm(f"cr.{name}", kind="string", certain=True)
        raise InexpressibleError(f"there is no counterpart of schema.{name}")

    def _known(self, term: JinjaTerm) -> JinjaTerm:
        """The value, certain if a test before has found it."""
        return replace(term, certain=True) if term.code in self.present else term

    def _index(self, node: CelCall) -> JinjaTerm:
        if _is_optional(node):
            raise InexpressibleError("an optional value is used without orValue()")
        owner, key = self.value(node.arguments[0]), node.arguments[1]
        if isinstance(key, Literal) and isinstance(key.value, str):
            return self._known(terms.member(owner, key.value))
        index = self.value(key)
        if not index.at_least_zero and index.kind != "string":
            raise InexpressibleError("an index that may be negative counts from the end in Jinja")
        items = (owner.schema or {}).get("items")
        return terms.described(f"{owner.within(WHOLE)}[{index.code}]", items, certain=False)

    def _chain(self, node: Node) -> tuple[JinjaTerm, list[JinjaTerm], JinjaTerm]:
        """Of `a.?b.?c`: the term of `a`, the conditions on which it has a value, and the term of `a.b.c`."""
        if not _is_optional(node):
            base = self.value(node)
            return base, [], base
        if isinstance(node, CelCall):
            owner_node, key = node.arguments
            base, conditions, owner = self._chain(owner_node)
            if not isinstance(key, Literal) or not isinstance(key.value, str):
                raise InexpressibleError("an optional item of a list")
            name = key.value
        else:
            assert isinstance(node, Select)
            base, conditions, owner = self._chain(node.operand)
            name = _plain_name(node.field)
        condition = JinjaTerm(
            f"{terms.text_literal(name)} in {owner.within(SUM)}", COMPARED, "bool", certain=base.certain
        )
        return base, [*conditions, condition], terms.member(owner, name)

    def _or_value(self, node: CelCall) -> JinjaTerm:
        assert node.target is not None
        if not _is_optional(node.target):
            raise InexpressibleError("orValue() of a value that is not optional")
        base, conditions, value = self._chain(node.target)
        other = self.value(node.arguments[0])
        if base.certain and other.certain:
            return replace(terms.filtered(value, f"default({other.code})", value.kind or other.kind), certain=True)
        return terms.chosen(terms.both(conditions), replace(value, certain=True), other)

    def _has_value(self, node: CelCall) -> JinjaTerm:
        assert node.target is not None
        base, conditions, value = self._chain(node.target)
        if base.certain:
            return JinjaTerm(f"{value.code} is defined", COMPARED, "bool", certain=True)
        return terms.both(conditions)

    def _map(self, node: MapLiteral) -> JinjaTerm:
        entries = []
        for key, each in node.entries:
            if not isinstance(key, Literal) or not isinstance(key.value, str):
                raise InexpressibleError("a map whose keys are not plain strings")
            entries.append((key.value, self.value(each)))
        if len({key for key, _ in entries}) < len(entries):
            raise InexpressibleError("a map with a key twice")
        # A space before each closing brace, because two of them end an expression.
        code = ", ".join(f"{terms.text_literal(key)}: {each.code}" for key, each in entries)
        return JinjaTerm(f"{{{code} }}" if code else "{}", kind="map", certain=all(each.certain for _, each in entries))

    # -- operators -----------------------------------------------------------------------------------------------------

    def _logical(self, node: CelCall) -> JinjaTerm:
        found: list[JinjaTerm] = []
        before = self.present
        for each in node.arguments:
            found.append(self.value(each))
            self.present |= self._found(each, holds=node.name == "&&")
        self.present = before
        ordered = sorted(found, key=lambda each: not each.certain)
        if sum(not each.certain for each in found) > 1 and not (self.lenient and node.name == "&&"):
            self.remarks.append(f"kro: a missing value does not matter where the other side of {node.name} decides")
        return terms.both(ordered) if node.name == "&&" else terms.either(ordered)

    def _found(self, node: Node, *, holds: bool) -> frozenset[str]:
        """The code of fields that are set if the node is true, or with `holds=False` if it is false."""
        if isinstance(node, CelCall) and node.name == "!_":
            return self._found(node.arguments[0], holds=not holds)
        if isinstance(node, CelCall) and node.name == ("&&" if holds else "||"):
            return frozenset().union(*(self._found(each, holds=holds) for each in node.arguments))
        if isinstance(node, Select) and node.tests and holds and not _is_optional(node.operand):
            return frozenset({terms.member(self.value(node.operand), _plain_name(node.field)).code})
        return frozenset()

    def _not(self, node: CelCall) -> JinjaTerm:
        return terms.negated(self.value(node.arguments[0]))

    def _conditional(self, node: CelCall) -> JinjaTerm:
        test, first, second = node.arguments
        before = self.present
        condition = self.value(test)
        self.present = before | self._found(test, holds=True)
        chosen = self.value(first)
        self.present = before | self._found(test, holds=False)
        other = self.value(second)
        self.present = before
        return terms.chosen(condition, chosen, other)

    def _compared(self, node: CelCall) -> JinjaTerm:
        left, right = (self.value(each) for each in node.arguments)
        code = f"{left.within(SUM)} {node.name} {right.within(SUM)}"
        return JinjaTerm(code, COMPARED, "bool", certain=left.certain and right.certain)

    def _negative(self, node: CelCall) -> JinjaTerm:
        value = self.value(node.arguments[0])
        return JinjaTerm(f"-{value.within(WHOLE)}", terms.NEGATIVE, value.kind, certain=value.certain)

    def _arithmetic(self, node: CelCall) -> JinjaTerm:
        left, right = (self.value(each) for each in node.arguments)
        kinds = {left.kind, right.kind} - {""}
        symbol, level = node.name, SUM if node.name in "+-" else PRODUCT
        if "map" in kinds or (len(kinds) > 1 and symbol != "/"):
            raise InexpressibleError(f"{' and '.join(sorted(kinds))} with {symbol}")
        unsigned = left.at_least_zero and right.at_least_zero
        if symbol in "/%" and kinds != {"double"}:
            if not unsigned:
                raise InexpressibleError("Jinja rounds the quotient of a negative number in the other direction")
            symbol = {"/": "//", "%": "%"}[symbol]
        code = f"{left.within(level)} {symbol} {right.within(level + 1)}"
        certain = left.certain and right.certain and symbol in "+-*"
        return JinjaTerm(code, level, next(iter(kinds), ""), certain=certain, at_least_zero=unsigned and symbol != "-")

    # -- functions -----------------------------------------------------------------------------------------------------

    def _function(self, node: CelCall) -> JinjaTerm:
        target = node.target
        if isinstance(target, CelName) and target.name not in {*self.names.ids, *self.names.variables, "schema"}:
            method = NAMED.get((f"{target.name}.{node.name}", len(node.arguments)))
            if method is not None:
                return method(self.remarks, *(self.value(each) for each in node.arguments))
            raise InexpressibleError(f"there is no counterpart of {target.name}.{node.name}()")
        if node.name in ("orValue", "hasValue", "value") and target is not None:
            if node.name == "value":
                raise InexpressibleError("there is no counterpart of value()")
            return self._or_value(node) if node.name == "orValue" else self._has_value(node)
        if node.name == "string" and target is None and len(node.arguments) == 1:
            return self._text(node.arguments[0])
        operands = [*((target,) if target is not None else ()), *node.arguments]
        if node.name in ("isLessThan", "isGreaterThan") and len(operands) == 2:
            left, right = (self._quantity(each) for each in operands)
            symbol = "<" if node.name == "isLessThan" else ">"
            certain = left.certain and right.certain
            return JinjaTerm(f"{left.within(SUM)} {symbol} {right.within(SUM)}", COMPARED, "bool", certain=certain)
        method = (METHODS if target is not None else FUNCTIONS).get((node.name, len(operands)))
        if method is None:
            raise InexpressibleError(f"there is no counterpart of {node.name}()")
        return method(self.remarks, *(self.value(each) for each in operands))

    def _text(self, node: Node) -> JinjaTerm:
        """`string(node)`."""
        if isinstance(node, CelCall) and node.name == "decode" and node.target == CelName("base64"):
            return terms.filtered(self.value(node.arguments[0]), "b64decode", "string")
        value = self.value(node)
        if value.kind == "string":
            return value
        if value.kind in ("double", "list", "map", "null"):
            raise InexpressibleError(f"string() of a {value.kind} gives other text in CEL")
        return terms.filtered(value, "string", "string")

    def _quantity(self, node: Node) -> JinjaTerm:
        if not (isinstance(node, CelCall) and node.name == "quantity" and node.target is None):
            raise InexpressibleError("a quantity that is not written as quantity(...)")
        return terms.filtered(self.value(node.arguments[0]), "quantity", "quantity")

    # -- macros --------------------------------------------------------------------------------------------------------

    def _macro(self, node: CelMacro) -> JinjaTerm:
        skips, self.lenient = self.lenient and node.name == "exists", False
        source = self.value(node.target)
        if source.kind not in ("list", ""):
            raise InexpressibleError(f"{node.name}() over a {source.kind}")
        loop = _Loop(self, source, node.variable)
        if node.name == "map":
            kept = loop.selected(node.arguments[0]) if len(node.arguments) == 2 else source
            return loop.mapped(kept, node.arguments[-1])
        selected = loop.selected(node.arguments[0], skips=skips)
        if node.name == "filter":
            return terms.filtered(selected, "list", "list")
        count = f"{selected.within(FILTERED)} | list | length"
        expected = {"exists": "> 0", "all": f"== {source.within(FILTERED)} | length"}.get(node.name, "== 1")
        return JinjaTerm(f"{count} {expected}", COMPARED, "bool", certain=selected.certain)


@dataclass(slots=True)
class _Loop:
    """The items of a list, of which Jinja's filters see one attribute at a time."""

    translation: _Translation
    source: JinjaTerm
    variable: str
    has: set[str] = field(default_factory=set)  # attributes that a test before has found

    def selected(self, node: Node, *, skips: bool = False) -> JinjaTerm:
        """The list with the filters for a predicate."""
        found = self.source
        for each in node.arguments if isinstance(node, CelCall) and node.name == "&&" else (node,):
            name, code, certain = self._test(each, skips=skips)
            word = ("reject" if name.startswith("!") else "select") + ("attr" if code[0] else "")
            given = [terms.text_literal(code[0])] if code[0] else []
            arguments = ", ".join([*given, *code[1:]])
            call = f"{word}({arguments})" if arguments else word
            found = JinjaTerm(f"{found.within(FILTERED)} | {call}", FILTERED, "list", certain=found.certain and certain)
        return found

    def mapped(self, source: JinjaTerm, node: Node) -> JinjaTerm:
        name = "string" if isinstance(node, CelCall) and node.name == "string" and node.target is None else ""
        attribute = self._attribute(node.arguments[0] if name and isinstance(node, CelCall) else node)
        if attribute is None:
            raise InexpressibleError("Jinja has no list of computed items")
        if name and self._item(attribute).kind not in ("int", "string", "bool"):
            raise InexpressibleError("string() of items whose type is not known")
        if attribute:
            self._require(attribute)
            code = f"{source.within(FILTERED)} | map(attribute={terms.text_literal(attribute)})"
            source = JinjaTerm(code, FILTERED, "list")
        code = source.within(FILTERED) + (f" | map('{name}')" if name else "")
        return JinjaTerm(f"{code} | list", FILTERED, "list", certain=self.source.certain)

    def _test(self, node: Node, *, skips: bool) -> tuple[str, list[str], bool]:
        """The sign (`!` rejects), the attribute with the test and its argument, and whether it cannot fail."""
        if isinstance(node, CelCall) and node.name == "!_":
            inner = node.arguments[0]
            if isinstance(inner, CelCall) and inner.name in _INVERSE:
                return self._test(CelCall(_INVERSE[inner.name], None, inner.arguments), skips=skips)
            sign, code, certain = self._test(inner, skips=skips)
            if skips:
                raise InexpressibleError("a negation in exists() of items whose fields may be missing")
            return ("" if sign else "!"), code, certain
        if isinstance(node, Select) and node.tests:
            attribute = self._attribute(Select(node.operand, node.field))
            if attribute is None or "." in attribute:
                raise InexpressibleError("has() of something within an item")
            self.has.add(attribute)
            return "", [attribute, "'defined'"], True
        if isinstance(node, CelCall) and node.name in _TESTS and node.target is None:
            return self._comparison(node, skips=skips)
        attribute = self._attribute(node)
        if attribute is None:
            raise InexpressibleError("a test that Jinja's filters do not have")
        self._require(attribute, skips=skips)
        return "", [attribute], True

    def _comparison(self, node: CelCall, *, skips: bool) -> tuple[str, list[str], bool]:
        left, right = node.arguments
        name, attribute, other = node.name, self._attribute(left), right
        if attribute is None and name in _SWAPPED:
            name, attribute, other = _SWAPPED[name], self._attribute(right), left
        if attribute is None or self.variable in _names(other):
            raise InexpressibleError("a comparison that Jinja's filters do not have")
        self._require(attribute, skips=skips)
        value = self.translation.value(other)
        return "", [attribute, terms.text_literal(_TESTS[name]), value.code], value.certain

    def _item(self, attribute: str) -> JinjaTerm:
        term = terms.described("item", (self.source.schema or {}).get("items"), certain=True)
        for name in attribute.split(".") if attribute else ():
            term = terms.member(term, name)
        return term

    def _require(self, attribute: str, *, skips: bool = False) -> None:
        """A remark where an item may lack the attribute: Jinja skips it, and CEL has no value then."""
        is_condition = attribute in _OF_CONDITIONS and self.source.code.endswith("conditions")
        known = not attribute or attribute in self.has or is_condition or attribute in ("metadata.name", "metadata")
        if not (known or skips or self._item(attribute).certain):
            self.translation.remarks.append(f"kro waits while an item has no {attribute}; here such an item is skipped")

    def _attribute(self, node: Node) -> str | None:
        """`a.b` of `item.a.b`, empty of the item itself; None of anything else."""
        if node == CelName(self.variable):
            return ""
        if isinstance(node, Select) and not node.tests and not node.optional:
            owner, name = self._attribute(node.operand), _plain_name(node.field)
            if owner is not None and not name.isdigit():
                return f"{owner}.{name}" if owner else name
        return None


def _is_optional(node: Node) -> bool:
    if isinstance(node, Select) and not node.tests:
        return node.optional or _is_optional(node.operand)
    if isinstance(node, CelCall) and node.name in ("[]", "[?]") and node.target is None:
        return node.name == "[?]" or _is_optional(node.arguments[0])
    return False


def _plain_name(name: str) -> str:
    if "__" in name.strip("_"):
        raise InexpressibleError(f"{name} may be an escaped name")
    return name
