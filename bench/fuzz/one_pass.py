"""Measures the passes over one case: CPU time, memory, what of it their accounts count, and the longest text that they
emit.

The passes are those of the operator, without its I/O: the children are created, then the resource is edited and another
client has changed the children, then the children drift, then the drift is a field conflict, and at last the resource
is deleted. Each pass is a plan, the log of its writes, what the history learns from them, and the plan of the status.
A plan that uses a second is ended, as by the operator's guard. If the case asks for it, the plan as text is measured
too. `ruleop plan` prints it and the operator does not, so it may take several times as long.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson
import structlog

from bench.fuzz.case import CHANGES, DEFINITIONS, MAX_RESOURCE, Case, size
from ruleop.authoring.offline import OfflineKinds
from ruleop.authoring.report.spans import text_of
from ruleop.authoring.report.view_text import plan_lines
from ruleop.authoring.report.views import ResourceView
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.language.rules import Project, ProjectErrors, Rule
from ruleop.language.rules.checking import build_project
from ruleop.language.templates.values.cost import Account, for_descriptions
from ruleop.operator.passes.pass_log import PassLog
from ruleop.operator.passes.reconciler import LARGE
from ruleop.operator.queue.work_queue import Request
from ruleop.operator.telemetry.logging import shorten
from ruleop.operator.telemetry.metrics import ControllerMetrics, Metrics
from ruleop.planning import History, Observed, Outcome, Plan, choose_rule, plan
from ruleop.planning.changes.drift import Reverted, corrections
from ruleop.planning.events import write_events
from ruleop.planning.guard import GUARD, SECONDS, TooSlow, place_of
from ruleop.planning.model.actions import AddFinalizer, Create, Delete, Patch, ServerSideApply
from ruleop.planning.model.marks import PART_OF
from ruleop.planning.model.observed import DEFAULT_FINALIZER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.planning import Action, Kinds, Query

T = TypeVar("T")
MEBIBYTE: Final = 1024 * 1024
OBJECT_WEIGHT: Final = 8
"""Bytes of Python objects for a byte of JSON: what the children and their stores may take beyond the bound."""


PREPARING: Final = "preparing"
"""What runs while another client changes the children, which is not measured."""

TEXT: Final = "text of "
"""How the names of the measurements of plans as text begin."""

TEXT_FACTOR: Final = 4
"""How many times as long as a pass the text of a plan may take."""

ENOUGH_SAMPLES: Final = 3
"""In a function, to call it hot: with fewer, chance decides."""


class UnusableError(Exception):
    """The case is outside the bound's terms: the rule is rejected, or the resource is too large."""


@dataclass
class Reading:
    seconds: float = 0.0  # CPU time of the most expensive pass, or a quarter of that of a plan as text
    mib: float = 0.0  # the most memory that a pass took, without what its children take
    counted: float = 0.0  # the MiB that the accounts of that pass have counted
    kib: float = 0.0  # of the custom resource
    longest: int = 0  # characters of the longest log line, condition or event
    where: str = ""  # the most expensive pass
    running: str = ""  # the pass that was begun last
    phases: dict[str, float] = field(default_factory=dict)
    ended: str = ""  # how the first pass ended: the reason of Ready
    hot: str = ""  # the function of ruleop in which most of the time was spent
    failed: str = ""  # an internal error, or the limit that ended the process

    def as_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "seconds": round(self.seconds, 4),
            "mib": round(self.mib, 1),
            "counted": round(self.counted, 1),
            "kib": round(self.kib, 1),
        }


def load(case: Case) -> Project:
    try:
        return build_project({**DEFINITIONS, **case.files}, root="/fuzz", environ={})
    except ProjectErrors as errors:
        raise UnusableError(f"rejected: {errors.findings[0]}") from None


