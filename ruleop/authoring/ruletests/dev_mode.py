"""Runs the steps of a case with the operator and an API server in memory, in this process.

The loop runs only while a step waits. So between steps nothing changes, and a step is over when the operator has seen
the CR's last change and nothing has happened for a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import structlog

from ruleop.authoring.checking.inferred_definitions import to_serve
from ruleop.authoring.dev import DevSession, DevSettings, DevView
from ruleop.authoring.offline import NAMESPACE, with_owner_uids
from ruleop.authoring.ruletests.case_cluster import overlaid
from ruleop.authoring.ruletests.state import After, Error, Provenance, described, named, owned
from ruleop.errors import RuleopError
from ruleop.files import read_inside
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.language.templates.resource_reader import read_resources
from ruleop.localcluster.api.faulty import Effect, Fault
from ruleop.localcluster.kinds import open_kind
from ruleop.localcluster.status_errors import Rejected
from ruleop.operator.manager.parts import Options
from ruleop.planning import FixedObjects, Observed, Plan, choose_rule, plan
from ruleop.planning.model.conditions import find_condition
from ruleop.planning.model.marks import Owner

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from types import TracebackType

    from ruleop.authoring.ruletests.case_cluster import CaseKinds
    from ruleop.errors import Site
    from ruleop.language.rules import Project, Rule
    from ruleop.language.secrets.masks import Masks
    from ruleop.language.templates import FieldPath
    from ruleop.localcluster.object_store import Resource, Stored, StoreEvent


POLL: Final = 0.05  # seconds between two checks for changes
QUIET: Final = 6  # checks without a change, after which a step is over; on a busy machine each takes longer
PATIENCE: Final = 30.0  # seconds after which a step is over in any case
_NOISE: Final = frozenset({"events", "leases"})


class DevMode(DevView):
    """One case in the making. Use it as a context manager."""

    def __init__(self, project: Project, kinds: CaseKinds, served: Collection[Kind]) -> None:
        self.project, self.kinds, self.served = project, kinds, served
        self.key = ObjectKey("", "", "", "")
        self.items: dict[ObjectKey, str] = {}  # the names of objects by their items, also of deleted ones
        self.refused: tuple[Error, ...] = ()  # why the API server has rejected the CR
        self._runner = asyncio.Runner()
        self._stack = contextlib.ExitStack()
        self._changes = 0  # since the start
        self._running: asyncio.Task[bool] | None = None
        self._last: tuple[Rule, Owner] | None = None  # of the CR while it existed

    def __enter__(self) -> Self:
        self._stack.enter_context(self._runner)
        self._stack.enter_context(structlog.testing.capture_logs())  # the operator's log is none of a test's output
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="ruleop-test-"))
        settings = DevSettings(definitions=self._definitions, kubeconfig=str(Path(folder, "kubeconfig")))
        options = Options(
            metrics_address="0",
            health_address="0",
            operator_namespace="default",
            reload=False,
            grace=5.0,
        )
        self._started = asyncio.Event()
        self.session = DevSession(self.project, Path(self.project.root), options, settings, self)
        for each in map(open_kind, self.served):
            self.session.cluster.registry.serve(each.resource, [each])
        self.session.cluster.store.listen_to_all(self._on_change)
        self._stack.callback(self._stop)
        self._runner.run(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    async def _start(self) -> None:
        self._running = asyncio.create_task(self.session.run(), name="session")
        started = asyncio.create_task(self._started.wait(), name="started")
        await asyncio.wait({self._running, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if self._running.done():
            self._running.result()

    def _stop(self) -> None:
        async def stop() -> None:
            self.session.stopping.set()
            if self._running is not None:
                await self._running

        self._runner.run(stop())

    # -- what a session shows ------------------------------------------------------------------------------------------

    def started(self, session: DevSession) -> None:  # noqa: ARG002 - of View
        self._started.set()

    def _on_change(self, resource: Resource, _event: StoreEvent) -> None:
        if resource.plural not in _NOISE:
            self._changes += 1

    def _definitions(self) -> list[Object]:
        """The CRDs of the project."""
        found: list[Object] = []
        root = Path(self.project.root)
        for file in sorted((root / "crds").glob("*")):
            documents, _ = read_resources(read_inside(file, root).decode("utf-8-sig"), str(file))
            found += [document.data() for document in documents]
        return to_serve(found, self.project)

    # -- what a step changes -------------------------------------------------------------------------------------------

    @property
    def resource(self) -> Object | None:
        found = self._stored(self.key)
        return found.obj if found is not None else None

    def create(self, resource: Object) -> None:
        self.edit(resource)

    def edit(self, resource: Object) -> None:
        try:
            stored = self.session.cluster.apply(resource)
        except RuleopError as error:
            self.refused = (Error(str(error)),)
        else:
            self.refused, self.key = (), ObjectKey.of(stored.obj)

    def advance(self, seconds: float) -> None:  # noqa: ARG002 - the operator's clock cannot be set
        raise RuleopError("the time cannot be set in mode dev, in which the operator runs: use mode plan")

    def add(self, obj: Object) -> None:
        obj = with_owner_uids(obj, self._uid)
        status = obj.get("status")
        stored = self.session.cluster.apply({name: value for name, value in obj.items() if name != "status"})
        if status is not None:
            self._write_status(stored.obj, status)

    def _uid(self, owner: ObjectKey, _kind: Kind) -> str:
        """The uid of an object that exists; empty for another one."""
        existing = self._objects()
        for namespace in (owner.namespace or NAMESPACE, ""):
            if (found := existing.get(owner._replace(namespace=namespace))) is not None:
                return str(found["metadata"]["uid"])
        return ""

    def _write_status(self, obj: Object, status: Mapping[str, Any]) -> None:
        stored, resource = self._stored(ObjectKey.of(obj)), self._resource(Kind.of(obj))
        if stored is not None and resource is not None:
            self.session.cluster.machinery.update_status(resource, stored, status)

    def objects_of(self, name: str) -> list[Object]:
        if "/" in name:
            return named(self._objects().values(), name)
        owner = self._owner()
        children = owned(self._objects().values(), owner) if owner is not None else ()
        return [obj for id_, key, obj in children if name in {id_, self.items.get(key)}]

    def change(self, obj: Object, patch: Mapping[str, Any]) -> None:
        after = overlaid(
            obj, {name: value for name, value in patch.items() if name != "status"}, self.kinds.shape_of(Kind.of(obj))
        )
        if after != obj:
            self.session.cluster.apply(after)
        if isinstance(patch.get("status"), dict):
            shape = self.kinds.shape_of(Kind.of(obj))
            self._write_status(
                obj, overlaid({"status": obj.get("status") or {}}, {"status": patch["status"]}, shape)["status"]
            )

    def remove(self, obj: Object) -> None:
        stored, resource = self._stored(ObjectKey.of(obj)), self._resource(Kind.of(obj))
        if stored is not None and resource is not None:
            try:
                self.session.cluster.machinery.delete(resource, stored)
            except Rejected as error:
                raise RuleopError(error.message) from None

    def delete(self) -> None:
        resource = self.resource
        if resource is not None:
            self.remove(resource)

    def reject(self, names: Iterable[str]) -> None:
        """All writes of the kinds of these children: the requests that create do not name the object."""
        self.session.cluster.faults.clear()
        children = {child.id: child for rule in self.project.rules for child in rule.every_child}
        for name in names:
            kinds = children[name].kinds if name in children else {Kind.of(obj) for obj in self.objects_of(name)}
            found = [resource.plural for kind in kinds if (resource := self._resource(kind)) is not None]
            verbs = ("create", "update", "patch", "delete")
            self.session.cluster.faults.add(Fault(Effect.ERROR, verbs, tuple(found), status=422))

    def make_ready(self, names: Iterable[str] | None) -> None:
        """The controllers of the cluster do that by themselves."""

    # -- passes --------------------------------------------------------------------------------------------------------

    def reconcile(self, *, ready: bool = False) -> None:  # noqa: ARG002 - controllers always run here
        self._runner.run(self._settle())

    async def _settle(self) -> None:
        end = time.monotonic() + PATIENCE
        quiet = 0
        while quiet < QUIET and time.monotonic() < end:
            before = self._changes
            await asyncio.sleep(POLL)
            quiet = quiet + 1 if self._changes == before and self._is_seen() else 0

    def _is_seen(self) -> bool:
        """Whether the operator has seen the last change of the CR."""
        resource = self.resource
        rule = choose_rule(self.project.rules, resource) if resource is not None else None
        if resource is None or rule is None or not rule.status.managed or resource["metadata"].get("deletionTimestamp"):
            return True
        status = resource.get("status")
        generation = status.get("observedGeneration") if isinstance(status, dict) else None
        return bool(generation == resource["metadata"].get("generation"))

    # -- the result ----------------------------------------------------------------------------------------------------

    def after(self) -> After:
        resource, objects = self.resource, self._objects()
        rule = choose_rule(self.project.rules, resource) if resource is not None else None
        if resource is None or rule is None or self.refused:
            last_rule, last_owner = self._last or (None, None)
            return After(rule or last_rule, self._owner() or last_owner, resource, objects, None, errors=self.refused)
        self._last = rule, Owner.of(resource)
        found = self._plan(rule, resource)
        self.items |= found.items
        conditions = (resource.get("status") or {}).get("conditions") or ()
        errors = [Error(problem.message, problem.child, problem.site) for problem in found.problems]
        stalled = find_condition(resource, "Stalled").get("status") == "True"  # the API server rejected a write
        if not errors and stalled:
            errors = [Error(str(find_condition(resource, "Ready").get("message")))]
        return After(
            rule=rule,
            owner=self._owner(),
            resource=resource,
            objects=objects,
            actions=None,
            waits=found.waits,
            errors=tuple(errors),
            conditions=tuple(conditions),
            reports={child.id: described(child.state, child.message) for child in found.children},
            rendered=found.rendered,
            masks=partial(self._masks, rule, resource),
            items=self.items,
        )

    def _plan(self, rule: Rule, resource: Object, *, masks: bool = False) -> Plan:
        """The plan for the current objects, which do not record the reason that a child waits."""
        observed = Observed(FixedObjects(self._objects().values()), self.kinds)
        return plan(rule, resource, observed, masks=masks, items=True)

    def _masks(self, rule: Rule, resource: Object) -> Masks:
        return self._plan(rule, resource, masks=True).masks

    def source(self, key: ObjectKey, path: FieldPath) -> Site | None:
        resource = self.resource
        rule = choose_rule(self.project.rules, resource) if resource is not None else None
        owner = self._owner()
        if resource is None or rule is None or owner is None:
            return None
        provenance = Provenance(rule, lambda: self._plan(rule, resource))
        return provenance.of(key, path, self.key, owned(self._objects().values(), owner))

    # -- objects -------------------------------------------------------------------------------------------------------

    def _owner(self) -> Owner | None:
        resource = self.resource
        return Owner.of(resource) if resource is not None else None

    def _objects(self) -> dict[ObjectKey, Object]:
        return {ObjectKey.of(each.obj): each.obj for each in self._all()}

    def _all(self) -> Iterator[Stored]:
        store = self.session.cluster.store
        for resource in list(store.resources()):
            if resource.plural not in _NOISE:
                yield from store.all(resource)

    def _resource(self, kind: Kind) -> Resource | None:
        found = self.session.cluster.registry.of_kind(kind)
        return found.resource if found is not None else None

    def _stored(self, key: ObjectKey) -> Stored | None:
        return next((each for each in self._all() if ObjectKey.of(each.obj) == key), None)
