"""One reconcile of one CR, and what it has learned so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.core.templating.values.cost import Allowance, for_descriptions

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
    descriptions: Allowance = field(default_factory=for_descriptions)  # of its log
    accounts: float = 0.0  # that its plans have used together
