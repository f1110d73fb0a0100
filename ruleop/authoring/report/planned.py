"""A pass over a custom resource, as it is shown: its plan, and what the API server would answer to the writes of it.

`render`, `plan` and `explain` make these, from files or a cluster, and each form is made from them. Known values of
Secrets are masked in the texts of a plan as soon as it is one of these; the objects of its actions are masked when they
are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.report.documents import HIDDEN
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.messages import shortened
from ruleop.planning.changes import NOTHING, flow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Rule
    from ruleop.planning.changes import Difference
    from ruleop.planning.model.actions import Action, Problem
    from ruleop.planning.plan import Plan

MAX_PATHS: Final = 4
"""The number of fields added by the server that are named on the line of a write."""


class Verdict(Enum):
    """The API server's response to the dry run of a write."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNASKED = "unasked"


_WORDS: Final = {
    Verdict.ACCEPTED: "accepted by the server",
    Verdict.REFUSED: "refused by the server",
    Verdict.UNASKED: "cannot be asked",
}


@dataclass(frozen=True, slots=True)
class StoredField:
    """A field that the server stores with another value than it was sent."""

    field: str
    sent: Any
    stored: Any  # None: it is removed

    @classmethod
    def of(cls, change: Difference) -> StoredField:
        return cls(change.path, change.before, None if change.after is NOTHING else change.after)

    def __str__(self) -> str:
        stored = "(removed)" if self.stored is None else shortened(flow(self.stored))
        return f"{self.field}: {shortened(flow(self.sent))} -> {stored}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one write; without an action, why a child that waits cannot be asked about. Texts and values that
    may come from a Secret are masked."""

    verdict: Verdict
    child: str
    action: Action | None = field(default=None, metadata=HIDDEN)
    message: str = ""
    changed: tuple[StoredField, ...] = ()
    added: tuple[str, ...] = ()  # paths of fields that the server adds: defaults, and what webhooks set
    warnings: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """The answer in sentences, the first of which has the verdict."""
        shown = ", ".join(self.added[:MAX_PATHS])
        more = f" and {len(self.added) - MAX_PATHS} more" if len(self.added) > MAX_PATHS else ""
        adds = f"; the server adds {shown}{more}" if shown else ""
        message = f": {self.message}" if self.message else ""
        yield f"{_WORDS[self.verdict]}{message}{adds}"
        yield from (f"the server changes {each}" for each in self.changed)
        yield from (f"the server warns: {each}" for each in self.warnings)


@dataclass(frozen=True, slots=True)
class Planned:
    """A custom resource, as the API server has it or would store it, and the plan of its next pass."""

    resource: Object
    plan: Plan | None = None
    rule: Rule | None = None  # None: no rule selects it
    error: str = ""  # why there is no plan
    answers: tuple[Answer, ...] = ()  # of the API server to a dry run
    number: int = 0  # of the pass, if there are several

    def __post_init__(self) -> None:
        if self.plan is not None:
            object.__setattr__(self, "plan", _with_masked_texts(self.plan))

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.plan.problems if self.plan is not None else ()

    @property
    def key(self) -> ObjectKey:
        return ObjectKey.of(self.resource)

    @property
    def title(self) -> str:
        _, kind, namespace, name = self.key
        return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _with_masked_texts(plan: Plan) -> Plan:
    text = plan.masks.text
    return replace(
        plan,
        waits=tuple(replace(wait, for_what=text(wait.for_what)) for wait in plan.waits),
        blocking=tuple(
            replace(each, values=tuple((path, text(value)) for path, value in each.values)) for each in plan.blocking
        ),
        problems=tuple(replace(problem, message=text(problem.message)) for problem in plan.problems),
        children=tuple(
            replace(
                child,
                message=text(child.message),
                objects=tuple(replace(each, message=text(each.message)) for each in child.objects),
            )
            for child in plan.children
        ),
        conditions=plan.conditions.with_messages(text) if plan.conditions is not None else None,
        events=tuple(replace(event, message=text(event.message)) for event in plan.events),
    )
