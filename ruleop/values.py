"""`dataclass` of values, which nobody changes once they are made.

mypy knows it as the one of the standard library, and holds all code to `frozen=True`. When the program runs, nothing is
frozen: a frozen instance takes four times as long to make, and a pass makes a hundred.
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
