"""ValidatingAdmissionPolicies of the rules of `validate`: the API server refuses what the operator would call Invalid.

A policy has the rules of one watch that CEL can express exactly. The others stay with the operator alone. A rule that
fails for a custom resource, because a field is missing, is refused too (`failurePolicy: Fail`): no webhook is asked, so
nothing can be unavailable.

A resource that breaks a rule already can still be deleted, and its metadata and its status be changed: a policy looks
only at creations and at changes of what its rules read. So a new rule does not lock what exists.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.typing.types import KindSchemas, SchemaNode
from ruleop.authoring.checking.typing.watches import expression_node
from ruleop.authoring.generate import cel_terms as terms
from ruleop.authoring.generate.cel_terms import CelTerm, InexactError, constant, inexact
from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.scaffold import rules_text
from ruleop.language.templates import syntax
from ruleop.language.templates.compile import has_templates
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules import Rule
    from ruleop.language.rules.keys.model import Validation
    from ruleop.language.rules.loading import Loaded, Watch
    from ruleop.language.rules.operator_choices import Choices


# -- rules in CEL ------------------------------------------------------------------------------------------------------
# Rules of `validate` in CEL: each Jinja expression becomes one that says exactly the same, or an InexactError.
#
# What exactly means is in cel_terms.py. It may depend on the custom resource alone: its spec, its name, namespace,
# labels and annotations, constants of `vars`, and `let` of these. The status, and the rest of the metadata, are not yet
# those that the operator will read when the API server asks.

_ITEM: Final = "item"
_TEXT: Final = SchemaNode({"type": "string"})
_TEXTS: Final = SchemaNode({"type": "object", "additionalProperties": {"type": "string"}})
_COMPARED: Final[Mapping[str, str]] = {
    "eq": "eq", "==": "eq", "equalto": "eq", "ne": "ne", "!=": "ne", "lt": "lt", "<": "lt", "lessthan": "lt",
    "le": "lteq", "<=": "lteq", "gt": "gt", ">": "gt", "greaterthan": "gt", "ge": "gteq", ">=": "gteq",
}  # fmt: skip
"""Jinja's tests that compare."""
_MISSING: Final = terms.constant("...")
_DEFINED: Final = frozenset({"defined", "undefined"})
_OTHER_OPERATORS: Final = {"/": "Div", "**": "Pow"}
"""Those without an equal in CEL, by their names in messages."""
_VALUES: Final[Mapping[type[syntax.Node], str]] = {
    syntax.Const: "_constant",
    syntax.List: "_constant",
    syntax.Tuple: "_constant",
    syntax.Name: "_name",
    syntax.Field: "_field",
    syntax.Item: "_item",
    syntax.And: "_either_value",
    syntax.Or: "_either_value",
    syntax.Not: "_truth",
    syntax.Conditional: "_conditional",
    syntax.Compare: "_compare",
    syntax.Test: "_test",
    syntax.Filter: "_filter",
    syntax.Call: "_call",
    syntax.Concat: "_joined",
    syntax.Sign: "_signed",
    syntax.Operation: "_arithmetic",
}
"""The methods that translate values."""
_OTHER_PATTERNS: Final = re.compile(r"\\[CpP]|[^\x00-\x7f]")
"""Go's regular expressions have no \\C, and its own version of Unicode's classes."""


