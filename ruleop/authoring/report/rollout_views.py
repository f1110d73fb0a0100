"""Rollouts and revisions of the rules: their model, and the tables for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.spans import Line, Span, Tone, in_columns, listed
from ruleop.planning.rollout import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ruleop.planning.rollout import RolloutRecord

_TONES: Final = {"Stopped": Tone.BAD, "Paused": Tone.WAIT}
MAX_FILES: Final = 4
_HEAD: Final = ("WATCH", "PHASE", "REVISION", "FROM", "CURRENT", "PENDING", "FAILED", "HELD BACK")


@dataclass(frozen=True, slots=True)
class RolloutView:
    """The rollout of an edit of the rules to the custom resources of a watch."""

    watch: str
    phase: str
    reason: str
    revision: str
    from_: str  # where `undo` goes; empty: nowhere
    total: int
    held_back: int
    pending: int
    failed: int
    failures: tuple[str, ...]
    waits: tuple[str, ...]  # sentences about processes that do not run
    undo: bool
    rejected: str

    @classmethod
    def of(cls, watch: str, record: RolloutRecord, missing: Sequence[str] = ()) -> RolloutView:
        return cls(
            watch=watch.replace("_", "/"),
            phase=record.phase,
            reason=record.reason,
            revision=record.target.number,
            from_=record.before.number if record.before is not None else "",
            total=record.total,
            held_back=record.held_back,
            pending=len(record.pending),
            failed=len(record.failed),
            failures=tuple(text for text in record.failed.values() if text),
            waits=tuple(missing) if record.phase == "Progressing" else (),
            undo=record.undo,
            rejected=record.rejected.number if record.rejected is not None else "",
        )


def rollout_views(records: Mapping[str, RolloutRecord], missing: Sequence[str] = ()) -> list[RolloutView]:
    """`missing`: sentences about processes that do not run, for which rollouts in progress wait."""
    return [RolloutView.of(watch, record, missing) for watch, record in sorted(records.items())]


def rollout_lines(views: Sequence[RolloutView]) -> Iterator[Line]:
    rows = [_HEAD, *map(_row, views)]
    for row, line in zip(rows, in_columns(rows), strict=True):
        yield (Span(line, _TONES.get(row[1], Tone.PLAIN)),)
    for each in views:
        yield from ((Span(line),) for line in _notes(each))
        yield from ((Span(f"  waits: {one}", Tone.WAIT),) for one in each.waits)


def _row(each: RolloutView) -> tuple[str, ...]:
    head = (each.watch, each.phase, each.revision[:SHORT], each.from_[:SHORT] or "-")
    if each.phase == "Complete":
        return (*head, "all", "0", "0", "0")
    return (
        *head,
        f"{each.total - each.held_back}/{each.total}",
        *map(str, (each.pending, each.failed, each.held_back)),
    )


def _notes(each: RolloutView) -> Iterator[str]:
    undo = f"; or `ruleop rollout undo`, back to {each.from_[:SHORT]}" if each.from_ else ""
    if each.reason:
        yield f"{each.watch} is {each.phase.lower()}: {each.reason}"
    yield from (f"  failed: {text}" for text in each.failures)
    if each.rejected:
        yield (
            f"{each.watch}: revision {each.rejected[:SHORT]} was reverted; it is rolled out again "
            "when the rules change, or after `ruleop rollout resume`"
        )
    if each.phase == "Stopped":
        yield f"  next: correct the rules{undo}; or `ruleop rollout resume` in spite of the failures"
    elif each.phase == "Paused":
        yield f"  next: `ruleop rollout resume`{undo}"


# -- revisions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WatchView:
    """The custom resources of a watch that have a revision."""

    watch: str
    resources: int | None  # None: all

    def __str__(self) -> str:
        return f"{'all' if self.resources is None else self.resources} of {self.watch}"


@dataclass(frozen=True, slots=True)
class RevisionView:
    """A revision of the rules, what was edited for it, and what has it now."""

    revision: str
    since: str  # RFC 3339
    kept: bool  # its files are stored, so that it can be rolled out
    edited: tuple[str, ...] | None  # the files; None: unknown
    watches: tuple[WatchView, ...]


def revision_lines(revisions: Sequence[RevisionView]) -> Iterator[Line]:
    """The newest first."""
    rows = [("REVISION", "SINCE", "FILES", "EDITED", "CUSTOM RESOURCES")]
    for each in revisions:
        edited, watches = listed(each.edited or (), MAX_FILES) or "-", ", ".join(map(str, each.watches)) or "-"
        rows.append((each.revision[:SHORT], each.since, "kept" if each.kept else "-", edited, watches))
    yield from ((Span(line),) for line in in_columns(rows))
