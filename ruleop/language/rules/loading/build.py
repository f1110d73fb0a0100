"""Builds typed rules from parsed ones. Only rules that were parsed without mistakes are built, so all required values
are present. Mistakes between several values are found by checks; here, only those that leave no rule to build."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ruleop.kubernetes.kinds import Kind
from ruleop.language.rules.facts.order import ChildReads, deleted_after, ids_read, metadata_only_ids, order, reads
from ruleop.language.rules.facts.secret_reads import secrecy_of
from ruleop.language.rules.findings import ProjectErrors
from ruleop.language.rules.keys.model import (
    Apply,
    Child,
    Condition,
    Deletion,
    Given,
    Ignore,
    Inputs,
    ItemEnd,
    Loop,
    Observe,
    Once,
    Order,
    Ordinary,
    OwnedBy,
    Pace,
    Patched,
    PolicyRule,
    Reach,
    Requirement,
    Rollout,
    Rotation,
    Rule,
    Scheduled,
    Selection,
    Selector,
    StatusRule,
    Validation,
)
from ruleop.language.rules.keys.owner_chains import chain_of
from ruleop.language.templates import (
    JINJA_NAMES,
    NONDETERMINISTIC,
    SCOPE_FUNCTIONS,
    TIME_FUNCTIONS,
    Expression,
    StringTemplate,
    TextTemplate,
    Tree,
)
from ruleop.reachable import reached

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.kinds import GroupKind
    from ruleop.language.rules.facts.scopes import RulePart
    from ruleop.language.rules.keys.model import Form
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.keys.value_types import NamedEntry, Templated, Word
    from ruleop.language.rules.keys.watches_yaml import (
        ConditionTable,
        FullSelectorTable,
        ObserveTable,
        PatchTable,
        PolicyRuleTable,
        RolloutTable,
    )
    from ruleop.language.secrets.secrecy import Secrecy
    from ruleop.language.templates import Reference
    from ruleop.language.templates.compile import Library
    from ruleop.language.templates.reads import Path

T = TypeVar("T")
_STEADY = (JINJA_NAMES - TIME_FUNCTIONS - SCOPE_FUNCTIONS - NONDETERMINISTIC) | {"cr", "metadata", "spec", "vars"}
_CHANGED_BY_WRITES = frozenset({"generation", "managedFields", "resourceVersion"})
C = TypeVar("C", Expression, StringTemplate, TextTemplate, Tree)


def build_rule(draft: Draft, parts: Iterable[RulePart], library: Library) -> Rule:
    table = draft.table
    parts = list(parts)
    read, partial, secrecy = reads(draft, parts), metadata_only_ids(draft, parts), secrecy_of(draft, parts, library)
    after = deleted_after(draft, read)

    def built(child: ChildDraft) -> Child:
        texts = [part.compiled for part in parts if part.child is child]
        ids = tuple(sorted(ids_read(draft, texts) - {child.id}))
        return _child(child, read[child.id], ids, secrecy[child.id], after.get(child.id, frozenset()), draft)

    children = {name: built(child) for name, child in draft.children.items()}
    ordered, final_order = order(draft.children, read), order(draft.final, read)
    if len(ordered) + len(final_order) < len(children) + len(draft.final):
        raise ProjectErrors.of("cycle", "children that read or depend on each other have no order", table.site)
    return Rule(
        kind=draft.kind,
        name=table.name.text if table.name else "",
        site=table.site,
        children=children,
        observe={name: _observe(entry, draft, metadata_only=name in partial) for name, entry in draft.observed.items()},
        status=StatusRule(
            managed=table.manage_status and not draft.is_builtin,
            body=table.status.compiled if table.status is not None else None,
            conditions=tuple(_condition(draft, condition) for condition in table.conditions),
        ),
        validate=tuple(
            Validation(_required(validate.rule).compiled, _required(validate.message).compiled, validate.site)
            for validate in table.validate
        ),
        vars=draft.vars,
        let={entry.name: _required(entry.value).compiled for entry in draft.let},
        finalize={name: built(child) for name, child in draft.final.items()},
        selection=Selection(_selector(table.selector), _texts(table.namespaces or ())),
        pace=Pace(table.reconcile_period, table.max_concurrent),
        reach=Reach(table.reach == "cluster", _compiled(table.write_as), tuple(map(_policy_rule, table.rbac))),
        order=Order(ordered, final_order, table.deletion_order),
        expire=_compiled(table.expire.after) if table.expire is not None else None,
        rollout=_rollout(table.rollout) if table.rollout is not None else None,
        reads_time=any(not TIME_FUNCTIONS.isdisjoint(part.compiled.names) for part in parts)
        or any(isinstance(child.form, Scheduled) or child.rotation is not None for child in children.values())
        or table.expire is not None,
        reads_status=any(_is_of_status(each) for part in parts for each in part.compiled.references),
    )


def _is_of_status(reference: Reference) -> bool:
    """Whether a chain of fields is below the CR's status, or may be."""
    return reference.name == "status" or (reference.name == "cr" and reference.path[1:2] in {(), (None,), ("status",)})


