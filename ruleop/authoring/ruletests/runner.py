"""Runs cases: loads their project once for each set of environment variables; each step changes the CR and what exists,
lets the rule do its work, and compares the state with its expectations and its snapshot."""

from __future__ import annotations

import contextlib
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.inferred_definitions import with_definitions
from ruleop.authoring.offline import dropped
from ruleop.authoring.ruletests.case_cluster import CaseKinds, overlaid
from ruleop.authoring.ruletests.cases import project_of, read_text
from ruleop.authoring.ruletests.expectations import failures
from ruleop.authoring.ruletests.format import CaseTable, ExistingTable
from ruleop.authoring.ruletests.plan_mode import Admission, PlanMode
from ruleop.authoring.ruletests.results import (
    CaseDifference,
    CaseError,
    CaseFailure,
    CaseResult,
    Mismatch,
    masked,
    masks_for,
    without_rendered_data,
)
from ruleop.authoring.ruletests.state import child_of
from ruleop.errors import RuleopError, Site
from ruleop.files import RefusedFileError, read_regular, why_unreadable
from ruleop.kubernetes.kinds import Kind, Object
from ruleop.kubernetes.schema import FORMATS, unknown_to_shape
from ruleop.kubernetes.times import seconds_of
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.checking import load_with_sources
from ruleop.language.templates import YamlNode, yaml_document
from ruleop.language.templates.resource_reader import read_resources
from ruleop.nearest import did_you_mean
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from ruleop.authoring.ruletests.cases import Case
    from ruleop.authoring.ruletests.coverage import Probe
    from ruleop.authoring.ruletests.expectations import World
    from ruleop.authoring.ruletests.format import Mode, StepTable
    from ruleop.authoring.ruletests.state import After
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Project
    from ruleop.language.rules.keys.value_types import Word


# -- projects ----------------------------------------------------------------------------------------------------------
# The project of a test run, loaded once for each set of environment variables, and the files that its cases name.


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
        from ruleop.authoring.ruletests.dev_mode import DevMode  # noqa: PLC0415 - the engine is not needed in plan mode

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


# -- snapshots ---------------------------------------------------------------------------------------------------------
# Snapshots: files with all rendered children of a step. A missing one fails, unless `--update` writes it.
#
# A snapshot is the same for the same rules: objects are in apply order, and random values come from a fixed seed. It is
# compared as text, because the order of objects and fields counts too.

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


# -- cases -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the cases of one project."""

    projects: Projects
    snapshots: Snapshots

    def run(self, case: Case) -> CaseResult:
        written: list[str] = []
        try:
            found = tuple(self._failures(case, written))
        except CaseError as error:
            found = (CaseFailure("not run", error.message, error.site),)
        except RuleopError as error:
            found = (CaseFailure("not run", str(error), case.site),)
        return CaseResult(case, found, tuple(written))

    def _failures(self, case: Case, written: list[str]) -> list[CaseFailure]:
        project = self._project(case)
        served = frozenset(map(_kind, case.table.kinds)) if case.table.kinds is not None else None
        with self.projects.world(project, served, case.table.mode) as world:
            steps = _Steps(case, project, world, self.projects)
            for number, step in enumerate(case.steps):
                try:
                    steps.take(step)
                except CaseError as error:
                    return [CaseFailure("not run", error.message, error.site, step=case.step_name(number))]
                after = world.after()
                found = list(failures(step.expect, after, world, site=step.site))
                if step.snapshot is not None and not found:
                    found += self.snapshots.compare(case, step.snapshot, after, written)
                if found:
                    return [replace(each, step=case.step_name(number)) for each in found]
        return []

    def _project(self, case: Case) -> Project:
        env = {entry.name: entry.value.text for entry in case.table.env if entry.value is not None}
        try:
            return self.projects.load(env)
        except ProjectErrors as errors:
            message = f"{'with this env, ' if env else ''}the project has mistakes: {errors.mistakes[0]}"
            raise CaseError(message, case.table.key_sites.get("env", case.site)) from None


def _kind(word: Any) -> Kind:
    api_version, _, kind = word.text.partition(" ")
    return Kind.parse(api_version, kind)


