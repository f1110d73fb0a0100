"""The history of a custom resource: its model, and the list for people, the latest change last."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

from ruleop.authoring.report.documents import HIDDEN, INLINE
from ruleop.authoring.report.planned import Planned
from ruleop.authoring.report.spans import Line, Span, Tone, ago, wrapped
from ruleop.authoring.report.tree import tree_lines, view_row
from ruleop.authoring.report.views import LastWrite, ResourceIdentity, ResourceView
from ruleop.planning.rollout import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.kubernetes.kinds import Object, ObjectKey

MAX_CHANGES: Final = 200
"""The latest changes that are listed; `-o json` has all."""

MAX_NAMED: Final = 4
"""Fields of one write that are named; of more, the groups that they are in."""

MAX_GROUPS: Final = 6
MAX_TITLE: Final = 28
"""Characters of a name in front of the text of its change; that of a longer one is below it."""

ONE_TIME: Final = (
    "The API server keeps one time for each field manager of an object: that of its last write, with all fields that "
    "the manager owns."
)


class What(Enum):
    """The kinds of changes, in the order in which those of one second are listed."""

    RULES = "rules"
    RELEASED = "released"
    CREATED = "created"
    WRITTEN = "written"
    STATUS = "status"
    EVENT = "event"
    DELETION = "deletion"


@dataclass(frozen=True, slots=True)
class PastChange:
    """One change of a custom resource, of a child, or of the rules. A field that does not belong to its sort is
    None."""

    time: str  # RFC 3339
    what: What
    key: ObjectKey | None = None  # None: the rules
    write: LastWrite | None = field(default=None, metadata=INLINE)
    fields: tuple[str, ...] | None = None  # that the manager owns
    groups: tuple[str, ...] = field(default=(), metadata=HIDDEN)  # the fields of the second level that these are in
    generation: int | None = None  # after the last edit of the custom resource
    type: str | None = None  # of an Event
    reason: str | None = None
    message: str | None = None
    count: int | None = None
    revision: str | None = None
    environment: bool | None = None  # whether the revision reads variables
    held_back: bool | None = None  # whether a rollout has not brought the revision to the custom resource
    again: bool = field(default=False, metadata=HIDDEN)  # whether the revision was in force before


@dataclass(frozen=True, slots=True)
class ResourceHistory:
    """The changes on a custom resource, its children and the rules."""

    obj: Object = field(metadata=HIDDEN)
    now: str = field(metadata=HIDDEN)
    changes: tuple[PastChange, ...] = ()  # the oldest first
    notes: tuple[str, ...] = ()  # what is not shown, and why

    DERIVED: ClassVar = ("resource",)

    @property
    def resource(self) -> ResourceIdentity:
        return ResourceIdentity.of(self.obj)


def history_lines(history: ResourceHistory) -> Iterator[Line]:
    generation = history.resource.generation
    note = f"(generation {generation})" if generation is not None else ""
    yield from tree_lines([replace(view_row(ResourceView(Planned(history.obj))), text="", note=note)])
    yield ()
    if earlier := history.changes[:-MAX_CHANGES]:
        yield (Span(f"  {len(earlier)} earlier changes are not shown (-o json has them)", Tone.FAINT),)
    shown = history.changes[-MAX_CHANGES:]
    namespace = history.resource.namespace
    titles = [change.key.title(namespace) if change.key is not None else "rules" for change in shown]
    width = max((len(title) for title in titles if len(title) <= MAX_TITLE), default=0)
    for change, title in zip(shown, titles, strict=True):
        head = f"  {change.time}  {ago(change.time, history.now):<10}  "
        start = (Span(head, Tone.FAINT), Span(f"{title:<{width}}", Tone.TITLE if change.key is None else Tone.PLAIN))
        lines = list(wrapped(_change(change), " " * (len(head) + width + 2), _tone(change)))
        yield (*start, Span("  "), lines.pop(0)[1]) if len(title) <= width else start
        yield from lines
    yield ()
    for text in (ONE_TIME, *history.notes):
        yield from wrapped(text, "", Tone.FAINT)


def _change(change: PastChange) -> str:
    match change.what:
        case What.RULES:
            environment = ", with environment variables" if change.environment else ""
            held_back = "; held back here by its rollout" if change.held_back else ""
            number = (change.revision or "")[:SHORT]
            return f"revision {number}{' again' if change.again else ''}{environment}{held_back}"
        case What.RELEASED:
            return f"the rollout of revision {(change.revision or '')[:SHORT]} reached it"
        case What.CREATED:
            return "created"
        case What.DELETION:
            return "deletion requested"
        case What.EVENT:
            count = f" (x{change.count})" if (change.count or 0) > 1 else ""
            return f"{change.reason}{count}: {change.message}"
    assert change.write is not None
    if change.what is What.STATUS:
        return f"status written by {change.write.manager}"
    generation = f" (generation {change.generation})" if change.generation is not None else ""
    names: Sequence[str] = change.fields or ()
    if len(names) > MAX_NAMED:
        more = [f"{len(change.groups) - MAX_GROUPS} more"] if len(change.groups) > MAX_GROUPS else []
        groups = _listed([*change.groups[:MAX_GROUPS], *more])
        return f"written by {change.write.manager}, which owns {len(names)} fields in {groups}{generation}"
    return f"written by {change.write.manager}, which owns {_listed(names)}{generation}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _tone(change: PastChange) -> Tone:
    if change.what is What.EVENT:
        return Tone.BAD if change.type == "Warning" else Tone.GOOD
    if change.what in {What.RULES, What.RELEASED, What.DELETION}:
        return Tone.CHANGE
    is_edit = change.what is What.WRITTEN and change.write is not None and not change.write.is_ruleop
    return Tone.WAIT if is_edit else Tone.PLAIN
