"""Custom resources for which nothing is left to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.planning.harness import Harness


def settled(body: str, spec: Mapping[str, Any] | None = None, **files: str) -> Harness:
    """Its children exist."""
    harness = Harness.of(body, spec, **files)
    harness.settle()
    return harness


def edit_and_settle(harness: Harness, spec: Mapping[str, Any], *, controllers: bool = True) -> None:
    harness.edit(spec)
    harness.settle(controllers=controllers)
