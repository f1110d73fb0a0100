"""When a plan is made again that has used its time and was ended. For the same custom resource and the same rules the
next one will probably be ended too, whatever has happened to other objects, and it costs a second of CPU time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.merge import fingerprint
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Rule

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
