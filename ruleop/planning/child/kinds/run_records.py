"""The runs of children with `once` or `schedule`: an object is made once for each, and its result is recorded in the
CR's status.

The request id, which is the time of a run by `schedule`, and the retry annotation of the CR give each run a name, which
ends the name of its object. As long as the object exists, it shows that the run has begun, so a crash between its
creation and the next status repeats nothing. The result is recorded when the object is ready or has failed. From then
on the object is not needed: it is neither made again nor changed, and removed when `history` newer ones have finished.

With `forEach`, each item has runs of its own. The name of a run begins with a digest of the item's name, so that an
object and a record show whose they are, whatever the items are now.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.kubernetes.names import MAX_LABEL, RESERVED_PREFIX
from ruleop.planning.child.existing import Existing, age_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.language.rules import Child
    from ruleop.planning.child.readiness import Readiness

RETRY: Final = f"{RESERVED_PREFIX}retry-"
"""The annotation of the CR, with the child's id at its end: each new value runs it again."""
RUNNING, SUCCEEDED, FAILED = "Running", "Succeeded", "Failed"
SKIPPED, SCHEDULED = "Skipped", "Scheduled"  # entries of the record about a schedule, not about an object
ENDED: Final = frozenset({SUCCEEDED, FAILED})
MAX_RECORDED: Final = 10  # runs of one child
MAX_EARLIER: Final = 1000  # runs before those, of which only the name and the result are kept
MAX_ITEMS: Final = 200  # of a child with `forEach`: the last run of each is recorded as well
MAX_EARLIER_OF_ITEMS: Final = 2000
_EARLIER: Final = "earlier"
_GROUP: Final = 8  # characters of the digest of an item's name
_HAD_FAILED: Final = "!"  # ends the name of an earlier run
MAX_ID: Final = 253
RECORD: Final = "ruleop"  # the field of the status
PLACE: Final = (RECORD, "once")


@dataclass(frozen=True, slots=True)
class Run:
    """The run that the CR asks for now."""

    id: str
    name: str

    def of(self, name: str) -> str:
        """The name of its object."""
        return f"{name[: MAX_LABEL - len(self.name) - 1].rstrip('-.')}-{self.name}"


