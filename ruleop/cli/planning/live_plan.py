"""`ruleop plan --live`: plans custom resources of a cluster, by the rules of a project."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.live.live_planner import all_passes
from ruleop.authoring.live.live_rollouts import read_rollouts
from ruleop.authoring.live.reading.open_cluster import open_cluster
from ruleop.authoring.live.server_dry_run import ServerDryRun
from ruleop.authoring.offline.stand_in import identified
from ruleop.authoring.report.change_summary import ChangeSummary
from ruleop.authoring.report.mistakes import mistake
from ruleop.authoring.report.spans import Span, Tone
from ruleop.cli.inputs.input_files import read_documents
from ruleop.cli.inputs.live_cluster import run_on_cluster, split_target
from ruleop.cli.outputs.terminal import print_diagnostics
from ruleop.cli.planning.passes import (
    Passes,
    current_time,
    load_for_planning,
    prepare_document,
    watched_documents,
)
from ruleop.cli.program import UsageError, write_to
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.operator.rollouts.rollout_store import watch_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from ruleop.authoring.live.live_planner import LivePlanner
    from ruleop.authoring.live.reading.open_cluster import LiveCluster
    from ruleop.authoring.offline.documents import Document
    from ruleop.authoring.report.planned import Planned
    from ruleop.cli.inputs.project import Folder
    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Project
    from ruleop.operator.wire.cluster_flags import Access


PROGRESS: Final = 100
"""Custom resources after which a terminal shows how many are planned."""


@dataclass(frozen=True, slots=True)
class Subjects:
    """The custom resources to plan: one custom resource or all of a kind, those of files, or all."""

    names: tuple[str, ...] = ()  # KIND, KIND/NAME or KIND NAME
    files: tuple[str, ...] = ()
    all: bool = False
    server_dry_run: bool = False

    def check(self) -> None:
        if sum(map(bool, (self.names, self.files, self.all))) != 1:
            raise UsageError("with --live, name one of: KIND/NAME, KIND, -f FILE, --all")


def plan_live(folder: str, env_files: Sequence[str], subjects: Subjects, access: Access) -> Passes | ChangeSummary:
    """The plans of the named custom resources, or a summary of those of a kind or of all."""
    subjects.check()
    where, project = load_for_planning(folder, env_files)
    return run_on_cluster(_LivePlan(where, project, access, server_dry_run=subjects.server_dry_run).run(subjects))


class _LivePlan:
    def __init__(self, folder: Folder, project: Project, access: Access, *, server_dry_run: bool) -> None:
        self.folder, self.project, self.access = folder, project, access
        self.server_dry_run = server_dry_run

    async def run(self, subjects: Subjects) -> Passes | ChangeSummary:
        async with open_cluster(self.access) as cluster:
            if cluster.operator.others:
                print_diagnostics([(Span(f"warning: {cluster.operator.problem}", Tone.WAIT),)])
            if subjects.files:
                return await self._of_files(cluster, subjects.files)
            if subjects.all:
                return await self._summary(cluster, dict.fromkeys(rule.kind for rule in self.project.rules))
            kind, name = split_target(subjects.names)
            resource = cluster.find_kind(kind, {rule.kind.versionless for rule in self.project.rules})
            watched = self._watched_kind(resource)
            return await (self._of_name(cluster, resource, name) if name else self._summary(cluster, [watched]))

    def _watched_kind(self, resource: ResourceInfo) -> Kind:
        watched = dict.fromkeys(rule.kind for rule in self.project.rules)
        for kind in watched:
            if kind.versionless == resource.kind.versionless:
                return kind
        names = ", ".join(sorted(str(kind) for kind in watched))
        raise UsageError(f"no rule watches {resource.kind}; this project watches {names}")

    async def _of_name(self, cluster: LiveCluster, resource: ResourceInfo, name: str) -> Passes:
        live = await cluster.named(self._watched_kind(resource), name)
        return await self._planned(cluster, Passes(self.folder, cluster.kinds), [live])

    async def _of_files(self, cluster: LiveCluster, files: Sequence[str]) -> Passes:
        passes = Passes(self.folder, cluster.kinds)
        resources = []
        for document in watched_documents(self.project, read_documents(files, folder=self.folder.name)):
            resource = await self._of_document(cluster, passes, document)
            resources += [resource] if resource is not None else []
        return await self._planned(cluster, passes, resources)

    async def _of_document(self, cluster: LiveCluster, passes: Passes, document: Document) -> dict[str, Any] | None:
        """The custom resource of a file as it would be once it is applied."""
        data, kind = document.data, Kind.of(document.data)
        metadata = data.get("metadata")
        namespaced = cluster.kinds.info(kind).namespaced
        if isinstance(metadata, dict) and namespaced and not metadata.get("namespace"):
            data = {**data, "metadata": {**metadata, "namespace": cluster.namespace}}
        live = await cluster.get(kind, ObjectKey.of(data)) if isinstance(metadata, dict) else None
        known = identified(data, [live] if live is not None else [], cluster.kinds)
        return prepare_document(passes, self.project, document, known, before=live, created=current_time())

    async def _planned(self, cluster: LiveCluster, passes: Passes, resources: Sequence[Object]) -> Passes:
        planner, ask = self._planner(cluster)
        for planned in await planner.plan(resources):
            passes.add(await ask(planned))
        return passes

    def _planner(self, cluster: LiveCluster) -> tuple[LivePlanner, Callable[[Planned], Awaitable[Planned]]]:
        """The planner, and what asks the server about a pass that it has planned."""
        planner = cluster.planner(self.project, expects_refusals=not self.server_dry_run)
        return planner, ServerDryRun(cluster, planner).ask if self.server_dry_run else _unchanged

    async def _summary(self, cluster: LiveCluster, kinds: Collection[Kind]) -> ChangeSummary:
        summary = ChangeSummary()
        for kind in kinds:
            if not cluster.kinds.info(kind).served:
                print_diagnostics(mistake(str(kind), "is not served by the cluster: skipped", warning=True))
        planner, ask = self._planner(cluster)
        targets = await self._rolled_out(cluster)
        async for each in all_passes(planner, kinds, self.access.namespace):
            summary.add(await ask(each), cluster.kinds)
            rule = each.rule
            if (
                rule is not None
                and rule.rollout is not None
                and targets.get(watch_key(rule), rule.revision) != rule.revision
            ):
                summary.add_to_rollout(rule, each.resource)
            if summary.resources % PROGRESS == 0 and sys.stderr.isatty():
                write_to(sys.stderr, f"\r{summary.resources} planned")
        if summary.resources >= PROGRESS and sys.stderr.isatty():
            write_to(sys.stderr, "\r\x1b[K")
        return summary

    async def _rolled_out(self, cluster: LiveCluster) -> dict[str, str]:
        """The digests of the rules that the operator rolls out, or has rolled out, by watch."""
        if not any(rule.rollout for rule in self.project.rules):
            return {}
        try:
            return {watch: record.target.rule for watch, record in (await read_rollouts(cluster)).items()}
        except RuleopError:  # no operator is there, or its record cannot be read
            return {}


async def _unchanged(each: Planned) -> Planned:
    return each
