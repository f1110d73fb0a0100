"""The model of what is reported about a custom resource, for `explain`, `plan`, `history`, `dev` and the page.

A view is made from what is known: a plan, what `explain` or `history` finds in a cluster, or, without rules, objects
alone. Each form is made from the view alone: text by `view_text`, JSON by `view_json`, HTML by the templates of the
page. Values of Secrets are masked in the texts of a view when it is made, and in the objects of a plan's actions when
they are shown. The names of fields are those of the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ruleop.authoring.report.documents import HIDDEN, INLINE, NULL
from ruleop.authoring.report.spans import Tone, listed
from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
from ruleop.kubernetes.names import PATCH_MANAGER
from ruleop.messages import shortened
from ruleop.planning import read_record, readiness
from ruleop.planning.changes import NOTHING, flow
from ruleop.planning.model.actions import State, distinct
from ruleop.planning.model.conditions import find_condition
from ruleop.planning.model.managers import FieldsManager, managers_on
from ruleop.planning.model.marks import RULEOP, part_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Rule
    from ruleop.planning import ChildReport, Plan, Problem, Wait
    from ruleop.planning.changes import Difference
    from ruleop.planning.model.actions import Action
    from ruleop.planning.model.observed import Kinds
    from ruleop.planning.plan import Blocking


# -- why an object is not ready ----------------------------------------------------------------------------------------
# By its own status: conditions, and of a pod its containers.

BAD_IF_TRUE: Final = frozenset({"Stalled", "Failed", "ReplicaFailure"})
BAD_IF_FALSE: Final = frozenset(
    {"Ready", "Available", "Progressing", "Healthy", "Synced", "PodScheduled", "Established"}
)
_NORMAL: Final = frozenset({"ContainerCreating", "PodInitializing", "Completed"})


def object_problems(obj: Object) -> tuple[str, ...]:
    """Its bad conditions, each with reason and message; of a pod, what is wrong with its containers first."""
    status = obj.get("status")
    if not isinstance(status, Mapping):
        return ()
    is_pod = obj.get("kind") == "Pod"
    found = [text for _, text in _of_containers(status)] if is_pod else []
    found += _of_conditions(status, scheduling_only=is_pod and bool(found))
    return tuple(dict.fromkeys(found))


def pod_reason(pod: Object) -> str:
    """One word for the state of a pod, as `kubectl get pods` shows it."""
    status: Mapping[str, Any] = pod.get("status") or {}
    if reason := next(filter(None, (reason for reason, _ in _of_containers(status))), None):
        return str(reason)
    scheduled = find_condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return str(scheduled.get("reason") or "Unscheduled")
    return str(status.get("reason") or status.get("phase", ""))


def _of_conditions(status: Mapping[str, Any], *, scheduling_only: bool) -> Iterator[str]:
    """`scheduling_only`: the containers already tell why a pod is not ready."""
    conditions = status.get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if not isinstance(each, Mapping) or (scheduling_only and each.get("type") != "PodScheduled"):
            continue
        type_, value = str(each.get("type")), each.get("status")
        if (type_ in BAD_IF_TRUE and value == "True") or (type_ in BAD_IF_FALSE and value in {"False", "Unknown"}):
            yield _joined(f"{type_} is {value}", each.get("reason"), each.get("message"))


def _of_containers(status: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """The reason of the state of each container that is not well, which may be missing, and a sentence."""
    for which in ("initContainerStatuses", "containerStatuses"):
        statuses = status.get(which)
        for each in statuses if isinstance(statuses, list) else ():
            if isinstance(each, Mapping):
                yield from _of_container(each, is_init=which == "initContainerStatuses")


def _of_container(status: Mapping[str, Any], *, is_init: bool) -> Iterator[tuple[Any, str]]:
    title = f"{'init container' if is_init else 'container'} {status.get('name')}"
    state: Mapping[str, Any] = status.get("state") or {}
    last: Mapping[str, Any] = (status.get("lastState") or {}).get("terminated") or {}
    waiting, ended = state.get("waiting"), state.get("terminated")
    if waiting and (reason := waiting.get("reason")) not in _NORMAL:
        yield reason, _joined(title, reason, waiting.get("message"))
    elif ended and ended.get("exitCode"):
        yield ended.get("reason"), _joined(title, _ended(ended), ended.get("message"))
    elif "running" in state and not is_init and not status.get("ready"):
        yield None, f"{title}: runs, and its readiness probe does not succeed"
    if last:
        restarts = f"{title} has restarted {status.get('restartCount') or 0} times"
        yield None, _joined(restarts, f"the last one {_ended(last)}", last.get("message"))


def _ended(state: Mapping[str, Any]) -> str:
    reason = state.get("reason")
    named = f" ({reason})" if reason not in {None, "Error"} else ""
    return f"ended with exit code {state.get('exitCode')}{named}"


def _joined(title: str, reason: Any, message: Any) -> str:
    return ": ".join(str(part) for part in (title, reason, message) if part)


# -- views -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LastWrite:
    """The last write of a client to an object."""

    manager: str
    operation: str  # Update or Apply
    time: str  # RFC 3339

    @property
    def is_ruleop(self) -> bool:
        return self.manager == RULEOP or self.manager.startswith(PATCH_MANAGER)

    @property
    def title(self) -> str:
        """The client for a line of text: for a child with `patch`, its id in place of two digests."""
        manager = FieldsManager.named(self.manager)
        return f"ruleop's child {manager.child}" if manager is not None else self.manager


@dataclass(frozen=True, slots=True)
class ManagedField:
    """A field that ruleop sets, and its field managers, the latest first. It has none if it does not exist."""

    path: str
    managers: tuple[LastWrite, ...] = ()
    changed: bool = False  # by another client since ruleop wrote it


@dataclass(frozen=True, slots=True)
class RenderedLine:
    """One line of a rendered object: the name of a field, or of a list's item, and its value if it has none below."""

    depth: int
    name: str  # "-" for an item of a list
    value: str | None  # as JSON
    site: Site | None  # the line of the template that it comes from


