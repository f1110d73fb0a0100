"""Runs the steps of a case without a cluster, by the operator's own planning.

Rendered objects that the API server would reject are found by the schemas of their kinds: without a cluster nothing
else would notice a port in quotes. Most cases of a project render the same objects, so what was checked once is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.authoring.checking.refused_objects import with_violations
from ruleop.authoring.offline import identified, prepare
from ruleop.authoring.ruletests.case_cluster import CaseCluster, CaseKinds
from ruleop.authoring.ruletests.state import Action, After, Error, Provenance, described, named, owned
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.kubernetes.merge import canonical
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.language.secrets.masks import NO_MASKS, Masks
from ruleop.planning import History, Observed, Plan, ResourceAction, choose_rule, plan, readiness
from ruleop.planning.changes import verb_of
from ruleop.planning.model.marks import Owner
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.errors import Site
    from ruleop.language.rules import Project, Rule
    from ruleop.language.templates import FieldPath
    from ruleop.planning import Problem


# -- ready statuses ----------------------------------------------------------------------------------------------------
# An example of a ready object of each kind that `readiness` knows: the status that its controller writes.
#
# Tests of rules give it to children that they call ready, and the tests of readiness hold the examples to its rules.


class Copied(NamedTuple):
    """A value of the object itself. Without a default, the field is left out where the object has no such value."""

    path: tuple[str, ...]
    default: Any = None


def _true(*types: str) -> dict[str, Any]:
    return {"conditions": [{"type": each, "status": "True"} for each in types]}


_SEEN: Final = {"observedGeneration": Copied(("metadata", "generation"))}
_PODS: Final = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
_REPLICAS: Final = {**_SEEN, **dict.fromkeys(_PODS, Copied(("spec", "replicas"), 1))}
_NODES: Final = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable")
_TIME: Final = "1970-01-01T00:00:00Z"

READY_STATUSES: Final[Mapping[GroupKind, Mapping[str, Any]]] = {
    GroupKind("apps", "Deployment"): {**_REPLICAS, **_true("Available", "Progressing")},
    GroupKind("apps", "StatefulSet"): {
        **_REPLICAS,
        **dict.fromkeys(("currentRevision", "updateRevision"), Copied(("status", "updateRevision"), "revision")),
    },
    GroupKind("apps", "DaemonSet"): {**_SEEN, **dict.fromkeys((*_NODES, "numberReady"), 1), "numberMisscheduled": 0},
    GroupKind("apps", "ReplicaSet"): _REPLICAS,
    GroupKind("batch", "Job"): {
        **dict.fromkeys(("startTime", "completionTime"), _TIME),
        "succeeded": Copied(("spec", "completions"), 1),
        **_true("Complete"),
    },
    GroupKind("", "Pod"): {"phase": "Running", **_true("Ready")},
    GroupKind("", "PersistentVolumeClaim"): {"phase": "Bound", "capacity": Copied(("spec", "resources", "requests"))},
    GroupKind("", "Service"): {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    GroupKind("", "Namespace"): {"phase": "Active"},
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): _true("NamesAccepted", "Established"),
    GroupKind("apiregistration.k8s.io", "APIService"): _true("Available"),
    GroupKind("policy", "PodDisruptionBudget"): {
        **_SEEN,
        **dict.fromkeys(("currentHealthy", "desiredHealthy", "expectedPods"), 1),
        "disruptionsAllowed": 0,
    },
}


def made_ready(obj: Object, shape: Shape = UNKNOWN) -> Object:
    """The object with the status of a ready one; unchanged if it is ready already."""
    if readiness(obj, shape).ready:
        return obj
    status = obj.get("status") or {}
    example = READY_STATUSES.get(Kind.of(obj).versionless) or _by_conditions(status)
    return {**obj, "status": {**status, **_filled(example, obj)}}


def _filled(example: Any, obj: Object) -> Any:
    """The example with the values that are copied from the object. A field without a value is left out."""
    if isinstance(example, Copied):
        value: Any = obj
        for name in example.path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return example.default if value is None else value
    if isinstance(example, Mapping):
        found = {name: _filled(each, obj) for name, each in example.items()}
        return {name: each for name, each in found.items() if each is not None}
    return [_filled(each, obj) for each in example] if isinstance(example, list) else example


def _by_conditions(status: Mapping[str, Any]) -> dict[str, Any]:
    """The status of another kind: Ready, or Available if that is the condition that it has."""
    conditions = [each for each in status.get("conditions") or () if isinstance(each, dict)]
    types = {each.get("type") for each in conditions}
    type_ = "Available" if "Available" in types and "Ready" not in types else "Ready"
    others = [each for each in conditions if each.get("type") != type_]
    found: dict[str, Any] = {"conditions": [*others, {"type": type_, "status": "True", **_SEEN}]}
    return {**found, **_SEEN} if "observedGeneration" in status else found


# -- plan mode ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Admission:
    """The checks of one project."""

    project: Project
    _known: dict[bytes, tuple[Problem, ...]] = field(default_factory=dict)

    def problems(self, plan: Plan, rule: Rule) -> tuple[Problem, ...]:
        """A problem for each field that the API server would reject or drop."""
        if not plan.rendered:
            return ()
        key = canonical([rule.digest, [[id_, obj] for id_, _, obj in plan.rendered]])
        found = self._known.get(key)
        if found is None:
            checked = with_violations(plan, rule, self.project)
            found = self._known[key] = checked.problems[len(plan.problems) :]
        return found


MOST_PASSES: Final = 20
RESTLESS: Final = f"each of {MOST_PASSES} passes writes something, so the operator would never stop"
NOT_SELECTED: Final = "not selected by any rule (see selector and namespaces)"


class PlanMode:
    """One case in the making."""

    def __init__(self, project: Project, kinds: CaseKinds, admission: Admission) -> None:
        self.project = project
        self.kinds = kinds
        self.admission = admission
        self.cluster = CaseCluster(kinds)
        self.key = ObjectKey("", "", "", "")
        self.invalid: tuple[Error, ...] = ()  # why the API server would reject the CR
        self.last: Plan | None = None
        self.rule: Rule | None = None
        self._history = History.NONE
        self._owner: Owner | None = None
        self.items: dict[ObjectKey, str] = {}  # the names of objects by their items, also of deleted ones
        self._restless = False  # each pass of the last step has written something
        self._provenance: Provenance | None = None  # of the last step, once a field has been asked for

    # -- what a step changes -------------------------------------------------------------------------------------------

    def create(self, resource: Object) -> None:
        """Creates the CR."""
        self._store(identified(resource, self.cluster.objects.values(), self.kinds))

    def edit(self, resource: Object) -> None:
        """The CR as a user has changed it."""
        self._store(resource, before=self.resource)

    def _store(self, resource: Object, before: Object | None = None) -> None:
        stored, findings = prepare(self.project, resource, before, now=self.cluster.now)
        self.invalid = tuple(Error(str(finding)) for finding in findings)
        if not findings:
            self.key = ObjectKey.of(stored)
            self._owner = Owner.of(stored)
            self.cluster.put(stored)

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self.cluster.time += seconds

    @property
    def resource(self) -> Object | None:
        """The CR; None if it does not exist."""
        return self.cluster.objects.get(self.key)

    def add(self, obj: Object) -> None:
        """Creates another object, or changes the existing one to it."""
        self.cluster.add(obj)

    def objects_of(self, name: str) -> list[Object]:
        """The objects of a child by its id, or an object by Kind/name."""
        if "/" in name:
            return named(self.cluster.objects.values(), name)
        return [obj for id_, key, obj in self._owned() if name in {id_, self.items.get(key)}]

    def change(self, obj: Object, patch: Mapping[str, Any]) -> None:
        """Changes an object, as a user or a controller does."""
        self.cluster.change(ObjectKey.of(obj), patch)

    def remove(self, obj: Object) -> None:
        """Deletes an object other than the CR."""
        self.cluster.delete(ObjectKey.of(obj))

    def reject(self, names: Iterable[str]) -> None:
        """The API server rejects writes of these children until the next step."""
        self.cluster.rejected = frozenset(names)

    def make_ready(self, names: Iterable[str] | None) -> None:
        """Controllers make these children ready, or all."""
        everything = [obj for _, _, obj in self._owned()]
        objects = everything if names is None else [obj for name in names for obj in self.objects_of(name)]
        for obj in objects:
            ready = made_ready(obj, self.kinds.shape_of(Kind.of(obj)))
            if ready is not obj:
                self.cluster.put(ready)

    def _owned(self) -> list[tuple[str, ObjectKey, Object]]:
        """The objects of the CR, with the ids of their children."""
        return [*owned(self.cluster.objects.values(), self._owner)] if self._owner is not None else []

    def delete(self) -> None:
        """Somebody deletes the CR."""
        if self.resource is not None:
            self.cluster.delete(self.key)

    # -- passes --------------------------------------------------------------------------------------------------------

    def reconcile(self, *, ready: bool = False) -> None:
        """Passes until nothing is left to do. `ready`: with controllers that make each child ready."""
        for _ in self.passes(ready=ready):
            pass

    def passes(self, *, ready: bool = False) -> Iterator[int]:
        """The same, with the number of each pass before it is made. The last one has nothing to do, unless each of them
        writes something."""
        self.cluster.writes.clear()
        self._provenance = None
        self._restless = False
        for number in range(1, MOST_PASSES + 1):
            yield number
            if not self._pass():
                before = dict(self.cluster.objects)
                if ready:
                    self.make_ready(None)
                if self.cluster.objects == before:
                    return
        self._restless = True

    def _pass(self) -> bool:
        """One pass. False if nothing was left to do."""
        resource = self.resource
        if resource is None or self.invalid:
            return False
        self.rule = choose_rule(self.project.rules, resource)
        if self.rule is None:
            return False
        self.last = found = self._plan(self.rule, resource)
        self.items |= found.items
        wrote = False
        if found.actions:
            outcome = self.cluster.execute(found.actions)
            wrote = any(action.key not in outcome.failed for action in found.actions)
            resource = self.resource
            if resource is None:
                return True
            self._history = self._history.after(found, outcome, 0.0)
            self.last = found = self._plan(self.rule, resource)
        # Time does not advance between steps, so drift is never reverted too often.
        self._history = replace(self._history.after(found, None, 0.0), drift={})
        if found.status is not None and found.status.patch is not None:
            wrote = True
            try:
                self.cluster.write_status(self.key, found.status.patch)
            except RuleopError as error:
                if not found.status.projected:
                    raise
                self._history = self._history.status_refused(found, str(error), 0.0)
        return wrote

    def _plan(self, rule: Rule, resource: Object, *, masks: bool = False) -> Plan:
        observed = Observed(self.cluster.fixed, self.kinds, now=self.cluster.now)
        return plan(rule, resource, observed, self._history, predict_status=False, masks=masks, items=True)

    @property
    def restless(self) -> bool:
        return self._restless

    def next_plan(self, rule: Rule, resource: Object) -> Plan:
        """The plan of the next pass as it can be shown."""
        observed = Observed(self.cluster.fixed, self.kinds, now=self.cluster.now)
        found = plan(rule, resource, observed, self._history)
        return with_violations(replace(found, items={**self.items, **found.items}), rule, self.project)

    def _masks(self) -> Masks:
        if self.rule is None or self.resource is None:
            return NO_MASKS
        return self._plan(self.rule, self.resource, masks=True).masks

    def source(self, key: ObjectKey, path: FieldPath) -> Site | None:
        """The place in the project's files that a field comes from: of a child's object, or of the CR's status."""
        resource, rule = self.resource, self.rule
        if resource is None or rule is None:
            return None
        if self._provenance is None:
            self._provenance = Provenance(rule, lambda: self._plan(rule, resource))
        return self._provenance.of(key, path, self.key, self._owned())

    # -- the result ----------------------------------------------------------------------------------------------------

    def after(self) -> After:
        """The state now."""
        found = self.last
        if self.invalid or found is None or self.rule is None:
            errors = self.invalid or ((Error(NOT_SELECTED),) if self.resource is not None else ())
            return After(self.rule, self._owner, self.resource, dict(self.cluster.objects), errors=errors)
        return After(
            rule=self.rule,
            owner=self._owner,
            resource=self.resource,
            objects=dict(self.cluster.objects),
            actions=tuple(
                Action(
                    verb_of(each).do,
                    "" if isinstance(each, ResourceAction) else each.child,
                    each.key,
                    self.items.get(each.key, ""),
                )
                for each in self.cluster.writes
            ),
            waits=found.waits,
            errors=(*self._errors(found, self.rule), *((Error(RESTLESS),) if self._restless else ())),
            conditions=tuple(each.as_json() for each in found.conditions or ()),
            reports={child.id: described(child.state, child.message) for child in found.children},
            rendered=found.rendered,
            masks=self._masks,
            items=self.items,
        )

    def _errors(self, found: Plan, rule: Rule) -> Iterator[Error]:
        """The errors of the last pass. For an invalid object the server's is left out: others have their lines."""
        invalid = self.admission.problems(found, rule)
        explained = {each.child for each in invalid}
        for each in (*found.problems, *invalid):
            if each.reason != "ApplyFailed" or each.child not in explained:
                yield Error(each.message, each.child, each.site)