def _required(value: T | None) -> T:
    """A value that is required by its table."""
    assert value is not None, "a project with mistakes is never built"
    return value


def _compiled(value: Templated[C] | None) -> C | None:
    return value.compiled if value is not None else None


def _child(
    child: ChildDraft, read: ChildReads, ids: tuple[str, ...], secrecy: Secrecy, after: frozenset[str], draft: Draft
) -> Child:
    table = child.table
    holds_objects = draft.table.deletion_order == "reverse" and Kind("", "v1", "Namespace") in child.kinds
    ended_by = tuple(each.id for each in draft.final.values() if each is not child and draft.looped(each) is child)
    assert child.body is not None, "a project with mistakes is never built"
    body, rotation = child.body.compiled, Rotation(table.rotate_every, table.renew_before)
    return Child(
        id=child.id,
        site=child.site,
        form=_form(child, ended_by),
        body=body,
        kinds=child.kinds,
        many=child.many,
        final=child.final,
        when=_compiled(table.when),
        wait_for=_compiled(table.wait_for),
        for_each=tuple(Loop(each.name, _required(each.value).compiled) for each in child.loops),
        rotation=rotation if rotation != Rotation(None, None) else None,
        depends_on=_texts(table.depends_on),
        ready_when=_compiled(table.ready_when),
        apply=Apply(
            strategy=child.strategy,
            ignore=tuple(Ignore(_required(ignored.path), _compiled(ignored.when)) for ignored in child.ignore),
            own=tuple(owned.path for owned in child.own),
            on_immutable=_compiled(child.on_immutable),
            on_immutable_explicit=table.apply is not None and table.apply.on_immutable is not None,
            adopt=table.adopt,
        ),
        deletion=Deletion(
            policy=_compiled(table.deletion),
            after=after,
            in_order=not child.final and table.patch is None and (bool(after) or holds_objects or bool(ended_by)),
        ),
        namespace=_compiled(table.namespace),
        optional=table.optional,
        inputs=Inputs(
            mentions=read.mentions,
            ids=ids,
            steady=not (child.loops or table.for_each_of or table.patch or ended_by) and _is_steady(child, body, draft),
        ),
        secrecy=secrecy,
    )


def _form(child: ChildDraft, ended_by: tuple[str, ...]) -> Form:
    table = child.table
    if table.objects is not None:
        return Given("extra-privileges" in table.allow)
    if table.patch is not None:
        return _patched(child, table.patch)
    if table.once is not None:
        return Once(table.once.compiled, table.history)
    if table.schedule is not None:
        zone = _compiled(table.time_zone)
        return Scheduled(table.schedule.compiled, zone, table.starting_deadline, table.history)
    return ItemEnd(table.for_each_of.text) if table.for_each_of is not None else Ordinary(ended_by)


def _patched(child: ChildDraft, table: PatchTable) -> Patched:
    target = Observe(
        id=child.id,
        site=child.site,
        kind=table.object_kind,
        name=_compiled(table.name),
        selector=_selector(table.selector),
        namespace=_compiled(table.namespace),
        all_namespaces=table.namespaces is not None,
        many=table.selector is not None,
        patched=True,
    )
    return Patched(target, table.force)


