"""The part of the custom resources that this process watches, if the operator runs as several processes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ruleop.operator.cache.informers import WatchSpec

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Kind


@dataclass(frozen=True, slots=True)
class Share:
    """The CRs that a label selector matches, and whose uids are in these buckets."""

    selector: str = ""
    buckets: frozenset[int] | None = None  # None: all

    def resources(self, kind: Kind) -> WatchSpec:
        """The watch of the CRs of a kind."""
        return WatchSpec(kind, labels=self.selector, buckets=self.buckets)

    def of(self, need: WatchSpec) -> WatchSpec:
        """The part of what the rules need. What they observe is read as a whole."""
        return replace(need, buckets=self.buckets) if need.children else need