@dataclass(frozen=True, slots=True)
class CelNames:
    """The names that the rules of a watch can read."""

    loaded: Loaded
    watch: Watch
    spec: SchemaNode | None
    is_spec_set: bool
    namespaced: bool

    @classmethod
    def of(cls, loaded: Loaded, watch: Watch, root: SchemaNode, *, namespaced: bool) -> CelNames:
        return cls(loaded, watch, root.member("spec"), root.is_always_set("spec"), namespaced)

    def root(self, name: str) -> CelTerm:
        if name != "spec":
            raise inexact(f"it reads {name}, which only the operator knows")
        present = () if self.is_spec_set else ("has(object.spec)",)
        found = terms.described(self.spec, CelTerm("object.spec", "any", path=terms.SPEC, present=present))
        if found.kind != "object":
            raise inexact("spec is not an object with declared fields")
        return found

    def metadata(self, name: str) -> CelTerm:
        text, path = f"object.metadata.{name}", f"metadata.{name}"
        if name == "name" or (name == "namespace" and self.namespaced):
            return replace(terms.described(_TEXT, CelTerm(text, "any", path=path)), is_ascii=True)
        if name in {"labels", "annotations"}:
            return terms.described(_TEXTS, CelTerm(text, "any", path=path, present=(f"has({text})",)))
        raise inexact(f"it reads {path}, which the API server does not have yet")

    def var(self, name: str) -> CelTerm:
        if name in self.watch.draft.from_environment:
            raise inexact(f"vars.{name} comes from an environment variable of the operator")
        if name not in self.watch.draft.vars:
            raise inexact(f"vars.{name} is not set")
        return replace(terms.constant(self.watch.draft.vars[name]), path=f"vars.{name}")


