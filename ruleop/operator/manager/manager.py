"""The operator as a whole: its parts, and the order in which they start and stop.

Start: credentials, discovery, the inventory, the owner key; then the watches; then, once all caches are synced and this
process leads, the workers. Stop: the workers finish running reconciles and start no others; then the watches stop, then
the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import uuid
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from ruleop.errors import RuleopError
from ruleop.kubernetes.names import OPERATOR_LABEL, SELECTOR
from ruleop.kubernetes.permissions import STORED, grant, place
from ruleop.language.rules import ProjectErrors
from ruleop.operator.manager import ready_checks
from ruleop.operator.manager.parts import Knowledge, Server, Work
from ruleop.operator.manager.ready_checks import StateCollector
from ruleop.operator.manager.remarking import Remarking
from ruleop.operator.rules.process import RuleChecks, found_errors, read_unchecked
from ruleop.operator.rules.reload import Reloader
from ruleop.operator.telemetry import (
    Check,
    LoopWatchdog,
    Metrics,
    Probes,
    ServerCertificate,
    call_on_loop,
    reviewed_by,
)
from ruleop.operator.wire.auth.credentials import find_credentials
from ruleop.operator.wire.client.client import Session
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.leader.election import Election

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
    from pathlib import Path

    from ruleop.language.rules import Finding, Project, RuleFiles
    from ruleop.operator.manager.parts import Options
    from ruleop.operator.rules.process import Errors, ReadRules
    from ruleop.operator.wire.http.access import Credentials


FIRST_RETRY, MAX_RETRY_INTERVAL = 0.5, 10.0  # seconds
_PERMANENT = {
    Problem.UNAUTHORIZED: "the API server does not accept the credentials; log in again, or name others",
    Problem.UNTRUSTED: "this may not be the API server; name the CA that signed its certificate",
}


class Manager:
    def __init__(
        self,
        project: Project,
        root: Path,
        options: Options,
        *,
        errors: Errors | None = None,
        read_rules: ReadRules | None = None,
        on_reload: Callable[[Project | None], None] = lambda _: None,
        page: Callable[[Manager], contextlib.AbstractAsyncContextManager[object]] | None = None,
        stopping: asyncio.Event | None = None,
    ) -> None:
        """`errors` of the project, which may still be checked; None for rules that are not checked. `read_rules` reads
        and checks other rules before they are put in force. `on_reload` is called with the rules after each
        reload, and with None after one that was rejected. `page` serves the web page. `stopping` may be set
        before it runs."""
        self.page = page
        self.options = options
        self.project = self._in_force(project)  # as it was at the start
        self.on_reload = on_reload
        self.root = root
        self.metrics = Metrics()
        self.read_rules: ReadRules = read_rules or partial(read_unchecked, variables=options.variables)
        self.rule_checks = RuleChecks(self.metrics)
        self._errors = errors
        self.loop_watchdog = LoopWatchdog(self.metrics.lag.observe)
        self.election: Election | None = None
        self.log = structlog.get_logger()
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self.stopping = stopping or asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._starting = "waiting for the API server"  # why it is not ready; empty once it has started
        self._in_order = True

    # -- start and stop ------------------------------------------------------------------------------------------------

    async def run(self) -> bool:
        """Runs until `stopping` is set. Returns whether it stopped in order; raises RuleopError if it cannot start."""
        async with contextlib.AsyncExitStack() as stack:
            starting = asyncio.create_task(self._start(stack), name="start")
            stopping = asyncio.create_task(self.stopping.wait(), name="stopping")
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            starting.cancel()  # no effect once it has started
            with contextlib.suppress(asyncio.CancelledError):
                await starting
            await stopping
            self.log.info("stopping")
        return self._in_order

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        """Parts are started in this order, and stopped by the stack in the reverse one. Raises ProjectErrors if the
        rules have errors and were not in force before."""
        checking = asyncio.create_task(
            self.rule_checks.counted(self._errors or found_errors()), name="verdict on the rules"
        )
        stack.push_async_callback(_cancelled, checking)
        credentials = self._credentials()
        session = await Session.open(credentials)
        stack.push_async_callback(session.close)
        self.compose(session, credentials)
        stack.push_async_callback(self.known.informers.stop)
        stack.callback(self._create_task(self.loop_watchdog.run(), "loop_watchdog").cancel)
        probes = Probes(self.checks, self.metrics, self.loop_watchdog)
        stack.push_async_callback(probes.stop)
        await self._serve(probes)
        if self.page is not None:
            await stack.enter_async_context(self.page(self))
        await self._reach_server(checking)
        await self.retry(self._load_key)
        await self._finish_checks(checking)
        if self.work.ownership is not None:
            stack.push_async_callback(self.work.ownership.stop)
            self.known.cache.share = await self.work.ownership.share()
        if self.options.leader_elect and not self.options.dry_run:  # a dry run may take place beside the operator
            # Released after everything that writes has stopped: no two processes may write.
            stack.push_async_callback(self._release, self._join_election())
        else:
            self._start_leading()
        self.work.recorder.start()
        stack.push_async_callback(self.work.recorder.stop)
        stack.push_async_callback(self._stop_workers)
        self.work.controller_set.apply(self.project)
        self.known.revisions.put_in_force(self.project)
        self._spawn(self.work.rollout_driver.run(), "rollouts")
        if not self.options.dry_run:
            self._spawn(self.work.inventory_gc.run(), "inventory_gc")
            remarking = Remarking(self.work.controller_set, self.known.owner_key, self.server.api, self.work.is_alone)
            self._spawn(remarking.run(), "remarking")
        for each in (self.work.discovery_sync.follow_discovery, self.work.discovery_sync.follow_schemas):
            self._spawn(each(), each.__name__)
        if self.options.reload:
            reloader = Reloader(
                self.root,
                current=self.project,
                read=self._read_checked,
                changed=self._reloaded,
                rejected=self._reload_rejected,
            )
            reloader.start()
            stack.push_async_callback(reloader.stop)
        kinds = [str(kind) for kind in self.work.controllers.by_kind]
        namespaces = list(self.options.namespaces) or "all"
        dry_run = {"dry_run": True} if self.options.dry_run else {}
        self.log.info(
            "started", server=session.server, kinds=kinds, namespaces=namespaces, project=str(self.root), **dry_run
        )

    async def _reach_server(self, checking: asyncio.Task[Sequence[Finding]]) -> None:
        """Raises ProjectErrors if the rules turn out to be unusable before the API server is reached: otherwise their
        author would wait for the server to learn of the mistakes."""
        connecting = asyncio.create_task(self.retry(self._connect), name="connect")
        try:
            await asyncio.wait({connecting, checking}, return_when=asyncio.FIRST_COMPLETED)
            if not connecting.done() and checking.exception() is None:
                errors = checking.result()
                if any(each.is_fatal for each in errors):
                    raise ProjectErrors(errors)
            await connecting
        finally:
            connecting.cancel()

    async def _finish_checks(self, checking: asyncio.Task[Sequence[Finding]]) -> None:
        """Until then this process is not ready: a rollout of the operator must not replace a process that works."""
        self._starting = "checking the rules"
        if await self._were_in_force():
            self._spawn(self.rule_checks.report(checking), "checks of the rules in force")
        else:
            await self.rule_checks.require_none(checking)
        self._starting = ""

    async def _were_in_force(self) -> bool:
        """Whether the last leader had these rules, as far as can be known. Then nothing waits for their checks: a
        restart, or a ruleop with more checks, must not stop an operator that works."""
        try:
            latest = (await self.known.revisions.load()).latest
        except ApiError:
            return False
        return latest is not None and latest.digest == self.project.revision

    async def _read_checked(self, files: RuleFiles) -> Project:
        """Raises ProjectErrors."""
        reading = await self.read_rules(files)
        await self.rule_checks.require_none(self.rule_checks.counted(reading.errors))
        return reading.project

    def _in_force(self, project: Project) -> Project:
        if self.options.rollouts:
            return project
        return replace(project, rules=tuple(replace(rule, rollout=None) for rule in project.rules))

    def _reloaded(self, read: Project) -> None:
        project = self._in_force(read)
        self.known.rollouts.put_in_force(project)
        self.work.controller_set.reloaded(project)
        self.work.rollout_driver.wake()
        self.known.revisions.put_in_force(project)
        self.on_reload(read)

    def _reload_rejected(self, errors: ProjectErrors) -> None:
        self.work.controller_set.reject(errors)
        self.on_reload(None)

    async def _serve(self, probes: Probes) -> None:
        options = self.options
        certificate = ServerCertificate(*options.metrics_certificate) if options.metrics_certificate else None
        await probes.serve(
            health=options.health_address,
            metrics=options.metrics_address,
            certificate=certificate,
            review=reviewed_by(self.server.client, "/metrics") if options.metrics_auth else None,
        )

    def _credentials(self) -> Credentials:
        """Each event loop needs its own."""
        return find_credentials(self.options.kubeconfig, self.options.context, environ=self.options.environ)

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Runs until the workers stop."""
        self._tasks.append(self._create_task(coroutine, name))

    def _create_task(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine, name=name)
        task.add_done_callback(self._exit_on_failure)
        return task

    def _exit_on_failure(self, task: asyncio.Task[None]) -> None:
        """A restart is better than an operator that lacks one of its parts."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.log.error("a task failed with an internal error; exiting", task=task.get_name(), exc_info=error)
            self._in_order = False
            self.stopping.set()

    def compose(self, session: Session, credentials: Credentials) -> None:
        """Creates the parts, each from those before it."""
        namespace = self.options.operator_namespace or credentials.namespace
        self.server = Server(session, namespace, self.options, self.metrics)
        self.known = Knowledge(self.server, self.options, self.project, self.read_rules)
        self.work = Work(self.server, self.known, self.options, self.identity, self._exit_on_failure)
        collector = StateCollector(
            controllers=self.work.controllers,
            informers=self.known.informers.informers.values,
            recorder=self.work.recorder,
            rollouts=lambda: self.known.rollouts.records,
            on_loop=partial(call_on_loop, asyncio.get_running_loop()),
        )
        self.metrics.registry.register(collector)

    async def _connect(self) -> None:
        await self.server.discovery.refresh()
        await self._load_stored()

    async def _load_stored(self) -> None:
        """Reads what this process has to know before it reconciles a CR that it did not reconcile before."""
        await self.known.inventory.load()
        await self.work.rollout_driver.load()

    async def _load_key(self) -> None:
        """Reads or makes the owner key, if the rules need it, or children of earlier rules may have a proof."""
        needed = any(rule.needs_key for controller in self.work.controllers for rule in controller.in_force)
        if needed or any(rule.needs_key for rule in self.project.rules) or self.known.inventory.has_finalizers():
            await self.known.owner_key.load()

    async def retry(self, step: Callable[[], Awaitable[None]]) -> None:
        """Retries while the API server is not reachable or a permission is missing. Raises errors that cannot resolve
        themselves."""
        wait = FIRST_RETRY
        while True:
            try:
                await step()
            except ApiError as error:
                self._starting = str(error)
                if error.problem in _PERMANENT:
                    raise RuleopError(f"{_PERMANENT[error.problem]}: {error}") from error
                if error.problem is Problem.FORBIDDEN:
                    what = "secrets" if step == self._load_key else "configmaps"
                    needed = grant(what, place(self.server.namespace), STORED)
                    self.log.warning("not permitted; will retry", error=str(error), grant=needed, retry_in=wait)
                elif error.retryable:
                    self.log.warning("API server not reachable; will retry", error=str(error), retry_in=wait)
                else:
                    raise
            else:
                self._starting = ""
                return
            await asyncio.sleep(wait)
            wait = min(MAX_RETRY_INTERVAL, wait * 2)

    def _join_election(self) -> Election:
        """A standby keeps its caches synced, and reconciles when it leads. The process exits when it loses the
        Lease."""
        election = self.election = Election(
            self._credentials(),
            self.known.lease_key(),
            self.identity,
            timing=self.options.lease,
            labels={OPERATOR_LABEL: self.options.name},
            annotations={SELECTOR: self.options.selector} if self.options.selector else {},
        )
        self.server.api.holds_lease = election.leads

        async def lead() -> None:
            await election.leading()
            await self.retry(self._load_stored)
            await self.retry(self._load_key)
            ownership, controller_set = self.work.ownership, self.work.controller_set
            assert ownership is not None, "it has a Lease"
            await self.retry(partial(ownership.begin, election))
            self._spawn(ownership.run(election, controller_set, self._load_stored), "other processes")
            self._spawn(ownership.find_unowned(controller_set), "unowned resources")
            self.metrics.leader.labels(self.options.name).set(1)
            self._start_leading()

        self.metrics.leader.labels(self.options.name).set(0)
        election.start()
        self._spawn(lead(), "election")
        return election

    def _start_leading(self) -> None:
        self.work.controller_set.start_leading()
        if not self.options.dry_run:
            self.work.rollout_driver.start_leading()
        if not self.options.dry_run:
            self._spawn(self.known.revisions.run(), "revisions")

    async def _release(self, election: Election) -> None:
        """If reconciles were cut off, a write may still be in flight: then the Lease has to expire first."""
        await election.release(hand_over=self._in_order)

    async def _stop_workers(self) -> None:
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.options.grace):
                await self.work.controller_set.stop()
                return
        self._in_order = False
        self.log.error("grace period exceeded; exiting with unfinished reconciles", grace=self.options.grace)

    # -- readiness -----------------------------------------------------------------------------------------------------

    def checks(self) -> Iterator[Check]:
        if self._starting:
            yield Check("start", ok=False, message=self._starting)
        yield ready_checks.of_rules(self.work.controller_set)
        yield from ready_checks.of_rollouts(self.known.rollouts)
        if self.election is not None:
            yield ready_checks.of_election(self.election.leads(), self.election.holder)
        if self.work.ownership is not None:
            yield from self.work.ownership.checks()
        yield from ready_checks.of_watches(self.known.informers)
        for controller in self.work.controllers:
            yield ready_checks.of_controller(controller, self.work.controller_set)


async def _cancelled(task: asyncio.Task[Any]) -> None:
    """Returns when it is over, whatever came of it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
