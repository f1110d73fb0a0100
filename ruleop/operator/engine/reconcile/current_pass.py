"""One reconcile of one CR, and what it has learned so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.core.planning import Outcome
from ruleop.core.templating.values.cost import Account

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.core.planning import History
    from ruleop.core.rules import Rule
    from ruleop.operator.engine.queue.request import Request


@dataclass(slots=True)
class CurrentPass:
    request: Request
    rule: Rule
    resource: Object
    history: History
    held_until: str = ""  # RFC 3339: no deletions before this time, because the rules have just changed
    namespace_terminating: bool = False
    paused: bool = False  # a plan of this pass took several turns of the loop
    status_in: float | None = None  # seconds until the status is written, if it is delayed
    account: Account = field(default_factory=Account)  # of all its plans


@dataclass(frozen=True, slots=True)
class Unreported:
    """Failed writes of a pass whose account did not suffice for the plan of the status. The next pass makes that plan
    before it retries them."""

    outcome: Outcome  # without the objects
    rule: Rule
    version: str  # of the resource

    @classmethod
    def of(cls, current: CurrentPass, outcome: Outcome) -> Unreported:
        light = Outcome(failed=outcome.failed, replan=outcome.replan, retry_after=outcome.retry_after)
        return cls(light, current.rule, current.resource["metadata"].get("resourceVersion") or "")

    def is_for(self, rule: Rule, resource: Object) -> bool:
        """Whether nothing has changed since."""
        return rule is self.rule and (resource["metadata"].get("resourceVersion") or "") == self.version
