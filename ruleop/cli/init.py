"""`ruleop init`: a new project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ruleop.authoring.report import Span, Tone
from ruleop.authoring.scaffold import (
    AGENTS,
    CI,
    DEFAULT,
    EXISTING,
    IGNORED,
    README,
    Asked,
    ExistsError,
    ScaffoldError,
    application_project,
    check_kind,
    crd_projects,
    empty_project,
    kro_projects,
    project_files,
    sample_project,
    write_files,
)
from ruleop.cli.generate_rules import schema_files
from ruleop.cli.loading import read_documents
from ruleop.cli.program import DONE, Command, UsageError
from ruleop.cli.terminal import print_lines
from ruleop.kubernetes.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.offline import Document
    from ruleop.authoring.report import Line
    from ruleop.authoring.scaffold import NewProject


@click.command(cls=Command, example="ruleop init blog --from-sample blog.yaml")
@click.argument("folder", metavar="DIR")
@click.option("--group", default="", metavar="NAME", help=f"API group of the new kind. Default: {DEFAULT.group}.")
@click.option("--version", default="", metavar="NAME", help=f"Its version. Default: {DEFAULT.version}.")
@click.option("--kind", default="", metavar="NAME", help=f"Its name. Default: {DEFAULT.kind}.")
@click.option(
    "--from-sample",
    "samples",
    multiple=True,
    metavar="FILE",
    help="Infer the kind and its schema from custom resources. Repeatable.",
)
@click.option(
    "--from-crd",
    "crds",
    multiple=True,
    metavar="FILE",
    help="Start from CustomResourceDefinitions that exist. Repeatable.",
)
@click.option(
    "--from-manifests",
    "manifests",
    multiple=True,
    metavar="PATH",
    help="Make templates of the YAML of a running application: files or folders. Repeatable.",
)
@click.option(
    "--from-kro",
    "graphs",
    multiple=True,
    metavar="FILE",
    help="Start from ResourceGraphDefinitions of kro, with --from-sample for examples of their kinds. Repeatable.",
)
@click.option(
    "--lift",
    multiple=True,
    metavar="FIELD",
    help="With --from-manifests: a field that moves into the spec, like spec.replicas, Deployment/blog:spec.replicas "
    "or spec.replicas=size. Repeatable. Default: images, replicas, resources, environment, hosts and storage.",
)
@click.option("--ci", type=click.Choice([*CI]), help="Also write a workflow that checks the rules at each change.")
def command(
    folder: str,
    samples: tuple[str, ...],
    crds: tuple[str, ...],
    manifests: tuple[str, ...],
    graphs: tuple[str, ...],
    lift: tuple[str, ...],
    ci: str | None,
    **names: str,
) -> int:
    """Make a new project in a folder.

    The project passes `check` and `test`, and runs with `dev`. No file is overwritten. Exit status 0: the project was
    made. 2: wrong usage, an input file cannot be used, or a file exists.
    """
    if lift and not manifests:
        raise UsageError("--lift names fields of manifests: use it with --from-manifests")
    if graphs and (crds or manifests or any(names.values())):
        raise UsageError("--from-kro has the kind: leave out --group, --version, --kind and other --from options")
    if samples and (crds or manifests or any(names.values())):
        raise UsageError("--from-sample has the kind: leave out --group, --version, --kind and other --from options")
    if crds and (manifests or any(names.values())):
        raise UsageError("--from-crd has the kind: leave out --group, --version, --kind and other --from options")
    try:
        if graphs:
            projects = kro_projects(_documents(graphs), _objects(samples))
        elif samples:
            projects = [sample_project(_objects(samples))]
        elif crds:
            projects = crd_projects(_objects(crds))
        elif manifests:
            group, version = names["group"] or DEFAULT.group, names["version"] or DEFAULT.version
            asked = Asked(group, version, names["kind"], Path(folder).resolve().name, lift)
            documents = _documents(manifests)
            projects = [application_project([each.data for each in documents], asked, documents=documents)]
        else:
            named = Kind(*(names[each] or getattr(DEFAULT, each) for each in ("group", "version", "kind")))
            check_kind(named)
            projects = [empty_project(named)]
        defaults = () if samples or crds or graphs else _defaults(**names | ({"kind": "known"} if manifests else {}))
        files = project_files(projects[0], schema_files(), projects[1:]) | dict([CI[ci]] if ci else [])
        kept = write_files(Path(folder), files, (README, AGENTS, IGNORED, *(path for path, _ in CI.values())))
    except (ScaffoldError, ExistsError) as error:
        raise UsageError(str(error)) from None
    notes = [*defaults, *(f"{name} exists, and was left as it is." for name in kept)]
    print_lines(_report(projects, folder, len(files) - len(kept), notes))
    return DONE


def _objects(files: tuple[str, ...]) -> list[dict[str, Any]]:
    return [each.data for each in _documents(files)]


def _documents(files: tuple[str, ...]) -> list[Document]:
    """The objects of the files. Their lines are not quoted in errors: some are Secrets."""
    return read_documents(files, folder=".", quoting=False)


def _defaults(group: str, version: str, kind: str) -> tuple[str, ...]:
    flags = [flag for flag, value in (("--group", group), ("--version", version), ("--kind", kind)) if not value]
    return (f"By default, because not named: {', '.join(flags)}.",) if flags else ()


def _report(projects: list[NewProject], folder: str, count: int, notes: list[str]) -> Iterator[Line]:
    for project in projects:
        yield from _contents(project)
    notes += [note for project in projects for note in project.notes]
    if notes:
        yield ()
    for note in notes:
        yield (Span(f"- {note}"),)
    yield ()
    here = Path(folder) == Path()
    yield (Span(f"{count} files{'' if here else f' in {folder}'}. Try:", Tone.GOOD),)
    has_existing = any(project.existing for project in projects)
    apply = f"--apply {EXISTING}/ --apply examples/" if has_existing else "--apply examples/"
    tried = [] if all(project.incomplete for project in projects) else ["ruleop test", f"ruleop dev {apply}"]
    for line in (*(() if here else (f"cd {folder}",)), "ruleop check", *tried):
        yield (Span(f"  {line}"),)


def _contents(project: NewProject) -> Iterator[Line]:
    yield (Span(f"{project.kind.kind}", Tone.TITLE), Span(f" in {project.kind.api_version}"))
    width = max((len(child.id) for child in project.children), default=0)
    for child in project.children:
        kind = child.template["kind"]
        yield (Span(f"  {child.id:<{width}}  "), Span(f"{kind}  templates/{project.folder}/{child.file}", Tone.FAINT))
    for title, rows in (
        ("In the spec", project.lifted),
        ("Credentials that were not copied, and what is in their place", project.credentials),
        ("Names of objects that stay as they are: decide whether they should follow the custom resource", project.left),
    ):
        if rows:
            yield ()
            yield (Span(title),)
            width = max(len(name) for name, _ in rows)
            for name, place in rows:
                yield (Span(f"  {name:<{width}}  "), Span(place, Tone.FAINT))
