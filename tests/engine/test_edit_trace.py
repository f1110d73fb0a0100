"""The way of one edit through the operator does not grow: people have to follow it. `edit_trace` prints it."""

from __future__ import annotations

from typing import Final

import pytest

from tests.engine.edit_trace import Calls, trace_edit

# Raise none of these: a new step of a pass takes the place of another.
MOST_FILES: Final = 75
MOST_FUNCTIONS: Final = 400
MOST_IDENTITIES: Final = 90
ATTEMPTS: Final = 8  # on a busy machine, a pass may wait where it usually does not
IDENTITIES: Final = frozenset({"Kind.of", "Kind.parse", "Kind.versionless", "ObjectKey.of", "ObjectKey.group_kind"})


def test_one_edit_passes_few_files_and_functions(tmp_path_factory: pytest.TempPathFactory) -> None:
    calls = Calls()
    for _ in range(ATTEMPTS):
        calls = trace_edit(tmp_path_factory.mktemp("trace"))
        if len(calls) <= MOST_FUNCTIONS:
            break
    assert ("core/planning/planner.py", "Planning.run") in calls
    assert calls["operator/engine/reconcile/executor.py", "_Run._write"]
    assert calls["operator/engine/reconcile/status/status_writer.py", "StatusWriter.write"]
    files = sorted({file for file, _ in calls})
    assert len(files) <= MOST_FILES, files
    assert len(calls) <= MOST_FUNCTIONS, sorted(calls)
    assert sum(calls["core/kinds.py", name] for name in IDENTITIES) <= MOST_IDENTITIES
