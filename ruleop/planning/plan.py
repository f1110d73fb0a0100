"""The plan: the result of a pass, a frozen value."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal

from ruleop.language.secrets.masks import NO_MASKS, Masks
from ruleop.planning.rendering.synced import Settled, Synced
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.kubernetes.permissions import ServiceAccount
    from ruleop.planning.late_plans import Late
    from ruleop.planning.model.actions import (
        Action,
        ChildReport,
        Event,
        FieldConflict,
        HeldDeletion,
        Problem,
        Read,
        Requeue,
        StatusWrite,
        Wait,
    )
    from ruleop.planning.model.conditions import Conditions
    from ruleop.planning.model.targets import Target


@dataclass(frozen=True, slots=True)
class Blocking:
    """An expression that is not true, so that a child is not written, or not ready."""

    child: str
    key: Literal["waitFor", "readyWhen"]
    expression: str
    site: Site
    values: tuple[tuple[str, str], ...] = ()  # what the expression reads, and its value as text


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of a pass."""

    resource: ObjectKey
    uid: str
    rule: str  # the rule's title
    account: ServiceAccount | None = None  # by whose permissions children are written; None: the operator's
    expires: str = ""  # RFC 3339: when the CR is deleted by `expire`; empty: never
    actions: tuple[Action, ...] = ()
    held: tuple[HeldDeletion, ...] = ()
    waits: tuple[Wait, ...] = ()
    children: tuple[ChildReport, ...] = ()
    rendered: tuple[tuple[str, str, Object], ...] = field(default=(), repr=False)  # (id, template, object), in order
    problems: tuple[Problem, ...] = ()
    status: StatusWrite | None = None
    conditions: Conditions | None = None  # None: not planned while there are actions
    events: tuple[Event, ...] = ()
    watches: tuple[Target, ...] = ()  # observed objects whose changes reconcile the resource
    requeue_after: Requeue | None = None
    time_check: Requeue | None = None  # when an answer that depends on the time changes
    again: bool = False  # the writes changed what is read: the next pass, which no event announces, is due
    complete: bool = False  # all desired objects are known and listed in `children`
    steady: bool = False  # by its status, all children were written before: a difference is drift
    synced: Synced = field(default_factory=Synced, repr=False)  # the objects that were in sync, with those of this plan
    field_conflicts: tuple[FieldConflict, ...] = ()
    reads: tuple[Read, ...] = ()
    late: Late | None = None  # it took too long, and was ended
    public_words: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False, compare=False)  # of the rule
    masks: Masks = field(default=NO_MASKS, repr=False, compare=False)  # for showing the plan
    # The names of objects of `forEach` by their items, such as access[joe], for showing the plan
    items: Mapping[ObjectKey, str] = field(default_factory=dict, repr=False, compare=False)
    blocking: tuple[Blocking, ...] = field(default=(), repr=False, compare=False)  # the same
    traced: Mapping[ObjectKey, tuple[Site | None, ...]] = field(default_factory=dict, repr=False, compare=False)
    """The same: of the rendered objects of one child, the template's line of each of `child_field_sites.lines_of`."""
    settled: Settled | None = field(default=None, repr=False, compare=False)  # for the next plan

    @property
    def quiet(self) -> bool:
        """Whether there is nothing to write."""
        return not self.actions and (self.status is None or self.status.patch is None)
