"""Work in steps: a generator that yields after each part of its work, so that others may run in between, and returns
the result."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
