"""Plans the custom resources of `-f` without a cluster, by the operator's own code. Shared by `render` and `plan`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import orjson

from ruleop.authoring.checking.inferred_definitions import with_definitions
from ruleop.authoring.checking.refused_objects import with_violations
from ruleop.authoring.offline import (
    EPOCH,
    OfflineKinds,
    as_live,
    dropped,
    identified,
    named_like,
    prepare,
    undecided,
    watched_kind,
)
from ruleop.authoring.report import ResourceView, as_document, counted, excerpt, mistake
from ruleop.cli import finding_formats as found
from ruleop.cli.loading import load_with_sources, read_documents
from ruleop.cli.options import Folder
from ruleop.cli.program import F, UsageError
from ruleop.cli.terminal import print_diagnostics
from ruleop.errors import RuleopError
from ruleop.files import read_named, why_unreadable
from ruleop.kubernetes import times
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.language.rules import ProjectErrors
from ruleop.nearest import nearest
from ruleop.planning import FixedObjects, Observed, Problem, choose_rule, parse_time, plan
from ruleop.planning.recording import Replay, read_document
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.offline import Document
    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import SchemaFinding
    from ruleop.language.rules import Project, Rule
    from ruleop.planning import Kinds

NOT_SELECTED: Final = "not selected by any rule (see selector and namespaces): skipped"


def pass_options(command: F, *, required: bool = True) -> F:
    command = click.option(
        "--at",
        "time",
        default="",
        metavar="TIME",
        help="The time that the rules read, such as 2026-01-31T12:00:00Z. Default: now.",
    )(command)
    command = click.option(
        "--with",
        "existing",
        multiple=True,
        metavar="PATH",
        help="File or folder of existing objects, as printed by `kubectl get -o yaml`. Repeatable.",
    )(command)
    return click.option(
        "-f",
        "files",
        multiple=True,
        required=required,
        metavar="PATH",
        help="File or folder of custom resources; - reads stdin. Repeatable.",
    )(command)


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes that a command shows, and the custom resources without one."""

    folder: Folder
    planned: list[ResourceView] = field(default_factory=list)
    refused: list[tuple[ObjectKey, list[SchemaFinding]]] = field(
        default_factory=list
    )  # the API server would reject these
    unruled: list[ObjectKey] = field(default_factory=list)  # of a watched kind, but not selected by any rule

    def add(self, each: ResourceView) -> None:
        """Raises RuleopError if it cannot be planned."""
        if each.chosen is None:
            self.unruled.append(each.key)
            print_diagnostics(mistake(str(each.key), NOT_SELECTED, warning=True))
        elif each.plan is None:
            raise RuleopError(f"{each.key}: {each.error}")
        else:
            self.planned.append(each)

    @property
    def failed(self) -> bool:
        """Whether there are errors. The last of several passes over a custom resource counts."""
        last = {each.key: each.errors for each in self.planned}
        return bool(self.refused or self.unruled or any(last.values()))

    def unplanned(self) -> dict[str, Any]:
        """The custom resources without a plan, as plain JSON."""
        refused = [
            {
                **as_document(key),
                "findings": [{"field": finding.location, "message": finding.message} for finding in findings],
            }
            for key, findings in self.refused
        ]
        return {"refused": refused, "unmatched": as_document(self.unruled)}


def load_for_planning(folder: str, env_files: Sequence[str]) -> tuple[Folder, Project]:
    """Loads the project. Raises UsageError after printing its mistakes."""
    where = Folder(folder)
    try:
        project = with_definitions(load_with_sources(where, env_files)).project
    except ProjectErrors as errors:
        print_diagnostics(found.lines(errors.findings, where))
        count = counted(found.count(errors.findings)[0], "error")
        raise UsageError(f"the project has {count}: nothing can be planned") from None
    print_diagnostics(found.notes(project))
    return where, project


def as_time(text: str) -> str:
    """The time of `--at` in UTC. Raises UsageError."""
    try:
        return times.timestamp(parse_time(text)) if text else ""
    except (ValueError, OverflowError):
        raise UsageError(f'--at must be a time such as 2026-01-31T12:00:00Z, not "{text}"') from None


def make_passes(
    folder: str,
    env_files: Sequence[str],
    files: Sequence[str],
    existing: Sequence[str],
    *,
    time: str,
    seed: bytes,
    dated: bool,
    until_quiet: bool = False,
) -> Passes:
    """Plans each custom resource. Each sees the others and the existing objects; a mistake in one stops no other.
    `time`: of the plans; the current one if it is empty. Unless it is `dated`, a plan of rules that do not read the
    time is the same at all times. `until_quiet`: plans pass after pass, until one has nothing to do."""
    given = as_time(time)
    where, project = load_for_planning(folder, env_files)
    kinds = OfflineKinds(project)
    now = given or (times.now() if dated or any(rule.reads_time for rule in project.rules) else EPOCH)
    live = as_live([document.data for document in read_documents(existing, folder=folder, quoting=False)], kinds, now)
    passes = Passes(where)
    taken: list[dict[str, Any]] = []
    for document in watched_documents(project, read_documents(files, folder=folder)):
        before = named_like(document.data, live, kinds)
        known = identified(document.data, live, kinds)
        prepared = prepare_document(passes, project, document, known, before=before, created=now)
        taken += [prepared] if prepared is not None else []
    observed = Observed(FixedObjects([*live, *taken]), kinds, now=now, seed=seed, expects_refusals=True)
    for resource in taken:
        rule = choose_rule(project.rules, resource)
        if rule is None:
            passes.add(ResourceView(resource))
        elif until_quiet:
            others = [*live, *(each for each in taken if each is not resource)]
            for each in _passes_until_quiet(project, resource, others, now, kinds):
                passes.add(each)
        else:
            found = with_violations(plan(rule, resource, observed), rule, project)
            passes.add(ResourceView(resource, found, rule, kinds=kinds))
    return passes


