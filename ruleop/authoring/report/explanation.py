"""The findings of `ruleop explain` about a custom resource, as values. The formats are in modules of their own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ruleop.core.names import PATCH_MANAGER
from ruleop.core.planning.model.marks import RULEOP

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.authoring.report.tree import Node
    from ruleop.core.errors import Site
    from ruleop.core.kinds import Object, ObjectKey
    from ruleop.core.planning import Plan
    from ruleop.core.planning.model.observed import Kinds


@dataclass(frozen=True, slots=True)
class FieldManager:
    """The client that wrote fields of an object, its operation, and the time of its last write."""

    name: str
    operation: str  # Update or Apply
    time: str  # RFC 3339

    @property
    def is_ruleop(self) -> bool:
        return self.name == RULEOP or self.name.startswith(PATCH_MANAGER)


@dataclass(frozen=True, slots=True)
class ManagedField:
    """A field that ruleop sets, and its field managers, the latest first. It has none if it does not exist."""

    path: str
    managers: tuple[FieldManager, ...] = ()
    changed: bool = False  # by another client since ruleop wrote it


@dataclass(frozen=True, slots=True)
class ExplainedObject:
    """One object below the custom resource: a child, or a pod of one."""

    key: ObjectKey
    state: str  # as in the tree: ready, not ready, failed, waiting, ...
    message: str = ""
    child: str = ""  # the id in the rules; empty for a pod
    exists: bool = True
    problems: tuple[str, ...] = ()  # conditions and containers that tell why it is not ready
    last_change: FieldManager | None = None
    fields: tuple[ManagedField, ...] = ()
    parts: tuple[ExplainedObject, ...] = ()

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"

    def masked(self, text: Callable[[str], str]) -> ExplainedObject:
        """The object with this function applied to what others have written: names of fields, and messages."""
        return replace(
            self,
            message=text(self.message),
            problems=tuple(map(text, self.problems)),
            fields=tuple(replace(each, path=text(each.path)) for each in self.fields),
            parts=tuple(each.masked(text) for each in self.parts),
        )


@dataclass(frozen=True, slots=True)
class Blocker:
    """An object or a condition that one child waits for."""

    child: str
    for_what: str
    why: str  # as in `Wait`
    site: Site | None = None
    expression: str = ""
    values: tuple[tuple[str, str], ...] = ()  # what the expression reads, and its current value
    source: str = ""  # the line at the site


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An Event about one of the objects."""

    key: ObjectKey
    type: str
    reason: str
    message: str
    time: str  # when it happened last
    count: int = 1


@dataclass(frozen=True, slots=True)
class Explanation:
    resource: Object
    tree: Node
    kinds: Kinds
    now: str
    rule: str = ""  # empty: no project, or no rule selects the resource
    objects: tuple[ExplainedObject, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    problems: tuple[str, ...] = ()
    events: tuple[Occurrence, ...] = ()  # the latest first
    plan: Plan | None = None  # of the next reconcile
    operator: str = ""  # what is known about the operator, as a sentence
    notes: tuple[str, ...] = field(default=())  # what is not shown, and why
