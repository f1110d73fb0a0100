"""Removes ruleop's finalizer from custom resources that no rule matches. They keep their children."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ruleop.kubernetes.kinds import Object, ObjectKey
from ruleop.operator.queue.request import Result
from ruleop.planning import RemoveFinalizer

if TYPE_CHECKING:
    from ruleop.operator.passes.executor import Executor
    from ruleop.operator.queue.request import Request
    from ruleop.planning import Failure


class Unmatched:
    """The unmatched CRs of one watched kind."""

    def __init__(self, executor: Executor, finalizer: str, title: str) -> None:
        self.executor = executor
        self.finalizer = finalizer
        self._reported: set[Failure] = set()  # each is logged once, until a removal succeeds
        self.log = structlog.get_logger().bind(controller=title)

    async def release(self, request: Request, resource: Object) -> Result:
        if self.finalizer not in (resource["metadata"].get("finalizers") or ()):
            return Result()
        outcome = await self.executor.execute([RemoveFinalizer(ObjectKey.of(resource), self.finalizer)], resource)
        if outcome.done and outcome.writes:
            self.log.info("finalizer removed", resource=str(request), finalizer=self.finalizer)
        failures = {each.failure: each.message for each in outcome.failed.values()}
        for message in sorted(failures[failure] for failure in failures.keys() - self._reported):
            self.log.warning("finalizer cannot be removed; will retry", resource=str(request), error=message)
        self._reported = set(failures) if outcome.clean else self._reported | set(failures)
        return Result(failed=not outcome.clean, retry_after=outcome.retry_after)