def _passes_until_quiet(
    project: Project, resource: Object, others: Iterable[Object], now: str, kinds: Kinds
) -> Iterator[ResourceView]:
    """The passes over a custom resource in a cluster without others, whose controllers make each child ready: as a test
    of the rules makes them."""
    # Imports the API server in memory, which one pass does not need.
    from ruleop.authoring.ruletests.case_cluster import CaseKinds  # noqa: PLC0415
    from ruleop.authoring.ruletests.plan_mode import RESTLESS, Admission, PlanMode  # noqa: PLC0415

    world = PlanMode(project, CaseKinds(project), Admission(project))
    world.advance(parse_time(now))
    for each in others:
        world.add(each)
    world.create(resource)
    planned: ResourceView | None = None
    for number in world.passes(ready=True):
        if planned is not None:
            yield planned
        current = world.resource
        rule = choose_rule(project.rules, current) if current is not None else None
        if current is None or rule is None:
            return
        planned = ResourceView(current, world.next_plan(rule, current), rule, number=number, kinds=kinds)
    if planned is not None and planned.plan is not None and world.restless:
        restless = Problem("passes", "Restless", RESTLESS)
        planned = replace(planned, plan=replace(planned.plan, problems=(*planned.plan.problems, restless)))
    if planned is not None:
        yield planned


def prepare_document(
    passes: Passes,
    project: Project,
    document: Document,
    resource: Object,
    *,
    before: Object | None,
    created: str,
) -> dict[str, Any] | None:
    """The custom resource of a document as the API server would store it in place of the one `before`, or `created` at
    this time. Prints what is wrong with it; if the API server would reject it, it is among the refused ones and None is
    returned."""
    prepared, findings = prepare(project, resource, before, now=created)
    _print_findings(document, findings, [*dropped(project, document.data), *undecided(project, prepared)])
    if findings:
        passes.refused.append((ObjectKey.of(prepared), findings))
        return None
    return prepared


def _print_findings(document: Document, findings: list[SchemaFinding], warnings: list[SchemaFinding]) -> None:
    for finding in warnings:
        site = document.site(finding.path)
        print_diagnostics([*mistake(str(site), str(finding), warning=True), *excerpt(document.text, site)])
    for finding in findings:
        site = document.site(finding.path)
        print_diagnostics([*mistake(str(site), str(finding)), *excerpt(document.text, site)])


def watched_documents(project: Project, documents: list[Document]) -> list[Document]:
    """The documents of watched kinds. Others are skipped with a warning; it is an error if there are only others."""
    watched = {rule.kind for rule in project.rules}
    taken, others = [], []
    for document in documents:
        kind = Kind.of(document.data)
        if watched_kind(project, kind) is not None:
            taken.append(document)
        elif any(each.kind == kind.kind for each in watched):
            meant = ", ".join(sorted(each.api_version for each in watched if each.kind == kind.kind))
            site = document.site(("apiVersion",))
            raise UsageError(f"{site}: {kind.kind} is watched in {meant}, not in {kind.api_version}")
        else:
            others.append(document)
    if not taken:
        raise UsageError(_nothing_watched(others, watched))
    for document in others:
        kind = Kind.of(document.data)
        print_diagnostics(mistake(str(document.node.site), f"no rule watches {kind}: skipped", warning=True))
    return taken


def _nothing_watched(others: list[Document], watched: set[Kind]) -> str:
    names = ", ".join(sorted(str(kind) for kind in watched))
    if not others:
        return f"no objects in the files of -f; this project watches {names}"
    kind = Kind.of(others[0].data)
    meant = nearest(kind.kind, {each.kind for each in watched})
    hint = f" (did you mean {meant}?)" if meant else ""
    return f"{others[0].site(('kind',))}: no rule watches {kind}{hint}; this project watches {names}"


# -- replay ------------------------------------------------------------------------------------------------------------
# `ruleop plan --replay`: plans a recorded pass again, by the rules of this project.


def replay_pass(folder: str, env_files: Sequence[str], file: str) -> Passes:
    where, project = load_for_planning(folder, env_files)
    replay = _read(file)
    passes = Passes(where)
    with _reading(file):
        found, rule = None, _rule(project, replay, file)
        if rule is not None:
            found = plan(rule, replay.resource, replay.observed, replay.history, predict_status=replay.predict_status)
        passes.add(ResourceView(replay.resource, found, rule, kinds=replay.observed.kinds))
    return passes


@contextlib.contextmanager
def _reading(file: str) -> Iterator[None]:
    """A recording has far too many values to check each of them beforehand."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        why = f"not a recorded pass: a value has another form than in one ({type(error).__name__})"
        raise UsageError(f"{file}: {why}; --debug shows where it was read") from error


def _read(file: str) -> Replay:
    try:
        document = orjson.loads(read_named(Path(file)))
    except OSError as error:
        raise UsageError(f"{file}: {why_unreadable(error)}") from None
    except ValueError as error:
        raise UsageError(f"{file}: not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise UsageError(f"{file}: not a recorded pass")
    try:
        with _reading(file):
            return read_document(document)
    except RuleopError as error:
        raise UsageError(f"{file}: {error}") from None


def _rule(project: Project, replay: Replay, file: str) -> Rule | None:
    """The rule of the recording. If it has changed, the rule that matches now, with a warning."""
    for rule in project.rules:
        if rule.digest == replay.rule_digest:
            return rule
    message = f"the rule {replay.rule} has changed since it was recorded: the current one is used"
    print_diagnostics(mistake(file, message, warning=True))
    return choose_rule(project.rules, replay.resource)
