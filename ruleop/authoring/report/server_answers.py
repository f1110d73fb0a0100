"""The API server's responses to the dry runs of planned writes, as text and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from ruleop.messages import shortened
from ruleop.planning.changes.differences import NOTHING, Difference, flow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.planning import Action

MAX_PATHS: Final = 4
"""The number of fields added by the server that are named on the line of a write."""


class Verdict(Enum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNASKED = "cannot be asked"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one write; without an action, why a child that waits cannot be asked about. Texts and values that
    may come from a Secret are masked."""

    verdict: Verdict
    child: str
    action: Action | None = None
    message: str = ""
    changed: tuple[Difference, ...] = ()  # fields that the server stores with another value than it was sent
    added: tuple[str, ...] = ()  # paths of fields that it adds: defaults, and what webhooks set
    warnings: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """The answer in sentences, the first of which has the verdict."""
        shown = ", ".join(self.added[:MAX_PATHS])
        more = f" and {len(self.added) - MAX_PATHS} more" if len(self.added) > MAX_PATHS else ""
        adds = f"; the server adds {shown}{more}" if shown else ""
        message = f": {self.message}" if self.message else ""
        yield f"{_WORDS[self.verdict]}{message}{adds}"
        yield from (f"the server changes {change_in_words(each)}" for each in self.changed)
        yield from (f"the server warns: {each}" for each in self.warnings)

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.name.lower(),
            "child": self.child,
            "message": self.message,
            "added": list(self.added),
            "changed": [
                {"field": each.path, "sent": _value(each.before), "stored": _value(each.after)} for each in self.changed
            ],
            "warnings": list(self.warnings),
        }


_WORDS: Final = {
    Verdict.ACCEPTED: "accepted by the server",
    Verdict.REFUSED: "refused by the server",
    Verdict.UNASKED: "cannot be asked",
}


def change_in_words(change: Difference) -> str:
    return f"{change.path}: {shortened(flow(change.before))} -> {_text(change.after)}"


def _text(value: Any) -> str:
    return "(removed)" if value is NOTHING else shortened(flow(value))


def _value(value: Any) -> Any:
    return None if value is NOTHING else value
