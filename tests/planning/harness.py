"""A project from strings, and a small cluster in memory that executes plans and checks every precondition.

`Harness` reconciles one CR: `step` is one pass (plan, write, plan again with the answers, write the status), `settle`
repeats passes until one has nothing to do. Its API server sets uid, resourceVersion and generation, follows
ownerReferences, and sets no defaults.
"""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ruleop.authoring.offline import OfflineKinds
from ruleop.authoring.ruletests.case_cluster import carry_out
from ruleop.authoring.ruletests.plan_mode import READY_STATUSES, made_ready
from ruleop.errors import Cause
from ruleop.kubernetes.crd import default, drop_unknown
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.kubernetes.merge import create_fields, three_way
from ruleop.language.rules import Observe, Project, Rule
from ruleop.language.rules.checking import build_with_sources
from ruleop.language.rules.transfer import from_parts, to_parts
from ruleop.localcluster.objects.server_side_apply import ApplyConflictError, Tracking, ignored_fields, track_update
from ruleop.localcluster.objects.server_side_apply import apply as apply_managed
from ruleop.planning import (
    Action,
    AddFinalizer,
    Create,
    Delete,
    Event,
    Expire,
    Failed,
    Failure,
    FixedObjects,
    History,
    KindInfo,
    Observed,
    Outcome,
    Patch,
    Plan,
    RemoveFinalizer,
    Requeue,
    Served,
    ServerSideApply,
    plan,
)
from ruleop.planning.history import Refusal, Writes
from ruleop.planning.model.actions import RESYNC
from ruleop.planning.model.marks import Owner, Proofs, claim_on
from tests.definitions import definition
from tests.patching import patched

FINALIZER = "ruleop.dev/ruleop"
CR = ObjectKey("example.com", "App", "shop", "web")
HEAD = "- group: example.com\n  version: v1\n  kind: App\n"
APP, GLOBAL = definition("App"), definition("Global", scope="Cluster")


def project(body: str, head: str = HEAD, **files: str) -> Project:
    """A watch of App with this body, as the operator gets it from the process that loads rules. `files` are templates:
    config="..." is templates/config.yaml."""
    templates = {f"templates/{name}.yaml": textwrap.dedent(text).lstrip("\n") for name, text in files.items()}
    watches = head + textwrap.indent(textwrap.dedent(body).strip("\n"), "  ") + "\n"
    crds = {"crds/apps.yaml": APP}
    if "Global" in watches + "".join(templates.values()):
        crds["crds/globals.yaml"] = GLOBAL
    loaded = build_with_sources({"watches.yaml": watches, **crds, **templates}, root="/p", environ={})
    return replace(from_parts(to_parts(loaded.for_operator())), crds=loaded.project.crds)


def rule(body: str, **files: str) -> Rule:
    (only,) = project(body, **files).rules
    return only


def app(spec: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "cr-1",
            "resourceVersion": "1",
            "generation": 1,
            **metadata,
        },
        "spec": dict(spec or {}),
    }


def config(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop", **metadata},
        "data": dict(data or {}),
    }


RESYNCED = Requeue(36000.0, RESYNC)
"""The requeue of a CR that is reconciled by its period only."""


def key(name: str, kind: str = "ConfigMap", namespace: str = "shop", group: str = "") -> ObjectKey:
    return ObjectKey(group, kind, namespace, name)


