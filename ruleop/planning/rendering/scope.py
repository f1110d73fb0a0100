"""The names that templates can read, and their values. Each value has an origin, which decides what a missing field
means.

Costly values are lazy: an unused `let` is not evaluated and cannot fail, and an unused observed object is not read.
"""

from __future__ import annotations

from dataclasses import field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ruleop.errors import RenderError
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.kubernetes.labels import Matches, any_labels
from ruleop.language.templates import (
    TIME_FUNCTIONS,
    Lazy,
    MapView,
    NotPermitted,
    NotThereYet,
    ObjectsView,
    Origin,
    PartialObjectsView,
    TemplateFunction,
    Waiting,
    fault_of,
    partial_view,
    view,
)
from ruleop.language.templates.values.cost import Allowance, Exhausted
from ruleop.planning.model.observed import Objects, Observed, Query, Served
from ruleop.planning.model.rule_permissions import missing_list_permission, missing_permission
from ruleop.planning.model.targets import MAX_OWNED, Target, resolve_targets
from ruleop.planning.rendering.randomness import MOST_MICROSECONDS, RandomFunctions
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ruleop.language.rules import Observe, OwnedBy, Rule
    from ruleop.language.templates import Expression
    from ruleop.planning.rendering.time_functions import TimeFunctions


TOO_MANY_OWNED: Final = f"more than {MAX_OWNED:,} objects, or owners in between"


@dataclass(slots=True)
class OwnedTargets:
    """The objects that a child owns: the targets of the observed ones, and those of the owners in between."""

    observed: list[Target] = field(default_factory=list)
    between: list[Target] = field(default_factory=list)
    has_more: bool = False  # too many owners: not all observed objects are known