class Passes:
    """All passes over one case. `announce` is called with the reading so far whenever a pass begins. After a pass of
    `enough` seconds there are no more."""

    def __init__(
        self, case: Case, announce: Callable[[Reading], None] = lambda _: None, *, enough: float = math.inf
    ) -> None:
        self.case, self.announce, self.enough, self.reading = case, announce, enough, Reading()
        project = load(case)
        self.resource: dict[str, Any] = case.resource()
        bytes_ = size(self.resource)
        seen = case.observed()
        bytes_ += sum(map(size, seen))  # the author of the resource may write them too
        if max(bytes_, size(case.changed(self.resource))) > MAX_RESOURCE:
            raise UnusableError("the custom resource is too large")
        self.reading.kib = bytes_ / 1024
        rule = choose_rule(project.rules, self.resource)
        assert rule is not None
        self.rule: Rule = rule
        self.kinds = OfflineKinds(project)
        self.log = PassLog(self.kinds, ControllerMetrics(Metrics(), "fuzz"), "fuzz")
        self.history, self.clock = History.NONE, 0.0
        self.cluster = Cluster({ObjectKey.of(each): each for each in seen})
        self.planned: Plan | None = None
        self.accounts: list[Account] = []  # of the plans of the current pass
        self.unmeasured = 0.0  # seconds of the current pass that are not the operator's
        self.status_left = False  # whether the plan of the status belongs to another pass

    def run(self) -> Reading:
        for phase in self._prepared():
            self.one(phase)
            if self.reading.seconds > self.enough or self.reading.failed:
                break
        return self.reading

    def _prepared(self) -> Iterator[str]:
        """The passes, each after the cluster was changed for it."""
        yield "create"
        self.resource = self.case.changed(self.resource)
        change = CHANGES[self.case.others]
        self._change_children(change)
        yield "edit"
        if self.case.others != "none":
            yield from self._drifted(change)
        if self.case.deleted:
            metadata = {"deletionTimestamp": "1970-01-01T00:00:00Z", "finalizers": [DEFAULT_FINALIZER]}
            self.resource = {**self.resource, "metadata": {**self.resource["metadata"], **metadata}}
            yield "delete"

    def _drifted(self, change: Callable[[Any], Any]) -> Iterator[str]:
        before = self.history
        self._change_children(change)
        yield "drift"
        if self.planned is not None and (drift := dict(_conflicts(self.planned))):
            self.history = replace(before, drift=drift)
            self._change_children(change)
            yield "conflict"

    def _change_children(self, change: Callable[[Any], Any]) -> None:
        self.reading.running = PREPARING
        self.announce(self.reading)
        self.cluster = self.cluster.changed(change)

    def one(self, phase: str) -> None:
        planned = self.planned = self.measured(phase, self._pass)
        if self.status_left:  # another pass plans the status
            self.measured(f"status after {phase}", self._reported)
        if self.case.shown and planned is not None and not self.reading.failed:
            self.measured(f"{TEXT}{phase}", lambda: self._shown(planned))

    def measured(self, phase: str, work: Callable[[], Plan]) -> Plan | None:
        """Measures a pass, or a plan as text."""
        self.reading.running = phase
        self.announce(self.reading)
        gc.collect()
        self.accounts, self.unmeasured, self.status_left = [], 0.0, False
        before, memory = time.process_time(), _memory()
        planned, error = None, ""
        try:
            planned = work()
        except RuleopError as found:
            error = str(found)
        except TooSlow as ended:
            error = f"ended by the guard: {place_of(ended)}"
        except MemoryError:
            self.reading.failed = "memory limit"
        except Exception as found:  # noqa: BLE001 - an internal error is a finding
            self.reading.failed = f"{type(found).__name__}: {str(found)[:200]}"
        seconds, grown = time.process_time() - before - self.unmeasured, memory()
        weight = _weight(planned, self.cluster) / MEBIBYTE if planned is not None else 0.0
        self._took(phase, seconds, max(0.0, grown - weight), len(error))
        if not self.reading.ended:
            self.reading.ended = _ended(planned, error)
        return planned

    def _took(self, phase: str, seconds: float, mib: float, longest: int) -> None:
        reading = self.reading
        reading.phases[phase] = round(seconds, 4)
        reading.longest = max(reading.longest, longest)
        if mib >= reading.mib:
            reading.mib, reading.counted = mib, sum(each.bytes for each in self.accounts) / MEBIBYTE
        if phase.startswith(TEXT):
            seconds /= TEXT_FACTOR
        if seconds >= reading.seconds:
            reading.seconds, reading.where = seconds, phase

    def _pass(self) -> Plan:
        self.clock += 1.0
        request = Request.of(self.resource)
        with structlog.testing.capture_logs() as lines:
            history = self.history.at_pass_start(self.cluster, self.clock)
            planned, of_status = self._plan(history), None
            history = history.with_plan(planned, self.clock)
            events = [*self.log.field_conflicts(request, planned)]
            if planned.actions:
                outcome, allowance = self._executed(planned.actions), for_descriptions()
                for action in outcome.done:
                    self.log.wrote(request, planned, action, allowance=allowance)
                events += write_events(outcome.done, "default")
                self.history = history = history.after(planned, outcome, self.clock)
                self.status_left = self.accounts[0].share > LARGE
                of_status = None if self.status_left else self._plan(history)
            if not self.status_left:
                self._concluded(of_status or planned, history)
        self._emitted([each.message for each in events], lines)
        return planned

    def _executed(self, actions: Iterable[Action]) -> Outcome:
        """The server's part of the pass, which is not measured."""
        before = time.process_time()
        self.cluster, outcome = self.cluster.executed(actions, self.kinds)
        self.unmeasured += time.process_time() - before
        return outcome

    def _reported(self) -> Plan:
        """The pass after one that left the plan of the status to it."""
        with structlog.testing.capture_logs() as lines:
            planned = self._plan(self.history)
            self._concluded(planned, self.history)
        self._emitted([], lines)
        return planned

    def _concluded(self, planned: Plan, history: History) -> None:
        self.log.reconciled(Request.of(self.resource), history, planned)
        self.history = history.after(planned, None, self.clock)
        self._emitted([each.message for each in (*planned.events, *(planned.conditions or ()))], [])

    def _emitted(self, messages: Iterable[str], lines: Iterable[Mapping[str, Any]]) -> None:
        self.reading.longest = max([self.reading.longest, *map(len, messages), *map(_length, lines)])

    def _shown(self, planned: Plan) -> Plan:
        text_of(plan_lines(ResourceView(self.resource, planned, kinds=self.kinds)))
        return planned

    def _plan(self, history: History) -> Plan:
        observed = Observed(self.cluster, self.kinds, clock=self.clock)
        self.accounts.append(account := Account())

        def make() -> Plan:
            return plan(
                self.rule,
                self.resource,
                observed,
                history,
                predict_status=False,
                masks=self.case.shown,
                account=account,
            )

        return GUARD.within(SECONDS, make)


