"""The `dataclass` of this package. mypy takes it for the one of the standard library, and holds all code to
`frozen=True`; when the program runs, nothing is frozen. A frozen instance takes four times as long to make, and a pass
makes a hundred: loading and checking rules took a quarter longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses

    def dataclass(*, frozen=False, slots=False, eq=True, order=False):
        return dataclasses.dataclass(slots=slots, eq=eq, order=order, unsafe_hash=frozen and eq)
