"""What all tests share: assertions of their helpers that say what they found, the number of examples, and a heap that is not walked."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

pytest.register_assert_rewrite(
    "tests.cluster", "tests.engine", "tests.invariants", "tests.kube", "tests.planning", "tests.projects"
)

import tests.exploration  # noqa: E402, F401 - it registers the profiles, of which pytest's --hypothesis-profile may load another

settings.load_profile("fast")


def pytest_collection_finish() -> None:
    """Thousands of tests and all modules are objects too: each garbage collection would walk them, for a fifth of a second."""
    gc.collect()
    gc.freeze()
