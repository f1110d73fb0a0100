"""The project of a test run, loaded once for each set of environment variables."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ruleop.offline.cluster import OfflineKinds
from ruleop.rules import load_project
from ruleop.ruletests.plan_mode import PlanMode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from ruleop.kinds import Kind
    from ruleop.rules import Project
    from ruleop.ruletests.world import World


class Projects:
    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self.root, self.environ = root, environ
        self._loaded: dict[tuple[tuple[str, str], ...], Project] = {}
        self._kinds: dict[tuple[int, frozenset[Kind] | None], OfflineKinds] = {}

    def load(self, env: Mapping[str, str]) -> Project:
        """The project with these variables in addition. Raises ProjectErrors."""
        key = tuple(sorted(env.items()))
        found = self._loaded.get(key)
        if found is None:
            found = self._loaded[key] = load_project(self.root, environ={**self.environ, **env})
        return found

    @contextlib.contextmanager
    def world(self, project: Project, served: Collection[Kind] | None) -> Iterator[World]:
        """Where a case runs."""
        key = id(project), frozenset(served) if served is not None else None
        kinds = self._kinds.get(key)
        if kinds is None:
            kinds = self._kinds[key] = OfflineKinds(project, served)
        yield PlanMode(project, kinds)
