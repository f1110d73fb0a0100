"""One session of `ruleop dev`: starts the cluster and the operator on one loop, applies the CRDs and the samples, and
reports what becomes of the custom resources.

A child that is not ready has its reasons from its pods, their claims and its other objects.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from ruleop.authoring.checking import errors_of_files
from ruleop.authoring.report import is_ready, object_problems, view_of_objects
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.language.rules import ProjectErrors
from ruleop.localcluster import LocalCluster
from ruleop.localcluster.controllers import claim_names
from ruleop.localcluster.object_store import CLAIMS, CRDS, EVENTS, Name
from ruleop.operator.manager.manager import Manager
from ruleop.operator.rules.process import Reading, found_errors
from ruleop.planning import readiness
from ruleop.planning.model.conditions import find_condition
from ruleop.planning.model.managers import managers_on
from ruleop.planning.model.marks import PART_OF, part_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ruleop.authoring.report import Line, ResourceView
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Project, RuleFiles
    from ruleop.localcluster.object_store import Resource, StoreEvent
    from ruleop.operator.manager.parts import Options
    from ruleop.operator.rules.process import ReadRules


_VAGUE: Final = "ContainersNotReady"  # a reason that names no cause: an Event does


def problems(cluster: LocalCluster, obj: Object) -> dict[str, str]:
    """The problems, each message once, with the first object that has it. An owned object tells more than its owner:
    the claim of a pod more than the pod, and the pod more than its Deployment."""
    if readiness(obj).ready:
        return {}
    found: dict[str, str] = {}
    owned = list(cluster.machinery.owners.of(obj["metadata"]["uid"]))
    if obj["kind"] == "Pod":
        owned += [(CLAIMS, Name(obj["metadata"]["namespace"], name)) for name in claim_names(obj)]
    for resource, name in owned:
        if (dependent := cluster.store.get(resource, name)) is not None:
            for message, title in problems(cluster, dependent.obj).items():
                found.setdefault(message, title)
    if found:
        return found
    own = [each for each in object_problems(obj) if _VAGUE not in each] or _warnings(cluster, obj)
    return dict.fromkeys(own, f"{obj['kind']}/{obj['metadata']['name']}")


def _warnings(cluster: LocalCluster, obj: Object) -> Iterator[str]:
    """The messages of the Events that warn of an object."""
    metadata = obj["metadata"]
    for each in cluster.store.all(EVENTS, metadata.get("namespace") or "default"):
        event = each.obj
        if event.get("type") == "Warning" and (event.get("involvedObject") or {}).get("uid") == metadata["uid"]:
            yield f"{event['reason']}: {event['message']}"


CRD_PERIOD: Final = 0.5  # seconds between two checks of the files of crds/
_FINAL_REASONS: Final = frozenset({"RenderFailed", "Invalid", "OnceFailed"})
"""Reasons of Stalled that nothing but an edit changes."""
QUIET: Final = 0.2  # seconds without a change, after which the custom resources are settled
_FIRST: Final = ("Namespace", "CustomResourceDefinition")


class DevView:
    """Shows the session to a person. This one shows nothing."""

    def checked(self, findings: Sequence[Line]) -> None:
        """The project was loaded, or could not be: what `check` finds in it."""

    def started(self, session: DevSession) -> None:
        """The API server and the operator run."""

    def changed(self, session: DevSession) -> None:
        """Something in the cluster has changed."""

    def warning(self, obj: Object, text: str) -> None:
        """A warning that the author of an applied object should read."""

    def event(self, obj: Object) -> None:
        """An Event about a custom resource or a child."""

    def ended(self, session: DevSession) -> None:
        """The session has ended."""


async def read_here(files: RuleFiles, *, variables: Mapping[str, str]) -> Reading:
    """Rules, checked in this process. Raises ProjectErrors."""
    usable: list[Project] = []
    found = await asyncio.to_thread(errors_of_files, files, environ=variables, usable=usable.append)
    if not usable:
        raise ProjectErrors(found)
    return Reading(usable[0], found_errors(found))


@dataclass(frozen=True, slots=True)
class DevSettings:
    """The options of the command."""

    samples: tuple[Object, ...] = ()
    definitions: Callable[[], Sequence[Object]] = tuple  # reads the CRDs of the project; raises RuleopError
    check: Callable[[], Sequence[Line]] = tuple  # reads and checks the project
    read_rules: ReadRules | None = None  # reads and checks rules that are to be put in force
    once: bool = False
    timeout: float = 60.0
    kubeconfig: str = ""  # a file to write; by default one in a folder of its own, which goes with the session
    port: int = 0
    page: Callable[[], SessionPage] | None = None  # opens the web page; raises RuleopError


class SessionPage(Protocol):
    """The web page of the session."""

    @property
    def url(self) -> str: ...
    def close(self) -> None: ...
    def serve(self, manager: Manager) -> contextlib.AbstractAsyncContextManager[object]: ...


class DevSession:
    def __init__(self, project: Project, root: Path, options: Options, settings: DevSettings, view: DevView) -> None:
        self.project, self.root, self.options, self.settings, self.view = project, root, options, settings, view
        self.cluster = LocalCluster(port=settings.port)
        self.kubeconfig = Path(settings.kubeconfig)
        self.page_url = ""  # empty: none is served
        self.stopping = asyncio.Event()
        self._changed = asyncio.Event()

    async def run(self) -> bool:
        """Runs until it is stopped, or with `once` until all custom resources are ready. Returns whether they are."""
        async with contextlib.AsyncExitStack() as stack:
            await self.cluster.serve()
            stack.push_async_callback(self.cluster.close)
            self._write_kubeconfig(stack)
            self._apply([*self.settings.definitions(), *self.settings.samples])
            if self.settings.once and next(self.resources(), None) is None:
                raise RuleopError("no custom resources: use --apply FILE")
            options = replace(self.options, kubeconfig=str(self.kubeconfig))
            page = self._open_page(stack)
            manager = Manager(
                self.project,
                self.root,
                options,
                read_rules=self.settings.read_rules,
                on_reload=self._on_reload,
                page=page.serve if page is not None else None,
            )
            operator = asyncio.create_task(manager.run(), name="operator")
            stack.push_async_callback(_stopped, manager, operator)
            stack.callback(self.cluster.store.listen_to_all(self._on_change))
            if not self.settings.once:
                following = asyncio.create_task(self._follow_definitions(), name="definitions")
                stack.callback(following.cancel)
            self.view.started(self)
            return await self._until_done(operator)

    def _on_reload(self, project: Project | None) -> None:
        if project is not None:
            self.project = project
            self._apply_definitions()
        self.view.checked(self.settings.check())
        self.view.changed(self)

    def _open_page(self, stack: contextlib.AsyncExitStack) -> SessionPage | None:
        if self.settings.page is None or self.settings.once:
            return None
        page = self.settings.page()
        stack.callback(page.close)
        self.page_url = page.url
        return page

    def _write_kubeconfig(self, stack: contextlib.AsyncExitStack) -> None:
        if not self.settings.kubeconfig:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ruleop-"))
            self.kubeconfig = Path(folder, "kubeconfig")
        else:
            stack.callback(self.kubeconfig.unlink, missing_ok=True)
        self.cluster.write_kubeconfig(self.kubeconfig)

    def _apply(self, objects: Iterable[Object]) -> None:
        for each in sorted(objects, key=_order):
            self.cluster.apply(each)
            for warning in self.cluster.warnings:
                self.view.warning(each, warning)

    async def _follow_definitions(self) -> None:
        """Applies the CRDs again when their files change."""
        known = self._modified()
        while True:
            await asyncio.sleep(CRD_PERIOD)
            if (found := self._modified()) != known:
                known = found
                self._apply_definitions()

    def _apply_definitions(self) -> None:
        with contextlib.suppress(RuleopError):  # the operator logs what is wrong with the project
            self._apply(self.settings.definitions())

    def _modified(self) -> dict[str, int]:
        files = Path(self.root, "crds")
        return {file.name: file.stat().st_mtime_ns for file in files.glob("*")} if files.is_dir() else {}

    async def _until_done(self, operator: asyncio.Task[bool]) -> bool:
        ends = asyncio.create_task(self.stopping.wait(), name="stopping")
        settled = asyncio.create_task(self._settle(), name="settled") if self.settings.once else None
        waited = {ends, operator} | ({settled} if settled is not None else set())
        try:
            timeout = self.settings.timeout if self.settings.once else None
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED, timeout=timeout)
        finally:
            ends.cancel()
            if settled is not None:
                settled.cancel()
        if operator.done():
            operator.result()  # raises why it could not start
        return self.is_settled()

    async def _settle(self) -> None:
        """Waits until all custom resources are ready, or fail until the next edit, and nothing has changed for
        a moment."""
        while True:
            self._changed.clear()
            start = time.monotonic()
            settled = self.is_settled() or self.is_stuck()
            await asyncio.sleep(max(QUIET, 10 * (time.monotonic() - start)))  # thousands take a while to check
            if settled and not self._changed.is_set():
                return

    def is_settled(self) -> bool:
        found = map(is_ready, self.resources())
        return next(found, False) and all(found)

    def is_stuck(self) -> bool:
        """Whether all custom resources that are not ready wait for an edit of them or of the rules."""
        found = [each for each in self.resources() if not is_ready(each)]
        return bool(found) and all(map(_needs_edit, found))

    def _on_change(self, resource: Resource, event: StoreEvent) -> None:
        self._changed.set()
        if resource == EVENTS:
            if not event.deleted and self._concerns(event.new.obj):
                self.view.event(event.new.obj)
        elif resource != CRDS:
            self.view.changed(self)

    def _concerns(self, event: Object) -> bool:
        """Whether an Event is about a custom resource or a child, not about a pod of a child."""
        about = event.get("involvedObject") or {}
        kind = Kind.parse(str(about.get("apiVersion", "")), str(about.get("kind", "")))
        resource = self._resource(kind)
        found = self.cluster.machinery.get(resource, about.get("namespace", ""), about["name"]) if resource else None
        if found is None:
            return False
        watched = any(rule.kind.versionless == kind.versionless for rule in self.project.rules)
        return watched or PART_OF in (found.obj["metadata"].get("labels") or {})

    # -- what there is -------------------------------------------------------------------------------------------------

    def resources(self) -> Iterator[Object]:
        """The custom resources of the kinds that the rules watch."""
        for kind in dict.fromkeys(rule.kind for rule in self.project.rules):
            resource = self._resource(kind)
            if resource is not None:
                yield from (each.obj for each in self.cluster.store.all(resource))

    def _resource(self, kind: Kind) -> Resource | None:
        served = self.cluster.registry.of_kind(kind)
        return served.resource if served is not None else None

    def unready(self) -> Iterator[tuple[ResourceView, dict[str, str]]]:
        """The custom resources that are not ready, each with what is wrong with its children."""
        for resource, children, patched in self._with_objects():
            if not is_ready(resource):
                objects = sorted((*children, *patched), key=lambda each: ObjectKey.of(each)[1:])
                wrong = {problem: title for each in objects for problem, title in problems(self.cluster, each).items()}
                yield view_of_objects(resource, children, patched), wrong

    def tree(self) -> list[ResourceView]:
        return [view_of_objects(*each) for each in self._with_objects()]

    def _with_objects(self) -> Iterator[tuple[Object, Sequence[Object], Sequence[Object]]]:
        """The custom resources, each with its children and the objects of others that have its fields."""
        children: dict[str, list[Object]] = {}
        patched: dict[str, list[Object]] = {}
        for resource in list(self.cluster.store.resources()):
            for each in self.cluster.store.all(resource):
                if label := (each.obj["metadata"].get("labels") or {}).get(PART_OF):
                    children.setdefault(label, []).append(each.obj)
                for label in {manager.part_of for manager in managers_on(each.obj)}:
                    patched.setdefault(label, []).append(each.obj)
        for found in self.resources():
            yield found, children.get(part_of(found), ()), patched.get(part_of(found), ())


def _needs_edit(resource: Object) -> bool:
    stalled = find_condition(resource, "Stalled")
    generation = resource["metadata"].get("generation")
    is_current = stalled.get("observedGeneration", generation) == generation
    return stalled.get("status") == "True" and stalled.get("reason") in _FINAL_REASONS and is_current


def _order(obj: Object) -> int:
    kind = obj.get("kind", "")
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


async def _stopped(manager: Manager, operator: asyncio.Task[bool]) -> None:
    manager.stopping.set()
    with contextlib.suppress(Exception):
        await operator
