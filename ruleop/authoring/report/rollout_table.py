"""Rollouts as a table for people, and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report.spans import Line, Span, Tone
from ruleop.planning.rollout.rollout_record import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ruleop.planning.rollout.rollout_record import Record

_TONES: Final = {"Stopped": Tone.BAD, "Paused": Tone.WAIT}
MAX_FILES: Final = 4
_HEAD: Final = ("WATCH", "PHASE", "REVISION", "FROM", "CURRENT", "PENDING", "FAILED", "HELD BACK")


@dataclass(frozen=True, slots=True)
class RevisionInForce:
    """A revision of the rules, what was edited for it, and what has it now."""

    digest: str
    since: str  # RFC 3339
    is_kept: bool  # its files are stored, so that it can be rolled out
    changed: tuple[str, ...] | None  # the files that were edited; None: unknown
    watches: Mapping[str, int | None]  # the number of custom resources by watch; None: all


def rollout_lines(records: Mapping[str, Record], missing: Sequence[str]) -> Iterator[Line]:
    """`missing`: sentences about processes that do not run, for which rollouts in progress wait."""
    rows = [_HEAD, *(_row(watch, record) for watch, record in sorted(records.items()))]
    for row, line in zip(rows, _in_columns(rows), strict=True):
        yield (Span(line, _TONES.get(row[1], Tone.PLAIN)),)
    for watch, record in sorted(records.items()):
        yield from ((Span(line),) for line in _notes(watch, record))
        if record.phase == "Progressing":
            yield from ((Span(f"  waits: {each}", Tone.WAIT),) for each in missing)


def _in_columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _row(watch: str, record: Record) -> tuple[str, ...]:
    title = watch.replace("_", "/")
    before = record.before.short if record.before is not None else "-"
    if record.is_complete:
        return title, record.phase, record.target.short, before, "all", "0", "0", "0"
    current = record.total - record.held_back
    return (
        title,
        record.phase,
        record.target.short,
        before,
        f"{current}/{record.total}",
        str(len(record.pending)),
        str(len(record.failed)),
        str(record.held_back),
    )


def _notes(watch: str, record: Record) -> Iterator[str]:
    title = watch.replace("_", "/")
    undo = f"; or `ruleop rollout undo`, back to {record.before.short}" if record.before is not None else ""
    if record.reason:
        yield f"{title} is {record.phase.lower()}: {record.reason}"
    yield from (f"  failed: {text}" for text in record.failed.values() if text)
    if record.rejected is not None:
        yield (
            f"{title}: revision {record.rejected.short} was reverted; it is rolled out again "
            "when the rules change, or after `ruleop rollout resume`"
        )
    if record.phase == "Stopped":
        yield f"  next: correct the rules{undo}; or `ruleop rollout resume` in spite of the failures"
    elif record.phase == "Paused":
        yield f"  next: `ruleop rollout resume`{undo}"


def rollouts_json(records: Mapping[str, Record], missing: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "watch": watch.replace("_", "/"),
            "phase": record.phase,
            "reason": record.reason,
            "revision": record.target.number,
            "from": record.before.number if record.before is not None else "",
            "total": record.total,
            "heldBack": record.held_back,
            "pending": len(record.pending),
            "failed": len(record.failed),
            "failures": [text for text in record.failed.values() if text],
            "waits": list(missing) if record.phase == "Progressing" else [],
            "undo": record.undo,
            "rejected": record.rejected.number if record.rejected is not None else "",
        }
        for watch, record in sorted(records.items())
    ]


def revision_lines(revisions: Sequence[RevisionInForce]) -> Iterator[Line]:
    """The newest first."""
    rows = [("REVISION", "SINCE", "FILES", "EDITED", "CUSTOM RESOURCES")]
    rows += [(each.digest[:SHORT], each.since, "kept" if each.is_kept else "-", *_cells(each)) for each in revisions]
    yield from ((Span(line),) for line in _in_columns(rows))


def _cells(revision: RevisionInForce) -> tuple[str, str]:
    """The edited files, and what has the revision."""
    edited = "-" if revision.changed is None else ", ".join(revision.changed[:MAX_FILES])
    if revision.changed is not None and len(revision.changed) > MAX_FILES:
        edited += f" and {len(revision.changed) - MAX_FILES} more"
    used = [
        f"{'all' if count is None else count} of {watch.replace('_', '/')}"
        for watch, count in sorted(revision.watches.items())
    ]
    return edited or "-", ", ".join(used) or "-"


def revisions_json(revisions: Sequence[RevisionInForce]) -> list[dict[str, Any]]:
    """A watch whose custom resources all have the revision has no number."""
    return [
        {
            "revision": each.digest,
            "since": each.since,
            "kept": each.is_kept,
            "edited": list(each.changed) if each.changed is not None else None,
            "watches": [
                {"watch": watch.replace("_", "/"), "resources": count} for watch, count in sorted(each.watches.items())
            ],
        }
        for each in revisions
    ]
