"""Types the expressions and templates of each watch, in the order in which a pass evaluates them, with the names that
they see."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.typing import narrowing
from ruleop.authoring.checking.typing.conformance import BodyChecks
from ruleop.authoring.checking.typing.filters import items_of, members_of
from ruleop.authoring.checking.typing.inference import Inference, Let, Report, TypeEnvironment
from ruleop.authoring.checking.typing.statements import Runner
from ruleop.authoring.checking.typing.types import (
    BOOLEAN,
    CONTAINERS,
    INTEGER,
    STRING,
    UNKNOWN,
    KindSchemas,
    SchemaNode,
    Type,
    Undefined,
    describe,
    join,
    list_of,
    mapping_of,
    metadata_node,
    misfit,
    of_data,
    of_node,
)
from ruleop.kubernetes.cron import schedule_fault, zone_fault
from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates import Expression, Origin, StringTemplate, TextTemplate, Tree, YamlNode, syntax
from ruleop.language.templates.compile import has_templates, holds_tags, tag_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.authoring.checking.typing.conformance import Typed
    from ruleop.authoring.checking.typing.types import Reason
    from ruleop.errors import Site
    from ruleop.language.rules import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.keys.watches_yaml import ObserveTable
    from ruleop.language.rules.loading import Loaded, Watch
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates import syntax
    from ruleop.language.templates.compile import Library


# -- names -------------------------------------------------------------------------------------------------------------

_SERVER_SET: Final = ("name", "uid", "creationTimestamp", "resourceVersion", "generation")


def resource_names(draft: Draft, kinds: KindSchemas) -> dict[str, Type]:
    """The custom resource and its parts, and `vars`."""
    vars_ = replace(of_data(dict(draft.vars), "vars"), values=UNKNOWN)  # loading reports unknown ones
    crd = kinds.crd(draft.kind)
    node = kinds.node(draft.kind) if crd is not None else None
    metadata = _metadata("metadata", namespaced=crd.namespaced if crd is not None else None)
    if node is None:
        cr = replace(UNKNOWN, path="cr")
        return {
            "cr": cr,
            "metadata": metadata,
            "spec": replace(UNKNOWN, path="spec"),
            "status": replace(UNKNOWN, path="status", origin=Origin.LATER),
            "vars": vars_,
        }
    status = _part(node, "status", origin=Origin.LATER)
    spec = _part(node, "spec")
    if "spec" not in node.required and not node.is_always_set("spec"):
        spec = replace(spec, partial=True, stand_in=Undefined("no-spec", "spec"))
    cr = replace(
        of_node(node, "cr"),
        fields={
            "metadata": _metadata("cr.metadata", namespaced=crd.namespaced if crd is not None else None),
            "status": replace(status, path="cr.status"),
        },
    )
    return {"cr": cr, "metadata": metadata, "spec": spec, "status": status, "vars": vars_}


def _part(node: SchemaNode, name: str, *, origin: Origin = Origin.GIVEN) -> Type:
    """`spec` or `status`, which are always mappings for templates."""
    below = node.member(name)
    if below is not None:
        return of_node(below, name, origin=origin).only({"mapping"})
    if node.is_open:
        return Type(path=name, origin=origin)
    return replace(mapping_of({}), path=name, origin=origin)


def _metadata(path: str, *, namespaced: bool | None) -> Type:
    always = [*_SERVER_SET, *(["namespace"] if namespaced is not False else [])]
    found = of_node(metadata_node(), path)
    below = {name: metadata_node().member(name) for name in always}
    return replace(
        found, fields={name: of_node(each, f"{path}.{name}") for name, each in below.items() if each is not None}
    )


def child_names(
    draft: Draft,
    kinds: KindSchemas,
    conditions: Mapping[str, syntax.Expr],
    is_certain: Callable[[syntax.Expr, TypeEnvironment], bool],
) -> dict[str, Type]:
    """The children, what exists of them, and whether they are ready. `conditions`: the `when` of children by id.
    `is_certain`: whether a condition holds by what is known at a place."""
    names: dict[str, Type] = {}
    live: dict[str, Type] = {}
    for child in draft.everyone:
        nodes = [kinds.node(kind) for kind in sorted(child.kinds)]
        planned = objects_of(nodes, child.id, Origin.LATER, many=child.many)
        names[child.id] = _conditional(child, planned, conditions.get(child.id), is_certain)
        existing = objects_of(nodes, f"live.{child.id}", Origin.LIVE, many=child.many)
        live[child.id] = existing if child.many else existing.maybe(Undefined("live", existing.path))
    ready = {child.id: BOOLEAN for child in draft.everyone}
    return {**names, "live": mapping_of(live), "ready": mapping_of(ready)}


def _conditional(
    child: ChildDraft,
    planned: Type,
    when: syntax.Expr | None,
    is_certain: Callable[[syntax.Expr, TypeEnvironment], bool],
) -> Type:
    """A child that may not be desired: its `when` may be false, or its kind may not be served."""
    optional = child.table.optional and not child.many
    if when is None and not optional:
        return planned
    undesired = planned.maybe(Undefined("undesired" if when is not None else "unserved", planned.path))
    unserved = planned.maybe(Undefined("unserved", planned.path))

    def infer(env: TypeEnvironment) -> Type:
        if when is not None and not is_certain(when, env):
            return undesired
        return (
            unserved if optional and not any(truth and "'has_kind'" in text for text, truth in env.truths) else planned
        )

    return replace(undesired, code=Let(infer, implied=when))


def observed_names(draft: Draft, kinds: KindSchemas) -> dict[str, Type]:
    names: dict[str, Type] = {}
    for entry in draft.observed.values():
        if (table := entry.value) is not None:
            listed = observed_objects(table, kinds, entry.name, many=table.many, named=not table.selected)
            names[entry.name] = listed
    return names


def observed_objects(table: ObserveTable, kinds: KindSchemas, path: str, *, many: bool, named: bool = True) -> Type:
    if table.version is None or table.kind is None:
        return UNKNOWN
    node = kinds.node(Kind(table.group.text, table.version.text, table.kind.text))
    return objects_of([node], path, Origin.LATER, many=many, named=named)


def objects_of(
    nodes: Iterable[SchemaNode | None], path: str, origin: Origin, *, many: bool, named: bool = True
) -> Type:
    item = _always_named(_shared(list(nodes), f"{path}[]" if many else path, origin))
    if many:
        return replace(list_of(item), origin=origin, path=path, named=named)
    return item.maybe(Undefined("later", path)) if origin is Origin.LATER else item


def _shared(nodes: list[SchemaNode | None], path: str, origin: Origin) -> Type:
    """The type of a value of one of several schemas, as a child with a choice of kinds has: a field that all of them
    declare is of one of its types, and nothing is known of the others."""
    known = [node for node in nodes if node is not None]
    if not known or len(known) < len(nodes):
        return Type(path=path, origin=origin)
    first = known[0]
    if all((node.name, node.schema) == (first.name, first.schema) for node in known):
        return of_node(first, path, origin=origin)
    kinds = frozenset[str]().union(*(node.kinds for node in known))
    if kinds == {"list"}:
        return replace(list_of(_shared([node.items for node in known], f"{path}[]", origin)), path=path, origin=origin)
    if kinds != {"mapping"}:
        return Type(kinds, path=path, origin=origin)
    reason: Reason = "live" if origin is Origin.LIVE else "later"
    fields = {
        name: _shared([node.member(name) for node in known], f"{path}.{name}", origin).maybe(
            Undefined(reason, f"{path}.{name}")
        )
        for name in first.names
        if all(name in node.names for node in known)
    }
    return Type(kinds, fields=fields, values=Type(origin=origin), path=path, origin=origin)


def _always_named(item: Type) -> Type:
    """An object, whose kind and name are always set."""
    if item.node is None and item.fields is None:
        return item
    return replace(item, fields={**(item.fields or {}), "apiVersion": STRING, "kind": STRING})


def item_type(iterated: Type) -> Type:
    """The type of an item of `forEach`."""
    found: list[Type] = []
    if "list" in iterated.kinds:
        found.append(items_of(iterated.only({"list"})))
    if "mapping" in iterated.kinds:
        found.append(mapping_of({"key": STRING, "value": members_of(iterated)}))
    return join(found)


# -- watches -----------------------------------------------------------------------------------------------------------


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
        is_certain = partial(narrowing.is_certain, self.inference)
        self.env = self.env.with_names(child_names(self.draft, self.kinds, self._conditions(), is_certain))
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
            self.inference.report.add("type-mismatch", message, part.site)
        if (fault := _FAULTS.get(part.key)) is not None and found.constants and found.node is None:
            wrong = sorted(filter(None, (fault(str(value)) for _, value in found.constants)))
            if wrong:
                self.inference.report.add("invalid-literal", wrong[0], part.site)

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
            self.runner.block(tags[site].body, env)

    def text(self, text: str, site: Site, env: TypeEnvironment) -> Type:
        """The type of a string, which keeps the type of a single slot."""
        if not has_templates(text):
            return STRING
        tree = self.library.written_string(text, site)
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
            self.inference.report.add("type-mismatch", message, part.site, warn=possible)


def expression_node(library: Library, part: Expression) -> syntax.Expr:
    """The node of a bare expression."""
    found = library.written_string("{{ " + part.source + " }}", part.site).only_value
    assert found is not None, "it is one expression"
    return found
