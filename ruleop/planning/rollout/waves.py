"""The next step of a rollout: which custom resources get the new revision now, and whether it pauses, stops or ends.

Custom resources that have the new revision and are not ready yet are *pending*; at most `maxUnavailable` are. Each
becomes ready, or fails; when more than `failureThreshold` have failed, nothing is released any more. So at most
`failureThreshold` plus `maxUnavailable` can ever be broken by an edit.

A custom resource that was not ready before the edit cannot become worse, so it is done once it is reconciled; it fails
only if an error stops it now (Stalled) that did not before.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from ruleop.messages import shortened
from ruleop.planning.model.conditions import ROLLOUT, Condition, find_condition, named_revision
from ruleop.planning.model.marks import is_paused
from ruleop.planning.rollout.rollout_record import member_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Rollout
    from ruleop.planning.rollout.rollout_record import Health, RolloutRecord

MAX_LISTED: Final = 20  # failures whose descriptions are kept
_MAX_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class WaveView:
    """One custom resource, as far as a rollout depends on it: its metadata and its status."""

    title: str  # with its namespace
    member: str
    created: str
    order: str  # the value of the label of `order: label`
    has_order: bool
    reported: str  # the revision that its status names, shortened
    health: Health
    since: float  # since when it is not ready; 0 if that is not known
    message: str  # of Ready
    exempt: bool  # it is paused, or being deleted: nothing is expected of it

    @classmethod
    def of(cls, resource: Object, label: str) -> WaveView:
        metadata = resource["metadata"]
        ready, stalled = find_condition(resource, "Ready"), find_condition(resource, "Stalled")
        is_current = ready.get("observedGeneration", metadata.get("generation")) == metadata.get("generation")
        health: Health = "progressing"
        if is_current and ready.get("status") == "True":
            health = "ready"
        elif is_current and stalled.get("status") == "True":
            health = "stalled"
        labels = metadata.get("labels") or {}
        namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
        return cls(
            title=f"{namespace}{metadata['name']}",
            member=member_of(metadata.get("uid") or ""),
            created=metadata.get("creationTimestamp") or "",
            order=labels.get(label, ""),
            has_order=label in labels,
            reported=named_revision(find_condition(resource, ROLLOUT)),
            health=health,
            since=_seconds(ready.get("lastTransitionTime")) if ready.get("status") != "True" else 0.0,
            message=shortened(str(ready.get("message") or ""), _MAX_TEXT),
            exempt=bool(metadata.get("deletionTimestamp")) or is_paused(resource),
        )


def _seconds(time: object) -> float:
    try:
        return datetime.fromisoformat(time).timestamp() if isinstance(time, str) else 0.0
    except (ValueError, OverflowError, OSError):  # anybody with permission for the status can write it
        return 0.0


def advance(rollout: Rollout, record: RolloutRecord, views: Sequence[WaveView], now: float) -> RolloutRecord:
    """The record after the next step. It is the same if there is nothing to do. `views`: all custom resources of the
    watch; `now`: seconds since 1970."""
    if record.is_complete:
        return record
    found = _judged(rollout, record, views, now)
    if len(found.failed) > rollout.failure_threshold.of(len(views)) and not found.undo:
        reason = f"{len(found.failed)} failed: {next(filter(None, found.failed.values()), '')}"
        return replace(found, phase="Stopped", reason=reason, total=len(views)) if found.phase != "Stopped" else found
    waiting = [view for view in views if not view.exempt and not found.has_target(view.member)]
    if not waiting and not found.pending and found.phase != "Stopped":
        previous = found.base if found.base.rule != found.target.rule else found.previous
        return replace(
            found,
            phase="Complete",
            base=found.target,
            reason="",
            released={},
            earlier=(),
            previous=None if found.undo else previous,
            total=len(views),
        )
    if found.phase != "Progressing":
        return found
    return _released(rollout, found, views, waiting, now)


def _judged(rollout: Rollout, record: RolloutRecord, views: Sequence[WaveView], now: float) -> RolloutRecord:
    """The record with what has become of the released custom resources."""
    pending: dict[str, float] = {}
    failed = dict(record.failed)
    for view in views:
        member = view.member
        before = record.released.get(member)
        if before is None or view.exempt or member in failed:
            continue
        since = record.pending.get(member) or view.since or now
        verdict = _verdict(record, view, before, late=now > since + rollout.deadline)
        if verdict == "pending":
            pending[member] = since
        elif verdict == "failed":
            why = view.message if view.reported == record.target.short else "not reconciled with the new rules in time"
            failed[member] = f"{view.title}: {why}" if len(failed) < MAX_LISTED else ""
    if pending == record.pending and failed == record.failed:
        return record
    return replace(record, pending=pending, failed=failed)


def _verdict(
    record: RolloutRecord, view: WaveView, before: Health, *, late: bool
) -> Literal["done", "pending", "failed"]:
    if view.reported != record.target.short:
        return ("failed" if before == "ready" else "done") if late else "pending"
    if view.health == "ready" or before == "stalled":
        return "done"
    if view.health == "stalled":
        return "failed"
    if before == "progressing":
        return "done"
    return "failed" if late else "pending"


def _released(
    rollout: Rollout, record: RolloutRecord, views: Sequence[WaveView], waiting: Iterable[WaveView], now: float
) -> RolloutRecord:
    total = len(views)
    free = size_of_wave(rollout, total) - len(record.pending)
    if rollout.pause_after is not None and not record.resumed and not record.undo:
        left = rollout.pause_after - len(record.released)
        if left <= 0 and not record.pending:
            return replace(record, phase="Paused", reason=f"`pauseAfter: {rollout.pause_after}`", total=total)
        free = min(free, left)
    ordered = in_order(rollout, waiting)
    chosen = ordered[: max(0, free)]
    if record.undo:  # those that are broken at once
        chosen = [*chosen, *(view for view in ordered[len(chosen) :] if view.health != "ready")]
    if not chosen:
        return record
    released: dict[str, Health] = {**record.released, **{view.member: view.health for view in chosen}}
    pending = {**record.pending, **{view.member: now for view in chosen}}
    return replace(record, released=released, pending=pending, total=total)


def size_of_wave(rollout: Rollout, total: int) -> int:
    return max(1, rollout.max_unavailable.of(total, round_up=True))


def in_order(rollout: Rollout, views: Iterable[WaveView]) -> list[WaveView]:
    """The views in the order of `order`."""
    by_age = sorted(views, key=lambda view: (view.created, view.title), reverse=rollout.order == "newest")
    return sorted(by_age, key=_by_label) if rollout.order == "label" else by_age


def _by_label(view: WaveView) -> tuple[bool, bool, int, str]:
    """Numbers by their value, then other texts."""
    is_number = view.order.isascii() and view.order.isdecimal()
    return not view.has_order, not is_number, int(view.order) if is_number else 0, view.order


# -- what a custom resource says ---------------------------------------------------------------------------------------


def condition_of(record: RolloutRecord, uid: str) -> Condition:
    """The condition that names the revision. In progress, those that wait need no write."""
    revision = record.shown(member_of(uid))
    if revision.rule == record.target.rule or record.phase == "Progressing":
        return Condition(ROLLOUT, "True", "Current", f"revision {revision.short}")
    state = f"the rollout of revision {record.target.short} is {record.phase.lower()}"
    return Condition(ROLLOUT, "False", "HeldBack", f"revision {revision.short}; {state}")