@dataclass(slots=True)
class Translation:
    """Translates the expressions of one rule. `reads` are the parts of the custom resource that it found in them."""

    names: CelNames
    reads: set[str] = field(default_factory=set)
    is_looping: bool = False

    def condition(self, node: syntax.Expr) -> str:
        found = self._truth(node)
        # The API server takes only what is a boolean for certain.
        return f"{found.within(terms.SUM)} == true" if found.is_raw else found.text

    def message(self, source: str, site: Site) -> tuple[str, str, str]:
        """A message with slots as plain text, and as an expression. What CEL cannot express is "..." in it, with the
        first reason."""
        body = self.names.loaded.library.written_string(source, site).body
        found, reason = list[CelTerm](), ""
        for part in body if all(isinstance(each, (syntax.Data, syntax.Print)) for each in body) else ():
            try:
                if isinstance(part, syntax.Data):
                    found.append(terms.constant(part.text))
                elif isinstance(part, syntax.Print):
                    found.append(terms.as_text(self._value(part.value)))
            except InexactError as error:
                found.append(_MISSING)
                reason = reason or str(error)
        plain = "".join(_MISSING.constant if each.constant is None else each.constant for each in found)
        return plain, terms.joined(found).text if any(each.constant is None for each in found) else "", reason

    # -- conditions ----------------------------------------------------------------------------------------------------

    def _truth(self, node: syntax.Expr) -> CelTerm:
        """A boolean: whether the value counts as true."""
        if isinstance(node, syntax.And):
            return terms.both(self._truth(node.left), self._truth(node.right))
        if isinstance(node, syntax.Or):
            return terms.either(self._truth(node.left), self._truth(node.right))
        if isinstance(node, syntax.Not):
            return terms.negated(self._truth(node.value))
        if isinstance(node, syntax.Conditional) and node.otherwise is not None:
            return terms.chosen(self._truth(node.test), self._truth(node.then), self._truth(node.otherwise))
        return terms.truth(self._value(node))

    def _value(self, node: syntax.Expr) -> CelTerm:
        method = _VALUES.get(type(node))
        if method is None:
            raise inexact(f"CEL has no equal of {type(node).__name__}")
        translated: CelTerm = getattr(self, method)(node)
        return translated

    def _either_value(self, node: syntax.And | syntax.Or) -> CelTerm:
        """The value of `and` and `or`: one of the operands, as in Python."""
        left, right = self._value(node.left), self._value(node.right)
        if left.kind == right.kind == "boolean":
            return self._truth(node)
        first, second = (right, left) if isinstance(node, syntax.And) else (left, right)
        return terms.chosen(terms.truth(left), first, second)

    def _conditional(self, node: syntax.Conditional) -> CelTerm:
        if node.otherwise is None:
            raise inexact("an `if` without `else` has no value")
        return terms.chosen(self._truth(node.test), self._value(node.then), self._value(node.otherwise))

    def _compare(self, node: syntax.Compare) -> CelTerm:
        left, found = self._value(node.first), terms.constant(True)
        for operand in node.others:
            right = self._value(operand.value)
            if operand.operator in {"in", "notin"}:
                each = terms.contains(left, right)
                each = terms.negated(each) if operand.operator == "notin" else each
            else:
                each = terms.compared(operand.operator, left, right)
            found, left = terms.both(found, each), right
        return found

    def _test(self, node: syntax.Test) -> CelTerm:
        return self._tested(node.name, self._value(node.value), [self._value(each) for each in _arguments(node)])

    def _tested(self, name: str, value: CelTerm, arguments: list[CelTerm]) -> CelTerm:
        if name in _DEFINED:
            found = terms.is_set(value)
            return found if name == "defined" else terms.negated(found)
        if name in {"true", "false"} and value.kind == "boolean":
            return value if name == "true" else terms.negated(value)
        if name == "in" and len(arguments) == 1:
            return terms.contains(value, arguments[0])
        if name in _COMPARED and len(arguments) == 1:
            return terms.compared(_COMPARED[name], value, arguments[0])
        raise inexact(f"CEL has no equal of the test {name}")

    # -- values --------------------------------------------------------------------------------------------------------

    def _constant(self, node: syntax.Expr) -> CelTerm:
        return terms.constant(_plain(node))

    def _name(self, node: syntax.Name) -> CelTerm:
        return self._named(node.name)

    def _named(self, name: str) -> CelTerm:
        if name in self.names.watch.rule.let:
            return self._let(name)
        if name == "spec":
            self.reads.add("spec")
        return self.names.root(name)

    def _let(self, name: str) -> CelTerm:
        written = self.names.watch.rule.let[name].node
        if not isinstance(written.value, str) or not has_templates(written.value):
            return terms.constant(written.data())
        slot = self.names.loaded.library.written_string(written.value, written.site).only_value
        if slot is None:
            raise inexact(f"the let {name} is not one expression")
        return self._value(slot)

    def _field(self, node: syntax.Field) -> CelTerm:
        match node.of:
            case syntax.Name("cr") if node.name == "spec" and self.names.is_spec_set:
                return self._named("spec")
            case syntax.Name("metadata") | syntax.Field(syntax.Name("cr"), "metadata"):
                return self._metadata(node.name)
            case syntax.Name("vars"):
                return self.names.var(node.name)
        return terms.member(self._value(node.of), node.name)

    def _item(self, node: syntax.Item) -> CelTerm:
        """An item that is named in the expression: `a[0]`."""
        if isinstance(node.key, syntax.Const) and type(node.key.value) is int:
            return terms.item_at(self._value(node.of), node.key.value)
        raise inexact("the name of a field is computed")

    def _metadata(self, name: str) -> CelTerm:
        if name in {"labels", "annotations"}:
            self.reads.add(f"metadata.{name}")
        return self.names.metadata(name)

    def _arithmetic(self, node: syntax.Operation) -> CelTerm:
        if node.operator in _OTHER_OPERATORS:
            raise inexact(f"CEL has no equal of {_OTHER_OPERATORS[node.operator]}")
        left, right, symbol = self._value(node.left), self._value(node.right), node.operator
        if symbol == "+" and left.kind == right.kind == "string":
            return terms.joined([left, right])
        return terms.arithmetic(symbol, left, right)

    def _signed(self, node: syntax.Sign) -> CelTerm:
        if node.operator == "+":
            raise inexact("CEL has no equal of Pos")
        value = self._value(node.value)
        if isinstance(value.constant, int | float) and not isinstance(value.constant, bool):
            return terms.constant(-value.constant)
        return terms.arithmetic("-", terms.constant(0), value)

    def _joined(self, node: syntax.Concat) -> CelTerm:
        return terms.joined([self._value(each) for each in node.parts])

    # -- filters and methods -------------------------------------------------------------------------------------------

    def _filter(self, node: syntax.Filter) -> CelTerm:
        assert node.value is not None, "it is not that of a block"
        value, arguments = self._value(node.value), _arguments(node)
        if node.name in {"default", "d"}:
            return self._default(value, node)
        if node.name in {"length", "count"} and not arguments:
            return terms.length(value)
        if node.name in {"lower", "upper"} and not arguments:
            return _in_case(value, node.name)
        if node.name == "string" and not arguments:
            return terms.as_text(value)
        if node.name == "list" and not arguments and value.kind == "list":
            return value
        if node.name == "quantity" and not arguments:
            return terms.quantity(value)
        if node.name == "regex_match":
            return self._matches(value, node)
        if node.name in {"select", "reject", "selectattr", "rejectattr"}:
            return self._selected(value, node)
        if node.name == "map":
            return self._mapped(value, node)
        raise inexact(f"CEL has no equal of the filter {node.name}")

    def _default(self, value: CelTerm, node: syntax.Filter) -> CelTerm:
        given = {**dict(zip(("default_value", "boolean"), node.args, strict=False)), **node.kwargs}
        fallback = self._value(given["default_value"]) if "default_value" in given else terms.constant("")
        if fallback.fails and not fallback.path:
            raise inexact("Jinja computes the fallback of `default`, which may fail, even where it is not used")
        usable = terms.is_set(value)
        if _plain(given["boolean"]) if "boolean" in given else False:
            usable = terms.both(usable, terms.truth(replace(value, fails=False)))
        return terms.chosen(usable, replace(value, fails=False), fallback)

    def _matches(self, value: CelTerm, node: syntax.Filter) -> CelTerm:
        flags = {name: _plain(each) for name, each in node.kwargs.items()}
        pattern = _constant_text(node.args)
        if value.kind != "string" or _OTHER_PATTERNS.search(pattern) or not set(flags) <= {"ignorecase", "multiline"}:
            raise inexact("the regular expression may match other text in the API server")
        letters = "".join(name[0] for name in ("ignorecase", "multiline") if flags.get(name))
        pattern = (f"(?{letters})" if letters else "") + pattern
        return terms.boolean(f"{value.within(terms.WHOLE)}.matches({terms.constant(pattern).text})", value)

    def _call(self, node: syntax.Call) -> CelTerm:
        method = node.method
        if method is None:
            raise inexact("it calls a function, which only the operator can do")
        value, arguments = self._value(method.of), [self._value(each) for each in _arguments(node)]
        if value.kind == "string" and method.name in {"startswith", "endswith"} and len(arguments) == 1:
            (argument,) = arguments
            if argument.kind == "string":
                name = "startsWith" if method.name == "startswith" else "endsWith"
                return terms.boolean(f"{value.within(terms.WHOLE)}.{name}({argument.text})", value, argument)
        if value.kind == "string" and method.name in {"lower", "upper"} and not arguments:
            return _in_case(value, method.name)
        raise inexact(f"CEL has no equal of the method {method.name}")

    # -- loops ---------------------------------------------------------------------------------------------------------

    def _selected(self, value: CelTerm, node: syntax.Filter) -> CelTerm:
        """The list of items that pass a test; of a mapping, of its keys."""
        arguments = list(node.args)
        attribute = _constant_text(arguments[:1]) if node.name.endswith("attr") else ""
        test, rest = arguments[bool(attribute) :][:1], arguments[bool(attribute) :][1:]
        item = self._item_of(value)
        tested = _reached(item, attribute)
        name = _constant_text(test) if test else ""
        found = self._tested(name, tested, self._outer(rest)) if name else terms.truth(tested)
        if attribute and name not in _DEFINED:
            found = replace(terms.both(terms.is_set(tested), found), fails=False)
        if node.name.startswith("reject"):
            found = terms.negated(found)
        if value.kind != "list" and (found.fails or value.kind != "mapping"):
            raise inexact(f"a loop over {value.name} has no order in CEL")
        source = value.within(terms.WHOLE)
        return CelTerm(
            f"{source}.filter({_ITEM}, {found.text})",
            "list",
            fails=value.fails or found.fails,
            node=None,
            item=replace(item, path=""),
            nonempty="" if found.fails else f"{source}.exists({_ITEM}, {found.text})",
        )

    def _mapped(self, value: CelTerm, node: syntax.Filter) -> CelTerm:
        """The list of an attribute of the items that have it."""
        if node.kwargs.keys() != {"attribute"} or node.args or value.kind != "list":
            raise inexact("CEL has no equal of this map")
        found = _reached(self._item_of(value), _constant_text([node.kwargs["attribute"]]))
        condition = f"{terms.is_set(found).text}, " if found.present else ""
        text = f"{value.within(terms.WHOLE)}.map({_ITEM}, {condition}{found.text})"
        return CelTerm(text, "list", fails=value.fails, item=replace(found, path="", present=(), fails=False))

    def _item_of(self, value: CelTerm) -> CelTerm:
        if self.is_looping:
            raise inexact("a loop in a loop may be too costly for the API server")
        return terms.item_of(value, _ITEM)

    def _outer(self, arguments: list[syntax.Expr]) -> list[CelTerm]:
        """The arguments of a test. Jinja evaluates them once, and CEL for each item."""
        self.is_looping = True
        found = [self._value(each) for each in arguments]
        self.is_looping = False
        if any(each.fails for each in found):
            raise inexact("an argument of a loop may be undefined")
        return found


