"""Field conflicts: somebody repeatedly changes fields of a child that ruleop sets.

One change by hand is put back at once, and so are several. But two controllers that want different values of one field would write it for
ever, as fast as the API server lets them. So what is put back of a child is remembered for some minutes. When the same fields of it, for
the same wish, were put back five times and differ once more, that is a fight: it is told, and from then on the child is corrected later
and later, up to every five minutes. Nothing else of its CR waits for that. A fight is over when a correction has stood for two minutes, and
another wish (an edit of the CR) ends it at once.

An object that is deleted and made again and again is fought over as a whole. A state machine without I/O; time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ruleop.merge import merge_patch
from ruleop.planning import Action, Create, FieldConflict, Patch, Replace, ServerSideApply
from ruleop.planning.writes import desired

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kinds import Object, ObjectKey

ENOUGH = 5  # corrections of the same fields; a person who tries something out stops before
WINDOW = 300.0  # seconds within which they count
FIRST, CAP = 10.0, 300.0  # seconds between two corrections in a fight: the first pause, and the longest
QUIET = 120.0  # seconds that a correction has to stand for the fight to be over

WHOLE = frozenset({""})
"""The fields of an object that was deleted."""

MOST_NAMES = 4
Correction: TypeAlias = Create | Patch | Replace | ServerSideApply


class Standing(Enum):
    FREE = "free"  # correct it
    NOTICED = "noticed"  # this is a fight, and nobody knows of it yet
    HELD = "held"  # not now


@dataclass(slots=True)
class _Record:
    wanted: str  # digest of the wish
    fields: frozenset[str]  # that each correction was about
    times: list[float] = field(default_factory=list)  # of the last corrections
    altered: bool = True  # no answer of the server was what had been sent
    noticed: bool = False
    message: str = ""
    undone: bool = False  # since the last correction
    wait: float = FIRST
    due: float = 0.0  # no correction before

    @property
    def over(self) -> float:
        return (self.due if self.undone else self.times[-1]) + QUIET


class FieldConflicts:
    """Of one CR. What is corrected goes through `meets` before, and through `corrected` when it is done."""

    def __init__(self) -> None:
        self._records: dict[ObjectKey, _Record] = {}

    def __bool__(self) -> bool:
        return bool(self._records)

    def meets(self, key: ObjectKey, wanted: str, fields: frozenset[str], now: float) -> Standing:
        """These fields are not as they should be."""
        record = self._records.get(key)
        if record is None or record.wanted != wanted:
            self._records.pop(key, None)
            return Standing.FREE
        if record.noticed:
            record.undone = now < record.due
            return Standing.HELD if record.undone else Standing.FREE
        recent = [time for time in record.times if now - time <= WINDOW]
        if len(recent) < ENOUGH or not record.fields & fields:
            return Standing.FREE
        record.noticed = record.undone = True
        record.fields &= fields
        record.due = now + record.wait
        return Standing.NOTICED

    def corrected(self, key: ObjectKey, wanted: str, fields: frozenset[str], now: float, *, altered: bool) -> None:
        """They were put back. `altered`: the server's answer already had something else."""
        record = self._records.get(key)
        if (
            record is None
            or record.wanted != wanted
            or not (record.noticed or (record.fields & fields and now - record.times[-1] <= WINDOW))
        ):
            record = self._records[key] = _Record(wanted, fields)
        elif not record.noticed:
            record.fields &= fields
        else:
            record.wait = min(CAP, record.wait * 2)
            record.due = now + record.wait
            record.undone = False
        record.times = [*record.times[1 - ENOUGH :], now]
        record.altered = record.altered and altered

    def is_altered(self, key: ObjectKey) -> bool:
        """Whether the server itself, or a webhook, made something else of each of our writes."""
        return self._records[key].altered

    def name(self, key: ObjectKey, message: str) -> None:
        self._records[key].message = message

    def forget(self, key: ObjectKey) -> None:
        """The object was taken away by us."""
        self._records.pop(key, None)

    def settle(self, now: float) -> None:
        """Forgets what is over."""
        for key, record in list(self._records.items()):
            if now >= record.over if record.noticed else now - record.times[-1] > WINDOW:
                del self._records[key]

    def told(self, now: float) -> Mapping[ObjectKey, FieldConflict]:
        """As planning sees them."""
        return {
            key: FieldConflict(each.wanted, each.message, held=each.undone and now < each.due)
            for key, each in self._records.items()
            if each.noticed
        }

    def look_at(self, now: float) -> float | None:
        """When there is something to do although nothing happens."""
        times = [each.due if each.undone and now < each.due else each.over for each in self._records.values() if each.noticed]
        return min(times, default=None)


def corrections(actions: Iterable[Action]) -> Iterator[tuple[Correction, frozenset[str]]]:
    """Those of the actions that may turn out to be corrections, each with the fields that it would correct."""
    for action in actions:
        fields = correction(action)
        if fields is not None:
            yield cast("Correction", action), fields


def correction(action: Action) -> frozenset[str] | None:
    """The fields that the action would correct, should it turn out to be a correction; None: it is something else."""
    match action:
        case Create():
            return WHOLE
        case Patch(why="changed"):
            return fields_of(action.patch)
        case Replace(why="changed"):
            return fields_of(merge_patch(action.live, action.object) or {})
        case ServerSideApply(why="changed", live=live) if live is not None:
            return fields_of(_without_nulls(merge_patch(live, action.object) or {}))
    return None


def altered(action: Correction, answer: Object, fields: frozenset[str]) -> bool:
    """Whether the answer already has something else in one of the fields."""
    patch = merge_patch(answer, desired(action)) or {}
    return bool(fields & fields_of(patch if isinstance(action, Patch) else _without_nulls(patch)))


def message(action: Correction, fields: Iterable[str], who: Iterable[str], *, by_server: bool) -> str:
    """What is reported of a field conflict: which fields, who changes them, and what ruleop does about it."""
    title, names = f"{action.key.kind}/{action.key.name}", list(who)
    if isinstance(action, Create):
        return f"{title} is repeatedly deleted; backing off before recreating it"
    found = list(fields)
    what = ", ".join(found[:MOST_NAMES]) + (" and more" if len(found) > MOST_NAMES else "")
    verb = "are" if len(found) > 1 else "is"
    if by_server:
        return f"{title}: {what} {verb} changed by the API server or a webhook at each write; backing off before writing again"
    return f"{title}: {what} {verb} repeatedly changed by {' and '.join(names) or 'somebody'}; backing off before reverting it"


def fields_of(patch: Mapping[str, Any]) -> frozenset[str]:
    """The fields that a merge patch sets or removes; a list is one field. What only guards the patch does not count."""
    return frozenset(".".join(path) for path in _leaves(patch) if path not in {("metadata", "uid"), ("metadata", "resourceVersion")})


def _without_nulls(patch: Mapping[str, Any]) -> dict[str, Any]:
    """What an apply leaves out stays as it is."""
    found = {name: _without_nulls(value) if isinstance(value, Mapping) and value else value for name, value in patch.items()}
    return {name: value for name, value in found.items() if value is not None and not (value == {} and patch[name] != {})}


def _leaves(value: Any, *path: str) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            yield from _leaves(member, *path, name)
    else:
        yield path
