"""Plans custom resources of a live cluster, some at a time, by the rules of a project.

The requests do not grow with the number of custom resources: for some hundred of them, each kind of child is listed
once, by the labels of all of them. What a plan reads beyond that is read together for all of them: single objects while
they are few, else a list of their kind of which only those are kept.

All custom resources of some kinds are planned batch by batch: at no time are more in memory than one batch.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.refused_objects import with_violations
from ruleop.authoring.live.reader import LiveObjects
from ruleop.authoring.offline import with_defaults
from ruleop.authoring.report import ResourceView
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import NAMESPACE_KIND, Kind, Object, ObjectKey, owners_of
from ruleop.kubernetes.labels import labels_of
from ruleop.kubernetes.names import RESERVED_PREFIX
from ruleop.kubernetes.times import now
from ruleop.operator.cache import child_needs
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning import Failure, History, Observed, Plan, Refusal, Writes, choose_rule, plan
from ruleop.planning.model.marks import PART_OF, part_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ruleop.authoring.live.open_cluster import LiveCluster
    from ruleop.language.rules import Project, Rule
    from ruleop.planning import Failed
    from ruleop.planning.model.targets import Target

BATCH: Final = 100
"""Custom resources that are planned together. The selector of their children must fit into the line of a request: some
proxies accept no more than 4 KiB."""

SINGLE: Final = 8
"""Objects of one kind that are read one by one. More are read as a list."""

TOGETHER: Final = 40
"""Selectors that are joined to one: the value of a label may be long."""

MAX_ROUNDS: Final = 20
"""The number of times that a pass is planned again with more objects. Each round reads what the one before asked
for."""


@dataclass(slots=True)
class _Pending:
    """A pass that has to be planned, perhaps again."""

    resource: Object
    rule: Rule
    plan: Plan | None = None
    error: str = ""
    targets: set[Target] = field(default_factory=set)  # selectors whose objects were read


class LivePlanner:
    def __init__(
        self, cluster: LiveCluster, project: Project, *, expects_refusals: bool = False, traced: str = ""
    ) -> None:
        """`traced`: the child whose objects are traced to lines of its template."""
        self.cluster, self.project, self.expects_refusals, self.traced = cluster, project, expects_refusals, traced
        self.reader, self.kinds, self.operator = cluster.reader, cluster.kinds, cluster.operator
        self.namespace = ""  # that of all custom resources; empty: they may be anywhere
        self.objects = LiveObjects()  # of the last batch
        self._keys: dict[tuple[Kind, str], set[ObjectKey]] = {}  # by the namespace, or of all of them

    async def passes(self, resources: Sequence[Object]) -> AsyncIterator[ResourceView]:
        """The passes of these custom resources, planned batch by batch. Raises ApiError."""
        for start in range(0, len(resources), BATCH):
            for each in await self.plan(resources[start : start + BATCH]):
                yield each

    async def plan(self, resources: Iterable[Object]) -> list[ResourceView]:
        """Plans some custom resources, at most `BATCH`. Raises ApiError."""
        self.objects = LiveObjects()
        chosen = [await self._with_rule(each) for each in resources]
        pending = [_Pending(each, rule) for each, rule in chosen if rule is not None]
        await self._read_children(pending)
        rest = pending
        for _ in range(MAX_ROUNDS):
            rest = [each for each in rest if await self._plan(each)]
            if not rest:
                break
            await self._read_missing(rest)
        planned = iter(pending)
        return [self._result(next(planned)) if rule is not None else ResourceView(each) for each, rule in chosen]

    def _result(self, each: _Pending) -> ResourceView:
        """The pass with what the API server would refuse of the objects that are written."""
        found = each.plan
        if found is not None and found.actions:
            found = with_violations(found, each.rule, self.project)
        return ResourceView(each.resource, found, each.rule, each.error, kinds=self.kinds)

    async def _with_rule(self, resource: Object) -> tuple[Object, Rule | None]:
        """The rule of a custom resource, which is read again if its rule names another version of the kind; with the
        defaults of the project, whose CRD may be newer than that of the cluster."""
        rule = choose_rule(self.project.rules, resource)
        if rule is not None and rule.kind != Kind.of(resource):
            resource = await self.reader.get(rule.kind, ObjectKey.of(resource)) or resource
        return with_defaults(self.project, resource), rule

    async def _plan(self, each: _Pending) -> bool:
        """Plans one pass. Returns whether something that it reads is missing, so that it has to be planned again."""
        before, self.objects.unread = self.objects.unread, {}
        try:
            each.plan = await self._planned(each)
        except RuleopError as error:
            each.plan, each.error = None, str(error)
            return False
        asked, self.objects.unread = self.objects.unread, before | self.objects.unread
        return bool(asked or self.kinds.unread or _selectors(each.plan) - each.targets)

    async def _planned(self, each: _Pending) -> Plan:
        """Raises RuleopError."""
        observed = self._observed(each.rule, each.resource)
        made = partial(plan, each.rule, each.resource, observed, traced=self.traced)
        return made() if self.cluster.finish is None else await self.cluster.finish(made)

    def plan_after(self, view: ResourceView, failed: Mapping[ObjectKey, Failed]) -> Plan:
        """The plan of a pass of the last batch after these writes failed: what the operator would report of them, and
        what it would do next. Raises RuleopError."""
        rule, resource = view.chosen, view.obj
        assert rule is not None
        observed = self._observed(rule, resource)
        immutable = {
            key: Refusal(each, "", observed.clock) for key, each in failed.items() if each.failure is Failure.IMMUTABLE
        }
        following = plan(rule, resource, observed, History(refusals=immutable))
        if len(immutable) != len(failed):
            after = plan(rule, resource, observed, History(writes=Writes(failed)))
            following = replace(after, actions=following.actions)
        return following

    def _observed(self, rule: Rule, resource: Object) -> Observed:
        known = self.operator.entry(rule.kind.versionless).conditions
        own = self.operator.finalizer  # unless an operator of another name has set one
        found = [each for each in resource["metadata"].get("finalizers") or () if each.startswith(RESERVED_PREFIX)]
        return Observed(
            objects=self.objects,
            kinds=self.kinds,
            now=now(),
            finalizer=found[0] if len(found) == 1 else own,
            retired=known - {condition.type for condition in rule.status.conditions},
            namespace_terminating=self._is_namespace_terminating(resource),
            expects_refusals=self.expects_refusals,
            own=self.operator.own,
        )

    def _is_namespace_terminating(self, resource: Object) -> bool:
        metadata = resource["metadata"]
        name = metadata.get("namespace")
        if not metadata.get("deletionTimestamp") or not name:
            return False
        found = self.objects.get(ObjectKey("", "Namespace", "", name), version=NAMESPACE_KIND.version)
        return found is not None and bool(found["metadata"].get("deletionTimestamp"))

    # -- children ------------------------------------------------------------------------------------------------------

    async def _read_children(self, pending: Sequence[_Pending]) -> None:
        by_rule: dict[str, list[_Pending]] = defaultdict(list)
        for each in pending:
            by_rule[each.rule.digest].append(each)
        for group in by_rule.values():
            rule = group[0].rule
            remembered = self.operator.entry(rule.kind.versionless).children
            preferred = {kind: served for kind in remembered if (served := self.reader.preferred(kind)) is not None}
            needed = [need.kind for need in child_needs([rule], remembered, preferred)]
            await self.kinds.learn([rule.kind, *needed, *(observe.kind for observe in rule.read_objects)])
            owners = ",".join(sorted(part_of(each.resource) for each in group))
            namespaces = {each.resource["metadata"].get("namespace") or "" for each in group}
            namespace = "" if rule.reach.cluster else _common(namespaces)
            labels = f"{PART_OF} in ({owners})"
            add = self.objects.add_child
            await asyncio.gather(*(self._read_list(kind, namespace, labels, add) for kind in dict.fromkeys(needed)))

    async def _read_list(self, kind: Kind, namespace: str, labels: str, add: Callable[[Object], None]) -> None:
        with self._reading(kind):
            async for page in self.reader.pages(kind, namespace, labels=labels):
                for each in page:
                    add(each)

    @contextlib.contextmanager
    def _reading(self, kind: Kind) -> Iterator[None]:
        """Notes that a kind cannot be read. Any other error ends the command."""
        try:
            yield
        except ApiError as error:
            if error.problem is not Problem.FORBIDDEN:
                raise
            self.kinds.forbid(kind)

    # -- what plans ask for --------------------------------------------------------------------------------------------

    async def _read_missing(self, rest: Sequence[_Pending]) -> None:
        await self.kinds.learn(list(self.kinds.unread))
        missing: dict[Kind, list[ObjectKey]] = defaultdict(list)
        for kind, key in self.objects.unread:
            missing[kind].append(key)
        self.objects.unread.clear()
        await asyncio.gather(*(self._read_objects(kind, keys) for kind, keys in missing.items()))
        selected: dict[Kind, set[Target]] = defaultdict(set)
        patched: set[Kind] = set()
        for each in rest:
            new = _selectors(each.plan) - each.targets if each.plan is not None else set()
            each.targets |= new
            for observe in each.rule.read_objects:
                for target in new:
                    is_for = observe.name is None and (observe.selector is None) == bool(target.owner)
                    if is_for and observe.kind.versionless == target.kind:
                        selected[observe.kind].add(target)
                        patched.update([observe.kind] if observe.patched else ())
        await asyncio.gather(
            *(
                self._read_targets(kind, group, patched=kind in patched)
                for kind, targets in selected.items()
                for group in _groups(targets)
            )
        )

    async def _read_objects(self, kind: Kind, keys: Sequence[ObjectKey]) -> None:
        with self._reading(kind):
            existing = await self._existing(kind, keys)
            if len(existing) <= SINGLE:
                for found in await asyncio.gather(*(self.reader.get(kind, key) for key in existing)):
                    if found is not None:
                        self.objects.add(found)
            else:

                def add(obj: Object) -> None:
                    if ObjectKey.of(obj) in existing:
                        self.objects.add(obj)

                await self._read_list(kind, _common({key.namespace for key in existing}), "", add)
        self.objects.add_missing(kind, keys)

    async def _existing(self, kind: Kind, keys: Sequence[ObjectKey]) -> set[ObjectKey]:
        """The keys that are worth a request: all while they are few, else those of existing objects. Most of
        what many custom resources ask for is about to be created."""
        if len(keys) <= SINGLE:
            return set(keys)
        namespace = self.namespace if {key.namespace for key in keys} == {self.namespace} else ""
        if (kind, namespace) not in self._keys:
            self._keys[kind, namespace] = await self.reader.keys(kind, namespace)
        return self._keys[kind, namespace].intersection(keys)

    async def _read_targets(self, kind: Kind, targets: Sequence[Target], *, patched: bool) -> None:
        """Reads the objects that match any of these. `patched`: those that match none may have fields that are to be
        released."""

        def add(obj: Object) -> None:
            owners = {"", *owners_of(obj["metadata"])}
            if patched or any(each.matches(labels_of(obj)) and each.owner in owners for each in targets):
                self.objects.add(obj)

        namespace = _common({each.namespace or "" for each in targets})
        await self._read_list(kind, namespace, "" if patched else common_selector(targets), add)


def _common(namespaces: Collection[str]) -> str:
    """The only one of these; empty, which is all namespaces, if there are several."""
    return next(iter(namespaces)) if len(namespaces) == 1 else ""


def _selectors(planned: Plan) -> set[Target]:
    return {target for target in planned.watches if target.name is None}


LONGEST_SELECTOR = 4000  # characters: it is part of a URL


def common_selector(targets: Sequence[Target]) -> str:
    """A label selector that selects at least the objects of all these targets, as the API writes it."""
    values: dict[str, set[str]] = {}
    for target in targets:
        for key, value in target.labels:
            values.setdefault(key, set()).add(value)
    keys = [key for key in sorted(values) if all(key in dict(target.labels) for target in targets)]
    shared = set.intersection(*(set(target.requirements) for target in targets))
    requirements = [*((key, "In", frozenset(values[key])) for key in keys), *sorted(shared, key=repr)]
    found = ""
    for term in (_term(*each) for each in requirements):
        longer = f"{found},{term}".lstrip(",")
        found = longer if len(longer) <= LONGEST_SELECTOR else found
    return found


def _term(key: str, operator: str, values: frozenset[str]) -> str:
    if operator in {"Exists", "DoesNotExist"}:
        return key if operator == "Exists" else f"!{key}"
    if operator == "In" and len(values) == 1:
        return f"{key}={next(iter(values))}"
    return f"{key} {operator.lower()} ({','.join(sorted(values))})"


def _groups(targets: Iterable[Target]) -> list[Sequence[Target]]:
    """The selectors that are read with one list: each alone while they are few."""
    ordered = sorted(targets, key=repr)
    size = 1 if len(ordered) <= SINGLE else TOGETHER
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


ATTEMPTS: Final = 5
"""The number of attempts to read a list. Its pages expire after some minutes, and planning takes its time."""


async def all_passes(planner: LivePlanner, kinds: Iterable[Kind], namespace: str) -> AsyncIterator[ResourceView]:
    """The passes of all custom resources of these kinds, in one namespace or in all. Raises ApiError."""
    planner.namespace = namespace
    for kind in kinds:
        async for batch in _batches(planner, kind, namespace):
            for each in await planner.plan(batch):
                yield each


async def _batches(planner: LivePlanner, kind: Kind, namespace: str) -> AsyncIterator[Sequence[Object]]:
    seen: set[ObjectKey] = set()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            async for page in planner.reader.pages(kind, namespace, size=BATCH):
                if new := [each for each in page if ObjectKey.of(each) not in seen]:
                    seen.update(map(ObjectKey.of, new))
                    yield new
        except ApiError as error:
            if error.problem is not Problem.GONE or attempt == ATTEMPTS:
                raise
        else:
            return
