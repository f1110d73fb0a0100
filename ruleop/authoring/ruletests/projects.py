"""The project of a test run, loaded once for each set of environment variables, and the files that its cases name."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ruleop.authoring.checking.inferred_definitions import with_definitions
from ruleop.authoring.ruletests.cases import read_text
from ruleop.authoring.ruletests.running.case_cluster import CaseKinds
from ruleop.authoring.ruletests.running.plan_mode import Admission, PlanMode
from ruleop.errors import RuleopError
from ruleop.files import RefusedFileError, why_unreadable
from ruleop.language.rules.checking import load_with_sources
from ruleop.language.templates.resource_reader import read_resources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from ruleop.authoring.ruletests.coverage import Probe
    from ruleop.authoring.ruletests.format import Mode
    from ruleop.authoring.ruletests.running.world import World
    from ruleop.kubernetes.kinds import Kind, Object
    from ruleop.language.rules import Project


class Projects:
    def __init__(self, root: Path, environ: Mapping[str, str], probe: Probe | None = None) -> None:
        """`probe`: counts what is exercised."""
        self.root, self.environ, self.probe = root, environ, probe
        self._loaded: dict[tuple[tuple[str, str], ...], Project] = {}
        self._admission: dict[int, Admission] = {}
        self._files: dict[Path, list[Object]] = {}
        self._kinds: dict[tuple[int, frozenset[Kind] | None], CaseKinds] = {}

    def load(self, env: Mapping[str, str]) -> Project:
        """The project with these variables in addition. Raises ProjectErrors."""
        key = tuple(sorted(env.items()))
        found = self._loaded.get(key)
        if found is None:
            loaded = load_with_sources(self.root, environ={**self.environ, **env}, probe=self.probe)
            found = self._loaded[key] = with_definitions(loaded).project
            if self.probe is not None:
                self.probe.add_project(found)
        return found

    def objects(self, file: Path, test_file: Path) -> list[Object]:
        """The objects of a file that a test file names. Raises RuleopError."""
        found = self._files.get(file)
        if found is None:
            found = self._files[file] = list(_read(file, test_file))
        return found

    @contextlib.contextmanager
    def world(self, project: Project, served: Collection[Kind] | None, mode: Mode) -> Iterator[World]:
        """Where a case runs."""
        key = id(project), frozenset(served) if served is not None else None
        kinds = self._kinds.get(key)
        if kinds is None:
            kinds = self._kinds[key] = CaseKinds(project, served)
        if mode == "plan":
            admission = self._admission.setdefault(id(project), Admission(project))
            yield PlanMode(project, kinds, admission)
            return
        from ruleop.authoring.ruletests.running.dev_mode import DevMode  # noqa: PLC0415 - the engine is not needed in plan mode

        with DevMode(project, kinds, served or ()) as world:
            yield world


def _read(file: Path, test_file: Path) -> Iterator[Object]:
    try:
        text = read_text(file, test_file)
    except RefusedFileError as error:
        raise RuleopError(why_unreadable(error)) from None
    except OSError as error:
        raise RuleopError(f"cannot be read: {error.strerror}; names are relative to the test file") from None
    except UnicodeDecodeError:
        raise RuleopError("not valid UTF-8") from None
    documents, mistakes = read_resources(text, str(file))
    if mistakes:
        raise RuleopError(str(mistakes[0]))
    for document in documents:
        obj = document.data()
        if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str) or "apiVersion" not in obj:
            raise RuleopError(f"line {document.site.line} is not an object with apiVersion and kind")
        yield obj
