"""The record of a rollout: which custom resources of a watch have which revision of the rules.

It is what the operator goes by, and is stored before it acts: a custom resource is reconciled with the new revision
only if it is among those of the stored record. So a crash between any two steps changes nothing, and all processes that
read the record choose the same revision for the same custom resource.

Custom resources are named by hashes of their uids, in few bytes. One that the record does not name has the revision
that all had before the rollout, so one that is created during a rollout begins with the rules that are known to work.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import orjson

from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Phase = Literal["Complete", "Progressing", "Paused", "Stopped"]
Health = Literal["ready", "progressing", "stalled"]
SHORT: Final = 12
"""Characters of a digest in messages."""
_MEMBER: Final = 8  # characters of the hash of a uid
_HEALTHS: Final[tuple[Health, ...]] = get_args(Health)


class RecordError(ValueError):
    """The stored record is invalid."""


class RolloutRevision(NamedTuple):
    """One state of the rules of a watch. Two are the same with the same digest of the watch; or of the files, which
    another version of ruleop may read as a watch with another digest.

    People know it by the digest of all files of the edit that made it, as they know the revisions of the whole project.
    A later edit that leaves the watch as it is changes `project`, in which the rules are found, and not this number:
    the status of each custom resource has it."""

    rule: str  # Rule.revision
    project: str  # the digest of the files in which it is found
    edit: str = ""  # the digest of the files of the edit that made it, if they are others

    @property
    def number(self) -> str:
        return self.edit or self.project

    @property
    def short(self) -> str:
        return self.number[:SHORT]

    def is_same(self, other: RolloutRevision) -> bool:
        return self.rule == other.rule or self.project == other.project

    def numbered_as(self, other: RolloutRevision) -> RolloutRevision:
        return self._replace(edit=other.number if other.number != self.project else "")


def member_of(uid: str) -> str:
    """The name of a custom resource in records."""
    return base64.urlsafe_b64encode(hashlib.sha256(uid.encode()).digest()[:6]).decode()


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """The rollout of one watch."""

    target: RolloutRevision
    base: RolloutRevision  # of all custom resources that are not named below
    phase: Phase = "Complete"
    reason: str = ""  # why it is paused or stopped
    released: Mapping[str, Health] = field(default_factory=dict)  # those with the target, and how they were before
    earlier: tuple[
        tuple[RolloutRevision, frozenset[str]], ...
    ] = ()  # those with revisions of rollouts that were replaced
    pending: Mapping[str, float] = field(default_factory=dict)  # released, not ready yet: the time of their release
    failed: Mapping[str, str] = field(default_factory=dict)  # released ones that failed, with a description
    resumed: bool = False  # `pauseAfter` has no effect any more
    undo: bool = False  # the target is an earlier revision
    rejected: RolloutRevision | None = None  # it was reverted, and is not rolled out again
    previous: RolloutRevision | None = None  # what all had before the last rollout that is complete
    total: int = 0  # custom resources of the watch, when the record was last written

    @classmethod
    def complete(cls, revision: RolloutRevision) -> RolloutRecord:
        return cls(revision, revision)

    @property
    def is_complete(self) -> bool:
        return self.phase == "Complete"

    def revision_of(self, member: str) -> RolloutRevision:
        if member in self.released:
            return self.target
        for revision, members in self.earlier:
            if member in members:
                return revision
        return self.base

    def names(self, member: str) -> bool:
        return member in self.released or any(member in members for _, members in self.earlier)

    def shown(self, member: str) -> RolloutRevision:
        """The revision that the status of a custom resource names."""
        return self.target if self.has_target(member) else self.revision_of(member)

    @property
    def before(self) -> RolloutRevision | None:
        """The revision to which `undo` goes back; None if it is refused."""
        goal = self.previous if self.is_complete else self.base
        return None if self.undo or goal is None or goal.rule == self.target.rule else goal

    def has_target(self, member: str) -> bool:
        return self.revision_of(member).rule == self.target.rule

    @property
    def held_back(self) -> int:
        """The number of custom resources without the target, when the record was last written."""
        others = sum(
            len(members - self.released.keys()) for each, members in self.earlier if each.rule != self.target.rule
        )
        if self.base.rule == self.target.rule:
            return others
        same = sum(len(members) for each, members in self.earlier if each.rule == self.target.rule)
        return max(0, self.total - len(self.released) - same)

    def counts(self) -> dict[RolloutRevision, int | None]:
        """The number of custom resources that have each revision, when the record was last written; None: all."""
        if self.is_complete:
            return {self.target: None}
        found: dict[RolloutRevision, int | None] = {self.target: len(self.released)} if self.released else {}
        named = set(self.released)
        for revision, members in self.earlier:
            if others := members - named:
                found[revision] = len(others)
            named |= members
        if (rest := self.total - len(named)) > 0:
            found[self.base] = (found.get(self.base) or 0) + rest
        return found

    @property
    def revisions(self) -> Iterator[RolloutRevision]:
        """All that a custom resource may have."""
        yield from (self.target, self.base)
        yield from (revision for revision, _ in self.earlier)


# -- changes of the target ---------------------------------------------------------------------------------------------


def begun(record: RolloutRecord, revision: RolloutRevision) -> RolloutRecord:
    """The record when the rules on disk are these. A rollout that is not complete is replaced by one to the newest
    revision; each custom resource keeps the revision that it has, until its wave."""
    if revision.is_same(record.target):
        revision = revision.numbered_as(record.target)
        record = replace(record, rejected=None, undo=False) if record.rejected is not None else record
        if record.is_complete:
            return replace(record, target=revision, base=revision)
        return replace(record, target=revision) if revision.rule != record.target.rule else record
    if record.rejected is not None and revision.is_same(record.rejected):
        return record
    return _towards(record, revision)


def _towards(record: RolloutRecord, revision: RolloutRevision) -> RolloutRecord:
    """A rollout to this revision, in which each custom resource keeps what it has."""
    sets = [(known, members - record.released.keys()) for known, members in record.earlier]
    found: dict[RolloutRevision, frozenset[str]] = {}
    for known, members in (*sets, (record.target, frozenset(record.released))):
        if members and known.rule != record.base.rule:
            same = next((each for each in found if each.rule == known.rule), known)
            found[same] = found.get(same, frozenset()) | members
    return RolloutRecord(
        revision,
        record.base,
        "Progressing",
        earlier=tuple(found.items()),
        previous=record.previous,
        total=record.total,
    )


class Refused(Exception):  # noqa: N818 - the answer to a command, not an error of the program
    """The command has no meaning for this record."""


def paused(record: RolloutRecord) -> RolloutRecord:
    if record.phase != "Progressing":
        raise Refused(f"no rollout is in progress: it is {record.phase}")
    return replace(record, phase="Paused", reason="`ruleop rollout pause`")


def resumed(record: RolloutRecord) -> RolloutRecord:
    """Failures so far no longer count. After `undo`, the rules on disk are rolled out again."""
    if record.rejected is not None:
        return replace(record, rejected=None)
    if record.phase not in {"Paused", "Stopped"}:
        raise Refused(f"nothing to resume: the rollout is {record.phase}")
    released: dict[str, Health] = {**record.released, **dict.fromkeys(record.failed, "stalled")}
    return replace(record, phase="Progressing", reason="", resumed=True, released=released, failed={})


def reverted(record: RolloutRecord, to: RolloutRevision | None = None) -> RolloutRecord:
    """A rollout back to an earlier revision: the last one that all custom resources had, or a given one. The rules on
    disk are rolled out again when they change, or after `resume`."""
    if to is not None:
        return _reverted_to(record, to)
    if record.undo:
        raise Refused("it is reverted already; `ruleop rollout resume` rolls out the rules on disk again")
    if record.before is None:
        raise Refused("no earlier revision is known")
    return replace(_towards(record, record.before), undo=True, rejected=record.target)


def _reverted_to(record: RolloutRecord, to: RolloutRevision) -> RolloutRecord:
    if to.is_same(record.target):
        raise Refused(f"the rules of revision {to.short} are those that are rolled out already")
    if record.rejected is not None and to.is_same(record.rejected):
        raise Refused(f"revision {to.short} has the rules on disk; `ruleop rollout resume` rolls them out again")
    return replace(_towards(record, to), undo=True, rejected=record.rejected or record.target)


# -- as stored ---------------------------------------------------------------------------------------------------------


def encode(record: RolloutRecord) -> str:
    members = {
        health: "".join(sorted(each for each, before in record.released.items() if before == health))
        for health in _HEALTHS
    }
    plain: dict[str, Any] = {
        "target": _stored(record.target),
        "base": _stored(record.base),
        "phase": record.phase,
        "reason": record.reason,
        "released": members,
        "earlier": [[*_stored(revision), "".join(sorted(each))] for revision, each in record.earlier],
        "pending": record.pending,
        "failed": record.failed,
        "resumed": record.resumed,
        "undo": record.undo,
        "rejected": _stored(record.rejected) if record.rejected is not None else None,
        "previous": _stored(record.previous) if record.previous is not None else None,
        "total": record.total,
    }
    return orjson.dumps({key: value for key, value in plain.items() if value}, option=orjson.OPT_SORT_KEYS).decode()


def decode(text: str) -> RolloutRecord:
    """Raises RecordError if it is invalid, for example after an edit by hand."""
    try:
        found = orjson.loads(text)
        released: dict[str, Health] = {
            member: health for health in _HEALTHS for member in _split(found.get("released", {}).get(health, ""))
        }
        record = RolloutRecord(
            target=_revision(found["target"]),
            base=_revision(found["base"]),
            phase=found["phase"],
            reason=str(found.get("reason", "")),
            released=released,
            earlier=tuple((_revision(entry[:-1]), frozenset(_split(entry[-1]))) for entry in found.get("earlier", ())),
            pending={str(member): float(time) for member, time in found.get("pending", {}).items()},
            failed={str(member): str(why) for member, why in found.get("failed", {}).items()},
            resumed=found.get("resumed") is True,
            undo=found.get("undo") is True,
            rejected=_revision(found["rejected"]) if "rejected" in found else None,
            previous=_revision(found["previous"]) if "previous" in found else None,
            total=int(found.get("total", 0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise RecordError(str(error)) from error
    if record.phase not in get_args(Phase):
        raise RecordError(f"unknown phase {record.phase}")
    return record


def _stored(revision: RolloutRevision) -> list[str]:
    return [*revision] if revision.edit else [*revision[:2]]


def _revision(found: Any) -> RolloutRevision:
    rule, project, *edit = found
    return RolloutRevision(str(rule), str(project), *map(str, edit[:1]))


def _split(text: str) -> list[str]:
    if len(text) % _MEMBER:
        raise RecordError("a hash is not complete")
    return [text[start : start + _MEMBER] for start in range(0, len(text), _MEMBER)]
