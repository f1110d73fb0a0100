"""Runs cases: each step changes the CR and what exists, lets the rule do its work, and compares the state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ruleop.authoring.offline import dropped
from ruleop.authoring.ruletests.expectations import failures
from ruleop.authoring.ruletests.format import CaseTable, ExistingTable
from ruleop.authoring.ruletests.results import CaseError, CaseFailure, CaseResult
from ruleop.authoring.ruletests.running.case_cluster import overlaid
from ruleop.authoring.ruletests.running.state import child_of
from ruleop.errors import RuleopError, Site
from ruleop.kubernetes.kinds import Kind, Object
from ruleop.kubernetes.schema import FORMATS, unknown_to_shape
from ruleop.kubernetes.times import seconds_of
from ruleop.language.rules import ProjectErrors
from ruleop.language.templates import YamlNode
from ruleop.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.authoring.ruletests.cases import Case
    from ruleop.authoring.ruletests.format import StepTable
    from ruleop.authoring.ruletests.projects import Projects
    from ruleop.authoring.ruletests.running.world import World
    from ruleop.authoring.ruletests.snapshots import Snapshots
    from ruleop.language.rules import Project


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
