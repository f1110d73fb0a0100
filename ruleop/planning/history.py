"""Knowledge that earlier passes over one custom resource have gained.

    plan(rule, resource, observed, history) -> Plan
    history.after(plan, outcome, now) -> History

Correctness does not depend on it: after a restart it is learned again, at the cost of at most one write without effect
per object. It is a value, so a pass can be replayed from the rule, the resource, the observed cluster and the history.
"""

from __future__ import annotations

from dataclasses import field, replace
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ruleop.kubernetes.kinds import Kind, Object, ObjectKey, version_of
from ruleop.kubernetes.merge import fingerprint
from ruleop.planning.changes import Reverted, corrections, is_altered, reverted
from ruleop.planning.model.actions import (
    AGAIN,
    Create,
    Delete,
    Patch,
    Requeue,
    ResourceAction,
    ServerSideApply,
)
from ruleop.planning.model.managers import fingerprint_of
from ruleop.planning.model.outcome import Failed, Failure
from ruleop.planning.rendering.synced import Synced
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ruleop.kubernetes.merge import Learned
    from ruleop.planning.late_plans import Late
    from ruleop.planning.model.actions import Action, FieldConflict
    from ruleop.planning.model.observed import Objects
    from ruleop.planning.model.outcome import Outcome
    from ruleop.planning.plan import Plan
    from ruleop.planning.rendering.synced import Settled

NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})
GONE: Final = "gone"  # never a digest

CONFLICT_FIRST: Final = 1.0
CONFLICT_CAP: Final = 60.0
"""Seconds between reads of a conflicting object: the first and the longest interval."""

REFUSED_FIRST: Final = 5.0
REFUSED_CAP: Final = 3600.0
"""Seconds between retries of a change of an immutable field: the first and the longest interval. The first is short,
because a claim of a new StatefulSet cannot grow until it is bound, a moment later."""

STATUS_REFUSED_FOR: Final = 60.0
"""Seconds until a rejected status is retried: the schema may have changed by then."""

_ENDS: Final = frozenset({"given up", "released", "finalized", "elsewhere", "ordered", "unordered"})
"""Reasons of actions that the deletion of a CR waits for."""

AGAIN_AT_ONCE: Final = 16
AGAIN_CAP: Final = 60.0
"""Of passes of which each changes what the next one reads: how many more than there are objects follow each other
without an interval, and the longest interval in seconds."""


@dataclass(frozen=True, slots=True)
class ConflictingObject:
    """An object of another owner that has a child's name, as it was last read. Its metadata names the owner. Before a
    change it has to be read in full."""

    obj: Object
    due: float  # when it is read again
    wait: float = CONFLICT_FIRST
    partial: bool = False  # only its metadata was read
    error: str = ""  # of the last read, if it failed

    def reread(self, obj: Object, now: float) -> ConflictingObject:
        """The object still exists."""
        wait = min(CONFLICT_CAP, self.wait * 2)
        return ConflictingObject(obj, now + wait, wait, partial=True)

    def read_failed(self, error: str, now: float) -> ConflictingObject:
        """The object could not be read."""
        wait = min(CONFLICT_CAP, self.wait * 2)
        return replace(self, due=now + wait, wait=wait, error=error)

    def in_full(self, obj: Object) -> ConflictingObject:
        return ConflictingObject(obj, self.due, self.wait)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that the server rejected because a field is immutable, or held by another manager. Some fields are
    immutable only for a time: a claim can grow once it is bound. So the change is retried after the object has
    changed."""

    failed: Failed
    version: str  # of the object
    since: float
    wait: float = REFUSED_FIRST

    @property
    def until(self) -> float:
        """The earliest time of a retry, because the object's status may change often."""
        return self.since + self.wait

    def is_active(self, version: str, now: float, period: float) -> bool:
        return now < self.until or (version == self.version and not (period and now >= self.since + period))


@dataclass(frozen=True, slots=True)
class RefusedStatus:
    """A status that the server did not accept."""

    projected: str  # fingerprint of the fields that the rule sets; other fields are tried at once
    message: str
    until: float


@dataclass(frozen=True, slots=True)
class Writes:
    """The results of this pass's writes. The plan that follows them is for the status only."""

    failed: Mapping[ObjectKey, Failed] = field(default_factory=lambda: NOTHING)
    done: Mapping[ObjectKey, str] = field(default_factory=lambda: NOTHING)
    """The digests of the desired objects that were written, and GONE for those that were deleted. The watch reports
    later changes of both."""
    undone: Collection[ObjectKey] = ()  # objects whose actions failed, or were held back: they are retried with backoff

    def leaves(self, action: Action) -> bool:
        """Whether an action of the status plan is left to the next pass, which nothing but this plan announces: the
        writes made it possible, or changed what its object is rendered from. What the server changed in the object
        that was sent is not sent again at once."""
        if action.key in self.failed or action.key in self.undone:
            return False
        digest = GONE if isinstance(action, Delete | ResourceAction) else action.desired_digest
        return self.done.get(action.key) != digest


