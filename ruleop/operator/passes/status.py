"""Writes the status of a CR, and determines what follows if the server rejects it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import structlog

from ruleop.errors import RuleopError
from ruleop.kubernetes.crd import declares
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.permissions import grant, place
from ruleop.language.status_limits import OWN_CONDITIONS, limits_of, unwritten
from ruleop.language.templates import Tree
from ruleop.operator.passes.executor import classify
from ruleop.operator.queue import IMMEDIATELY, Result
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning import Event, Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import Rule
    from ruleop.operator.cache import ControllerExpectations
    from ruleop.operator.passes.pass_log import PassLog
    from ruleop.operator.passes.pass_planning import CurrentPass, PassEnvironment
    from ruleop.operator.queue import Request
    from ruleop.planning import KindInfo, Kinds, Plan
    from ruleop.planning.model.actions import StatusWrite


# -- status schema -----------------------------------------------------------------------------------------------------
#
# Logs, once for each watched kind, the status fields that its schema lacks, does not allow or requires. The API server
# would drop these fields, or refuse the status, so ruleop does not write them. The log explains to users why a CR has
# no conditions.


class StatusSchemas:
    def __init__(self) -> None:
        self._reported: dict[tuple[Kind, str], tuple[str, ...]] = {}
        self.log = structlog.get_logger()

    def report(self, rules: Iterable[Rule], kinds: Kinds) -> None:
        """Logs this for kinds whose schema is known, from the CRD or as the API server publishes it."""
        for rule in rules:
            messages, watch = tuple(_missing(rule, kinds.info(rule.kind))), (rule.kind, rule.name)
            if self._reported.get(watch) != messages:
                for message in messages:
                    self.log.warning(
                        "status fields missing from the schema", controller=str(rule.kind.versionless), message=message
                    )
            self._reported[watch] = messages


def _missing(rule: Rule, info: KindInfo) -> Iterator[str]:
    """The fields that the rule would write and the API server would drop or refuse, in sentences. Names that templates
    compute are not known here."""
    schema, kind = info.status_schema, rule.kind.kind
    if schema is None or not rule.status.managed:
        return
    types = [*OWN_CONDITIONS, *(each.type for each in rule.status.conditions)]
    limits = limits_of(schema, types, generation=info.status_subresource)
    body = rule.status.body
    fields = body.fields if isinstance(body, Tree) else ()
    named = [f"status.{name}" for name in fields if not declares(schema, ("status", name))]
    if dropped := [*limits.dropped, *named]:
        yield (
            f"the schema of {kind} has no {', '.join(dropped)}: the API server would drop them, so they are not written"
        )
    yield from limits.refusals(kind)
    if isinstance(body, Tree | None) and (missing := [name for name in limits.required if name not in fields]):
        yield unwritten(kind, missing)


# -- status writer -----------------------------------------------------------------------------------------------------


DETAILS_EVERY: Final = 5.0
"""Seconds between a write of a status and another that changes only details, such as the number of pods that are ready:
each pod of a rollout changes them, and each write notifies all watchers of the CR."""


class StatusWriter:
    def __init__(self, environment: PassEnvironment, pass_log: PassLog, expectations: ControllerExpectations) -> None:
        self.environment, self.pass_log, self.expectations = environment, pass_log, expectations
        self.executor, self.clock = environment.executor, environment.clock
        self._written: dict[Request, float] = {}  # when the status was written last

    def remove(self, request: Request) -> None:
        self._written.pop(request, None)

    def details_in(self, request: Request) -> float:
        """Seconds until a status may be written that differs in details only; 0 for now."""
        return max(0.0, self._written.get(request, -DETAILS_EVERY) + DETAILS_EVERY - self.clock.monotonic())

    async def write(self, current: CurrentPass, planned: Plan, status: StatusWrite) -> Result | None:
        """Writes the status. Returns the pass's result if that failed."""
        assert status.patch is not None
        rule, request, key = current.rule, current.request, planned.resource
        try:
            if rule.status.conditions:
                await self.environment.inventory.before_writes(rule, planned)
            subresource = "status" if status.subresource else ""
            others = self.environment.other_operators
            # A PUT would save the API server 3 % of its CPU, and send the whole CR.
            response = await self.executor.api.patch(
                rule.kind, key, status.patch, subresource=subresource, manager=others.status_manager
            )
        except RuleopError as error:
            return await self._failed(current, planned, status, error)
        is_shared = False
        for entry in response["metadata"].get("managedFields") or ():
            is_shared |= entry.get("subresource") == "status" and entry.get("manager") != others.status_manager
        if is_shared or others.times:
            others.status_written(key, response)
        self.executor.stores.put(response)
        self.pass_log.status_written(request, planned, current.resource)
        self._written[request] = self.clock.monotonic()
        self.expectations.wrote(request, {key: response["metadata"]["resourceVersion"]})
        return None

    async def _failed(self, current: CurrentPass, planned: Plan, status: StatusWrite, error: RuleopError) -> Result:
        """Reports a rejected status in the conditions; if they are rejected as well, with Events."""
        if isinstance(error, ApiError) and error.problem is Problem.NOT_FOUND:
            return Result(failed=True)
        if isinstance(error, ApiError) and error.problem is Problem.CONFLICT:
            return await self._outdated(current, status)
        failure, retry_after = classify(error)
        if failure is Failure.INVALID and status.projected:
            current.history = current.history.status_refused(planned, str(error), self.clock.monotonic())
            return Result(requeue_after=IMMEDIATELY, reason="the status was rejected")
        if failure is not None and failure is not Failure.OTHER:
            granted = {"grant": self._grant(current, status)} if failure is Failure.FORBIDDEN else {}
            if self._report(current, str(error), granted):
                self.pass_log.problems(current.request, planned)
                self.environment.events.record(current.resource, planned.events)
        return Result(failed=True, retry_after=retry_after)

    def report_missing(self, current: CurrentPass, status: StatusWrite) -> None:
        """Reports once that a status lacks required fields. It is not sent: the API server would refuse it in each
        pass."""
        self._report(current, unwritten(current.rule.kind.kind, status.missing))

    def _report(self, current: CurrentPass, error: str, granted: Mapping[str, str] = MappingProxyType({})) -> bool:
        """Whether the error is new."""
        if not self.pass_log.status_not_written(current.request, error, granted):
            return False
        self.environment.events.record(current.resource, [Event("Warning", "StatusNotWritten", error)])
        return True

    def _grant(self, current: CurrentPass, status: StatusWrite) -> str:
        title = self.environment.cache.info(current.rule.kind).resource + ("/status" if status.subresource else "")
        return grant(title, place(current.request.namespace), ["patch"])

    async def _outdated(self, current: CurrentPass, status: StatusWrite) -> Result:
        """After a conflict, reads the CR live, so that the next pass plans for its new version. If the version has not
        changed, the conflict has another cause, and this is a failure."""
        assert status.patch is not None
        try:
            live = await self.executor.refresh(current.rule.kind, ObjectKey.of(current.resource))
        except RuleopError:
            return Result(failed=True)
        known = status.patch["metadata"].get("resourceVersion")
        if live is None or live["metadata"]["resourceVersion"] == known:
            return Result(failed=True)
        return Result(requeue_after=IMMEDIATELY, reason="the CR has changed")
