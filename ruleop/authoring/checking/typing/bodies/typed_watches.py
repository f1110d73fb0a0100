"""Types the expressions and templates of each watch, in the order in which a pass evaluates them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.typing import narrowing
from ruleop.authoring.checking.typing.bodies.conformance import BodyChecks
from ruleop.authoring.checking.typing.bodies.schema_nodes import KindSchemas
from ruleop.authoring.checking.typing.environments import TypeEnvironment
from ruleop.authoring.checking.typing.inference import Inference, Let
from ruleop.authoring.checking.typing.statements import Runner
from ruleop.authoring.checking.typing.strings import expression_node
from ruleop.authoring.checking.typing.type_findings import FindingSource, Report
from ruleop.authoring.checking.typing.typed_scope import (
    child_names,
    item_type,
    objects_of,
    observed_names,
    observed_objects,
    resource_names,
)
from ruleop.authoring.checking.typing.types import (
    CONTAINERS,
    INTEGER,
    STRING,
    UNKNOWN,
    Type,
    Undefined,
    describe,
    join,
    list_of,
    mapping_of,
    misfit,
    of_data,
)
from ruleop.kubernetes.cron import schedule_fault, zone_fault
from ruleop.language.templates import Expression, Origin, StringTemplate, TextTemplate, Tree, YamlNode, syntax
from ruleop.language.templates.compile.hints import has_templates
from ruleop.language.templates.compile.value_trees import holds_tags, tag_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ruleop.authoring.checking.typing.bodies.typed_bodies import Typed
    from ruleop.errors import Site
    from ruleop.language.rules import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.loading import Loaded, Watch
    from ruleop.language.rules.scopes import RulePart


def check_types(loaded: Loaded, findings: Findings) -> None:
    """Finds what cannot work, by the schemas of the custom resources and of the children."""
    report = Report(findings)
    runner = Runner.of(loaded.library, report)
    kinds = KindSchemas(loaded.project.crds)
    for watch in loaded.watches:
        WatchTypes(watch, runner, kinds).check()
    report.close()


_FAULTS: Final[dict[str, Callable[[str], str]]] = {
    "deletion": lambda text: "" if text in {"delete", "orphan"} else f'deletion is "delete" or "orphan", not "{text}"',
    "apply.onImmutable": lambda text: (
        "" if text in {"fail", "recreate"} else f'onImmutable is "fail" or "recreate", not "{text}"'
    ),
    "schedule": schedule_fault,
    "timeZone": zone_fault,
}
"""Functions that describe the mistake in a literal of a key."""
_CONDITIONS: Final = frozenset({"when", "waitFor", "readyWhen", "validate", "apply.ignore", "observe.where"})
"""The keys whose expressions are tested for truth."""
_STATUSES: Final = frozenset(form for word in ("True", "False", "Unknown") for form in (word, word.lower()))
"""Text that is a status of a condition."""


class WatchTypes:
    """The types of one watch."""

    def __init__(self, watch: Watch, runner: Runner, kinds: KindSchemas) -> None:
        self.draft: Draft = watch.draft
        self.parts = watch.parts
        self.runner = runner
        self.inference: Inference = runner.inference
        self.library = runner.library
        self.kinds = kinds
        self.bodies = BodyChecks(runner, kinds)
        self.env = TypeEnvironment(resource_names(self.draft, kinds))

    def check(self) -> None:
        self._define_names()
        valid = self._validations()
        self._observe()
        for child in self.draft.everyone:
            self._child(child, valid)
        for part in self._of("status"):
            self.run(part, self.env)
            self._status(part)
        for part in self._of("conditions"):
            self.run(part, self.env)

    def status_bodies(self) -> Iterator[Typed]:
        """The statuses that the rule renders, with the types of their values."""
        self._define_names()
        for part in self._of("status"):
            self.run(part, self.env)
            yield from self.bodies.typed(part)

    def _define_names(self) -> None:
        kind = self.draft.table.kind
        self.inference.kind_site = kind.site if kind is not None else self.draft.table.site
        self.env = self.env.with_names(observed_names(self.draft, self.kinds))
        self._lets()
        self.env = self.env.with_names(child_names(self.draft, self.kinds, self._conditions(), self._is_certain))
        self.inference.base = self.env

    def _status(self, part: RulePart) -> None:
        crd = self.kinds.node(self.draft.kind) if self.kinds.crd(self.draft.kind) is not None else None
        self.bodies.status(part, crd.member("status") if crd is not None else None)

    def _of(self, key: str, child: ChildDraft | None = None) -> Iterator[RulePart]:
        return (part for part in self.parts if part.key == key and part.child is child)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def run(self, part: RulePart, env: TypeEnvironment) -> Type:
        """The type of a part, with its findings. Nothing is known of one that is nested too deeply."""
        try:
            return self._run(part, env)
        except RecursionError:
            return UNKNOWN

    def _run(self, part: RulePart, env: TypeEnvironment) -> Type:
        compiled = part.compiled
        if isinstance(compiled, TextTemplate):
            self.runner.file(compiled.name, env)
            return UNKNOWN
        if isinstance(compiled, Expression):
            with self.inference.within(FindingSource(compiled.site)):
                node = expression_node(self.library, compiled)
                if part.key in _CONDITIONS:
                    self.inference.condition(node, env)
                    with self.inference.report.silence():
                        return self.inference.used(node, env)
                if part.key == "conditions":
                    self.inference.report_constants(node, allowed=_STATUSES)
                return self.inference.used(node, env)
        tags = self.library.written_value(part.node).tags if isinstance(compiled, Tree) else {}
        found = self.value(part.node, env, tags)
        if isinstance(compiled, StringTemplate):
            self._check_text(part, compiled, found)
        return found

    def _check_text(self, part: RulePart, compiled: StringTemplate, found: Type) -> None:
        """A value that is used as text, such as a namespace or a message."""
        if found.is_known and found.kinds and found.kinds <= CONTAINERS:
            message = f"{compiled.quotation} is {describe(found.kinds)}, and text is needed here"
            self.inference.report.at("type-mismatch", message, part.site)
        if (fault := _FAULTS.get(part.key)) is not None and found.constants and found.node is None:
            wrong = sorted(filter(None, (fault(str(value)) for _, value in found.constants)))
            if wrong:
                self.inference.report.at("invalid-literal", wrong[0], part.site)

    def value(self, node: YamlNode, env: TypeEnvironment, tags: Mapping[Site, syntax.Template]) -> Type:
        """The type of a value of watches.yaml whose strings contain templates. `tags`: those in it."""
        value = node.value
        if isinstance(value, str):
            return self.text(value, node.site, env)
        if isinstance(value, list):
            items = [self.value(each, env, tags).defined() for each in value]
            if any(holds_tags(each.value) for each in value):
                return list_of(UNKNOWN)
            return replace(list_of(join(items) if items else None), elements=tuple(items))
        if isinstance(value, dict):
            fields: dict[str, Type] = {}
            is_open = False
            for key, member in value.items():
                if tag_of(key):
                    is_open = True
                    self._tag(node.key_sites[key], env, tags)
                    continue
                found = self.value(member, env, tags)
                if has_templates(key):
                    is_open = True
                    self.text(key, node.key_sites[key], env)
                    continue
                fields[key] = found.defined()
            if holds_tags(value):
                return UNKNOWN
            return mapping_of(fields, values=UNKNOWN) if is_open else mapping_of(fields)
        return of_data(value)

    def _tag(self, site: Site, env: TypeEnvironment, tags: Mapping[Site, syntax.Template]) -> None:
        """Runs what a tag holds, with the `elif` and `else` that follow it."""
        if site in tags:
            with self.inference.within(FindingSource(site)):
                self.runner.block(tags[site].body, env)

    def text(self, text: str, site: Site, env: TypeEnvironment) -> Type:
        """The type of a string, which keeps the type of a single slot."""
        if not has_templates(text):
            return STRING
        tree = self.library.written_string(text, site)
        with self.inference.within(FindingSource(site)):
            slot = tree.only_value
            if slot is None:
                self.runner.block(tree.body, env)
                return STRING
            found = self.inference.infer(slot, env)
            self.runner.record(slot, found)
            used = self.inference.use(found, slot, omits=True)
            waits = found.undefined is not None and found.undefined.waits
            return found if waits else used

    # -- values of let -------------------------------------------------------------------------------------------------

    def _lets(self) -> None:
        """A let is evaluated where it is used, so a missing value in it is a finding there."""
        for part in self._of("let"):
            found, missed = self._deferred(part, self.env)
            self.env = self.env.with_names({part.let: self._let(part, found, missed, self.env)})

    def _let(self, part: RulePart, found: Type, missed: Undefined | None, env: TypeEnvironment) -> Type:
        slot = (
            self.library.written_string(part.node.value, part.site).only_value
            if isinstance(part.node.value, str)
            else None
        )
        if missed is None:
            return replace(found, code=Let(value=slot)) if slot is not None and found.code is None else found

        def infer(place: TypeEnvironment) -> Type:
            outer = TypeEnvironment(env.names, place.facts, place.truths)
            with self.inference.report.silence():
                again, still_missed = self._deferred(part, outer)
            return again.maybe(still_missed)

        return replace(found.maybe(missed), code=Let(infer, slot))

    def _deferred(self, part: RulePart, env: TypeEnvironment) -> tuple[Type, Undefined | None]:
        inference = self.inference
        before = inference.missed, inference.defers_missing, inference.defer_level
        inference.missed, inference.defers_missing, inference.defer_level = None, True, inference.report.level
        try:
            return self.run(part, env), inference.missed
        finally:
            inference.missed, inference.defers_missing, inference.defer_level = before

    # -- observed resources --------------------------------------------------------------------------------------------

    def _observe(self) -> None:
        items: dict[str, TypeEnvironment] = {}
        for part in self._of("observe.forEach"):
            iterated = self.run(part, self.env)
            self._check_items(part, iterated)
            table = self.draft.observed[part.observed].value
            assert table is not None, "it has a part"
            items[part.observed] = self.env.with_names({table.item: item_type(iterated), "index": INTEGER})
        for part in self._of("observe"):
            self.run(part, items.get(part.observed, self.env))
        for part in self._of("observe.where"):
            table = self.draft.observed[part.observed].value
            assert table is not None, "it has a part"
            this = observed_objects(table, self.kinds, "this", many=False).defined()
            self.run(part, self.env.with_names({"this": this}))

    # -- validations and children --------------------------------------------------------------------------------------

    def _validations(self) -> TypeEnvironment:
        """Runs the validations. Returns what is known of a CR that satisfies them all."""
        valid = broken = self.env
        for part in self.parts:
            if part.key == "validate" and isinstance(part.compiled, Expression):
                self.run(part, self.env)
                broken = self._assumed(part, self.env, truth=False)
                valid = self._assumed(part, valid)
            elif part.key == "validate.message":
                self.run(part, broken)
        return valid

    def _conditions(self) -> dict[str, syntax.Expr]:
        """The conditions under which there are objects of children, by id. A list of objects is empty, not missing."""
        return {
            child.id: expression_node(self.library, child.table.when.compiled)
            for child in self.draft.everyone
            if child.table.when is not None and not child.has_items and child.table.for_each_of is None
        }

    def _is_certain(self, when: syntax.Expr, env: TypeEnvironment) -> bool:
        return narrowing.is_certain(self.inference, when, env)

    def _child(self, child: ChildDraft, valid: TypeEnvironment) -> None:
        env = valid
        if child.table.for_each_of is not None:
            with self.inference.report.silence():
                env = self._items(self.draft.looped(child), env)
        else:
            env = self._items(child, env)
        env = env.with_names({"index": INTEGER} if child.loops else {})
        for part in self._of("when", child):
            self.run(part, env)
            env = self._assumed(part, env)
        for part in self._of("waitFor", child):
            self.run(part, env)
            env = self._assumed(part, env)
        keys = "once", "schedule", "timeZone", "namespace", "selector", "deletion", "apply.ignore", "apply.onImmutable"
        for key in keys:
            for part in self._of(key, child):
                self.run(part, env)
        for part in self._of("readyWhen", child):
            found = [self.kinds.node(kind) for kind in child.kinds]
            self.run(part, env.with_names({"this": objects_of(found, "this", Origin.LATER, many=False).defined()}))
        for key in ("template", "object"):
            for part in self._of(key, child):
                self.run(part, env)
                self.bodies.objects(part, requires=child.strategy != "server-side")

    def _items(self, child: ChildDraft, env: TypeEnvironment) -> TypeEnvironment:
        """The environment with the items of the child's loops."""
        for part in self._of("forEach", child):
            iterated = self.run(part, env)
            self._check_items(part, iterated)
            env = env.with_names({part.loop: item_type(iterated)})
        return env

    def _assumed(self, part: RulePart, env: TypeEnvironment, *, truth: bool = True) -> TypeEnvironment:
        assert isinstance(part.compiled, Expression)
        try:
            return narrowing.assume(self.inference, expression_node(self.library, part.compiled), env, truth=truth)
        except RecursionError:
            return env

    def _check_items(self, part: RulePart, iterated: Type) -> None:
        wrong, possible = misfit(iterated.kinds - {"null"}, CONTAINERS)
        if iterated.is_known and wrong and "other" not in iterated.kinds:
            assert isinstance(part.compiled, Expression)
            message = f"{part.compiled.source} {wrong}: forEach needs a list or a mapping"
            self.inference.report.at("type-mismatch", message, part.site, warn=possible)
