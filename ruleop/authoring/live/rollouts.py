"""The rollouts of an operator in a cluster, and its revisions: their model, the tables for people, and commands that
change the record, which the operator follows.

A command needs permission to update the ConfigMap of the record, and no operator that runs at the moment. Its write
names the version that it read, so it does not undo a step of the operator.
"""

from __future__ import annotations

import os
from collections import UserDict
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report import Line, Span, Tone, in_columns, listed
from ruleop.errors import RuleopError
from ruleop.language.rules import ProjectErrors, RuleFiles
from ruleop.language.rules.checking import checked
from ruleop.language.rules.loading import build_unchecked
from ruleop.operator.revisions import files_of_revision, unpack
from ruleop.operator.rollouts import RolloutStore, rollouts_key, watch_key
from ruleop.operator.server_api import StoredData
from ruleop.planning.rollout import SHORT, Refused, RolloutRevision, reverted
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ruleop.authoring.live.open_cluster import LiveCluster
    from ruleop.planning.rollout import RolloutRecord


_TONES: Final = {"Stopped": Tone.BAD, "Paused": Tone.WAIT}
MAX_FILES: Final = 4
_HEAD: Final = ("WATCH", "PHASE", "REVISION", "FROM", "CURRENT", "PENDING", "FAILED", "HELD BACK")


def rollout_documents(records: Mapping[str, RolloutRecord], missing: Sequence[str] = ()) -> list[dict[str, Any]]:
    """`missing`: sentences about processes that do not run, for which rollouts in progress wait."""
    return [
        {
            "watch": _title(watch),
            "phase": record.phase,
            "reason": record.reason,
            "revision": record.target.number,
            "from": record.before.number if record.before is not None else "",
            "total": record.total,
            "heldBack": record.held_back,
            "pending": len(record.pending),
            "failed": len(record.failed),
            "failures": _failures(record),
            "waits": [*missing] if record.phase == "Progressing" else [],
            "undo": record.undo,
            "rejected": record.rejected.number if record.rejected is not None else "",
        }
        for watch, record in sorted(records.items())
    ]


def _title(watch: str) -> str:
    return watch.replace("_", "/")


def _failures(record: RolloutRecord) -> list[str]:
    return [text for text in record.failed.values() if text]


def rollout_lines(records: Mapping[str, RolloutRecord], missing: Sequence[str] = ()) -> Iterator[Line]:
    ordered = sorted(records.items())
    yield from in_columns([tuple(map(Span, _HEAD)), *(_row(watch, record) for watch, record in ordered)])
    for watch, record in ordered:
        yield from ((Span(line),) for line in _notes(_title(watch), record))
        if record.phase == "Progressing":
            yield from ((Span(f"  waits: {one}", Tone.WAIT),) for one in missing)


def _row(watch: str, record: RolloutRecord) -> Line:
    before = record.before.short if record.before is not None else "-"
    cells = [_title(watch), record.phase, record.target.short, before]
    if record.is_complete:
        cells += ["all", "0", "0", "0"]
    else:
        numbers = (len(record.pending), len(record.failed), record.held_back)
        cells += [f"{record.total - record.held_back}/{record.total}", *map(str, numbers)]
    return tuple(Span(cell, _TONES.get(record.phase, Tone.PLAIN)) for cell in cells)


def _notes(watch: str, record: RolloutRecord) -> Iterator[str]:
    undo = f"; or `ruleop rollout undo`, back to {record.before.short}" if record.before is not None else ""
    if record.reason:
        yield f"{watch} is {record.phase.lower()}: {record.reason}"
    yield from (f"  failed: {text}" for text in _failures(record))
    if record.rejected is not None:
        yield (
            f"{watch}: revision {record.rejected.short} was reverted; it is rolled out again "
            "when the rules change, or after `ruleop rollout resume`"
        )
    if record.phase == "Stopped":
        yield f"  next: correct the rules{undo}; or `ruleop rollout resume` in spite of the failures"
    elif record.phase == "Paused":
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
    return in_columns([tuple(map(Span, row)) for row in rows])


# -- the record --------------------------------------------------------------------------------------------------------

MAX_ATTEMPTS: Final = 20  # the operator writes a few times a second while a rollout is in progress


def _store(cluster: LiveCluster) -> RolloutStore:
    operator = cluster.operator
    if operator.problem:
        raise RuleopError(operator.problem)
    api = cluster.reader.writing()
    return RolloutStore(StoredData(api, rollouts_key(operator.namespace, operator.name)))


async def read_rollouts(cluster: LiveCluster, watch: str = "") -> dict[str, RolloutRecord]:
    """The records by watch; with `watch`, only that of this name. Raises RuleopError."""
    return _selected(await _store(cluster).read(), watch)


