"""An operator in a cluster in memory: it plans, executes, and plans again for the status, until nothing is left to do.

Each pass checks properties of planning: the same arguments give the same plan, none of them is changed, and a recorded
pass can be replayed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from hypothesis import settings

from ruleop.authoring.ruletests.case_cluster import carry_out
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.localcluster.objects.server_side_apply import without_managers
from ruleop.planning import (
    Action,
    AddFinalizer,
    Create,
    Delete,
    Event,
    Failed,
    FinalizerAction,
    FixedObjects,
    History,
    Observed,
    Outcome,
    Patch,
    Plan,
    RemoveFinalizer,
    ServerSideApply,
    choose_rule,
    plan,
)
from ruleop.planning.model.marks import APPLIED
from tests.exploration import ALL
from tests.patching import patched
from tests.planning.recording.replays import replayed
from tests.projects.cluster import Cluster, Refused

FINALIZER = "ruleop.dev/ruleop"
MOST_PASSES = 12
PLANNED_AGAIN_EACH = ALL // settings().max_examples  # every pass is planned twice in `make test-all`
REPLAYED_EACH = 3 * ALL // settings().max_examples  # every third pass is recorded and replayed there


class Simulation(Cluster):
    def __init__(self, folder: Path, **more: Any) -> None:
        super().__init__(folder, **more)
        self.events: list[Event] = []
        self.last: Plan | None = None
        self.held_until = ""
        self._histories: dict[str, History] = {}
        self._writes: list[str] = []

    @property
    def waits(self) -> dict[str, str]:
        """The waits of the last pass."""
        assert self.last is not None
        return {wait.child: wait.for_what for wait in self.last.waits}

    def reconcile(self) -> list[str]:
        """Reconciles until nothing is left to do. Returns the writes in order, without those of the CR's status."""
        for _ in range(MOST_PASSES):
            if not sum(self.work(key) for key in self._resources()):
                break
            self.collect()
        else:
            raise AssertionError(f"the operator does not become idle: {self._writes}")
        writes, self._writes = self._writes, []
        return writes

    def converge(self, rounds: int) -> None:
        """Reconciles, and lets the controllers write statuses, until there is nothing left to write."""
        self._writes.clear()  # of single passes before
        for _ in range(rounds):
            before = self.version
            writes = self.reconcile()
            self.settle()
            if self.version == before:
                break
        else:
            writes = self.reconcile()
        assert writes == []

    def _resources(self) -> list[ObjectKey]:
        watched = {rule.kind.versionless for rule in self.project.rules}
        return sorted(key for key in self.objects if key.group_kind in watched)

    def planned(self, key: ObjectKey) -> Plan:
        resource = self.objects[key]
        rule = choose_rule(self.project.rules, resource)
        assert rule is not None
        history = self._histories.get(resource["metadata"]["uid"], History.NONE)
        observed = Observed(
            objects=FixedObjects(obj for obj in self.objects.values() if Kind.of(obj) not in self.unserved),
            kinds=self,
            now=self._now(),
            seed=f"pass {self.moments}".encode(),
            finalizer=FINALIZER,
            held_until=self.held_until,
            namespace_terminating=ObjectKey("", "Namespace", "", key.namespace) in self.objects
            and "deletionTimestamp" in self.objects[ObjectKey("", "Namespace", "", key.namespace)]["metadata"],
        )
        before = orjson.dumps(list(self.objects.values()))
        found = plan(rule, resource, observed, history)
        assert orjson.dumps(list(self.objects.values())) == before, "planning has changed what it was given"
        if self.moments % PLANNED_AGAIN_EACH == 0:
            assert found == plan(rule, resource, observed, history), "the same arguments have given another plan"
        if self.moments % REPLAYED_EACH == 0:
            replayed(rule, resource, observed, history, found)
        return found

    def work(self, key: ObjectKey) -> bool:
        """One pass over one CR. False if there was nothing to do."""
        self.moments += 1
        self.last = first = self.planned(key)
        if first.quiet:
            return False
        outcome = Outcome()
        history = self._histories.get(first.uid, History.NONE)
        if first.actions:
            outcome = carry_out(first.actions, self.info, self._carry_out)
            if key not in self.objects:
                self.events += first.events
                return True
            history = self._histories[first.uid] = history.after(first, outcome, 0.0)
            self.last = self.planned(key)
            assert not self.last.actions
        # Time does not advance here, and a test that reverts a field six times expects no field conflict.
        self._histories[first.uid] = replace(history.after(self.last, None, 0.0), drift={})
        self.events += self.last.events
        status = self.last.status
        wrote = status is not None and status.patch is not None
        if status is not None and status.patch is not None:
            guards = status.patch["metadata"]
            live = self.objects[key]
            assert guards["uid"] == live["metadata"]["uid"]
            assert guards["resourceVersion"] == live["metadata"]["resourceVersion"]
            stored = patched(live.get("status", {}), status.patch["status"])
            assert stored == status.status
            assert self._write_status(key, stored)["status"] == stored, "the server drops a part of it"
        # A failed write is retried with backoff, so it does not count as work.
        return wrote or any(action.key not in outcome.failed for action in first.actions)

    def _carry_out(self, action: Action) -> Object | Failed | None:
        try:
            return self._write(action)
        except Refused as refused:
            assert not isinstance(action, FinalizerAction)
            self._writes.append(f"failed {self.name(action.key)}: {refused.message}")
            return Failed(refused.failure, refused.message)

    def _write(self, action: Action) -> Object | None:
        match action:
            case Create():
                answer = self._create(action.object)
                self._writes.append(f"create {self.name(action.key)}")
                return answer
            case Patch():
                verb = {"changed": "patch", "adopted": "adopt", "released": "release"}[action.why]
                before, guards = self.objects[action.key], action.patch["metadata"]
                new = patched(before, action.patch)
                answer = self._update(action.key, new, uid=guards["uid"], version=guards["resourceVersion"])
                self._note(verb, action.key, before, answer)
                return answer
            case ServerSideApply():
                assert action.manager, "no project says strategy: server-side"
                before = self.objects[action.key]
                answer = self._apply(action.object, manager=action.manager, force=action.force)
                self._note("release" if action.why == "given up" else "apply", action.key, before, answer)
                return answer
            case Delete():
                theirs = self.objects[action.key]["metadata"]
                assert all(theirs[name] == action.live["metadata"][name] for name in ("uid", "resourceVersion"))
                self._delete(action.key)
                self._writes.append(f"delete {self.name(action.key)}: {action.why}")
            case AddFinalizer():
                finalizers = self.objects[action.key]["metadata"].get("finalizers", [])
                self._finalizers(action.key, [*finalizers, action.finalizer])
                self._writes.append("finalizer added")
            case RemoveFinalizer():
                finalizers = self.objects[action.key]["metadata"]["finalizers"]
                assert action.finalizer in finalizers
                self._finalizers(action.key, [each for each in finalizers if each != action.finalizer])
                self._writes.append("finalizer removed")
        return None

    def _note(self, verb: str, key: ObjectKey, before: Object, after: Object) -> None:
        paths = [path for path in _differences(*map(without_managers, (before, after))) if path not in _SERVERS]
        self._writes.append(f"{verb} {self.name(key)}: {' '.join(paths)}".rstrip(": "))


_SERVERS = {"metadata.resourceVersion", "metadata.generation", f"metadata.annotations[{APPLIED}]"}


def _differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The paths that differ: +x was added, -x was removed, x has changed."""
    if isinstance(before, list) and isinstance(after, list):
        before, after = (_by_name(value) for value in (before, after))
        if before is None or after is None:
            yield path
            return
        steps = {name: f"{path}[{name}]" for name in {**before, **after}}
        if steps and list(before) != list(after) and before.keys() == after.keys():
            yield f"{path} order"
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        steps = {name: _step(path, name) for name in {**before, **after}}
    else:
        if before != after:
            yield path
        return
    for name, step in steps.items():
        if name not in before:
            yield f"+{step}"
        elif name not in after:
            yield f"-{step}"
        elif before[name] != after[name]:
            yield from _differences(before[name], after[name], step)


def _step(path: str, name: str) -> str:
    if not re.fullmatch(r"\w+", name):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    if not all(isinstance(item, Mapping) for item in items):
        return None
    names = [str(item.get("name", item.get("uid", index))) for index, item in enumerate(items)]
    return dict(zip(names, items, strict=True)) if len({*names}) == len(names) else None