STATE_WORDS: Final = {
    State.READY: "ready",
    State.PROGRESSING: "not ready",
    State.WAITING: "waiting",
    State.FAILED: "failed",
    State.REFUSED: "name conflict",
    State.UNWANTED: "not desired",
    State.TERMINATING: "is being deleted",
}
"""The states of a plan as people read them. The documents of plans and the metrics have the names of the states."""

_BAD: Final = frozenset({"failed", "name conflict"})


@dataclass(frozen=True, slots=True)
class ObjectView:
    """One object below a custom resource: of a child, or a pod of one."""

    key: ObjectKey
    state: str  # ready, not ready, failed, waiting, ...
    message: str = ""
    child: str = ""  # the id in the rules; empty for a pod
    template: str = field(default="", metadata=HIDDEN)  # of a child that failed or is not desired
    exists: bool = True  # False also if it is unknown, as of a plan alone
    problems: tuple[str, ...] = ()  # conditions and containers that explain why it is not ready
    last_change: LastWrite | None = field(default=None, metadata=NULL)
    fields: tuple[ManagedField, ...] = ()
    pods: tuple[ObjectView, ...] = ()
    rendered: tuple[RenderedLine, ...] | None = None  # if they were asked for; masked

    DERIVED: ClassVar = ("ready",)

    @property
    def ready(self) -> bool:
        return self.state in {"ready", "has its fields"}

    @property
    def tone(self) -> Tone:
        return Tone.GOOD if self.ready else Tone.BAD if self.state in _BAD else Tone.WAIT

    def masked(self, text: Callable[[str], str]) -> ObjectView:
        """The object with this function applied to what others have written: names of fields, and messages."""
        return replace(
            self,
            message=text(self.message),
            problems=tuple(map(text, self.problems)),
            fields=tuple(replace(each, path=text(each.path)) for each in self.fields),
            pods=tuple(each.masked(text) for each in self.pods),
        )


# -- answers of the API server -----------------------------------------------------------------------------------------

MAX_PATHS: Final = 4
"""The number of fields added by the server that are named on the line of a write."""