async def change_rollout(
    cluster: LiveCluster, watch: str, change: Callable[[RolloutRecord], RolloutRecord], *, to: str = ""
) -> tuple[str, RolloutRecord]:
    """Changes the record of a watch. Without a name there has to be only one. `to`: instead, reverts it to the revision
    whose number begins with this. Raises RuleopError."""
    store = _store(cluster)
    for _ in range(MAX_ATTEMPTS):
        records = await store.read()
        found = _selected(records, watch)
        if len(found) != 1:
            raise RuleopError(f"several watches have `rollout`; name one of {', '.join(sorted(found))}")
        ((name, record),) = found.items()
        try:
            changed = reverted(record, await _find_revision(cluster, name, record, to)) if to else change(record)
        except Refused as refused:
            raise RuleopError(f"{name}: {refused}") from None
        goes_back = changed.undo and not record.undo
        # It would reconcile no CR with rules that the operator does not have.
        if goes_back and changed.target.project not in (await cluster.revisions()).packed:
            raise RuleopError(f"{name}: the rules of revision {changed.target.short} are not kept; edit the rules")
        if await store.write({**records, name: changed}):
            return name, changed
    raise RuleopError("the record was changed by somebody else each time; repeat the command")


async def _find_revision(cluster: LiveCluster, watch: str, record: RolloutRecord, number: str) -> RolloutRevision:
    """The revision of a watch whose number begins with this; as in the record, if that has it. Raises
    RuleopError."""
    revisions = await cluster.revisions()
    found = list(dict.fromkeys(each.digest for each in revisions.index if each.digest.startswith(number.lower())))
    if len(found) != 1:
        which = f"{len(found)} revisions begin with {number}: write more of it" if found else f"no revision {number}"
        raise RuleopError(f"{which}; `ruleop rollout history` lists them")
    short = found[0][:SHORT]
    try:
        files = files_of_revision(revisions, found[0])
        project = build_unchecked(files, environ=_Environment(os.environ)) if files is not None else None
        if project is not None:
            checked(RuleFiles.of(project), environ=_Environment(os.environ))
    except ProjectErrors as errors:
        raise RuleopError(f"the rules of revision {short} have mistakes: {errors.mistakes[0]}") from None
    if project is None:
        raise RuleopError(f"the rules of revision {short} are not kept; edit the rules")
    title = watch.partition("_")[2] if watch.startswith("0") else watch
    rule = next((each for each in project.rules if watch_key(each) == title), None)
    if rule is None:
        raise RuleopError(f"revision {short} has no watch {_title(title)}")
    recorded = [*record.revisions, *filter(None, (record.previous, record.rejected))]
    known = (each for each in recorded if found[0] in {each.number, each.project} and each.project in revisions.packed)
    return next(known, RolloutRevision(rule.revision, found[0]))


class _Environment(UserDict[str, str]):
    """Environment variables, of which each exists. The digest of a rule, for which this is, does not depend on their
    values, and the operator has others."""

    def __missing__(self, name: str) -> str:
        return "1"

    def __contains__(self, name: object) -> bool:
        return True


async def read_revisions(cluster: LiveCluster, watch: str = "") -> list[RevisionView]:
    """The revisions of the rules, the newest first. Of the watches with `rollout` only that of this name, if there is
    one. Raises RuleopError."""
    records = await _store(cluster).read()
    records = _selected(records, watch) if watch else records
    revisions = await cluster.revisions()
    files = {digest: unpack(packed) for digest, packed in revisions.packed.items()}
    last = {each.digest: number for number, each in enumerate(revisions.index)}
    found = []
    for number, each in enumerate(revisions.index):
        before = files.get(revisions.index[number - 1].digest) if number else None
        watches = tuple(
            WatchView(_title(name), count)
            for name, record in sorted(records.items())
            for revision, count in record.counts().items()
            if revision.number == each.digest and last[each.digest] == number
        )
        changed = _changed(before, files.get(each.digest))
        found.append(RevisionView(each.digest, each.since, each.digest in revisions.packed, changed, watches))
    return found[::-1]


def _changed(before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> tuple[str, ...] | None:
    if before is None or after is None:
        return None
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def _selected(records: Mapping[str, RolloutRecord], watch: str) -> dict[str, RolloutRecord]:
    """A watch is named by its kind, with or without its group, and `/NAME` if the kind has several."""
    found = {name: record for name, record in records.items() if not watch or watch in _titles(name)}
    if not found and watch:
        names = f": there are {', '.join(sorted(records))}" if records else ""
        raise RuleopError(f"no watch {watch} with `rollout`{names}")
    if not found:
        raise RuleopError("no watch of the operator has `rollout`, or it has not started yet")
    return found


def _titles(name: str) -> tuple[str, str]:
    kind, _, watch = name.partition("_")
    more = f"/{watch}" if watch else ""
    return f"{kind}{more}", f"{kind.partition('.')[0]}{more}"
