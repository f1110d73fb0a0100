"""Formats the history of a custom resource for people, the latest change last."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.changes_of_resource import Change, ResourceHistory, What
from ruleop.authoring.report.explain_text import ago, wrapped
from ruleop.authoring.report.spans import Line, Span, Tone
from ruleop.authoring.report.tree import resource_node, tree_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_CHANGES: Final = 200
"""The latest changes that are listed; `-o json` has all."""

MAX_FIELDS: Final = 4
"""Fields of one write that are named; of more, the groups that they are in."""

MAX_GROUPS: Final = 6
MAX_TITLE: Final = 28
"""Characters of a name in front of the text of its change; that of a longer one is below it."""

SHORT: Final = 12
"""Characters of the digest of a revision."""

ONE_TIME: Final = (
    "The API server keeps one time for each field manager of an object: that of its last write, with all fields that "
    "the manager owns."
)


def history_lines(history: ResourceHistory) -> Iterator[Line]:
    node = resource_node(history.resource, ())
    generation = history.resource["metadata"].get("generation")
    note = f"(generation {generation})" if generation is not None else ""
    yield from tree_lines([replace(node, message="", note=note)])
    yield ()
    if earlier := history.changes[:-MAX_CHANGES]:
        yield (Span(f"  {len(earlier)} earlier changes are not shown (-o json has them)", Tone.FAINT),)
    shown = history.changes[-MAX_CHANGES:]
    titles = [_title(change, history) for change in shown]
    width = max((len(title) for title in titles if len(title) <= MAX_TITLE), default=0)
    for change, title in zip(shown, titles, strict=True):
        yield from _change(change, title, width, history.now)
    yield ()
    for text in (ONE_TIME, *history.notes):
        yield from wrapped(text, "", Tone.FAINT)


def _title(change: Change, history: ResourceHistory) -> str:
    return change.key.title(history.resource["metadata"].get("namespace") or "") if change.key is not None else "rules"


def _change(change: Change, title: str, width: int, now: str) -> Iterator[Line]:
    head = f"  {change.time}  {ago(change.time, now):<10}  "
    start = (Span(head, Tone.FAINT), Span(f"{title:<{width}}", Tone.TITLE if change.key is None else Tone.PLAIN))
    lines = list(wrapped(_text(change), " " * (len(head) + width + 2), _tone(change)))
    if len(title) <= width:
        yield (*start, Span("  "), lines.pop(0)[1])
    else:
        yield start
    yield from lines


def _text(change: Change) -> str:
    match change.what:
        case What.RULES:
            environment = ", with environment variables" if change.reads_environment else ""
            held_back = "; held back here by its rollout" if change.held_back else ""
            return f"revision {change.revision[:SHORT]}{' again' if change.again else ''}{environment}{held_back}"
        case What.RELEASED:
            return f"the rollout of revision {change.revision[:SHORT]} reached it"
        case What.CREATED:
            return "created"
        case What.DELETION:
            return "deletion requested"
        case What.EVENT:
            count = f" (x{change.count})" if change.count > 1 else ""
            return f"{change.reason}{count}: {change.message}"
    assert change.manager is not None
    if change.what is What.STATUS:
        return f"status written by {change.manager.name}"
    generation = f" (generation {change.generation})" if change.generation is not None else ""
    return f"written by {change.manager.name}, which owns {_fields(change)}{generation}"


def _fields(change: Change) -> str:
    if len(change.fields) <= MAX_FIELDS:
        return _listed(change.fields)
    groups = change.groups[:MAX_GROUPS]
    more = [f"{len(change.groups) - MAX_GROUPS} more"] if len(change.groups) > MAX_GROUPS else []
    return f"{len(change.fields)} fields in {_listed([*groups, *more])}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _tone(change: Change) -> Tone:
    if change.what is What.EVENT:
        return Tone.BAD if change.type == "Warning" else Tone.GOOD
    if change.what in {What.RULES, What.RELEASED, What.DELETION}:
        return Tone.CHANGE
    is_edit = change.what is What.WRITTEN and change.manager is not None and not change.manager.is_ruleop
    return Tone.WAIT if is_edit else Tone.PLAIN