def _reached(item: CelTerm, attribute: str) -> CelTerm:
    """`a.b` of an item."""
    for name in attribute.split(".") if attribute else ():
        item = terms.item_at(item, int(name)) if name.isdigit() else terms.member(item, name)
    return item


def _in_case(value: CelTerm, name: str) -> CelTerm:
    if value.kind != "string" or not value.is_ascii:
        raise inexact(f"{name} is otherwise in CEL for letters beyond ASCII, which {value.name} may have")
    return CelTerm(f"{value.within(terms.WHOLE)}.{name}Ascii()", "string", fails=value.fails, is_ascii=True)


def _arguments(node: syntax.Filter | syntax.Test | syntax.Call) -> tuple[syntax.Expr, ...]:
    if node.kwargs and node.name not in {"default", "d", "regex_match", "map"}:
        raise inexact("it has arguments with names")
    return node.args


def _plain(node: syntax.Expr) -> Any:
    match node:
        case syntax.Const():
            return node.value
        case syntax.List():
            return [_plain(each) for each in node.items]
        case syntax.Tuple():
            return tuple(map(_plain, node.items))
        case syntax.Sign(operator, value):
            return -_plain(value) if operator == "-" else +_plain(value)
    raise inexact("a list or an argument is computed")


def _constant_text(arguments: Sequence[syntax.Expr]) -> str:
    match arguments:
        case (syntax.Const(str() as text),):
            return text
    raise inexact("an argument is computed")