@dataclass(frozen=True, slots=True)
class History:
    learned: Mapping[ObjectKey, Learned] = field(default_factory=lambda: NOTHING)  # how the server normalises values
    refusals: Mapping[ObjectKey, Refusal] = field(default_factory=lambda: NOTHING)
    applied: Mapping[ObjectKey, str] = field(default_factory=lambda: NOTHING)  # fingerprints of what `patch` applied
    unreleased: Mapping[ObjectKey, Failed] = field(default_factory=lambda: NOTHING)  # rejected releases and deletions
    recreated: Mapping[ObjectKey, str] = field(default_factory=lambda: NOTHING)  # digests that `onImmutable` recreated
    conflicting: Mapping[ObjectKey, ConflictingObject] = field(default_factory=lambda: NOTHING)
    drift: Mapping[ObjectKey, Reverted] = field(default_factory=lambda: NOTHING)
    synced: Synced = field(default_factory=Synced)
    refused_status: RefusedStatus | None = None
    late: Late | None = None  # the last plan was ended because it took too long
    reason: str = ""  # of Ready after the last pass, for a CR without a status
    written: int = 0  # writes since Ready was last concluded
    again: int = 0  # passes in a row that changed what the next one reads
    held: frozenset[ObjectKey] = frozenset()  # objects whose deletion an error held back in the last pass
    writes: Writes | None = None  # of this pass
    settled: Settled | None = None  # by the last plan

    NONE: ClassVar[History]

    def failure(self, key: ObjectKey) -> Failed | None:
        """The failed write of this object: in this pass, or in an earlier one and not to be retried yet."""
        if self.writes is not None and key in self.writes.failed:
            return self.writes.failed[key]
        return self.refusals[key].failed if key in self.refusals else None

    def at_pass_start(self, objects: Objects, now: float) -> History:
        """The history at the start of a pass, without expired entries."""
        found = self.before_writes()
        if found.drift:
            found = replace(
                found, drift={key: each for key, each in found.drift.items() if not each.is_over(now)} or NOTHING
            )
        if found.conflicting:
            kept = {
                key: each
                for key, each in found.conflicting.items()
                if objects.get(key, version=Kind.of(each.obj).version) is None
            }
            found = replace(found, conflicting=kept or NOTHING)  # cached objects are read from the cache
        return found

    def before_writes(self) -> History:
        """The history for a plan with actions, instead of one for the status only."""
        return replace(self, writes=None) if self.writes is not None else self

    # -- after a plan --------------------------------------------------------------------------------------------------

    def after(self, plan: Plan, outcome: Outcome | None, now: float, *, again: bool = False) -> History:
        """The history after a plan. `outcome`: the results of its actions; None: it had none, and the pass is over.
        `again`: the pass changed what the next one reads in the status."""
        found = self.with_plan(plan, now)
        if outcome is None:
            return _concluded(found, plan, again=again)
        acted = {action.key for action in outcome.done if not isinstance(action, ResourceAction)}
        learned = _learned(found.learned, outcome)
        if outcome.failed or found.refusals:
            refusals = _refusals(found.refusals, plan, outcome, acted | outcome.failed.keys(), now)
            found = replace(found, refusals=refusals, recreated=_recreated(found, outcome))
        if outcome.conflicting or found.conflicting:
            found = replace(found, conflicting=_conflicting(found.conflicting, outcome, now))
        return replace(
            found,
            learned=learned,
            # Objects whose fields are set are watched, so without watches there are none.
            applied=_applied(found.applied, outcome) if plan.watches else found.applied,
            unreleased=_unreleased(found.unreleased, plan, outcome),
            drift=_drift(found, outcome, now),
            synced=found.synced.done(outcome.done, clean=outcome.clean),
            written=found.written + outcome.writes,
            writes=_writes(plan, outcome),
            settled=_settled(plan, outcome, learned),
        )

    def with_plan(self, plan: Plan, now: float) -> History:
        """The history with the plan, before its actions are executed."""
        found = self.with_field_conflicts(plan.field_conflicts, now) if plan.field_conflicts else self
        if plan.synced is self.synced and plan.settled is self.settled:
            return found
        return replace(found, synced=plan.synced, settled=plan.settled)

    def with_field_conflicts(self, conflicts: Sequence[FieldConflict], now: float) -> History:
        """The history with the field conflicts that a plan has found."""
        found = {}
        for each in conflicts:
            known = self.drift[each.key]
            found[each.key] = known.noticed(each.fields, each.message, now) if each.new else known.held()
        return replace(self, drift={**self.drift, **found})

    # -- when to look without an event ---------------------------------------------------------------------------------

    def next_check(self, objects: Objects, now: float) -> Requeue | None:
        """The earliest moment that this history has promised: no event leads to the pass that is due then. The one home
        of such moments; what a plan promises besides follows from the plan alone."""
        if not (self.conflicting or self.drift or self.refusals or self.refused_status):
            return None
        found = [Requeue(each.due - now, "a conflicting object is read again") for each in self.conflicting.values()]
        checks = (each.next_check(now) for each in self.drift.values())
        found += [Requeue(check - now, "a field conflict is checked") for check in checks if check is not None]
        for key, refusal in self.refusals.items():
            # Once `until` has passed, the event of the next change starts the retry.
            live = objects.get(key) if now < refusal.until else None
            if now < refusal.until and refusal.version != version_of(live):
                found.append(Requeue(refusal.until - now, "a rejected write is retried"))
        if self.refused_status is not None and now < self.refused_status.until:
            found.append(Requeue(self.refused_status.until - now, "a rejected status is retried"))
        return min(found, key=lambda each: each.seconds, default=None)

    def next_pass(self, plan: Plan) -> Requeue:
        """The pass that only ruleop's own writes require. It is due at once: objects that read one another need as many
        passes as there are. Rules that never come to rest, such as one that counts, are slowed down."""
        slowed = self.again - sum(len(child.objects) for child in plan.children) - AGAIN_AT_ONCE
        return Requeue(0.0 if slowed < 0 else min(AGAIN_CAP, 2.0 ** min(slowed, 60)), AGAIN)

    # -- what the engine learns by itself ------------------------------------------------------------------------------

    def status_refused(self, plan: Plan, message: str, now: float) -> History:
        assert plan.status is not None
        return replace(
            self, refused_status=RefusedStatus(fingerprint(plan.status.projected), message, now + STATUS_REFUSED_FOR)
        )

    def with_conflicting(self, key: ObjectKey, found: ConflictingObject | None) -> History:
        """The history after a conflicting object was read again; None: it no longer exists."""
        others = {other: each for other, each in self.conflicting.items() if other != key}
        return replace(self, conflicting=others if found is None else {**others, key: found})

    def with_managed(self, key: ObjectKey, managed: tuple[Mapping[str, Any], ...]) -> History:
        """The history with the managedFields of an object in conflict."""
        return replace(self, drift={**self.drift, key: replace(self.drift[key], managed=managed)})


