"""How many examples a property is tried on: all of them in `make test-all`, a fifth in `make test`, and nowhere is
there a time limit for one.

A property without settings of its own tries as many as the profile says.
"""

from __future__ import annotations

from hypothesis import settings

ALL = 100  # what hypothesis tries by default, and its profile `ci` too
FEWEST = 10

settings.register_profile("fast", max_examples=ALL // 5, deadline=None)
settings.register_profile("full", max_examples=ALL, deadline=None)


def examples(number: int) -> int:
    """The part of `number` that the profile at hand asks for."""
    return max(min(number, FEWEST), number * settings().max_examples // ALL)
