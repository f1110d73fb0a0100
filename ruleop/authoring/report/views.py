"""The model of what is reported about a custom resource, for `explain`, `plan`, `dev` and the page.

A view is made from what is known: of a plan by `plan_views`, with what a cluster knows by `explain`, without rules by
`view_of_objects`. Each form is made from the view alone: text by `plan_text` and `explain_text`, JSON by `documents`
and `plan_documents`, HTML by the templates of the page. Values of Secrets are masked when a view is made. The names of
fields are those of the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ruleop.authoring.report.documents import HIDDEN, NULL
from ruleop.authoring.report.plan_documents import plan_document
from ruleop.authoring.report.planned import Planned
from ruleop.authoring.report.spans import Tone
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.names import PATCH_MANAGER
from ruleop.planning.child.existing import read_record
from ruleop.planning.child.readiness import readiness
from ruleop.planning.model.actions import distinct
from ruleop.planning.model.conditions import find_condition
from ruleop.planning.model.managers import FieldsManager, managers_on
from ruleop.planning.model.marks import RULEOP, part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object
    from ruleop.planning import Plan
    from ruleop.planning.model.observed import Kinds


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


_BAD: Final = frozenset({"failed", "refused", "name conflict"})


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


@dataclass(frozen=True, slots=True)
class ResourceIdentity:
    """The identity of a custom resource, and how far the operator has come with it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    generation: int | None
    observed_generation: int | None

    @classmethod
    def of(cls, obj: Object) -> ResourceIdentity:
        metadata, status = obj["metadata"], obj.get("status")
        observed = status.get("observedGeneration") if isinstance(status, Mapping) else None
        name, uid, generation = metadata["name"], metadata.get("uid", ""), metadata.get("generation")
        return cls(obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), name, uid, generation, observed)


@dataclass(frozen=True, slots=True)
class ResourceView:
    """A custom resource, its objects, and what explains their state."""

    planned: Planned = field(metadata=HIDDEN)
    kinds: Kinds | None = field(default=None, metadata=HIDDEN)
    now: str = field(default="", metadata=HIDDEN)
    waits: tuple[WaitView, ...] = ()
    objects: tuple[ObjectView, ...] = ()
    events: tuple[EventView, ...] = ()  # the latest first
    operator: str = ""  # what is known about the operator, as a sentence
    notes: tuple[str, ...] = ()  # what is not shown, and why

    DERIVED: ClassVar = ("resource", "ready", "state", "message", "rule", "problems", "conditions", "next")

    @property
    def obj(self) -> Object:
        return self.planned.resource

    @property
    def plan(self) -> Plan | None:
        return self.planned.plan

    @property
    def resource(self) -> ResourceIdentity:
        return ResourceIdentity.of(self.obj)

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
        rule = self.planned.rule
        return self.plan.rule if self.plan is not None else rule.title if rule is not None else None

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(f"{each.child}: {each.message}" for each in distinct(self.planned.problems))

    @property
    def conditions(self) -> list[Any]:
        found = (self.obj.get("status") or {}).get("conditions")
        return found if isinstance(found, list) else []

    @property
    def next(self) -> dict[str, Any] | None:
        return plan_document(self.planned) if self.plan is not None else None

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
    return ResourceView(Planned(obj), objects=tuple(sorted(objects, key=lambda found: found.key[1:])))


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
