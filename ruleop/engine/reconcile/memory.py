"""What the engine remembers of a CR between passes. None of it is needed to be right: after a restart it is learned again, at the cost of
at most one write that changes nothing per object."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ruleop.engine.cache.expectations import Expectations
from ruleop.engine.reconcile.in_step import InStep
from ruleop.merge import Learned
from ruleop.planning import Failed, Failure, Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from collections.abc import Set as AbstractSet

    from ruleop.engine.reconcile.field_conflicts import FieldConflicts
    from ruleop.engine.reconcile.pass_log import Intent
    from ruleop.kinds import Object, ObjectKey
    from ruleop.schema.shape import Shape

FOREIGN_FIRST, FOREIGN_CAP = 1.0, 60.0  # seconds between looks at an object that is not ours
REFUSED_FIRST, REFUSED_CAP = 60.0, 3600.0  # seconds between tries of a change that was refused for good, as the object changes


@dataclass(slots=True)
class Foreign:
    """An object of somebody else in the place of a child, as it was read last. Its metadata tells that it is somebody else's; before it is
    changed, it has to be read in full."""

    obj: Object
    look_at: float
    wait: float = FOREIGN_FIRST
    partial: bool = False  # only its metadata was read
    trouble: str = ""  # why it could not be read again

    def again(self, obj: Object, now: float) -> Foreign:
        """It was looked at, and is still there."""
        wait = min(FOREIGN_CAP, self.wait * 2)
        return Foreign(obj, now + wait, wait, partial=True)

    def unseen(self, trouble: str, now: float) -> Foreign:
        """It could not be looked at."""
        wait = min(FOREIGN_CAP, self.wait * 2)
        return replace(self, look_at=now + wait, wait=wait, trouble=trouble)

    def read(self, obj: Object) -> Foreign:
        """It was read in full."""
        return Foreign(obj, self.look_at, self.wait)


@dataclass(slots=True)
class Refusal:
    """A change of a field that the server says can never change. Of some fields that is true for a time only: a claim can grow once it
    is bound. So it is tried again when the object is another than the one that it was refused for."""

    failed: Failed
    version: str  # of the object
    since: float
    wait: float = REFUSED_FIRST

    @property
    def until(self) -> float:
        """Not before then, however often the object changes: its status may do so all the time."""
        return self.since + self.wait

    def stands(self, version: str, now: float, period: float) -> bool:
        return now < self.until or (version == self.version and not (period and now >= self.since + period))


@dataclass(slots=True)
class Memory:
    learned: dict[ObjectKey, Learned] = field(default_factory=dict)
    failed: dict[ObjectKey, Refusal] = field(default_factory=dict)
    recreated: dict[ObjectKey, str] = field(default_factory=dict)
    foreign: dict[ObjectKey, Foreign] = field(default_factory=dict)
    reason: str = ""  # of Ready, after the last pass
    states: tuple[str, ...] = ()  # of its children
    waits: tuple[tuple[str, str], ...] = ()  # children that wait, and what kind of thing for
    waiting: tuple[str, ...] = ()  # the same in words, as the log said it last
    in_step: InStep = field(default_factory=InStep)
    meant: tuple[Intent, ...] | None = None  # in a dry run: what would be done
    trouble: str = ""  # why the last pass could not begin
    written: int = 0  # by a pass that is not logged yet
    namespace_ends: bool = False
    fights: FieldConflicts | None = None  # over fields that were reverted lately
    awaited: Expectations | None = None  # versions that the stores have to have reached
    refused: Refused | None = None  # a status, and
    refused_until: float = 0.0  # when it is tried again
    untold: str = ""  # why the status could not be written
    status_in: float | None = None  # seconds until the status is written, which waits for others' children

    def learn(self, written: Mapping[ObjectKey, tuple[Object, Object]], shape_of: Mapping[ObjectKey, Shape]) -> None:
        """From the answers to our writes: what the server makes of values that we send."""
        for key, (sent, answer) in written.items():
            learned = Learned.NOTHING.learn(sent, answer, shape_of[key])
            if len(learned):
                self.learned[key] = learned
            else:
                self.learned.pop(key, None)
            self.foreign.pop(key, None)

    def remember(
        self, failed: Mapping[ObjectKey, Failed], acted: Collection[ObjectKey], *, versions: Mapping[ObjectKey, str], now: float
    ) -> None:
        """A refusal for good matters until the object is written again; anything else is simply tried again. `versions`: of the objects
        as they were when they were acted upon."""
        before = self.failed
        self.failed = {key: each for key, each in before.items() if key not in acted}
        for key, each in failed.items():
            if each.failure is Failure.IMMUTABLE:
                last = before.get(key)
                wait = min(REFUSED_CAP, last.wait * 2) if last is not None and last.failed.wanted == each.wanted else REFUSED_FIRST
                self.failed[key] = Refusal(each, versions.get(key, ""), now, wait)

    def keep(self, wanted: AbstractSet[ObjectKey]) -> None:
        """What is remembered of these objects; the CR wants no others."""
        parts: tuple[dict[ObjectKey, Any], ...] = (self.learned, self.failed, self.recreated, self.foreign)
        for part in parts:
            for key in part.keys() - wanted:
                del part[key]
        self.in_step.keep(wanted)

    def wrote(self, versions: Mapping[ObjectKey, str]) -> None:
        """What the stores have to have reached before the next pass."""
        if versions:
            self.awaited = self.awaited or Expectations()
            self.awaited.wrote(versions)

    def meet(self, foreign: Mapping[ObjectKey, Object], now: float) -> None:
        """Objects in the way, as they were just read."""
        for key, obj in foreign.items():
            before = self.foreign.get(key)
            wait = before.wait if before is not None else FOREIGN_FIRST
            self.foreign[key] = Foreign(obj, now + wait, wait)