class ResourceScope:
    """The names of one pass over one CR. Children are added when they are planned."""

    def __init__(self, rule: Rule, resource: Object, observed: Observed, objects: Objects) -> None:
        """`objects`: those of `observed`, charged when they are read."""
        self.rule = rule
        self.resource = resource
        self.observed = observed
        self.objects = objects
        self.namespace: str = (resource.get("metadata") or {}).get("namespace") or ""
        status = view("status", resource.get("status") or {}, Origin.LATER)
        self.allowance = Allowance(MOST_MICROSECONDS)
        self.times: TimeFunctions | None = None  # once one of them was called, or a schedule was read
        self.live: dict[str, Any] = {}
        self.ready: dict[str, Any] = {}
        self.selections: list[Target] = []  # of the selectors of `patch` that were evaluated
        self.existing: dict[str, list[Object]] = {}  # the objects of each child that `ownedBy` names
        self._owned: dict[str, OwnedTargets] = {}
        self.names: dict[str, Any] = {
            "cr": view("cr", {**resource, "status": status}),
            "metadata": view("metadata", resource.get("metadata") or {}),
            "spec": view("spec", resource.get("spec") or {}),
            "status": status,
            "vars": view("vars", dict(rule.vars)),
            "live": view("live", self.live, Origin.LIVE),
            "ready": view("ready", self.ready),
            "has_kind": TemplateFunction("has_kind", self._has_kind),
            **{name: Lazy(name, partial(self._time_function, name)) for name in (*TIME_FUNCTIONS, "duration")},
        }
        for name, tree in rule.let.items():
            self.names[name] = Lazy(name, self._let(tree))
        for observe in rule.observe.values():
            self.names[observe.id] = Lazy(observe.id, self._observed(observe))

    def close(self) -> None:
        """Drops all values. Lazy values refer to the scope, and the scope to them: without this, everything that
        the pass has read and made would wait for the garbage collector."""
        for names in (self.names, self.live, self.ready):
            names.clear()

    def with_items(self, items: Mapping[str, Any], index: int) -> dict[str, Any]:
        return {**self.names, **items, "index": index}

    def random(self, names: Mapping[str, Any], purpose: str, now: str, *, is_real: bool = False) -> dict[str, Any]:
        """The names with random functions, for a create-only child. `is_real`: costly functions return real values
        instead of placeholders."""
        return {**names, **RandomFunctions(self.observed.seed, purpose, now, self.allowance, is_real).functions()}

    def _let(self, tree: Any) -> Callable[[], Any]:
        def force() -> Any:
            try:
                return tree.view(self.names)
            except RenderError as error:
                raise fault_of(error) from None

        return force

    def _has_kind(self, api_version: Any, kind: Any) -> bool:
        return self.observed.kinds.info(Kind.parse(str(api_version), str(kind))).served

    def time_functions(self) -> TimeFunctions:
        if self.times is None:
            from ruleop.planning.rendering.time_functions import TimeFunctions  # noqa: PLC0415 - and cron, seldom used

            self.times = TimeFunctions(self.observed.now)
        return self.times

    def _time_function(self, name: str) -> TemplateFunction:
        return self.time_functions().functions()[name]

    # -- observed resources --------------------------------------------------------------------------------------------

    def _observed(self, observe: Observe) -> Callable[[], Any]:
        def force() -> Any:
            for each in (observe, *observe.owners):
                state = self.observed.kinds.state_of(each)
                if state is Served.UNSERVED:
                    raise NotThereYet(f"{observe.id} ({each.kind.kind} is not served by the cluster)", why="kind")
                if state is Served.PENDING:
                    raise NotThereYet(f"{observe.id} ({each.kind.kind} is not listed yet)", why="kind")
                if state is Served.FORBIDDEN:
                    raise NotPermitted(self.missing_permission(each))
            for kind in self.rule.children[observe.owned_by.child].kinds if observe.owned_by is not None else ():
                info = self.observed.kinds.info(kind)
                if info.state is Served.PENDING:
                    raise NotThereYet(f"{observe.id} ({kind.kind} is not listed yet)", why="kind")
                if info.state is Served.FORBIDDEN:
                    raise NotPermitted(missing_list_permission(self.rule, info, self.namespace))
            try:
                return self._look_up(observe)
            except RenderError as error:
                raise fault_of(error) from None

        return force

    def missing_permission(self, observe: Observe) -> str:
        """A message about the permission that is missing to read an `observe`."""
        info, constant = (
            self.observed.kinds.info(observe.kind),
            observe.namespace.constant if observe.namespace is not None else "",
        )
        return (
            missing_permission(self.rule, info, constant, "list")
            if constant
            else missing_list_permission(self.rule, info, self.namespace)
        )

    def _look_up(self, observe: Observe) -> Any:
        shown = partial_view if observe.metadata_only else view
        objects, version, is_partial = self.objects, observe.kind.version, observe.metadata_only
        found: list[Object] = []
        for target in self.targets(observe):
            if (key := target.key) is None:
                found += map(without_server_noise, self.select(observe, target))
            elif (obj := objects.get(key, version=version, partial=is_partial)) is not None:
                found.append(without_server_noise(obj))
            elif not observe.many:
                raise NotThereYet(f"{observe.id} ({key})", why="object")
        if not observe.many:
            return shown(observe.id, found[0], Origin.LATER)
        if observe.owned_by is not None:  # of several owners, or of one object with two of them
            found = [obj for _, obj in sorted({ObjectKey.of(obj): obj for obj in found}.items())]
            if len(found) > MAX_OWNED:
                raise RenderError(f"{observe.title} has {TOO_MANY_OWNED}", observe.site)
        if (where := observe.where) is not None:
            found = [obj for obj in found if self._counts(where, obj)]
        if observe.selector is not None:
            return shown(observe.id, found, Origin.LATER)
        return (PartialObjectsView if is_partial else ObjectsView)(found, observe.id, Origin.LATER)

    def _counts(self, where: Expression, obj: Object) -> bool:
        """Whether an object fits `where`. One that lacks a field does not."""
        try:
            return where.truth({**self.names, "this": MapView(obj, "this", Origin.LATER)})
        except Waiting as wait:
            if wait.forbidden:
                raise
            return False

    def targets(self, observe: Observe, names: Mapping[str, Any] | None = None) -> list[Target]:
        """The object or objects that an `observe` refers to. Raises RenderError. `names`: those of an item."""
        if observe.owned_by is not None:
            if (owned := self.owned_targets(observe, observe.owned_by)).has_more:
                raise RenderError(f"{observe.title} has {TOO_MANY_OWNED}", observe.site)
            return owned.observed
        namespaced = self.observed.kinds.info(observe.kind).namespaced
        names = self.names if names is None else names
        return resolve_targets(observe, names, namespaced=namespaced, home=self.namespace)

    def owned_targets(self, observe: Observe, owned_by: OwnedBy) -> OwnedTargets:
        """The targets of `ownedBy`, by the uids of the owners that exist now."""
        if (known := self._owned.get(observe.id)) is not None:
            return known
        found = self._owned[observe.id] = OwnedTargets()
        for owner in self.existing.get(owned_by.child, ()):
            key, uids = ObjectKey.of(owner), dict.fromkeys(filter(None, [owner["metadata"].get("uid")]))
            for each in owned_by.chains.get(key.group_kind, ()):
                targets = [Target(each.kind.versionless, key.namespace or None, owner=uid) for uid in uids]
                found.between += targets
                objects = (obj for target in targets for obj in self.select(each, target))
                try:
                    uids = dict.fromkeys(obj["metadata"].get("uid") or "" for obj in islice(objects, MAX_OWNED + 1))
                except Exhausted:
                    found.has_more = True
                if found.has_more or len(uids) > MAX_OWNED:
                    found.has_more, uids = True, {}
            found.observed += [Target(observe.kind.versionless, key.namespace or None, owner=uid) for uid in uids]
        return found

    def select(self, observe: Observe, target: Target) -> Iterable[Object]:
        """The objects of a target by labels or owner."""
        return self.objects.select(query_of(observe, target, target.matches))


def query_of(observe: Observe, target: Target, matches: Matches = any_labels) -> Query:
    """The objects of a target; by default, whatever their labels are."""
    return Query(
        target.kind, target.namespace, observe.kind.version, observe.metadata_only, matches=matches, owner=target.owner
    )


def without_server_noise(obj: Object) -> dict[str, Any]:
    """The object for templates, without managedFields: they are large, and templates do not need them."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
    return obj  # type: ignore[return-value]
