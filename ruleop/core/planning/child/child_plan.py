"""The plan of one child: its existing objects, its desired objects, and the decision about each."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.core.planning.child.apply import Applied, read_record
from ruleop.core.planning.child.readiness import READY, Readiness, readiness
from ruleop.core.planning.model.actions import (
    Action,
    ChildReport,
    FieldConflict,
    HeldDeletion,
    ObjectReport,
    Problem,
    Read,
    State,
    Wait,
)
from ruleop.core.planning.model.marks import Claim, Owner, claim_on
from ruleop.core.planning.rendering.desired import Desired, merge_strategy, source_of
from ruleop.core.planning.rendering.scope import without_server_noise
from ruleop.core.templating import Announced, Later, MapView, ObjectsView, Origin, Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.core.errors import Site
    from ruleop.core.planning.model.observed import Observed
    from ruleop.core.rules import Child, Rule


@dataclass(frozen=True, slots=True)
class Existing:
    """An existing object that the CR owns."""

    key: ObjectKey
    live: Object
    claim: Claim
    child: str  # the id in its record; "" without a record

    @property
    def terminating(self) -> bool:
        return bool(self.live["metadata"].get("deletionTimestamp"))


def find_existing(rule: Rule, owner: Owner, observed: Observed) -> list[Existing]:
    """All objects that the CR owns, sorted by key; each in the version that its child's template uses. Those of the
    operator itself are nobody's children. Raises Exhausted: others may change the records on the objects, and the
    longest take a quarter of a second."""
    found: dict[ObjectKey, Existing] = {}
    far, own = rule.reach == "cluster", observed.own
    for live in observed.objects.children(owner.part_of):
        key = ObjectKey.of(live)
        claim = claim_on(live, key, owner)
        # With `reach: namespace`, only a proof shows that an object elsewhere is left from rules with a longer reach.
        if claim.owned and (far or key.namespace == owner.namespace or claim.proven) and key not in own:
            record = read_record(live)
            child = record.id if record is not None else ""
            if key not in found or _may_be(live, rule.children.get(child) or rule.finalize.get(child)):
                found[key] = Existing(key, live, claim, child)
    return [found[key] for key in sorted(found)]


def _may_be(live: Object, child: Child | None) -> bool:
    return child is not None and Kind.of(live) in child.kinds


@dataclass(slots=True)
class ObjectPlan:
    """One desired object, and the decision about it."""

    desired: Desired
    applied: Applied | None = None  # None: nothing is written
    state: State = State.READY
    message: str = ""
    references_owner: bool = False  # it may have an ownerReference

    @property
    def action(self) -> Action | None:
        return self.applied.action if self.applied is not None else None

    def stop(self, state: State, message: str) -> None:
        self.applied, self.state, self.message = None, state, message


_WORST = [State.READY, State.UNWANTED, State.PROGRESSING, State.TERMINATING, State.WAITING, State.REFUSED, State.FAILED]


@dataclass(slots=True)
class ChildPlan:
    """The plan of one child."""

    child: Child
    state: State = State.READY
    message: str = ""
    objects: list[ObjectPlan] = field(default_factory=list)
    blocks_pruning: bool = False  # not all of its objects are known in this pass, so none of them may be pruned
    incomplete: bool = False  # some of its desired objects could not be rendered
    unrendered: list[Mapping[str, Any]] = field(default_factory=list)  # the names that each of these would have
    located: int = 0  # rejected objects whose fields were looked up in the body
    unreadable: str = ""  # the permission that is missing to read its objects

    @property
    def ready(self) -> bool:
        return self.state is State.READY

    @property
    def writes(self) -> bool:
        return any(each.action is not None for each in self.objects)

    def settle(self) -> None:
        """Sets the child's state to the worst state of its objects."""
        for each in self.objects:
            if each.message and not self.message:
                is_progressing = each.state is State.PROGRESSING
                key = each.desired.key
                self.message = f"{key.kind}/{key.name}: {each.message}" if is_progressing else each.message
            if _WORST.index(each.state) > _WORST.index(self.state):
                self.state = each.state

    def report(self) -> ChildReport:
        objects = tuple(ObjectReport(each.desired.key, each.state, each.message) for each in self.objects)
        return ChildReport(self.child.id, self.state, source_of(self.child), self.message, objects)


MAX_ALIKE: Final = 16
"""Problems of one child with the same reason, and waits of one child for the same, that are listed. The objects of a
`forEach` may all have one."""


@dataclass(slots=True)
class PassReport:
    """The problems, waits, reads and conflicts of a pass, without duplicates. Of many alike the first are listed, and
    the last of these says that there are more."""

    problems: list[Problem] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    held: list[HeldDeletion] = field(default_factory=list)
    conflicts: list[FieldConflict] = field(default_factory=list)
    has_held_fields: bool = False  # another manager holds fields of a child with `patch`
    _alike: dict[tuple[str, str], set[tuple[str, Site | None]]] = field(default_factory=dict)  # by child and reason

    @property
    def hinders(self) -> bool:
        """Whether something is wrong or missing, so that not all of the desired state is written."""
        return bool(self.problems or self.waits)

    def add_problem(self, child: str, reason: str, message: str, site: Site | None = None) -> None:
        if self._is_new(child, reason, message, site):
            self.problems.append(Problem(child, reason, self._listed(child, reason, message), site))

    def add_wait(self, child: str, for_what: str, site: Site | None = None, *, why: str) -> None:
        if self._is_new(child, f"wait/{why}", for_what, site):
            self.waits.append(Wait(child, self._listed(child, f"wait/{why}", for_what), site, why))

    def _is_new(self, child: str, reason: str, message: str, site: Site | None) -> bool:
        known = self._alike.setdefault((child, reason), set())
        if (message, site) in known or len(known) > MAX_ALIKE:
            return False
        known.add((message, site))
        return True

    def _listed(self, child: str, reason: str, message: str) -> str:
        return message if len(self._alike[child, reason]) <= MAX_ALIKE else "more of this kind"