# -- policies ----------------------------------------------------------------------------------------------------------

VERSION: Final = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Kept:
    """A rule or a message that is not in a policy as it is."""

    site: Site
    reason: str

    def __str__(self) -> str:
        return f"{self.site.path}:{self.site.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a watch. Its name is below that of the operator."""

    name: str
    spec: Object


def policies(loaded: Loaded) -> tuple[list[Policy], list[Kept]]:
    """The policies of the watches, and what is not in them."""
    found: list[Policy] = []
    kept: list[Kept] = []
    kinds = KindSchemas(loaded.project.crds)
    for watch in loaded.watches:
        rule = watch.rule
        crd, node = kinds.crd(rule.kind), kinds.node(rule.kind)
        if crd is None or node is None:
            kept += [
                Kept(each.site, f"only the operator checks this rule: {rule.kind.kind} has no CRD in the project")
                for each in rule.validate
            ]
            continue
        translation = Translation(CelNames.of(loaded, watch, node, namespaced=crd.namespaced))
        validations = [each for rule in rule.validate if (each := _validation(translation, rule, kept)) is not None]
        if validations:
            suffix = f"-{rule.name}" if rule.name else ""
            found.append(Policy(f"{crd.name}{suffix}", _spec(rule, crd.plural, translation.reads, validations)))
    return found, kept


