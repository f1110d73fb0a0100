"""`ruleop plan --live`: plans custom resources of a cluster, by the rules of a project."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.live import LivePlanner, ServerDryRun, all_passes, read_rollouts
from ruleop.authoring.offline import identified
from ruleop.authoring.report import ChangeSummary, Span, Tone, mistake
from ruleop.cli.live_cluster import on_cluster, split_target
from ruleop.cli.loading import read_documents
from ruleop.cli.passes import (
    Passes,
    load_for_planning,
    prepare_document,
    watched_documents,
)
from ruleop.cli.program import UsageError, write_to
from ruleop.cli.terminal import print_diagnostics
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.kubernetes.times import now
from ruleop.operator.rollouts import watch_key

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ruleop.authoring.live import LiveCluster
    from ruleop.authoring.offline import Document
    from ruleop.authoring.report import ResourceView
    from ruleop.cli.options import Folder
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Project

PROGRESS: Final = 100
"""Custom resources after which a terminal shows how many are planned."""


def plan_live(folder: str, env_files: Sequence[str], flags: Mapping[str, Any]) -> Passes | ChangeSummary:
    """The plans of one custom resource or of those of files, or a summary of those of a kind or of all. `flags`: of the
    command."""
    if sum(map(bool, (flags["names"], flags["files"], flags["everything"]))) != 1:
        raise UsageError("with --live, name one of: KIND/NAME, KIND, -f FILE, --all")
    where, project = load_for_planning(folder, env_files)
    return on_cluster(folder, flags, lambda cluster: _LivePlan(cluster, where, project, flags).run())


class _LivePlan:
    def __init__(self, cluster: LiveCluster, folder: Folder, project: Project, flags: Mapping[str, Any]) -> None:
        self.cluster, self.project, self.flags = cluster, project, flags
        self.planner = LivePlanner(cluster, project, expects_refusals=not flags["server_dry_run"])
        self.dry_run = ServerDryRun(cluster, self.planner) if flags["server_dry_run"] else None
        self.passes = Passes(folder)

    async def run(self) -> Passes | ChangeSummary:
        cluster, files = self.cluster, self.flags["files"]
        if cluster.operator.others:
            print_diagnostics([(Span(f"warning: {cluster.operator.problem}", Tone.WAIT),)])
        if files:
            documents = watched_documents(self.project, read_documents(files, folder=self.passes.folder.name))
            found = [await self._of_document(each) for each in documents]
            return await self._planned([each for each in found if each is not None])
        if self.flags["everything"]:
            return await self._summary(dict.fromkeys(rule.kind for rule in self.project.rules))
        kind, name = split_target(self.flags["names"])
        watched = self._watched_kind(
            cluster.find_kind(kind, {rule.kind.versionless for rule in self.project.rules}).kind
        )
        return await (self._planned([await cluster.named(watched, name)]) if name else self._summary([watched]))

    def _watched_kind(self, named: Kind) -> Kind:
        watched = dict.fromkeys(rule.kind for rule in self.project.rules)
        for kind in watched:
            if kind.versionless == named.versionless:
                return kind
        names = ", ".join(sorted(str(kind) for kind in watched))
        raise UsageError(f"no rule watches {named}; this project watches {names}")

    async def _of_document(self, document: Document) -> Object | None:
        """The custom resource of a file as it would be once it is applied."""
        data, kind, cluster = document.data, Kind.of(document.data), self.cluster
        metadata = data.get("metadata")
        namespaced = cluster.kinds.info(kind).namespaced
        if isinstance(metadata, dict) and namespaced and not metadata.get("namespace"):
            data = {**data, "metadata": {**metadata, "namespace": cluster.namespace}}
        live = await cluster.reader.get(kind, ObjectKey.of(data)) if isinstance(metadata, dict) else None
        known = identified(data, [live] if live is not None else [], cluster.kinds)
        return prepare_document(self.passes, self.project, document, known, before=live, created=now())

    async def _planned(self, resources: Sequence[Object]) -> Passes:
        async for each in self.planner.passes(resources):
            self.passes.add(await self._asked(each))
        return self.passes

    async def _asked(self, each: ResourceView) -> ResourceView:
        """The pass with the answers of the API server, if it is to be asked."""
        return await self.dry_run.ask(each) if self.dry_run is not None else each

    async def _summary(self, kinds: Collection[Kind]) -> ChangeSummary:
        summary, cluster = ChangeSummary(), self.cluster
        for kind in kinds:
            if not cluster.kinds.info(kind).served:
                print_diagnostics(mistake(str(kind), "is not served by the cluster: skipped", warning=True))
        targets = await self._rolled_out()
        async for each in all_passes(self.planner, kinds, cluster.chosen):
            summary.add(await self._asked(each))
            rule = each.chosen
            if (
                rule is not None
                and rule.rollout is not None
                and targets.get(watch_key(rule), rule.revision) != rule.revision
            ):
                summary.add_to_rollout(rule, each.obj)
            if summary.resources % PROGRESS == 0 and sys.stderr.isatty():
                write_to(sys.stderr, f"\r{summary.resources} planned")
        if summary.resources >= PROGRESS and sys.stderr.isatty():
            write_to(sys.stderr, "\r\x1b[K")
        return summary

    async def _rolled_out(self) -> dict[str, str]:
        """The digests of the rules that the operator rolls out, or has rolled out, by watch."""
        if not any(rule.rollout for rule in self.project.rules):
            return {}
        try:
            return {watch: record.target.rule for watch, record in (await read_rollouts(self.cluster)).items()}
        except RuleopError:  # no operator is there, or its record cannot be read
            return {}
