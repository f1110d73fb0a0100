"""Children with `once` or `schedule`: an object is made once for each run, and its result is recorded in the CR's
status.

The request id, which is the time of a run by `schedule`, and the retry annotation of the CR give each run a name, which
ends the name of its object. As long as the object exists, it shows that the run has begun, so a crash between its
creation and the next status repeats nothing. The result is recorded when the object is ready or has failed. From then
on the object is not needed: it is neither made again nor changed, and removed when `history` newer ones have finished.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.core.errors import RenderError
from ruleop.core.messages import shortened
from ruleop.core.names import MAX_LABEL, RESERVED_PREFIX
from ruleop.core.planning.child.child_plan import age_of
from ruleop.core.planning.model.marks import annotations_of
from ruleop.core.planning.rendering.unplanned import child_error
from ruleop.core.schema.crd.structural import declares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ruleop.core.kinds import Object, ObjectKey
    from ruleop.core.planning.child.child_plan import Existing
    from ruleop.core.planning.child.readiness import Readiness
    from ruleop.core.planning.model.observed import KindInfo
    from ruleop.core.rules import Child

RETRY: Final = f"{RESERVED_PREFIX}retry-"
"""The annotation of the CR, with the child's id at its end: each new value runs it again."""
RUNNING, SUCCEEDED, FAILED = "Running", "Succeeded", "Failed"
SKIPPED, SCHEDULED = "Skipped", "Scheduled"  # entries of the record about a schedule, not about an object
ENDED: Final = frozenset({SUCCEEDED, FAILED})
MAX_RECORDED: Final = 10  # runs of one child
MAX_EARLIER: Final = 1000  # runs before those, of which only the name and the result are kept
_EARLIER: Final = "earlier"
_HAD_FAILED: Final = "!"  # ends the name of an earlier run
_MAX_ID: Final = 253
RECORD: Final = "ruleop"  # the field of the status
_PLACE: Final = (RECORD, "once")


@dataclass(frozen=True, slots=True)
class Run:
    """The run that the CR asks for now."""

    id: str
    name: str

    def of(self, name: str) -> str:
        """The name of its object."""
        return f"{name[: MAX_LABEL - len(self.name) - 1].rstrip('-.')}-{self.name}"


def run_of(child: Child, names: Mapping[str, Any], resource: Object) -> Run | None:
    """The run of the current request id; None if that is empty. Raises ChildWaits and ChildFails."""
    assert child.once is not None
    try:
        request = child.once.string(names)
    except RenderError as error:
        raise child_error(error) from None
    return requested(request, child, resource) if request else None


def requested(request: str, child: Child, resource: Object) -> Run:
    return Run(shortened(request, _MAX_ID), digest_of_texts(request, _retry(child, resource)))


def is_retried(child: Child, resource: Object) -> bool:
    return bool(_retry(child, resource))


def _retry(child: Child, resource: Object) -> str:
    found: str = annotations_of(resource).get(RETRY + child.id, "")
    return found


def digest_of_texts(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


def result_of(resource: Object, child: Child, run: Run) -> str:
    """The recorded result; empty if there is none."""
    recorded = next((each["result"] for each in recorded_runs(resource, child) if each["run"] == run.name), "")
    if recorded:
        return recorded
    earlier = earlier_runs(resource, child)
    return SUCCEEDED if run.name in earlier else FAILED if run.name + _HAD_FAILED in earlier else ""


def can_record(info: KindInfo) -> bool:
    """Whether the server stores the record: a CRD whose status lacks its field drops it, and everything would run
    again."""
    return info.status_schema is None or declares(info.status_schema, ("status", *_PLACE))


def no_record(kind: str, key: str) -> str:
    return (
        f"the CRD of {kind} has no status.{'.'.join(_PLACE)}, so the API server would drop the results of `{key}`: "
        "add it to the schema, with x-kubernetes-preserve-unknown-fields"
    )


def recorded_runs(resource: Object, child: Child) -> list[dict[str, str]]:
    """The recorded runs, newest first. Anybody who may write the status may write them."""
    return [
        each
        for each in _record(resource, child)
        if all(isinstance(each.get(key), str) for key in ("run", "result", "time"))
    ]


def earlier_runs(resource: Object, child: Child) -> list[str]:
    """The names of the runs before those, newest first; that of a failed one ends with a mark."""
    found = next((each[_EARLIER] for each in _record(resource, child) if _EARLIER in each), "")
    return found.split()[:MAX_EARLIER] if isinstance(found, str) else []


def _record(resource: Object, child: Child) -> list[dict[str, Any]]:
    found: Any = resource.get("status")
    for name in (*_PLACE, child.id):
        found = found.get(name) if isinstance(found, dict) else None
    return [each for each in (found if isinstance(found, list) else [])[: MAX_RECORDED + 2] if isinstance(each, dict)]


def abridged(runs: list[dict[str, str]], earlier: Sequence[str]) -> list[dict[str, str]]:
    """The record of all runs for the status: whole entries of the last ones, the names of those before."""
    ended = [each["run"] + (_HAD_FAILED if each["result"] == FAILED else "") for each in runs[MAX_RECORDED:]]
    names = list(dict.fromkeys([*ended, *earlier]))[:MAX_EARLIER]
    return [*runs[:MAX_RECORDED], *([{_EARLIER: " ".join(names)}] if names else [])]


@dataclass(frozen=True, slots=True)
class Records:
    """The record of all runs, for the status."""

    runs: Mapping[str, list[dict[str, str]]]  # by child
    skipped: Sequence[tuple[Child, str]]  # runs of schedules that this pass skips, with their times
    prunes_next: bool  # an object can be deleted as soon as the status has this


NO_RECORDS: Final = Records({}, (), prunes_next=False)


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one child: what the status has of them, and their objects."""

    child: Child
    recorded: Sequence[Mapping[str, str]]
    objects: Sequence[Existing]  # newest first
    readiness: Callable[[Object], Readiness]
    earlier: Sequence[str] = ()

    @classmethod
    def of(
        cls, child: Child, resource: Object, existing: Iterable[Existing], readiness: Callable[[Object], Readiness]
    ) -> Runs:
        objects = sorted(existing, key=age_of, reverse=True)
        return cls(child, recorded_runs(resource, child), objects, readiness, earlier_runs(resource, child))

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
        return frozenset(each.key for each in self.objects) - {*ended[self.child.history :]}

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
    return {**fields, RECORD: {_PLACE[1]: found}} if found else fields