def _length(line: Mapping[str, Any]) -> int:
    """The characters of a line of the log, which cuts long values."""
    return sum(len(str(value)) for value in shorten(None, "", dict(line)).values())


def _ended(planned: Plan | None, error: str) -> str:
    if planned is None:
        return error[:120]
    if planned.problems:
        return f"{planned.problems[0].reason}: {planned.problems[0].message[:100]}"
    return f"{len(planned.actions)} actions" if planned.actions else "no actions"


def _weight(planned: Plan, cluster: Cluster) -> int:
    """The bytes of the children, in the plan and in the stores: as objects of Python, or for each byte of their JSON if
    that is more."""
    rendered: list[Any] = [each for _, _, each in planned.rendered]
    written, size, seen, stack = 0, 0, set(), [*rendered, *cluster.objects.values()]
    for each in rendered:
        with suppress(TypeError):  # half of a surrogate pair
            written += len(orjson.dumps(each))
    while stack:
        found = stack.pop()
        if id(found) not in seen:
            seen.add(id(found))
            size += sys.getsizeof(found)
            stack.extend(found.values() if isinstance(found, dict) else found if isinstance(found, list) else ())
    return max(OBJECT_WEIGHT * written, size)


def _memory() -> Callable[[], float]:
    """How many MiB the process grows from now on, at its peak."""
    with suppress(OSError):  # where it is not permitted, the peak since the start of the process counts
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    start = _status("VmRSS")
    return lambda: (_status("VmHWM") - start) / 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