class Verdict(Enum):
    """The API server's response to the dry run of a write."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNASKED = "unasked"


_WORDS: Final = {
    Verdict.ACCEPTED: "accepted by the server",
    Verdict.REFUSED: "refused by the server",
    Verdict.UNASKED: "cannot be asked",
}


@dataclass(frozen=True, slots=True)
class StoredField:
    """A field that the server stores with another value than it was sent."""

    field: str
    sent: Any
    stored: Any  # None: it is removed

    @classmethod
    def of(cls, change: Difference) -> StoredField:
        return cls(change.path, change.before, None if change.after is NOTHING else change.after)

    def __str__(self) -> str:
        stored = "(removed)" if self.stored is None else shortened(flow(self.stored))
        return f"{self.field}: {shortened(flow(self.sent))} -> {stored}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one write; without an action, why a child that waits cannot be asked about. Texts and values that
    may come from a Secret are masked."""

    verdict: Verdict
    child: str
    action: Action | None = field(default=None, metadata=HIDDEN)
    message: str = ""
    changed: tuple[StoredField, ...] = ()
    added: tuple[str, ...] = ()  # paths of fields that the server adds: defaults, and what webhooks set
    warnings: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """The answer in sentences, the first of which has the verdict."""
        adds = f"; the server adds {listed(self.added, MAX_PATHS)}" if self.added else ""
        message = f": {self.message}" if self.message else ""
        yield f"{_WORDS[self.verdict]}{message}{adds}"
        yield from (f"the server changes {each}" for each in self.changed)
        yield from (f"the server warns: {each}" for each in self.warnings)


# -- custom resources -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadValue:
    """A name that an expression reads, and its current value as text."""

    path: str
    value: str


@dataclass(frozen=True, slots=True)
class WaitView:
    """An object or a condition that one child waits for."""

    child: str
    for_: str
    why: str  # as in `Wait`, or `ready`
    site: Site | None
    expression: str = ""
    values: tuple[ReadValue, ...] = ()


@dataclass(frozen=True, slots=True)
class EventView:
    """An Event about one of the objects."""

    key: ObjectKey
    type: str
    reason: str
    message: str
    time: str  # of the last occurrence
    count: int = 1

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> EventView | None:
        """None if it names no object."""
        about = event.get("involvedObject")
        if not isinstance(about, Mapping):
            return None
        kind = Kind.parse(str(about.get("apiVersion", "")), str(about.get("kind", "")))
        key = ObjectKey(kind.group, kind.kind, about.get("namespace") or "", str(about.get("name", "")))
        series: Mapping[str, Any] = event.get("series") or {}
        times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
        time = next(filter(None, times), None) or event["metadata"].get("creationTimestamp") or ""
        count = series.get("count") or event.get("count") or 1
        type_, reason, message = (str(event.get(name) or "") for name in ("type", "reason", "message"))
        return cls(key, type_, reason, message.strip(), f"{time[:19]}Z" if time else "", count)


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
    generation: int | None = None  # after the last edit of the custom resource
    event: EventView | None = field(default=None, metadata=INLINE)
    revision: str | None = None
    environment: bool | None = None  # whether the revision reads variables
    held_back: bool | None = None  # whether a rollout has not brought the revision to the custom resource
    again: bool = field(default=False, metadata=HIDDEN)  # whether the revision was in force before