def _validation(translation: Translation, validation: Validation, kept: list[Kept]) -> Object | None:
    rule, message = validation.rule, validation.message
    library = translation.names.loaded.library
    try:
        expression = translation.condition(expression_node(library, rule))
    except InexactError as error:
        kept.append(Kept(validation.site, f"only the operator checks this rule: {error}"))
        return None
    found = {"expression": expression}
    if message.constant is not None:
        return {**found, "message": _line(message.constant)}
    plain, computed, reason = translation.message(message.source, message.site)
    if reason:
        kept.append(Kept(message.site, f"the message of the policy is incomplete: {reason}"))
    # The API server uses the plain text where the other fails, or has line breaks.
    return {**found, "message": _line(plain), **({"messageExpression": computed} if computed else {})}


def _line(text: str) -> str:
    return " ".join(text.split()) or "..."


def _spec(rule: Rule, plural: str, reads: set[str], validations: Sequence[Object]) -> Object:
    kind = rule.kind
    resources = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
        "scope": "*",  # the default, without which each `kubectl apply` would change the list
    }
    namespaces = {"namespaceSelector": _named(rule.selection.namespaces)} if rule.selection.namespaces else {}
    selected = list(_selected(rule))
    parts = sorted(reads | ({"metadata.labels"} if selected else set()))
    conditions = [
        {"name": "not-deleted", "expression": "!has(object.metadata.deletionTimestamp)"},
        {"name": "changed", "expression": " || ".join(["request.operation == 'CREATE'", *map(_differs, parts)])},
        *({"name": f"selected-{number}", "expression": each} for number, each in enumerate(selected, 1)),
    ]
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            # The object is converted to this version before the rules see it, whatever version was sent.
            "matchPolicy": "Equivalent",
            **namespaces,
            "resourceRules": [resources],
        },
        "matchConditions": conditions,
        "validations": list(validations),
    }


def _differs(part: str) -> str:
    """Whether an update changes a part of the object, which may be missing before and after."""
    old, new = f"oldObject.{part}", f"object.{part}"
    return f"has({new}) != has({old}) || has({new}) && {new} != {old}"


def _selected(rule: Rule) -> Iterator[str]:
    """The selector of the watch. An `objectSelector` would also match an object that has just left it."""
    if rule.selection.selector is None:
        return
    labels = "object.metadata.labels"
    for name, text in rule.selection.selector.match_labels.items():
        yield f"has({labels}) && {_has_label(labels, name)} && {_one_of(labels, name, [str(text.constant)])}"
    for each in rule.selection.selector.match_expressions:
        there = f"has({labels}) && {_has_label(labels, each.key)}"
        if each.operator in {"In", "NotIn"}:
            there += f" && {_one_of(labels, each.key, [str(text.constant) for text in each.values])}"
        yield there if each.operator in {"In", "Exists"} else f"!({there})"


def _has_label(labels: str, name: str) -> str:
    return f"{constant(name).text} in {labels}"


def _one_of(labels: str, name: str, values: list[JSON]) -> str:
    return f"{labels}[{constant(name).text}] in {constant(values).text}"


def _named(namespaces: Sequence[str]) -> Object:
    """A selector of namespaces by their names."""
    expression = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
    return {"matchExpressions": [expression]}


# -- documents ---------------------------------------------------------------------------------------------------------


def policy_objects(found: Sequence[Policy], choices: Choices) -> list[Object]:
    """The policies and their bindings. They belong to no namespace, so two operators need two names."""
    objects: list[Object] = []
    limits = {"matchResources": {"namespaceSelector": _named(choices.namespaces)}} if choices.namespaces else {}
    for each in found:
        metadata = {"name": f"{choices.name}-{each.name}"}
        objects.append(
            {"apiVersion": VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": each.spec}
        )
        spec = {"policyName": metadata["name"], "validationActions": ["Deny"], **limits}
        objects.append(
            {"apiVersion": VERSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": spec}
        )
    return objects


def policy_text(found: Sequence[Policy], kept: Sequence[Kept], choices: Choices) -> str:
    head = f"{MARK} policy` from `validate` in watches.yaml: change it there.\n"
    head += "".join(f"# {each}\n" for each in kept)
    return head + "---\n".join(map(rules_text, policy_objects(found, choices)))
