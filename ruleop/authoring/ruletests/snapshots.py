"""Snapshots: files with all rendered children of a step. A missing one fails, unless `--update` writes it.

A snapshot is the same for the same rules: objects are in apply order, and random values come from a fixed seed.
It is compared as text, because the order of objects and fields counts too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ruleop.authoring.ruletests.cases import project_of
from ruleop.authoring.ruletests.matching import Mismatch
from ruleop.authoring.ruletests.results import CaseDifference, CaseFailure, masked, masks_for, without_rendered_data
from ruleop.files import read_regular
from ruleop.language.templates import yaml_document

if TYPE_CHECKING:
    from pathlib import Path

    from ruleop.authoring.ruletests.cases import Case
    from ruleop.authoring.ruletests.running.state import After
    from ruleop.language.rules.keys.value_types import Word

FOLDER: Final = "snapshots"


@dataclass(slots=True)
class Snapshots:
    """`update`: write missing and different snapshots. `ci`: never write a missing one."""

    update: bool = False
    ci: bool = False
    used: dict[Path, Case] = field(default_factory=dict)  # by the case that names it

    def add(self, case: Case) -> None:
        """Notes the snapshots that a case names. The first case of a name has it."""
        for step in case.steps:
            if step.snapshot is not None:
                self.used.setdefault((case.folder / step.snapshot.text).resolve(), case)

    def compare(self, case: Case, name: Word, after: After, written: list[str]) -> list[CaseFailure]:
        file, root = (case.folder / name.text).resolve(), project_of(case.file)
        if root is not None and not file.is_relative_to(root.resolve()):
            return [CaseFailure("snapshot", f"{name.text} is outside of the project folder", name.site)]
        other = self.used.setdefault(file, case)
        if (other.file, other.name) != (case.file, case.name):
            return [CaseFailure("snapshot", f'{name.text} is the snapshot of the case "{other.name}" too', name.site)]
        text = snapshot(after)
        try:
            before = read_regular(file).decode()
        except FileNotFoundError:
            if self.ci or not self.update:
                advice = "; CI is set, so --update does not write it" if self.update else ": --update writes it"
                return [CaseFailure("snapshot", f"{name.text} does not exist{advice}", name.site)]
            before = None
        except (OSError, UnicodeDecodeError) as error:
            return [CaseFailure("snapshot", f"{name.text} cannot be read: {error}", name.site)]
        if before == text:
            return []
        if self.update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            written.append(name.text)
            return []
        assert before is not None
        shown = snapshot(without_rendered_data(after, before))
        difference = CaseDifference(Mismatch((), before, shown, name.site))
        failure = CaseFailure("snapshot", f"{name.text} differs; --update writes it", name.site, (difference,))
        return [masked(failure, masks_for(after, before))]

    def stale(self, folders: set[Path]) -> list[Path]:
        """The files in the snapshot folders of these folders that no case has named."""
        found = [file for folder in folders for file in sorted((folder / FOLDER).glob("*.yaml"))]
        return [file for file in found if file.resolve() not in self.used]


def snapshot(after: After) -> str:
    """The rendered children, each under a comment with its id and template; then the waits."""
    parts = [f"# {child}: {template}\n{yaml_document(obj)}" for child, template, obj in after.rendered]
    parts += [
        f"# {child} waits: {reason}\n" for child, reason in sorted((each.child, each.for_what) for each in after.waits)
    ]
    return "---\n".join(parts)
