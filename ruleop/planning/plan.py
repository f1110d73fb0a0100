"""The plan: the result of a pass, a frozen value."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal

from ruleop.kubernetes.merge import fingerprint
from ruleop.language.secrets.masks import NO_MASKS, Masks
from ruleop.planning.rendering.synced import Settled, Synced
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.kubernetes.permissions import ServiceAccount
    from ruleop.language.rules import Rule
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


# -- late plans --------------------------------------------------------------------------------------------------------
#
# When a plan is made again that has used its time and was ended. For the same custom resource and the same rules the
# next one will probably be ended too, whatever has happened to other objects, and it costs a second of CPU time.


FIRST: Final = 10.0
CAP: Final = 600.0
"""Seconds until the next plan: the first and the longest interval, which doubles in between. It ends, because what the
plan reads may have changed, and the machine may be faster then."""


@dataclass(frozen=True, slots=True)
class Late:
    """The last plan was ended, and is not made again before `until`, unless the resource or the rules change."""

    basis: str
    until: float
    wait: float = FIRST

    @classmethod
    def after(cls, before: Late | None, rule: Rule, resource: Object, now: float) -> Late:
        """When a plan is made again that has just been ended. `before`: what was known of the last one."""
        basis = basis_of(rule, resource)
        wait = min(CAP, before.wait * 2) if before is not None and before.basis == basis else FIRST
        return cls(basis, now + wait, wait)

    def is_for(self, rule: Rule, resource: Object) -> bool:
        return self.basis == basis_of(rule, resource)


def basis_of(rule: Rule, resource: Object) -> str:
    """The rules, and what the author of a custom resource can change of it. Its generation stands for its spec; kinds
    without generations have versions, which change with each write."""
    metadata = resource["metadata"]
    generation = metadata.get("generation", metadata.get("resourceVersion"))
    known = [metadata.get(name) for name in ("uid", "labels", "annotations", "finalizers", "deletionTimestamp")]
    return fingerprint([rule.digest, generation, *known])


# -- plan --------------------------------------------------------------------------------------------------------------


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