def _is_steady(child: ChildDraft, body: TextTemplate | Tree, draft: Draft) -> bool:
    table = child.table
    others = [
        _compiled(table.deletion),
        _compiled(table.namespace),
        _compiled(child.on_immutable),
        *(_compiled(ignored.when) for ignored in child.ignore),
    ]
    lets = {entry.name: entry.value.compiled for entry in draft.let if entry.value is not None}
    read = [each for each in (body, *others) if each is not None]
    named = reached(
        frozenset().union(*(each.names for each in read)) & lets.keys(), lambda let: lets[let].names & lets.keys()
    )
    read += [lets[each] for each in named]
    paths = (reference.path for each in read for reference in each.references)
    return all(each.names <= _STEADY | lets.keys() for each in read) and not any(map(_may_change_with_writes, paths))


def _may_change_with_writes(path: Path) -> bool:
    """Whether a chain of fields from a name may lead to what the API server or ruleop writes in the CR."""
    if path[0] == "cr" and path[1:2] not in (("apiVersion",), ("kind",), ("spec",)):
        path = path[1:]
        if path[:1] != ("metadata",):
            return True
    return path[0] == "metadata" and (len(path) == 1 or path[1] is None or path[1] in _CHANGED_BY_WRITES)


def _observe(entry: NamedEntry[ObserveTable], draft: Draft, *, metadata_only: bool) -> Observe:
    table = _required(entry.value)
    return Observe(
        id=entry.name,
        site=entry.site,
        kind=Kind(table.group.text, _required(table.version).text, _required(table.kind).text),
        name=_compiled(table.name),
        for_each=_compiled(table.for_each),
        item_name=table.item,
        selector=_selector(table.selector) or (Selector() if table.selected else None),
        namespace=_compiled(table.namespace),
        all_namespaces=table.namespaces is not None,
        owned_by=_owned_by(entry, table, draft),
        where=_compiled(table.where),
        many=table.many,
        metadata_only=metadata_only,
    )


def _owned_by(entry: NamedEntry[ObserveTable], table: ObserveTable, draft: Draft) -> OwnedBy | None:
    if table.owned_by is None:
        return None
    child = draft.children.get(table.owned_by.text)
    if child is None:
        raise ProjectErrors.of("unknown-id", f'no child has the id "{table.owned_by.text}"', table.owned_by.site)
    chains: dict[GroupKind, tuple[Observe, ...]] = {}
    for kind in child.kinds:
        between = chain_of(table, kind) or ()
        chains[kind.versionless] = tuple(
            Observe(f"{entry.name} ({each.kind})", entry.site, each, many=True, metadata_only=True) for each in between
        )
    return OwnedBy(child.id, chains)


def _condition(draft: Draft, table: ConditionTable) -> Condition:
    status = _required(table.status).compiled
    return Condition(
        type=_required(table.type).text,
        site=table.site,
        status=status,
        reads=tuple(sorted(ids_read(draft, [status]))),
        reason=_compiled(table.reason),
        message=_compiled(table.message),
    )


def _policy_rule(table: PolicyRuleTable) -> PolicyRule:
    groups, resources, verbs = (_texts(_required(each)) for each in (table.groups, table.resources, table.verbs))
    return PolicyRule(groups, resources, verbs, _texts(table.names), table.site)


def _rollout(table: RolloutTable) -> Rollout:
    return Rollout(
        max_unavailable=table.max_unavailable,
        pause_after=table.pause_after,
        failure_threshold=table.failure_threshold,
        order=table.order,
        label=table.label.text if table.label is not None else "",
        deadline=table.progress_deadline,
    )


def _texts(words: Iterable[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in words)


def _selector(table: FullSelectorTable | None) -> Selector | None:
    if table is None:
        return None
    return Selector(
        match_labels={label.name: _required(label.value).compiled for label in table.match_labels},
        match_expressions=tuple(
            Requirement(
                _required(one.label).text, _required(one.operator), tuple(value.compiled for value in one.values)
            )
            for one in table.match_expressions
        ),
        given=_compiled(table.given),
    )