def group_of(item: str) -> str:
    """The begin of the names of an item's runs."""
    return hashlib.blake2b(item.encode("utf-8", "surrogatepass"), digest_size=_GROUP // 2).hexdigest()


def group_in(run: str) -> str:
    return run[:_GROUP]


def digest_of_texts(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


@dataclass(frozen=True, slots=True)
class Recorded:
    """The record of a child in the status."""

    runs: Sequence[Mapping[str, str]]  # newest first
    earlier: Sequence[str]  # the names of the runs before those, newest first; that of a failed one ends with a mark
    results: Mapping[str, str]  # of all of them, by their names

    @classmethod
    def of(cls, resource: Object, child: Child) -> Recorded:
        """Anybody who may write the status may write the record."""
        entries, keys = _record(resource, child), ("run", "result", "time")
        runs = [each for each in entries if all(isinstance(each.get(key), str) for key in keys)]
        text = next((each[_EARLIER] for each in entries if _EARLIER in each), "")
        most = MAX_EARLIER_OF_ITEMS if child.for_each else MAX_EARLIER
        earlier = text.split()[:most] if isinstance(text, str) else []
        results = {each.removesuffix(_HAD_FAILED): FAILED for each in earlier if each.endswith(_HAD_FAILED)}
        results |= {each: SUCCEEDED for each in earlier if not each.endswith(_HAD_FAILED)}
        return cls(runs, earlier, results | {each["run"]: each["result"] for each in reversed(runs)})


def _record(resource: Object, child: Child) -> list[dict[str, Any]]:
    found: Any = resource.get("status")
    for name in (*PLACE, child.id):
        found = found.get(name) if isinstance(found, dict) else None
    most = MAX_RECORDED + 2 + (MAX_ITEMS if child.for_each else 0)
    return [each for each in (found if isinstance(found, list) else [])[:most] if isinstance(each, dict)]


def abridged(
    runs: Sequence[dict[str, str]], earlier: Sequence[str], *, whole: Collection[str] = (), most: int = MAX_EARLIER
) -> list[dict[str, str]]:
    """The record of all runs for the status: whole entries of the last ones and of those in `whole`, the names of those
    before. A run without an end is known by its object."""
    others = [each["run"] for each in runs if each["run"] not in whole]
    kept = {*whole, *others[:MAX_RECORDED]}
    ended = [
        each["run"] + (_HAD_FAILED if each["result"] == FAILED else "")
        for each in runs
        if each["run"] not in kept and each["result"] in ENDED
    ]
    names = list(dict.fromkeys([*ended, *earlier]))[:most]
    return [
        *(each for each in runs if each["run"] in kept),
        *([{_EARLIER: " ".join(names)}] if names else []),
    ]


class RunRecord(NamedTuple):
    """The record of the runs of a child, for the status."""

    entries: list[dict[str, str]]
    prunes_next: bool  # an object can be deleted as soon as the status has this
    skipped: str = ""  # the time of a run of the schedule that this pass skips


class Records(NamedTuple):
    """The records of all children."""

    runs: Mapping[str, list[dict[str, str]]]  # by child
    skipped: Sequence[tuple[str, str]]  # the children, and the times
    prunes_next: bool


NO_RECORDS: Final = Records({}, (), prunes_next=False)


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one child: what the status has of them, and their objects."""

    history: int  # finished objects that stay
    recorded: Sequence[Mapping[str, str]]
    objects: Sequence[Existing]  # newest first
    readiness: Callable[[Object], Readiness]
    earlier: Collection[str] = ()

    @classmethod
    def of(
        cls, history: int, recorded: Recorded, existing: Iterable[Existing], readiness: Callable[[Object], Readiness]
    ) -> Runs:
        objects = sorted(existing, key=age_of, reverse=True)
        return cls(history, recorded.runs, objects, readiness, frozenset(recorded.earlier))

    def by_item(self) -> dict[str, Runs]:
        """The runs of each item that has one or had one, by the begin of their names."""
        recorded, objects = defaultdict[str, list[Mapping[str, str]]](list), defaultdict[str, list[Existing]](list)
        for entry in self.recorded:
            recorded[group_in(entry["run"])].append(entry)
        for each in self.objects:
            objects[group_in(_run_of(each))].append(each)
        groups = dict.fromkeys([*recorded, *objects])
        return {group: replace(self, recorded=recorded[group], objects=objects[group]) for group in groups}

    @property
    def begun(self) -> frozenset[str]:
        """The names of the runs that have an object."""
        return frozenset(map(_run_of, self.objects))

    def unfinished(self) -> Iterator[Existing]:
        """The objects of runs without an end."""
        for each in self.objects:
            if not self._has_ended(each) and self._result(each) == RUNNING:
                yield each

    def kept(self) -> frozenset[ObjectKey]:
        """The objects that stay: those without a recorded end, and the last ones with one."""
        ended = [each.key for each in self.objects if self._has_ended(each)]
        return frozenset(each.key for each in self.objects) - {*ended[self.history :]}

    def prunes(self, entries: Sequence[Mapping[str, str]]) -> bool:
        """Whether an object can be deleted as soon as the status has this record."""
        return replace(self, recorded=entries).kept() != self.kept()

    def record(self, current: Run | None, now: str) -> list[dict[str, str]]:
        """The runs, newest first. An end is final, whatever becomes of the object."""
        found = {each["run"]: dict(each) for each in self.recorded}
        begun = self.begun
        kept: dict[str, dict[str, str]] = {
            run: each for run, each in found.items() if each["result"] in ENDED or run in begun
        }
        fresh: dict[str, dict[str, str]] = {}
        for each in self.objects:
            run, result = _run_of(each), self._result(each)
            if self._is_earlier(run):
                continue
            if run in kept and kept[run]["result"] in {*ENDED, result}:
                continue
            if run not in kept and each.terminating and result == RUNNING:
                continue
            id_ = current.id if current is not None and current.name == run else kept.get(run, {}).get("id", "")
            entry = {"id": id_, "run": run, "result": result, "object": each.key.name, "time": now}
            (kept if run in kept else fresh)[run] = {key: value for key, value in entry.items() if value}
        return [*fresh.values(), *kept.values()]

    def _has_ended(self, each: Existing) -> bool:
        run = _run_of(each)
        return self._is_earlier(run) or any(of["run"] == run and of["result"] in ENDED for of in self.recorded)

    def _is_earlier(self, run: str) -> bool:
        return run in self.earlier or run + _HAD_FAILED in self.earlier

    def _result(self, each: Existing) -> str:
        live = {**each.live, "metadata": {**each.live["metadata"], "deletionTimestamp": None}}
        found = self.readiness(live)
        return SUCCEEDED if found.ready else FAILED if found.failed else RUNNING


def _run_of(each: Existing) -> str:
    return each.key.name.rpartition("-")[2]


def with_record(fields: dict[str, Any], runs: Mapping[str, list[dict[str, str]]]) -> dict[str, Any]:
    """The fields of the status, with the runs of each child that has some."""
    found = {id_: each for id_, each in runs.items() if each}
    return {**fields, RECORD: {PLACE[1]: found}} if found else fields