History.NONE = History()


def _writes(plan: Plan, outcome: Outcome) -> Writes:
    """Digests are of what was rendered, so they do not tell what the server made of it."""
    done, undone = dict.fromkeys(outcome.deleted, GONE), set(map(attrgetter("key"), plan.actions))
    for each in outcome.done:
        undone.discard(each.key)
        if not isinstance(each, Delete | ResourceAction) and each.key in outcome.written:
            done[each.key] = each.desired_digest
    return Writes(outcome.failed, done, frozenset(undone))


def _concluded(history: History, plan: Plan, *, again: bool) -> History:
    desired = {each.key for child in plan.children for each in child.objects} if plan.complete else None
    reason = plan.conditions.ready.reason if plan.conditions is not None else ""
    held = frozenset(each.key for each in plan.held if each.is_error) if plan.held else frozenset[ObjectKey]()
    number = history.again + 1 if again or plan.again else 0
    parts: dict[str, Any] = {
        "reason": reason,
        "written": 0,
        "writes": None,
        "again": number,
        "held": held,
    }
    if desired is not None:
        for name in ("learned", "refusals", "applied", "recreated", "conflicting"):
            known = getattr(history, name)
            if not known.keys() <= desired:
                parts[name] = {key: each for key, each in known.items() if key in desired} or NOTHING
        parts["synced"] = history.synced.restricted_to(desired)
    is_new = any(getattr(history, name) != each for name, each in parts.items())
    return replace(history, **parts) if is_new else history


def _learned(before: Mapping[ObjectKey, Learned], outcome: Outcome) -> Mapping[ObjectKey, Learned]:
    """The normalisations seen in the answers to ruleop's writes. Older ones of the same objects are dropped: they could
    hide a change by another client."""
    if not outcome.learned and before.keys().isdisjoint(outcome.written):
        return before
    return {key: each for key, each in before.items() if key not in outcome.written} | outcome.learned


