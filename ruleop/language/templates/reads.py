"""The reads of a template or an expression: names, and chains of fields below them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.errors import Site

Path = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A chain of fields from a free name, such as ("credentials", "data", "password"). A computed step is None."""

    path: Path
    site: Site
    passes: bool = False  # a list that a loop iterates over; what is read of its items is recorded with the items

    @property
    def name(self) -> str:
        return self.path[0] or ""


@dataclass(frozen=True, slots=True)
class Reads:
    names: frozenset[str] = frozenset()
    references: tuple[Reference, ...] = ()
    calls: tuple[tuple[str, Site], ...] = ()
    assigned: tuple[tuple[str, Site], ...] = ()

    @classmethod
    def joined(cls, all_reads: Iterable[Reads]) -> Reads:
        reads = list(all_reads)
        return cls(
            frozenset().union(*(each.names for each in reads)),
            tuple(reference for each in reads for reference in each.references),
            tuple(call for each in reads for call in each.calls),
            tuple(name for each in reads for name in each.assigned),
        )