# -- a cluster ---------------------------------------------------------------------------------------------------------


class Cluster:
    """The children as an API server would store them."""

    def __init__(self, objects: Mapping[ObjectKey, dict[str, Any]] | None = None) -> None:
        self.objects = dict(sorted((objects or {}).items()))

    def get(self, key: ObjectKey, *, version: str = "", partial: bool = False) -> Object | None:  # noqa: ARG002
        return self.objects.get(key)

    def children(self, part_of: str) -> Iterable[Object]:
        return [each for each in self.objects.values() if each["metadata"].get("labels", {}).get(PART_OF) == part_of]

    def patched(self, _part_of: str) -> Iterable[Object]:
        return []

    def select(self, query: Query) -> list[Object]:
        return [
            each
            for key, each in self.objects.items()
            if key.group_kind == query.kind and query.namespace in (None, key[2])
        ]

    def changed(self, change: Callable[[Any], Any]) -> Cluster:
        """The cluster after another client has changed every child, as far as the API server accepts it."""
        found = {}
        for key, each in self.objects.items():
            version = str(int(each["metadata"]["resourceVersion"]) + 1)
            metadata = {**each["metadata"], "resourceVersion": version}
            kept = {name: each[name] for name in ("apiVersion", "kind")}
            rest = {name: change(value) for name, value in each.items() if name not in (*kept, "metadata")}
            changed = {**kept, "metadata": metadata, **rest}
            found[key] = changed if size(changed) <= MAX_RESOURCE else each
        return Cluster(found)

    def executed(self, actions: Iterable[Action], kinds: Kinds) -> tuple[Cluster, Outcome]:
        """The cluster after the actions, and their outcome."""
        found, outcome = dict(self.objects), Outcome()
        for action in actions:
            outcome.done.append(action)
            if isinstance(action, Delete):
                found.pop(action.key, None)
                outcome.deleted.add(action.key)
            elif isinstance(action, (Create, Patch, ServerSideApply)):
                answer = orjson.loads(orjson.dumps(action.object))
                version = int((found.get(action.key) or {"metadata": {}})["metadata"].get("resourceVersion", "0"))
                answer["metadata"] |= {"uid": f"uid-{len(found)}", "resourceVersion": str(version + 1)}
                found[action.key] = answer
                outcome.wrote(action, answer, kinds.info)
            elif isinstance(action, AddFinalizer):
                continue
        return Cluster(found), outcome


def _conflicts(planned: Plan) -> Iterator[tuple[ObjectKey, Reverted]]:
    """A history of five reverts of each object, by another client that owns every field."""
    for action, fields in corrections(planned.actions):
        if isinstance(action, Create) or action.live is None:
            continue
        entry = {"manager": "kubectl", "operation": "Update", "fieldsV1": _fields(action.live)}
        yield (
            action.key,
            Reverted(action.desired_digest, fields, (0.0,) * 5, altered=False, managed=(entry,)),
        )


def _fields(value: Any) -> dict[str, Any]:
    """fieldsV1 of a value."""
    if isinstance(value, dict):
        return {f"f:{name}": _fields(member) for name, member in value.items()}
    if isinstance(value, list) and all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in value):
        return {f"k:{orjson.dumps({'name': each['name']}).decode()}": _fields(each) for each in value}
    return {}


# -- the hot function --------------------------------------------------------------------------------------------------


class Samples:
    """The functions of ruleop that a profiling timer found at work."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def take(self, frame: Any) -> None:
        while frame is not None:
            path = frame.f_code.co_filename
            if "/ruleop/" in path and "/bench/" not in path:
                module = path.rsplit("/ruleop/", 1)[1].removesuffix(".py")
                self.counts[f"{module}:{frame.f_code.co_name}"] += 1
                return
            frame = frame.f_back

    @property
    def hot(self) -> str:
        [(name, count)] = self.counts.most_common(1) or [("", 0)]
        return name if count >= ENOUGH_SAMPLES else ""
