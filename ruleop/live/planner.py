"""Plans custom resources of a live cluster, some at a time, by the rules of a project.

The requests do not grow with the number of custom resources: for some hundred of them, each kind of child is listed
once, by the labels of all of them. What a plan reads beyond that is read together for all of them: single objects while
they are few, else a list of their kind of which only those are kept.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ruleop.engine.cache.watch_specs import child_needs, constant_labels
from ruleop.errors import RuleopError
from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.kube.client.errors import ApiError, Problem
from ruleop.live.objects import LiveObjects
from ruleop.planning import Observed, Owner, Plan, choose_rule, plan
from ruleop.planning.model.marks import PART_OF
from ruleop.planning.rendering.scope import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.labels import Requirement
    from ruleop.live.kinds import LiveKinds
    from ruleop.live.operator import Operator
    from ruleop.live.reader import Reader
    from ruleop.planning.model.targets import Target
    from ruleop.rules import Observe, Rule

BATCH: Final = 100
"""Custom resources that are planned together. The selector of their children must fit into the line of a request: some
proxies accept no more than 4 KiB."""

SINGLE: Final = 8
"""Objects of one kind that are read one by one. More are read as a list."""

MAX_ROUNDS: Final = 20
"""How often a pass is planned again with more objects. Each round reads what the one before asked for."""

NAMESPACE: Final = Kind("", "v1", "Namespace")


@dataclass(frozen=True, slots=True)
class LivePass:
    """A custom resource of the cluster and what the next reconcile would do with it."""

    resource: Object
    rule: Rule | None  # None: no rule selects it
    plan: Plan | None = None
    error: str = ""  # why there is no plan

    @property
    def key(self) -> ObjectKey:
        return ObjectKey.of(self.resource)


@dataclass(slots=True)
class _Pending:
    """A pass that has to be planned, perhaps again."""

    resource: Object
    rule: Rule
    plan: Plan | None = None
    error: str = ""
    targets: set[Target] = field(default_factory=set)  # selectors whose objects were read


class LivePlanner:
    def __init__(self, reader: Reader, kinds: LiveKinds, operator: Operator, rules: Sequence[Rule]) -> None:
        self.reader, self.kinds, self.operator, self.rules = reader, kinds, operator, tuple(rules)
        self.objects = LiveObjects()  # of the last batch

    async def plan(self, resources: Iterable[Object]) -> list[LivePass]:
        """Plans some custom resources, at most `BATCH`. Raises ApiError."""
        self.objects = LiveObjects()
        chosen = [await self._with_rule(each) for each in resources]
        pending = [_Pending(each, rule) for each, rule in chosen if rule is not None]
        await self._read_children(pending)
        rest = pending
        for _ in range(MAX_ROUNDS):
            rest = [each for each in rest if self._plan(each)]
            if not rest:
                break
            await self._read_missing(rest)
        planned = iter(pending)
        return [_result(next(planned)) if rule is not None else LivePass(each, None) for each, rule in chosen]

    async def _with_rule(self, resource: Object) -> tuple[Object, Rule | None]:
        """The rule of a custom resource, which is read again if its rule names another version of the kind."""
        rule = choose_rule(self.rules, resource)
        if rule is None or rule.kind == Kind.of(resource):
            return resource, rule
        return await self.reader.get(rule.kind, ObjectKey.of(resource)) or resource, rule

    def _plan(self, each: _Pending) -> bool:
        """Plans one pass. Returns whether something that it reads is missing, so that it has to be planned again."""
        before, self.objects.unread = self.objects.unread, {}
        terminating = self._is_namespace_terminating(each.resource)
        observed = Observed(
            objects=self.objects,
            kinds=self.kinds,
            now=dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            finalizer=self.operator.finalizer,
            retired=self.operator.entry(each.rule.kind.versionless).conditions
            - {condition.type for condition in each.rule.conditions},
            namespace_terminating=terminating,
            own=self.operator.own,
        )
        try:
            each.plan = plan(each.rule, each.resource, observed)
        except RuleopError as error:
            each.plan, each.error = None, str(error)
            return False
        asked, self.objects.unread = self.objects.unread, before | self.objects.unread
        return bool(asked or self.kinds.unread or _selectors(each.plan) - each.targets)

    def _is_namespace_terminating(self, resource: Object) -> bool:
        metadata = resource["metadata"]
        name = metadata.get("namespace")
        if not metadata.get("deletionTimestamp") or not name:
            return False
        found = self.objects.get(ObjectKey("", "Namespace", "", name), version=NAMESPACE.version)
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
            await self.kinds.learn([rule.kind, *needed, *(observe.kind for observe in rule.observe.values())])
            owners = ",".join(sorted(Owner.of(each.resource).part_of for each in group))
            namespaces = {each.resource["metadata"].get("namespace") or "" for each in group}
            namespace = namespaces.pop() if len(namespaces) == 1 and rule.reach != "cluster" else ""
            await asyncio.gather(
                *(self._read_children_of(kind, namespace, f"{PART_OF} in ({owners})") for kind in dict.fromkeys(needed))
            )

    async def _read_children_of(self, kind: Kind, namespace: str, labels: str) -> None:
        try:
            async for page in self.reader.pages(kind, namespace, labels=labels):
                for each in page:
                    self.objects.add_child(each)
        except ApiError as error:
            self._forbid(kind, error)

    def _forbid(self, kind: Kind, error: ApiError) -> None:
        """Notes that a kind cannot be read. Any other error ends the command."""
        if error.problem is not Problem.FORBIDDEN:
            raise error
        self.kinds.forbid(kind)

    # -- what plans ask for --------------------------------------------------------------------------------------------

    async def _read_missing(self, rest: Sequence[_Pending]) -> None:
        await self.kinds.learn(list(self.kinds.unread))
        missing: dict[Kind, list[ObjectKey]] = defaultdict(list)
        for kind, key in self.objects.unread:
            missing[kind].append(key)
        self.objects.unread.clear()
        await asyncio.gather(*(self._read_objects(kind, keys) for kind, keys in missing.items()))
        selected: dict[Kind, dict[Target, Observe]] = defaultdict(dict)
        for each in rest:
            new = _selectors(each.plan) - each.targets if each.plan is not None else set()
            each.targets |= new
            for observe in each.rule.observe.values():
                for target in new:
                    if observe.selector is not None and observe.kind.versionless == target.kind:
                        selected[observe.kind][target] = observe
        await asyncio.gather(*(self._read_selected(kind, targets) for kind, targets in selected.items()))

    async def _read_objects(self, kind: Kind, keys: Sequence[ObjectKey]) -> None:
        try:
            if len(keys) <= SINGLE:
                found = await asyncio.gather(*(self.reader.get(kind, key) for key in keys))
                for key, obj in zip(keys, found, strict=True):
                    self.objects.add(kind, key, obj)
                return
            missing = set(keys)
            namespaces = {key.namespace for key in keys}
            async for page in self.reader.pages(kind, namespaces.pop() if len(namespaces) == 1 else ""):
                for obj in page:
                    if (key := ObjectKey.of(obj)) in missing:
                        missing.discard(key)
                        self.objects.add(kind, key, obj)
            for key in missing:
                self.objects.add(kind, key, None)
        except ApiError as error:
            self._forbid(kind, error)
            for key in keys:
                self.objects.add(kind, key, None)

    async def _read_selected(self, kind: Kind, targets: Mapping[Target, Observe]) -> None:
        """The objects of selectors: with a list for each while they are few, else with one for all."""
        try:
            if len(targets) <= SINGLE:
                await asyncio.gather(*(self._read_target(kind, each, selector_of(each), [each]) for each in targets))
                return
            for labels in {constant_labels(observe.selector) for observe in targets.values()}:
                same = [each for each, observe in targets.items() if constant_labels(observe.selector) == labels]
                namespaces = {each.namespace for each in same}
                scope = replace(same[0], namespace=namespaces.pop() if len(namespaces) == 1 else None)
                await self._read_target(kind, scope, labels, same)
        except ApiError as error:
            self._forbid(kind, error)

    async def _read_target(self, kind: Kind, scope: Target, labels: str, targets: Sequence[Target]) -> None:
        async for page in self.reader.pages(kind, scope.namespace or "", labels=labels):
            for obj in page:
                if any(target.matches(labels_of(obj)) for target in targets):
                    self.objects.add_selected(kind, obj)


def _result(each: _Pending) -> LivePass:
    return LivePass(each.resource, each.rule, each.plan, each.error)


def _selectors(planned: Plan) -> set[Target]:
    return {target for target in planned.watches if target.name is None}


def selector_of(target: Target) -> str:
    """The label selector of a target, as the API writes it."""
    return ",".join([*(f"{key}={value}" for key, value in target.labels), *_terms(target.requirements)])


def _terms(requirements: Iterable[Requirement]) -> Iterator[str]:
    for key, operator, values in requirements:
        if operator in {"Exists", "DoesNotExist"}:
            yield key if operator == "Exists" else f"!{key}"
        else:
            yield f"{key} {operator.lower()} ({','.join(sorted(values))})"
