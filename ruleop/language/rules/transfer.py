"""Loaded rules as bytes, from the process that loads them to the operator.

Both run the same ruleop, and nothing else writes to the pipe between them: what is read is trusted like the code.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ruleop.language.rules.keys.model import Project

SIZE_BYTES: Final = 8
"""Before the bytes of rules, their number; it is zero of rules that cannot be used."""
_DEPTH: Final = 20_000  # of nodes inside others, of which templates may have some hundreds


def _mapping(entries: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(entries)


class _Pickler(pickle.Pickler):
    dispatch_table = copyreg.dispatch_table | {MappingProxyType: lambda proxy: (_mapping, (dict(proxy),))}


def to_bytes(project: Project) -> bytes:
    written, depth = io.BytesIO(), sys.getrecursionlimit()
    sys.setrecursionlimit(_DEPTH)
    try:
        _Pickler(written, pickle.HIGHEST_PROTOCOL).dump(project)
    finally:
        sys.setrecursionlimit(depth)
    return written.getvalue()


def from_bytes(data: bytes) -> Project:
    project: Project = pickle.loads(data)  # noqa: S301 - of a process of this one
    return project
