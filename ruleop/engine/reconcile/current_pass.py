"""One reconcile of one CR, and what it has learned so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ruleop.engine.queue.request import Request
    from ruleop.kinds import Object
    from ruleop.planning import History
    from ruleop.rules import Rule


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