@dataclass
class Harness:
    project: Project
    resource: dict[str, Any] | None
    objects: dict[ObjectKey, dict[str, Any]] = field(default_factory=dict)
    served: dict[str, Served] = field(default_factory=dict)  # by kind, or version and kind
    infos: dict[str, KindInfo] = field(default_factory=dict)  # by kind
    shown: dict[Kind, tuple[KindInfo, KindInfo]] = field(default_factory=dict)  # as found, and with its state
    refuse: dict[ObjectKey, Failed] = field(default_factory=dict)  # writes that the server rejects
    history: History = History.NONE
    sent: dict[ObjectKey, dict[str, Any]] = field(default_factory=dict)  # the fields of ruleop's field manager
    events: list[Event] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    now: str = "2026-01-01T00:00:00Z"
    seed: bytes = b"seed"
    held_until: str = ""
    namespace_terminating: bool = False
    proofs: Proofs | None = None  # None: as offline
    resources: dict[str, ObjectKey] = field(default_factory=dict)  # other CRs, by their labels
    patched: frozenset[ObjectKey] | None = None  # by the inventory; None: there is none
    remembers: bool = True  # whether the history keeps the reason of Ready between passes
    counter: int = 100

    @classmethod
    def of(cls, body: str, spec: Mapping[str, Any] | None = None, *, head: str = HEAD, **files: str) -> Harness:
        return cls(project(body, head, **files), app(spec))

    def __post_init__(self) -> None:
        self.offline = OfflineKinds(self.project)

    # -- the observed cluster ------------------------------------------------------------------------------------------

    def info(self, kind: Kind) -> KindInfo:
        found = self.infos.get(kind.kind) or self.offline.info(kind)
        state = self.served.get(str(kind), self.served.get(kind.kind, found.state))
        known = self.shown.get(kind)  # the same object until it changes, as in the operator
        if known is None or known[0] is not found or known[1].state is not state:
            known = self.shown[kind] = found, replace(found, state=state, served=state is not Served.UNSERVED)
        return known[1]

    def state_of(self, observe: Observe) -> Served:
        return self.info(observe.kind).state

    def observed(self, **more: Any) -> Observed:
        hidden = {name for name, state in self.served.items() if state is not Served.SYNCED}
        seen = [obj for obj in self.objects.values() if obj["kind"] not in hidden]
        values: dict[str, Any] = {
            "now": self.now,
            "seed": self.seed,
            "held_until": self.held_until,
            "namespace_terminating": self.namespace_terminating,
            "proofs": self.proofs,
            "patched": self.patched,
            "resource_of": self.resources.get,
        }
        return Observed(FixedObjects(seen), self, **{**values, **more})

    @property
    def rule(self) -> Rule:
        return self.project.rules[0]

    def plan(self, history: History | None = None, *, predict_status: bool = True, **more: Any) -> Plan:
        assert self.resource is not None
        history = self.history if history is None else history
        return plan(self.rule, self.resource, self.observed(**more), history, predict_status=predict_status)

    def plan_status(self, failed: Mapping[ObjectKey, Failed] | None = None, *, done: Iterable[Action] = ()) -> Plan:
        """The status plan after the writes of a pass."""
        digests = {each.key: each.desired_digest for each in done if isinstance(each, Create | Patch)}
        return self.plan(replace(self.history, writes=Writes(failed or {}, digests)))

    def refused_before(self, failed: Mapping[ObjectKey, Failed]) -> None:
        """Records writes of an earlier pass that the server rejected permanently."""
        self.history = replace(self.history, refusals={key_: Refusal(each, "", 0.0) for key_, each in failed.items()})

    # -- a pass --------------------------------------------------------------------------------------------------------

    def step(self, *, crash_after: int | None = None, delays_status: bool = False) -> Plan:
        """One pass. `crash_after`: the number of writes before the operator crashes and loses its history.
        `delays_status`: it ends after its writes, as while children of other CRs are being written."""
        planned = self.plan()
        if crash_after is not None:
            self.execute(planned.actions[:crash_after])
            self.history = History.NONE
            return planned
        outcome = self.execute(planned.actions)
        if self.resource is None:
            self.events.extend(planned.events)
            return planned
        last = planned
        if planned.actions:
            self.history = self.history.after(planned, outcome, 0.0)
            if delays_status:
                self.history = replace(self.history.before_writes(), drift={})
                return planned
            last = self.plan()
        self.write_status(last)
        self.events.extend(last.events)
        self.history = self.history.after(last, None, 0.0)
        # Time does not advance here, and a test that reverts a field six times expects no field conflict.
        self.history = replace(self.history, drift={}, **({} if self.remembers else {"reason": ""}))
        self.collect()
        return planned

    def settle(self, passes: int = 12, *, controllers: bool = True) -> int:
        """Repeats passes until nothing is left to do; returns their number."""
        for number in range(passes):
            if controllers:
                self.controllers()
            planned = self.step()
            if self.resource is None or (
                planned.quiet and not (planned.requeue_after and planned.requeue_after.seconds == 0)
            ):
                return number
        raise AssertionError(f"still busy after {passes} passes: {planned.actions} {planned.status}")

    def execute(self, actions: Iterable[Action]) -> Outcome:
        return carry_out(actions, self.info, self._carry_out)

    def _carry_out(self, action: Action) -> Object | Failed | None:
        return self.do(action) or self.objects.get(action.key)

    def do(self, action: Action) -> Failed | None:
        assert self.resource is not None
        match action:
            case AddFinalizer():
                self.patch_resource({"finalizers": [*self.finalizers, action.finalizer]})
                self.writes.append("add finalizer")
                return None
            case RemoveFinalizer():
                assert all(not claim.annotated for claim in map(self.claim, list(self.objects)) if claim.owned), (
                    "something would be left behind"
                )
                self.patch_resource({"finalizers": [each for each in self.finalizers if each != action.finalizer]})
                self.writes.append("remove finalizer")
                self.collect()
                return None
        self.writes.append(f"{type(action).__name__} {action.key.kind}/{action.key.name}")
        if action.key in self.refuse:
            return self.refuse[action.key]
        if isinstance(action, Expire):
            self.end()
            return None
        live = self.objects.get(action.key)
        if isinstance(action, Create):
            if live is not None:
                return Failed(Failure.EXISTS, "already exists")
            assert "uid" not in action.object["metadata"]
            self.put(action.object, fresh=True)
            return None
        assert live is not None
        if isinstance(action, ServerSideApply) and action.manager:
            return self.apply_fields(live, action)
        assert self.claim(action.key).owned or (isinstance(action, Patch) and action.why == "adopted"), (
            f"{action.key} is not ours"
        )
        match action:
            case Patch():
                assert action.patch["metadata"]["uid"] == live["metadata"]["uid"]
                assert action.patch["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]
                self.put(patched(live, action.patch))
            case ServerSideApply():
                assert action.object["metadata"]["uid"] == live["metadata"]["uid"]
                self.put(self.applied(live, action))
            case Delete():
                assert action.live["metadata"]["uid"] == live["metadata"]["uid"]
                assert action.live["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]
                self.delete(action.key)
        return None

    def applied(self, live: dict[str, Any], action: ServerSideApply) -> dict[str, Any]:
        """The object after an apply, given ruleop's last apply. The first one migrates all fields that ruleop owns."""
        shape = self.info(Kind.of(live)).shape
        before = create_fields(self.sent.get(action.key) or {}, shape)
        self.sent[action.key] = copy.deepcopy(dict(action.object))
        return dict(three_way(live, action.object, before, shape).object)

    def apply_fields(self, live: dict[str, Any], action: ServerSideApply) -> Failed | None:
        """An apply to an object of another owner, with the managers of all fields."""
        assert action.object["metadata"]["uid"] == live["metadata"]["uid"]
        config = {**action.object, "metadata": {k: v for k, v in action.object["metadata"].items() if k != "uid"}}
        try:
            found = apply_managed(
                live, config, self.tracking(live), manager=action.manager, now=self.now, force=action.force
            )
        except ApplyConflictError as conflict:
            causes = tuple(
                Cause(each.field, "FieldManagerConflict", each.message)
                for each in (one.as_cause() for one in conflict.conflicts)
            )
            return Failed(Failure.HELD, str(conflict), action.desired_digest, "", causes)
        if found is not live:
            self.put(found)
        return None

    def tracking(self, obj: Object) -> Tracking:
        kind = Kind.of(obj)
        ignored = ignored_fields(kind.group, kind.kind, has_status=True)
        return Tracking(kind.api_version, self.info(kind).shape, "", ignored)

    def add_as(self, manager: str, obj: Object) -> None:
        """Creates an object of another owner, whose manager is recorded."""
        self.add(track_update(None, obj, self.tracking(obj), manager=manager, now=self.now))

    def change_as(self, manager: str, key_: ObjectKey, patch: Mapping[str, Any]) -> None:
        """A change whose manager is recorded."""
        live = self.objects[key_]
        new = patched(live, patch)
        self.put(track_update(live, new, self.tracking(live), manager=manager, now=self.now))

    def claim(self, key_: ObjectKey) -> Any:
        assert self.resource is not None
        return claim_on(self.objects[key_], key_, Owner.of(self.resource, self.proofs))

    def put(self, obj: Object, *, fresh: bool = False) -> dict[str, Any]:
        found = copy.deepcopy(dict(obj))
        key_ = ObjectKey.of(found)
        before = self.objects.get(key_)
        self.counter += 1
        metadata = found["metadata"] = {**found["metadata"], "resourceVersion": str(self.counter)}
        if fresh:
            metadata["uid"] = f"uid-{self.counter}"
            self.sent[key_] = copy.deepcopy(dict(obj))
        changed = before is None or {k: v for k, v in before.items() if k not in _ASIDE} != {
            k: v for k, v in found.items() if k not in _ASIDE
        }
        metadata["generation"] = (before["metadata"].get("generation", 1) if before else 0) + (1 if changed else 0)
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            del self.objects[key_]
        else:
            self.objects[key_] = found
        return found

    def add(self, obj: Object) -> dict[str, Any]:
        """Creates an object of another owner."""
        return self.put(obj, fresh=True)

    def change(self, key_: ObjectKey, patch: Mapping[str, Any]) -> None:
        self.put(patched(self.objects[key_], patch))

    def delete(self, key_: ObjectKey) -> None:
        live = self.objects[key_]
        if live["metadata"].get("finalizers"):
            self.put(patched(live, {"metadata": {"deletionTimestamp": self.now}}))
        else:
            del self.objects[key_]

    # -- the CR --------------------------------------------------------------------------------------------------------

    @property
    def finalizers(self) -> list[str]:
        assert self.resource is not None
        return list(self.resource["metadata"].get("finalizers") or [])

    def patch_resource(self, metadata: Mapping[str, Any]) -> None:
        assert self.resource is not None
        self.counter += 1
        self.resource = patched(self.resource, {"metadata": {**metadata, "resourceVersion": str(self.counter)}})

    def edit(self, spec: Mapping[str, Any]) -> None:
        assert self.resource is not None
        generation = self.resource["metadata"]["generation"] + 1
        self.patch_resource({"generation": generation})
        self.resource["spec"] = copy.deepcopy(dict(spec))

    def end(self) -> None:
        """Deletes the CR."""
        self.patch_resource({"deletionTimestamp": self.now})
        self.collect()

    def collect(self) -> None:
        """Runs the garbage collector."""
        if self.resource is not None and self.resource["metadata"].get("deletionTimestamp") and not self.finalizers:
            uid = self.resource["metadata"]["uid"]
            self.resource = None
            for key_, obj in list(self.objects.items()):
                if any(each["uid"] == uid for each in obj["metadata"].get("ownerReferences") or ()):
                    self.delete(key_)

    def write_status(self, planned: Plan) -> None:
        if planned.status is None or planned.status.patch is None:
            return
        assert self.resource is not None
        assert planned.status.patch["metadata"]["uid"] == self.resource["metadata"]["uid"]
        kept = patched(self.resource, {"status": planned.status.patch["status"]})
        schema = self.info(self.rule.kind).status_schema
        if schema is not None:
            status = drop_unknown({"status": kept["status"]}, schema).get("status") or {}
            kept["status"] = default({"status": status}, schema)["status"]
        self.resource = kept
        self.counter += 1
        self.resource["metadata"]["resourceVersion"] = str(self.counter)
        self.writes.append("status")

    @property
    def status(self) -> dict[str, Any]:
        assert self.resource is not None
        found: dict[str, Any] = self.resource.get("status") or {}
        return found

    def condition(self, type_: str = "Ready") -> dict[str, Any]:
        (found,) = [each for each in self.status["conditions"] if each["type"] == type_]
        return dict(found)

    def ready(self) -> tuple[str, str, str]:
        found = self.condition()
        return found["status"], found["reason"], found["message"]

    def controllers(self) -> None:
        """Runs the workload controllers: every workload becomes ready."""
        for obj in list(self.objects.values()):
            if Kind.of(obj).versionless in READY_STATUSES and (ready := made_ready(obj)) is not obj:
                self.put(ready)

    # -- its result ----------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        return sorted(f"{each.kind}/{each.name}" for each in self.objects)

    def masked(self) -> dict[str, Any]:
        """The objects, without fields that differ between two equal runs."""
        found = {str(key_): _masked(obj) for key_, obj in sorted(self.objects.items())}
        if self.resource is not None:
            found["the CR"] = _masked({**self.resource, "status": self.status})
        return found


_ASIDE = ("metadata", "status")
_VARYING = ("uid", "resourceVersion", "generation")


def _masked(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _VARYING}
    found = {**obj, "metadata": metadata}
    if isinstance(status := obj.get("status"), Mapping):
        found["status"] = {name: value for name, value in status.items() if name != "observedGeneration"}
    return found


def as_bytes(planned: Plan) -> bytes:
    """A plan as text, independent of the order of keys."""
    return orjson.dumps(repr_of(planned), option=orjson.OPT_SORT_KEYS)


def repr_of(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): repr_of(member) for name, member in value.items()}
    if isinstance(value, (frozenset, set)):
        return sorted(map(str, value))
    if isinstance(value, (list, tuple)):
        return [repr_of(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        compared = [name for name, each in value.__dataclass_fields__.items() if each.compare]
        return {name: repr_of(getattr(value, name)) for name in compared} | {"is": type(value).__name__}
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)


__all__ = ["CR", "FINALIZER", "RESYNCED", "Harness", "app", "as_bytes", "config", "key", "project", "rule"]