def _applied(before: Mapping[ObjectKey, str], outcome: Outcome) -> Mapping[ObjectKey, str]:
    """The answers to the applies of children with `patch`. Of fields that were given up nothing is known any more."""
    done = [each for each in outcome.done if isinstance(each, ServerSideApply) and each.manager]
    given_up = {action.key for action in done if action.why == "given up"}
    found = {
        action.key: fingerprint_of(outcome.written[action.key], action.manager, action.desired_digest)
        for action in done
        if action.why != "given up" and action.key in outcome.written
    }
    return {key: each for key, each in before.items() if key not in given_up} | found if done else before


def _unreleased(before: Mapping[ObjectKey, Failed], plan: Plan, outcome: Outcome) -> Mapping[ObjectKey, Failed]:
    """The rejected releases of fields of objects of others, and the rejected deletions and releases of the objects of a
    CR that is being deleted, each until it succeeds."""
    releases = {each.key for each in plan.actions if each.why in _ENDS}
    if not releases:
        return before
    failed = {key: outcome.failed[key] for key in releases & outcome.failed.keys()}
    return {key: each for key, each in before.items() if key not in releases} | failed or NOTHING


def _settled(plan: Plan, outcome: Outcome, learned: Mapping[ObjectKey, Learned]) -> Settled | None:
    """What the server made something else of than was sent is compared in the next plan."""
    written = (action for action in outcome.done if isinstance(action, (Create, Patch, ServerSideApply)))
    answers = {
        action.key: (action.object, outcome.written[action.key])
        for action in written
        if action.key in outcome.written and action.key not in learned
    }
    return plan.settled.after(answers) if plan.settled is not None else None


def _refusals(
    before: Mapping[ObjectKey, Refusal], plan: Plan, outcome: Outcome, acted: Collection[ObjectKey], now: float
) -> Mapping[ObjectKey, Refusal]:
    """The rejected changes of immutable fields and of fields that others hold, until the object is written again. Other
    failures are just retried."""
    lasting = {Failure.IMMUTABLE, Failure.HELD}
    refused = {key: each for key, each in outcome.failed.items() if each.failure in lasting}
    if not refused and not before:
        return before
    changed = (action for action in plan.actions if isinstance(action, (Patch, ServerSideApply)))
    versions = {action.key: action.live["metadata"]["resourceVersion"] for action in changed if action.live is not None}
    found = {key: each for key, each in before.items() if key not in acted}
    for key, failed in refused.items():
        last = before.get(key)
        wait = (
            min(REFUSED_CAP, last.wait * 2)
            if last is not None and last.failed.desired_digest == failed.desired_digest
            else REFUSED_FIRST
        )
        found[key] = Refusal(failed, versions.get(key, ""), now, wait)
    return found


def _recreated(history: History, outcome: Outcome) -> Mapping[ObjectKey, str]:
    found = {
        action.key: history.refusals[action.key].failed.desired_digest
        for action in outcome.done
        if isinstance(action, Delete) and action.why == "recreate" and action.key in history.refusals
    }
    return {**history.recreated, **found} if found else history.recreated


def _conflicting(
    before: Mapping[ObjectKey, ConflictingObject], outcome: Outcome, now: float
) -> Mapping[ObjectKey, ConflictingObject]:
    if not outcome.conflicting and before.keys().isdisjoint(outcome.written):
        return before
    found = {key: each for key, each in before.items() if key not in outcome.written}
    for key, obj in outcome.conflicting.items():
        wait = before[key].wait if key in before else CONFLICT_FIRST
        found[key] = ConflictingObject(obj, now + wait, wait)
    return found


def _drift(history: History, outcome: Outcome, now: float) -> Mapping[ObjectKey, Reverted]:
    """The reverts of drift: what is written was in sync before, so another client changed or deleted it. Objects that
    ruleop itself deleted or released have no drift."""
    found = dict(history.drift)
    for action in outcome.done:
        if isinstance(action, Delete) or (isinstance(action, Patch) and action.why == "released"):
            found.pop(action.key, None)
    restored = [each for each in outcome.done if history.synced.had(each)]
    for action, fields in corrections(restored) if restored else ():
        answer = outcome.written.get(action.key)
        altered = answer is not None and not isinstance(action, Create) and is_altered(action, answer, fields)
        found[action.key] = reverted(found.get(action.key), action.desired_digest, fields, now, altered=altered)
    return found or NOTHING
