"""Infers the types of expressions, and reports what cannot work. `expressions` has a function for each class of node.

A value is *used* where its absence fails: printed, compared, tested for truth, looped over, given to a filter. Only
`default`, `required` and the test `defined` look at a value without using it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ruleop.authoring.checking.typing import operators
from ruleop.authoring.checking.typing.types import STRING, UNKNOWN, Type, Undefined, join, truth_of
from ruleop.errors import Site
from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import chain_of, source_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from ruleop.authoring.checking.typing.operators import Lookup
    from ruleop.language.rules import Findings
    from ruleop.language.rules.check_ids import Code


# -- environments ------------------------------------------------------------------------------------------------------
# The environment of a place in a template: the types of names, and the facts that conditions around it have shown.
#
# Text and numbers count as true or false by themselves, so a constant operand of `and` and `or` in a condition decides
# nothing, or everything: `spec.size == 'small' or 'medium'` always holds. As values they are fine: `{{ spec.image or
# 'nginx' }}` is a fallback.

Path: TypeAlias = tuple[object, ...]
"""A chain of fields from a name: ("spec", "tls", "secret")."""


@dataclass(frozen=True, slots=True)
class TypeEnvironment:
    names: Mapping[str, Type] = field(default_factory=dict)
    facts: Mapping[Path, Type] = field(default_factory=dict)
    """Types that are narrower than those of the schema: inside `{% if spec.tls is defined %}`."""
    truths: frozenset[tuple[str, bool]] = frozenset()
    """Conditions that are known to hold, or not to."""

    def with_names(self, names: Mapping[str, Type]) -> TypeEnvironment:
        """Names that are set here hide what was known of outer ones."""
        if not names:
            return self
        facts = self.facts
        if any(path[0] in names for path in facts):
            facts = {path: each for path, each in facts.items() if path[0] not in names}
        truths = self.truths
        if truths and any(name in text for text, _ in truths for name in names):
            truths = frozenset(each for each in truths if not any(name in each[0] for name in names))
        return TypeEnvironment({**self.names, **names}, facts, truths)

    def with_fact(self, path: Path, narrowed: Type) -> TypeEnvironment:
        kept = {known: each for known, each in self.facts.items() if known[: len(path)] != path or known == path}
        return replace(self, facts={**kept, path: narrowed})

    def with_truth(self, text: str, truth: bool) -> TypeEnvironment:
        return replace(self, truths=self.truths | {(text, truth)})


def joined(environments: Iterable[TypeEnvironment]) -> TypeEnvironment:
    """The environment after branches: only the facts that hold after all of them."""
    all_of = list(environments)
    if not all_of:
        return TypeEnvironment()
    first, *rest = all_of
    if not rest:
        return first
    names = dict(first.names)
    for other in rest:
        for name in names.keys() | other.names.keys():
            mine, theirs = names.get(name), other.names.get(name)
            if mine is not theirs:
                names[name] = join((mine, theirs)) if mine is not None and theirs is not None else UNKNOWN
    facts = {
        path: join(each.facts[path] for each in all_of)
        for path in first.facts
        if all(path in each.facts for each in rest)
    }
    truths = first.truths.intersection(*(each.truths for each in rest))
    return TypeEnvironment(names, facts, truths)


def canonical(node: syntax.Node) -> str:
    """A text that is equal for equal expressions."""
    return repr(node)


_MEMBERSHIP: Final[dict[tuple[type[syntax.Node], str], str]] = {(syntax.Or, "eq"): "in", (syntax.And, "ne"): "not in"}
"""The spelling of a comparison with several constants, by what joins them."""


class ConstantOperand(NamedTuple):
    node: syntax.Const
    message: str
    words: tuple[str, ...]  # as it may be written


def constant_operands(condition: syntax.Node) -> Iterator[ConstantOperand]:
    """The constants in a condition that is tested for truth."""
    if isinstance(condition, syntax.Not):
        yield from constant_operands(condition.value)
    elif isinstance(condition, (syntax.And, syntax.Or)):
        operands = list(_operands(condition, type(condition)))
        constants = [each for each in operands if _is_scalar(each)]
        if meant := _comparison_with_all(operands, type(condition)):
            yield _finding(constants[0], f"write `{meant}`")
        else:
            yield from (_finding(each, "compare a field with it, or remove it") for each in constants)
        for each in operands:
            if not _is_scalar(each):
                yield from constant_operands(each)
    elif _is_scalar(condition):
        yield _finding(condition, "remove the quotes if it is an expression" if _is_text(condition) else "remove it")


def is_membership(node: syntax.Or) -> bool:
    """Whether a value is probably meant as a test of membership: it is a comparison or a constant."""
    return bool(_comparison_with_all(list(_operands(node, syntax.Or)), syntax.Or))


def _operands(node: syntax.Node, kind: type[syntax.Node]) -> Iterator[syntax.Node]:
    """The operands of a chain of the same operator."""
    if isinstance(node, (syntax.And, syntax.Or)) and type(node) is kind:
        yield from _operands(node.left, kind)
        yield from _operands(node.right, kind)
    else:
        yield node


def _comparison_with_all(operands: list[syntax.Node], kind: type[syntax.Node]) -> str:
    """The comparison that a chain probably stands for: `a in ['x', 'y']` for `a == 'x' or 'y'`; "" if there is none."""
    first, *others = operands
    if (
        not others
        or not all(map(_is_scalar, others))
        or not isinstance(first, syntax.Compare)
        or len(first.others) != 1
    ):
        return ""
    (operand,) = first.others
    word, compared = _MEMBERSHIP.get((kind, operand.operator)), source_of(first.first)
    if word is None or not compared or not _is_scalar(operand.value):
        return ""
    return f"{compared} {word} {[each.value for each in (operand.value, *others) if isinstance(each, syntax.Const)]}"


def _is_scalar(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Const) and isinstance(node.value, (str, int, float)) and type(node.value) is not bool


def _is_text(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Const) and isinstance(node.value, str)


def _finding(node: Any, what_to_do: str) -> ConstantOperand:
    noun = "text" if _is_text(node) else "a number"
    message = f"{node.value!r} is {noun}, which always counts as {str(bool(node.value)).lower()}: {what_to_do}"
    words = (f"'{node.value}'", f'"{node.value}"') if _is_text(node) else (str(node.value),)
    return ConstantOperand(node, message, words)


# -- findings ----------------------------------------------------------------------------------------------------------
# The findings of an inference: each with its file, line and column.
#
# Jinja knows the lines of expressions but not their columns, so the text of the expression is searched on its line. A
# template may be rendered for several rules and in several ways. A finding about a step (an unknown field) or a
# condition (always true) counts only if it holds in all of them; a finding about a use (a field that may be missing)
# counts if it holds in one.


@dataclass(slots=True)
class _Visits:
    """The evaluations of a step: their number and their findings."""

    count: int = 0
    found: list[Callable[[], None]] = field(default_factory=list)
    node: object = None  # kept, so that its id stays unique


@dataclass(slots=True)
class Report:
    findings: Findings
    _visits: dict[tuple[int, Code], _Visits] = field(default_factory=dict)
    _silent: int = 0

    @property
    def is_silent(self) -> bool:
        return self._silent > 0

    @property
    def level(self) -> int:
        """The number of enclosing `silence` contexts."""
        return self._silent

    @contextmanager
    def silence(self) -> Iterator[None]:
        self._silent += 1
        try:
            yield
        finally:
            self._silent -= 1

    def add(self, code: Code, message: str, at: Site, *words: str, warn: bool = False) -> None:
        """`words`: one of them is at the place of the finding, if it is on the line."""
        if not self._silent:
            self._finding(code, message, at, words, warn=warn)()

    def visit(self, node: object, code: Code) -> None:
        """Counts an evaluation of a step or a condition, which may have such a finding."""
        if not self._silent:
            visits = self._visits.setdefault((id(node), code), _Visits())
            visits.count += 1
            visits.node = node

    def add_if_always(self, node: syntax.Node, code: Code, message: str, *words: str, warn: bool = False) -> None:
        """A finding of a visited node, which counts only if all visits have it."""
        if not self._silent:
            self._visits[id(node), code].found.append(self._finding(code, message, node.site, words, warn=warn))

    def close(self) -> None:
        """Writes the findings that hold in all visits."""
        for visits in self._visits.values():
            if visits.found and len(visits.found) == visits.count:
                visits.found[0]()
        self._visits.clear()

    def _finding(self, code: Code, message: str, at: Site, words: tuple[str, ...], *, warn: bool) -> Callable[[], None]:
        """The function that writes it."""
        write = self.findings.warning if warn else self.findings.mistake
        return partial(write, code, message, self.findings.with_column(at, *words))


# -- expressions -------------------------------------------------------------------------------------------------------

NO_SPEC: Final = (
    "the CRD does not require `spec`, so a custom resource without it fails: add `required: [spec]` to its schema"
)


def last_name(path: str) -> str:
    """The last field of a path."""
    return path.rpartition(".")[2].partition("[")[0]


def missing_message(undefined: Undefined, text: str, *, certain: bool) -> str:
    """`text`: the expression as written. `certain`: it never has a value."""
    path, reason = undefined.path, undefined.reason
    if reason == "omit":
        return "an `if` without `else` (or `omit`) can leave no value here, where one is needed: add an `else`"
    if reason == "empty":
        what = f"{path} may be empty" if path else "this list may be empty"
        return f"{what}, and {undefined.hint or 'this'} of an empty list has no value: add `default(...)`"
    if reason == "live":
        return f"{path} may not exist yet, and `live` does not wait: add `default(...)`"
    if reason == "undesired":
        return f"{path} has no value while `when` of the child is false: test it with `is defined`"
    if reason == "unserved":
        return f"{path} has no value where its kind is not served (it is optional): test it with `is defined`"
    base = path or text
    used = f", and {text} needs it" if text and path and text != path and text.startswith(path) else ""
    if certain:
        return f"{base or 'this value'} is not set here{used}"
    hint = f" ({undefined.hint})" if undefined.hint else " (it is optional in the CRD)"
    return f"{base or 'this value'} may be missing{hint}{used}: use `default(...)`, or test it with `is defined`"


_STEP_CODES: Final[tuple[Code, ...]] = ("unknown-field", "type-mismatch")
_COMPARE_CODES: Final[tuple[Code, ...]] = ("type-mismatch", "constant-condition")


@dataclass(frozen=True, slots=True)
class Let:
    """A name whose type depends on what is known where it is used: a let, or a child with `when`."""

    infer: Callable[[TypeEnvironment], Type] | None = None
    value: syntax.Node | None = None  # the expression of a let that is a single slot
    implied: syntax.Node | None = None  # the condition under which there is a value


Visit: TypeAlias = Callable[["Inference", Any, TypeEnvironment], Type]


class Inference:
    """Infers the types of expressions. `visits` has the function for each class of node; `statements` runs the bodies
    of macros and included files."""

    def __init__(self, report: Report, visits: Mapping[type[syntax.Node], Visit]) -> None:
        self.report = report
        self.visits = visits
        self.run_macro: Callable[[Any, Any, TypeEnvironment], Type] = lambda *_: STRING
        self.run_file: Callable[[str, TypeEnvironment], TypeEnvironment] = lambda _, env: env
        self.base: TypeEnvironment = TypeEnvironment()  # the names of the rule, which `render` sees
        self.kind_site = Site("")  # of the watched kind
        self.defers_missing = False  # in a let: the place that uses it reports a missing value
        self.defer_level = 0
        self.missed: Undefined | None = None
        self.lets: dict[tuple[int, int, int], tuple[Type, TypeEnvironment, Type]] = {}
        self._constants: dict[int, syntax.Node] = {}  # those that are reported, kept so that their ids stay unique

    def quiet(self, node: syntax.Node, env: TypeEnvironment) -> Type:
        with self.report.silence():
            return self.infer(node, env)

    # -- findings ------------------------------------------------------------------------------------------------------

    def problem(self, code: Code, message: str, node: syntax.Node, *words: str, warn: bool = False) -> None:
        if code == "unknown-field" or not self.report.is_silent:
            self.report.add(code, message, node.site, *words, warn=warn)

    def use(self, value: Type, node: syntax.Node, *, omits: bool = False) -> Type:
        """The value where it is needed. `omits`: it may be `omit`."""
        undefined = value.undefined
        if undefined is None or undefined.waits or undefined.reason == "unset":
            return value.defined()
        if undefined.reason == "omit" and omits:
            return value.defined()
        if self.defers_missing and undefined.reason != "unknown":
            if self.report.level == self.defer_level:  # not in a part that is read silently
                self.missed = self.missed or undefined
            return value.defined()
        words = (source_of(node), undefined.path, f".{last_name(undefined.path)}")
        if undefined.reason == "unknown":
            if undefined.hint:
                self.problem("unknown-field", undefined.hint, node, *words)
            return UNKNOWN if not value.kinds else value.defined()
        if undefined.reason == "no-spec":
            self.report.add("maybe-missing", NO_SPEC, self.kind_site, warn=True)
            return value.defined()
        message = missing_message(undefined, source_of(node), certain=not value.kinds)
        self.problem("maybe-missing", message, node, *words, warn=bool(value.kinds))
        return value.defined() if value.kinds else UNKNOWN

    def used(self, node: syntax.Node, env: TypeEnvironment) -> Type:
        return self.use(self.infer(node, env), node)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def infer(self, node: syntax.Node, env: TypeEnvironment) -> Type:
        path = chain_of(node) if isinstance(node, (syntax.Field, syntax.Item)) else ()
        if path and path in env.facts:
            return env.facts[path]
        visit = self.visits.get(type(node))
        if visit is None:
            for child in syntax.children(node):
                self.infer(child, env)
            return UNKNOWN
        return visit(self, node, env)

    def report_step(self, node: syntax.Node, found: Lookup, *words: str) -> None:
        problem = found.problem
        for code in _STEP_CODES:
            self.report.visit(node, code)
        if problem is None:
            return
        self.report.add_if_always(node, problem.code, problem.message, *words)

    def condition(self, node: syntax.Node, env: TypeEnvironment) -> bool | None:
        """Whether a condition holds; None if that depends on the values."""
        self.report_constants(node)
        value = self.used(node, env)
        truth = truth_of(value)
        if isinstance(node, (syntax.Field, syntax.Item, syntax.Filter)):
            self.report.visit(node, "constant-condition")
            if truth is not None:
                members = sorted(str(each) for _, each in value.constants or ())
                what = source_of(node) or "this value"
                why = f"{what} is one of {', '.join(members)}" if len(members) > 1 else f"{what} is {members[0]}"
                self.report_always(node, truth, f"{why}; compare it with == or !=")
        return truth

    def compare(
        self, op: str, left: tuple[Type, syntax.Node], right: tuple[Type, syntax.Node], node: syntax.Node
    ) -> bool | None:
        """The result of a comparison, if it is the same for all values."""
        for each in _COMPARE_CODES:
            self.report.visit(node, each)
        outcome = operators.comparison(op, left[0], right[0], (source_of(left[1]), source_of(right[1])))
        if outcome.problem is not None:
            code, message = outcome.problem
            words = (source_of(left[1]), source_of(right[1]))
            warn = outcome.is_possible or code != "type-mismatch"
            self.report.add_if_always(node, code, message, *words, warn=warn)
        return outcome.truth

    def report_constants(self, condition: syntax.Node, *, allowed: Container[Any] = ()) -> None:
        """Reports constants that are tested for truth."""
        for each in constant_operands(condition) if not self.report.is_silent else ():
            if each.node.value not in allowed and id(each.node) not in self._constants:
                self._constants[id(each.node)] = each.node  # the inner `or` of `a == 1 or 2 or 3` has it again
                self.problem("constant-condition", each.message, each.node, *each.words, warn=True)

    def report_always(self, node: syntax.Node, truth: bool, why: str) -> None:
        message = f"this is always {str(truth).lower()}: {why}"
        words = source_of(node.value) if isinstance(node, (syntax.Test, syntax.Filter)) else source_of(node)
        self.report.add_if_always(node, "constant-condition", message, words, warn=True)