@dataclass(frozen=True, slots=True)
class ResourceView:
    """A custom resource, its objects, the plan of its next pass, and what explains their state."""

    obj: Object  # as the API server has it or would store it
    plan: Plan | None = None
    chosen: Rule | None = None  # None: no rule selects it
    error: str = ""  # why there is no plan
    answers: tuple[Answer, ...] = ()  # of the API server to a dry run
    number: int = 0  # of the pass, if there are several
    kinds: Kinds | None = None  # of the plan
    now: str = ""
    found: tuple[ObjectView, ...] | None = None  # None: only the plan knows objects
    events: tuple[EventView, ...] = ()  # the latest first
    changes: tuple[PastChange, ...] = ()  # of `history`, the oldest first
    operator: str = ""  # what is known about the operator, as a sentence
    notes: tuple[str, ...] = ()  # what is not shown, and why

    def __post_init__(self) -> None:
        if self.plan is not None:
            object.__setattr__(self, "plan", _with_masked_texts(self.plan))

    @property
    def key(self) -> ObjectKey:
        return ObjectKey.of(self.obj)

    @property
    def title(self) -> str:
        _, kind, namespace, name = self.key
        return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"

    @property
    def errors(self) -> tuple[Problem, ...]:
        return self.plan.problems if self.plan is not None else ()

    @property
    def objects(self) -> tuple[ObjectView, ...]:
        """Of a plan alone, the objects in the order of the rules, with their states after the pass. Which of them
        exist, it does not show."""
        if self.found is not None or self.plan is None:
            return self.found or ()
        return tuple(found for report in self.plan.children for found in _reported_objects(report, self))

    @property
    def ready(self) -> bool:
        return self.state == "ready"

    @property
    def state(self) -> str:
        return self._state()[0]

    @property
    def message(self) -> str:
        return self._state()[1]

    @property
    def tone(self) -> Tone:
        return self._state()[2]

    @property
    def rule(self) -> str | None:
        """None: there are no rules, or none selects the resource."""
        if self.plan is not None:
            return self.plan.rule
        return self.chosen.title if self.chosen is not None else None

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(f"{each.child}: {each.message}" for each in distinct(self.errors))

    @property
    def waits(self) -> tuple[WaitView, ...]:
        return tuple(_waits(self.plan)) if self.plan is not None else ()

    @property
    def conditions(self) -> list[Any]:
        found = (self.obj.get("status") or {}).get("conditions")
        return found if isinstance(found, list) else []

    def _state(self) -> tuple[str, str, Tone]:
        """State, message and tone by the condition Ready; by that of the plan if the rule writes no status."""
        ready, plan = find_condition(self.obj, "Ready"), self.plan
        message = str(ready.get("message", ""))
        if self.obj["metadata"].get("deletionTimestamp"):
            return "is being deleted", message, Tone.WAIT
        if not ready and plan is not None and plan.status is None and plan.conditions is not None:
            planned = plan.conditions.ready
            if planned.status == "True":
                return "ready", planned.message, Tone.GOOD
            return planned.reason, planned.message, Tone.WAIT
        if not ready:
            return "without a condition Ready", "", Tone.WAIT
        if is_ready(self.obj):
            return "ready", "", Tone.GOOD
        is_stalled = find_condition(self.obj, "Stalled").get("status") == "True"
        return str(ready.get("reason", "")), message, Tone.BAD if is_stalled else Tone.WAIT


def is_ready(obj: Object) -> bool:
    """Whether Ready is True for the current generation."""
    ready, metadata = find_condition(obj, "Ready"), obj["metadata"]
    return (
        ready.get("status") == "True"
        and ready.get("observedGeneration", metadata.get("generation")) == metadata.get("generation")
        and not metadata.get("deletionTimestamp")
    )


# -- without rules -----------------------------------------------------------------------------------------------------


def view_of_objects(obj: Object, children: Iterable[Object], patched: Iterable[Object] = ()) -> ResourceView:
    """A custom resource above its children and the objects of others that have its fields, by what these say alone, so
    that a cluster in memory and a real one give the same."""
    label = part_of(obj)
    objects = [object_view(each) for each in children]
    for each in patched:
        child = next((found.child for found in managers_on(each) if found.part_of == label), "")
        objects.append(ObjectView(ObjectKey.of(each), "has its fields", child=child))
    return ResourceView(obj, found=tuple(sorted(objects, key=lambda found: found.key[1:])))


def object_view(obj: Object) -> ObjectView:
    """An object by its own status."""
    found, record = readiness(obj), read_record(obj)
    key, child = ObjectKey.of(obj), record.id if record is not None else ""
    if found.ready:
        spec, status = obj.get("spec"), obj.get("status")
        pods = ""
        if isinstance(spec, dict) and isinstance(status, dict) and "replicas" in spec:
            pods = f"{status.get('readyReplicas', 0)} of {spec['replicas']} pods"
        return ObjectView(key, "ready", pods or found.message, child)
    message = f"{found.message}: {found.detail}" if found.detail else found.message
    return ObjectView(key, "failed" if found.failed else "not ready", message, child)


