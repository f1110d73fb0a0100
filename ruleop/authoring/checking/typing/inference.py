"""Infers the types of expressions, and reports what cannot work. `expressions` has a function for each class of node.

A value is *used* where its absence fails: printed, compared, tested for truth, looped over, given to a filter. Only
`default`, `required` and the test `defined` look at a value without using it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.authoring.checking.typing import operator_types
from ruleop.authoring.checking.typing.environments import TypeEnvironment, constant_operands
from ruleop.authoring.checking.typing.types import STRING, UNKNOWN, Type, Undefined, truth_of
from ruleop.errors import Site
from ruleop.language.templates import syntax
from ruleop.language.templates.syntax import chain_of, source_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ruleop.authoring.checking.typing.lookups import Lookup
    from ruleop.authoring.checking.typing.type_findings import FindingSource, Report
    from ruleop.language.rules.check_ids import Code

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
        self.source: FindingSource
        self.run_macro: Callable[[Any, Any, TypeEnvironment], Type] = lambda *_: STRING
        self.run_file: Callable[[str, TypeEnvironment], TypeEnvironment] = lambda _, env: env
        self.base: TypeEnvironment = TypeEnvironment()  # the names of the rule, which `render` sees
        self.kind_site = Site("")  # of the watched kind
        self.defers_missing = False  # in a let: the place that uses it reports a missing value
        self.defer_level = 0
        self.missed: Undefined | None = None
        self.lets: dict[tuple[int, int, int], tuple[Type, TypeEnvironment, Type]] = {}
        self._constants: dict[int, syntax.Node] = {}  # those that are reported, kept so that their ids stay unique

    @contextmanager
    def within(self, source: FindingSource) -> Iterator[None]:
        outer, self.source = self.source if hasattr(self, "source") else source, source
        try:
            yield
        finally:
            self.source = outer

    def quiet(self, node: syntax.Node, env: TypeEnvironment) -> Type:
        with self.report.silence():
            return self.infer(node, env)

    # -- findings ------------------------------------------------------------------------------------------------------

    def problem(self, code: Code, message: str, node: syntax.Node, *words: str, warn: bool = False) -> None:
        if code == "unknown-field" or not self.report.is_silent:
            self.report.add(code, message, self.source, node.site, *words, warn=warn)

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
        words = (source_of(node), undefined.path, last_name(undefined.path))
        if undefined.reason == "unknown":
            if undefined.hint:
                self.problem("unknown-field", undefined.hint, node, *words)
            return UNKNOWN if not value.kinds else value.defined()
        if undefined.reason == "no-spec":
            self.report.at("maybe-missing", NO_SPEC, self.kind_site, warn=True)
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
        last = words[0].rpartition(".")[2] if words and words[0] else ""
        self.report.add_if_always(node, problem.code, problem.message, self.source, node.site, *words, last)

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
        outcome = operator_types.comparison(op, left[0], right[0], (source_of(left[1]), source_of(right[1])))
        if outcome.problem is not None:
            code, message = outcome.problem
            words = (source_of(left[1]), source_of(right[1]))
            warn = outcome.is_possible or code != "type-mismatch"
            self.report.add_if_always(node, code, message, self.source, node.site, *words, warn=warn)
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
        self.report.add_if_always(node, "constant-condition", message, self.source, node.site, words, warn=True)