class _Steps:
    """Carries out the steps of one case."""

    def __init__(self, case: Case, project: Project, world: World, projects: Projects) -> None:
        self.case, self.project, self.world, self.projects = case, project, world, projects

    def take(self, step: CaseTable | StepTable) -> None:
        if isinstance(step, CaseTable):
            self._begin(step)
        else:
            self._resume(step)
        for word in step.rejects:
            self._check_id(word.text, word.site)
        self.world.reject([word.text for word in step.rejects])
        if step.deleted:
            self.world.delete()
        self.world.reconcile()

    def _advance(self, key: str, seconds: float, step: CaseTable | StepTable) -> None:
        try:
            self.world.advance(seconds)
        except RuleopError as error:
            raise CaseError(f"{key}: {error}", step.key_sites[key]) from None

    def _begin(self, case: CaseTable) -> None:
        if case.at is not None:
            if not FORMATS["datetime"](case.at.text):
                raise CaseError(f"at: there is no time {case.at.text}", case.at.site)
            self._advance("at", seconds_of(case.at.text), case)
        resource = self._resource(case)
        changes = [each for each in case.existing if isinstance(each, ExistingTable)]
        for obj, site in self._objects(case.existing):
            self._check_fields(obj, site)
            self.world.add(obj)
        self.world.create(resource)
        for change in changes:
            if change.source is not None:
                self.world.reconcile(ready=change.ready is True)
            self._change(change)

    def _resume(self, step: StepTable) -> None:
        if step.after is not None:
            self._advance("after", step.after, step)
        if step.resource is not None:
            before = self.world.resource
            site = step.key_sites["resource"]
            if before is None:
                raise CaseError("the CR is gone, so it cannot be changed", site)
            self.world.edit(self._checked(overlaid(before, _mapping(step.resource)), site))
        for obj, site in self._objects(step.existing):
            self._check_fields(obj, site)
            self.world.add(obj)
        for change in step.existing:
            if isinstance(change, ExistingTable):
                if change.source is not None:
                    raise CaseError("in a step the children exist already: remove from", change.source.site)
                self._change(change)

    # -- the CR --------------------------------------------------------------------------------------------------------

    def _resource(self, case: CaseTable) -> Object:
        assert case.resource is not None, "a file with mistakes has no cases"
        site = case.resource.site
        [*objects] = self._read(case.resource)
        watched = {rule.kind.versionless for rule in self.project.rules}
        found = [obj for obj in objects if Kind.of(obj).versionless in watched]
        if len(found) != 1:
            kinds = {rule.kind.kind for rule in self.project.rules}
            what = f"has {len(found)} custom resources" if found else "has no custom resource"
            near = did_you_mean(str(objects[0].get("kind", "")), kinds) if len(objects) == 1 else ""
            raise CaseError(f"resource {what} of this project, and a case needs one{near}", site)
        resource = overlaid(found[0], _mapping(case.set)) if case.set is not None else found[0]
        return self._checked(resource, case.key_sites["set"] if case.set is not None else site)

    def _checked(self, resource: Object, site: Site) -> Object:
        for finding in dropped(self.project, resource):
            raise CaseError(str(finding), site)
        return resource

    # -- what exists ---------------------------------------------------------------------------------------------------

    def _objects(self, existing: Iterable[YamlNode | ExistingTable]) -> Iterator[tuple[Object, Site]]:
        for each in existing:
            if isinstance(each, YamlNode):
                for obj in self._read(each):
                    yield obj, each.site

    def _read(self, node: YamlNode) -> list[Object]:
        """The objects of a file, or the object itself."""
        if not isinstance(node.value, str):
            return [_mapping(node)]
        try:
            return self.projects.objects(self.case.folder / node.value, self.case.file)
        except RuleopError as error:
            raise CaseError(f"{node.value}: {error}", node.site) from None

    def _change(self, change: ExistingTable) -> None:
        if change.ready is True and change.source is None:
            self.world.make_ready(None)
        elif isinstance(change.ready, tuple):
            for word in change.ready:
                self._existing(word.text, word.site)
            self.world.make_ready([word.text for word in change.ready])
        for entry in change.patch:
            if entry.value is not None:
                patch = _mapping(entry.value)
                for obj in self._existing(entry.name, entry.site):
                    self._check_fields({**patch, "apiVersion": obj["apiVersion"], "kind": obj["kind"]}, entry.site)
                    self.world.change(obj, patch)
        for word in change.deleted:
            for obj in self._existing(word.text, word.site):
                self.world.remove(obj)

    def _existing(self, name: str, site: Site) -> list[Object]:
        found = self.world.objects_of(name)
        if not found:
            self._check_id(name, site)
            raise CaseError(f"{name} does not exist before this step", site)
        return found

    def _check_id(self, name: str, site: Site) -> None:
        ids = [child.id for rule in self.project.rules for child in rule.every_child]
        if "/" not in name and (child := child_of(name)) not in ids:
            raise CaseError(f"no rule has a child {child}{did_you_mean(child, ids)}", site)

    def _check_fields(self, obj: Object, site: Site) -> None:
        """Refuses misspelt fields, which would do nothing."""
        kind = Kind.of(obj)
        if any(kind.versionless == rule.kind.versionless for rule in self.project.rules):
            return
        for finding in unknown_to_shape(obj, self.world.kinds.shape_of(kind)):
            if finding.path[0] not in {"apiVersion", "kind", "metadata"}:
                raise CaseError(f"{kind.kind}: {finding}", site)


def _mapping(node: YamlNode) -> dict[str, Any]:
    data = node.data()
    assert isinstance(data, dict), "checked by its type"
    return data