# -- of a plan ---------------------------------------------------------------------------------------------------------
# A plan as a view of its custom resource: the objects with their states after the pass, and what is waited for.


def _with_masked_texts(plan: Plan) -> Plan:
    text = plan.masks.text
    return replace(
        plan,
        waits=tuple(replace(wait, for_what=text(wait.for_what)) for wait in plan.waits),
        blocking=tuple(
            replace(each, values=tuple((path, text(value)) for path, value in each.values)) for each in plan.blocking
        ),
        problems=tuple(replace(problem, message=text(problem.message)) for problem in plan.problems),
        children=tuple(
            replace(
                child,
                message=text(child.message),
                objects=tuple(replace(each, message=text(each.message)) for each in child.objects),
            )
            for child in plan.children
        ),
        conditions=plan.conditions.with_messages(text) if plan.conditions is not None else None,
        events=tuple(replace(event, message=text(event.message)) for event in plan.events),
    )


def _reported_objects(report: ChildReport, view: ResourceView) -> Iterator[ObjectView]:
    for each in report.objects:
        message = wait_message(each.message) if each.state is State.WAITING else each.message
        yield ObjectView(each.key, STATE_WORDS[each.state], message, report.id, _template_of(report), exists=False)
    if not report.objects:
        yield view_without_object(report, view)


def view_without_object(report: ChildReport, view: ResourceView) -> ObjectView:
    """A child that has no object in the plan: it waits, cannot be rendered, or is not desired."""
    every_child = view.chosen.every_child if view.chosen is not None else ()
    child = next((each for each in every_child if each.id == report.id), None)
    kinds = {kind.versionless for kind in child.kinds} if child is not None else set()
    kind = kinds.pop() if len(kinds) == 1 else GroupKind("", "")
    key = ObjectKey(*kind, view.obj["metadata"].get("namespace") or "", "")
    message = wait_message(report.message) if report.state is State.WAITING else report.message
    return ObjectView(key, STATE_WORDS[report.state], message, report.id, _template_of(report), exists=False)


def _template_of(report: ChildReport) -> str:
    return report.template if report.state in {State.FAILED, State.UNWANTED} else ""


def wait_message(text: str) -> str:
    """The message of a child or an object that waits. Its `waitFor` is among the waits."""
    text = text.removeprefix("waits for ")
    return "waitFor is not true" if text.startswith("waitFor: ") else f"waits for {text}" if text else ""


def _waits(plan: Plan) -> Iterator[WaitView]:
    """The waits, and the `readyWhen` that are not true, each with what its expression reads."""
    blocking = {(each.child, each.key): each for each in plan.blocking}
    states = {each.id: each for each in plan.children}
    for wait in plan.waits:
        waited = blocking.get((wait.child, "waitFor"))
        if waited is not None and wait.is_at(waited.site):
            del blocking[wait.child, "waitFor"]
            yield _wait_of(wait.child, wait.for_what, wait.why, wait.site, waited)
        else:
            values = tuple(ReadValue(*each) for each in _value_of(wait, states))
            yield WaitView(wait.child, wait.for_what, wait.why, wait.site, values=values)
    for each in blocking.values():
        if each.key == "readyWhen":
            yield _wait_of(each.child, f"readyWhen: {each.expression}", "ready", each.site, each)


def _wait_of(child: str, for_: str, why: str, site: Site | None, found: Blocking) -> WaitView:
    return WaitView(child, for_, why, site, found.expression, tuple(ReadValue(*each) for each in found.values))


def _value_of(wait: Wait, states: dict[str, ChildReport]) -> Iterator[tuple[str, str]]:
    """The state of the child, or the object, that another one waits for."""
    if wait.why == "object" and wait.for_what.endswith(")"):
        yield wait.for_what.rpartition("(")[2].removesuffix(")"), "does not exist"
    other = wait.for_what.partition(" ")[0].partition(".")[0]
    report = states.get(other) if wait.why in {"child", "value"} else None
    if report is None:
        return
    unready = [each for each in report.objects if each.state is not State.READY]
    titles = [f"{each.key.kind}/{each.key.name}: {each.message}".removesuffix(": ") for each in unready[:3]]
    yield report.id, "; ".join([STATE_WORDS[report.state], *titles])