# -- the value of a child in templates ---------------------------------------------------------------------------------


def select_shown(
    rule: Rule, owner: Owner, child: Child, existing: Iterable[Existing], key: ObjectKey | None
) -> list[Existing]:
    """The existing objects that a template can read as this child. Anybody who can write to their namespace can forge
    their record, so they have to be of a kind that the child may be, and within the rule's reach. If the child has one
    object, it is the one with the desired key; while that is unknown, the oldest, or the newest if there is
    one for each run."""
    kinds, far = _versionless(child.kinds), rule.reach == "cluster"
    found = [
        each for each in existing if each.key.group_kind in kinds and (far or each.key.namespace == owner.namespace)
    ]
    if key is not None:
        return [each for each in found if each.key == key]
    return found if child.many or len(found) < 2 else [(max if child.runs else min)(found, key=age_of)]


@lru_cache(maxsize=1024)
def _versionless(kinds: frozenset[Kind]) -> frozenset[GroupKind]:
    return frozenset(kind.versionless for kind in kinds)


def age_of(each: Existing) -> tuple[str, ObjectKey]:
    """The API server sets creationTimestamp, so an object cannot be made to look older."""
    return each.live["metadata"].get("creationTimestamp") or "", each.key


def existing_view(child: Child, existing: list[Existing], origin: Origin) -> Any:
    """The child's objects as they are now, as a value for templates."""
    found = [without_server_noise(each.live) for each in existing]
    name = f"live.{child.id}" if origin is Origin.LIVE else child.id
    if child.many:
        return ObjectsView(found, name, origin)
    return MapView(found[0], name, origin) if found else Later(name)


def planned_view(child_plan: ChildPlan, existing: list[Existing], observed: Observed, owner: Owner) -> Any:
    """The child's objects as they will be after this pass, as a value for templates. A create-only child has the
    existing object; before it exists only apiVersion, kind, name and namespace, because other fields may be random."""
    child = child_plan.child
    result = [_resulting_object(child, object_plan, observed, owner) for object_plan in child_plan.objects]
    if child.runs and child.many and not child_plan.incomplete:  # ended runs are not desired any more
        made = {ObjectKey.of(each): each for each in result if each is not None}
        ended = (each.live for each in existing if each.key not in made)
        return ObjectsView([*made.values(), *ended], child.id, Origin.LATER)
    if not result and (child_plan.blocks_pruning or child.runs):
        return existing_view(child, existing, Origin.LATER) if existing else Later(child.id)
    if not child.many:
        if result and result[0] is not None:
            return MapView(result[0], child.id, Origin.LATER)
        return _identity_view(child, child_plan.objects[0]) if result else Later(child.id)
    if child_plan.incomplete:
        return Later(child.id)  # templates would take a partial list for the whole
    return ObjectsView([each for each in result if each is not None], child.id, Origin.LATER)


def _identity_view(child: Child, object_plan: ObjectPlan) -> Later:
    """The apiVersion, kind, name and namespace of an object before it exists; nothing if its name is taken."""
    if object_plan.applied is not None and object_plan.applied.name_conflict:
        return Later(child.id)
    rendered, key = object_plan.desired.rendered, object_plan.desired.key
    metadata = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
    return Announced(child.id, {"apiVersion": rendered["apiVersion"], "kind": rendered["kind"], "metadata": metadata})


def _resulting_object(child: Child, object_plan: ObjectPlan, observed: Observed, owner: Owner) -> dict[str, Any] | None:
    applied, desired = object_plan.applied, object_plan.desired
    if applied is not None and applied.result is None:
        return None  # another owner's object
    live = applied.result if applied is not None else None
    if applied is None or applied.action is not None:
        live = observed.objects.get(desired.key, version=desired.kind.version)
    owned = live is not None and (applied is not None or claim_on(live, desired.key, owner).owned)
    if merge_strategy(child, desired.kind) == "create-only" or (applied is None and owned):
        return without_server_noise(live) if live is not None and owned else None
    result = applied.result if applied is not None else desired.rendered
    assert result is not None
    return without_server_noise(result)


def existing_is_ready(existing: list[Existing]) -> bool:
    return bool(existing) and all(readiness(each.live).ready for each in existing)


def ready_when(child: Child, names: Mapping[str, Any], live: Object) -> Readiness:
    """The readiness of one object by `readyWhen`."""
    assert child.ready_when is not None
    try:
        holds = child.ready_when.truth({**names, "this": MapView(without_server_noise(live), "this", Origin.LATER)})
    except Waiting as wait:
        if wait.forbidden:
            raise
        return Readiness(False, f"readyWhen: {wait.message}")
    return READY if holds else Readiness(False, "readyWhen is false")
