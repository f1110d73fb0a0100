"""`--watch`: which cases an edit touches, and which files have changed."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.core.templating import YamlNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.ruletests.cases import Case

CaseId = tuple[Path, str]


@dataclass(slots=True)
class CaseFiles:
    """The files that each case depends on: those that it names, and the templates that it has rendered."""

    root: Path
    files: dict[CaseId, frozenset[Path]] = field(default_factory=dict)

    def record(self, case: Case, templates: Iterable[str]) -> None:
        rendered = {(self.root / path).resolve() for path in templates if path.startswith("templates/")}
        self.files[case.file, case.name] = frozenset({*rendered, *_named(case)})

    def is_touched(self, case: Case, changed: Iterable[Path]) -> bool:
        """Whether a case has to be run again. A change of the project outside of templates touches every case."""
        known = self.files.get((case.file, case.name))
        changed = {path.resolve() for path in changed}
        if known is None or not known.isdisjoint(changed):
            return True
        return any(self._concerns_all(path) for path in changed)

    def _concerns_all(self, path: Path) -> bool:
        """Whether it is a file of rules, a CRD, or a template that no case has rendered."""
        if any(path in files for files in self.files.values()):
            return False
        return path.is_relative_to(self.root.resolve()) and not path.name.endswith(".test.yaml")


def _named(case: Case) -> Iterator[Path]:
    """The test file, and the files that the case names."""
    yield case.file.resolve()
    nodes: list[object] = [case.table.resource]
    for step in case.steps:
        nodes += step.existing
        if step.snapshot is not None:
            yield (case.folder / step.snapshot.text).resolve()
    for node in nodes:
        if isinstance(node, YamlNode) and isinstance(node.value, str):
            yield (case.folder / node.value).resolve()


def modified(root: Path) -> dict[Path, int]:
    """The files of a project that may touch a case, with the times of their last change."""
    found: dict[Path, int] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        for name in names:
            path = Path(folder, name)
            with contextlib.suppress(OSError):  # it was removed meanwhile
                found[path.resolve()] = path.stat().st_mtime_ns
    return found


def changed_files(before: dict[Path, int], after: dict[Path, int]) -> set[Path]:
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}
