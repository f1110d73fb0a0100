"""The end of a custom resource by `expire`: it is deleted when a time has passed since its creation."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ruleop.core.errors import RenderError
from ruleop.core.planning.rendering.time_functions import LAST, parse_time
from ruleop.core.rules import parse_duration
from ruleop.core.templating import Omit, Waiting

if TYPE_CHECKING:
    from ruleop.core.planning.rendering.scope import Scope
    from ruleop.core.templating import StringTemplate

_LONGEST: Final = 64  # characters of a duration, which an Event quotes


@dataclass(frozen=True, slots=True)
class Expiry:
    """When a CR is deleted."""

    at: float | None = None  # seconds since 1970; None: never
    after: str = ""  # the time from its creation

    @property
    def time(self) -> str:
        """In RFC 3339; empty if it is never."""
        return "" if self.at is None else dt.datetime.fromtimestamp(self.at, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def is_due(self, now: float) -> bool:
        return self.at is not None and now >= self.at


NEVER: Final = Expiry()


def find_expiry(expire: StringTemplate, scope: Scope) -> Expiry:
    """Empty text and 0s are never; so is a value that is not there yet. Raises RenderError."""
    try:
        value = expire.evaluate(scope.names)
    except Waiting:
        return NEVER
    created = scope.resource["metadata"].get("creationTimestamp")
    if isinstance(value, Omit) or value == "" or not created:
        return NEVER
    try:
        seconds = parse_duration(str(value)[: _LONGEST + 1], days=True)
    except ValueError as error:
        raise RenderError(str(error), expire.site, expression=expire.quotation) from None
    if len(str(value)) > _LONGEST:
        raise RenderError(f"a duration has at most {_LONGEST} characters", expire.site, expression=expire.quotation)
    at = parse_time(created) + seconds
    return Expiry(at, str(value)) if seconds > 0 and at < LAST else NEVER
