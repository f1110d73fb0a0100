"""`ruleop test`: runs the test files of a project."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.authoring.report.spans import Span, Tone
from ruleop.authoring.ruletests import coverage
from ruleop.authoring.ruletests.cases import SUFFIX, TestFile, find_files, parse_file, read_text
from ruleop.authoring.ruletests.projects import Projects
from ruleop.authoring.ruletests.running.runner import Runner
from ruleop.authoring.ruletests.snapshots import Snapshots
from ruleop.authoring.ruletests.test_report import Run, as_json, failure_lines, junit, summary
from ruleop.authoring.ruletests.watching import CaseFiles, changed_files, modified
from ruleop.cli.inputs.loading import load_with_sources, project_variables
from ruleop.cli.inputs.project import Folder, project_options
from ruleop.cli.outputs import finding_formats as found
from ruleop.cli.outputs.terminal import has_colour, print_diagnostics, print_lines, print_text, styled
from ruleop.cli.planning.passes import load_for_planning
from ruleop.cli.program import DONE, NO, Command, UsageError, output_option, write_to
from ruleop.core.files import read_regular, why_unreadable
from ruleop.core.printable import json_document
from ruleop.core.rules import ProjectErrors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ruleop.authoring.report.spans import Place
    from ruleop.authoring.ruletests.cases import Case
    from ruleop.authoring.ruletests.results import Result

WATCH_PERIOD: Final = 0.3  # seconds between two readings of the times of files
WIDTH: Final = 100  # cases on a line of progress


@dataclass(frozen=True, slots=True)
class Options:
    folder: str
    env_files: tuple[str, ...]
    files: tuple[str, ...]
    output: str
    part: str
    first: bool
    update: bool
    junit_file: str
    coverage: bool
    coverage_html: str
    coverage_lcov: str

    @property
    def place(self) -> Place:
        """Formats a place in the project's files, relative to the current folder."""
        return Folder(self.folder).place

    @property
    def measures(self) -> bool:
        return bool(self.coverage or self.coverage_html or self.coverage_lcov)

    @property
    def selects(self) -> bool:
        """Whether some cases of the project are left out."""
        return bool(self.part or self.first or self.files)


@click.command(cls=Command, example="ruleop test -k replicas --junit results.xml")
@click.argument("files", nargs=-1, metavar="[FILES]...")
@project_options
@click.option("-k", "part", default="", metavar="TEXT", help="Run only cases whose file or name contains this text.")
@click.option("-x", "first", is_flag=True, help="Stop at the first failure.")
@click.option("--update", is_flag=True, help="Write missing and different snapshots.")
@click.option("--watch", is_flag=True, help="Run again what an edit touches, until Ctrl-C.")
@click.option("--junit", "junit_file", default="", metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--coverage", is_flag=True, help="Print which lines and branches of the rules no case exercised.")
@click.option("--coverage-html", default="", metavar="FILE", help="Write the coverage as an HTML page.")
@click.option("--coverage-lcov", default="", metavar="FILE", help="Write the coverage in lcov's format.")
@output_option("text", "json")
def command(watch: bool, **flags: Any) -> int:
    """Run the tests of a project.

    FILES are test files or folders; by default, all *.test.yaml below the project's folder. Each case plans a custom
    resource as the operator would, without a cluster, and compares the result. Exit status 0: all cases passed. 1: some
    failed. 2: wrong usage, no tests, none selected, or the project has mistakes.
    """
    options = Options(**flags)
    if not watch:
        return DONE if _run_once(options).passed else NO
    if options.output != "text" or options.measures or options.junit_file:
        raise UsageError("--watch prints text only: leave out -o, --junit and --coverage")
    _watch(options)
    return DONE


def _run_once(options: Options) -> Run:
    _check_project(options)
    paths = _paths(options)
    snapshots = Snapshots(update=options.update, ci=bool(os.environ.get("CI")))
    probe = coverage.Probe() if options.measures else None
    projects = Projects(Path(options.folder), project_variables(Folder(options.folder), options.env_files), probe)
    progress = _Progress(quiet=options.output == "json")
    run = _Runs(Runner(projects, snapshots), options.part, first=options.first).run(_parsed(paths), progress.add)
    progress.end()
    if not run.results and not run.broken and run.deselected:
        raise UsageError(
            f"no test selected: {options.part!r} is in no file and no name of a case ({run.deselected} not selected)"
        )
    if not options.selects and not run.broken:
        run.stale = [file.as_posix() for file in snapshots.stale({path.parent for path in paths})]
    if options.junit_file:
        _write(options.junit_file, junit(run, place=options.place))
    if options.output == "json":
        print_text(json_document(as_json(run, place=options.place)))
    else:
        _print(run, options)
    if probe is not None:
        _report_coverage(options, probe, projects)
    return run


def _check_project(options: Options) -> None:
    """Raises UsageError after printing the project's mistakes. Variables that are missing may come with the cases."""
    try:
        print_diagnostics(found.notes(load_with_sources(Folder(options.folder), options.env_files).project))
    except ProjectErrors as errors:
        if any(each.code != "environment" for each in errors.findings if each.severity == "error"):
            load_for_planning(options.folder, options.env_files)


def _paths(options: Options) -> list[Path]:
    """The test files that are named, or all of the project."""
    named: list[Path] = []
    for name in options.files:
        path = Path(name)
        if path.is_dir():
            named += find_files(path)
        elif path.is_file():
            named.append(path)
        else:
            inside = Path(options.folder) / name
            meant = f" (did you mean {inside.as_posix()}?)" if inside.exists() else ""
            raise UsageError(f"{name}: no such file{meant}")
    paths = list(dict.fromkeys(named)) if options.files else find_files(Path(options.folder))
    if not paths:
        raise UsageError(f"no tests: no file here ends in {SUFFIX}")
    return paths


def _parsed(paths: Iterable[Path]) -> Iterator[TestFile]:
    for path in paths:
        try:
            text = read_text(path, path)
        except OSError as error:
            raise UsageError(f"{path}: {why_unreadable(error)}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not valid UTF-8") from None
        yield parse_file(path, path.as_posix(), text)


@dataclass(slots=True)
class _Runs:
    """Runs the selected cases of files."""

    runner: Runner
    part: str
    first: bool
    is_selected: Callable[[Case], bool] = field(default=lambda _case: True)

    def run(self, files: Iterable[TestFile], done: Callable[[Result], None]) -> Run:
        run, start = Run(), time.perf_counter()
        for file in files:
            if file.findings:
                run.broken.append(file)
            for case in file.cases:
                named = self.part.casefold() in f"{file.name} {case.name}".casefold()
                if not named or not self.is_selected(case):
                    run.deselected += 1
                    continue
                result = self.runner.run(case)
                run.results.append(result)
                done(result)
                if self.first and not result.passed:
                    break
            if self.first and not run.passed:
                break
        run.seconds = time.perf_counter() - start
        return run


class _Progress:
    """A character for each case, on stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet, self.column = quiet, 0

    def add(self, result: Result) -> None:
        if self.quiet:
            return
        sign = Span(".", Tone.GOOD) if result.passed else Span("F", Tone.BAD)
        self.column = (self.column + 1) % WIDTH
        end = "" if self.column else "\n"
        write_to(sys.stderr, styled([(sign,)], colour=has_colour(sys.stderr)).removesuffix("\n") + end)

    def end(self) -> None:
        if self.column:
            write_to(sys.stderr, "\n")


def _print(run: Run, options: Options) -> None:
    for file in run.broken:
        for each in file.findings:
            print_lines([*found.mistake(str(each.site), each.message), *found.excerpt(file.text, each.site)])
    if any(failure.differences for each in run.failed for failure in each.failures):
        print_lines([(Span("- expected  + found", Tone.FAINT),)])
    for result in run.failed:
        print_lines([(), *failure_lines(result, place=options.place)])
    if run.failed:
        print_lines([()])
    for name in run.stale:
        print_diagnostics(found.mistake(name, "no case uses this snapshot", warning=True))
    print_lines([summary(run)])


def _report_coverage(options: Options, probe: coverage.Probe, projects: Projects) -> None:
    files = probe.files(project) if (project := projects.any()) is not None else []
    placed = [replace(each, path=Folder(options.folder).path(each.path)) for each in files]
    if options.coverage and options.output == "text":
        print_lines([(), *coverage.table(placed)])
    if options.coverage_html:
        page = coverage.page(files, lambda path: read_regular(Path(options.folder, path)).decode("utf-8-sig"))
        _write(options.coverage_html, page)
    if options.coverage_lcov:
        _write(options.coverage_lcov, coverage.lcov(placed))


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None


# -- watching ----------------------------------------------------------------------------------------------------------


def _watch(options: Options) -> None:
    """Runs all cases, and after each edit those that it touches."""
    root = Path(options.folder)
    case_files = CaseFiles(root)
    changed: set[Path] = set()
    while True:
        before = modified(root)
        try:
            _run_touched(options, case_files, changed)
        except UsageError as error:
            print_diagnostics([(Span(f"{error}", Tone.BAD),)])
        print_diagnostics([(Span("waiting for a change; Ctrl-C ends", Tone.FAINT),)])
        while not (changed := changed_files(before, modified(root))):
            time.sleep(WATCH_PERIOD)


def _run_touched(options: Options, case_files: CaseFiles, changed: set[Path]) -> None:
    _check_project(options)
    probe = coverage.Probe()
    projects = Projects(Path(options.folder), project_variables(Folder(options.folder), options.env_files), probe)
    runner = Runner(projects, Snapshots(update=options.update, ci=bool(os.environ.get("CI"))))
    progress = _Progress(quiet=False)

    def done(result: Result) -> None:
        case_files.record(result.case, probe.touched)
        probe.touched.clear()
        progress.add(result)

    runs = _Runs(runner, options.part, options.first, lambda case: case_files.is_touched(case, changed))
    run = runs.run(_parsed(_paths(options)), done)
    progress.end()
    _print(run, options)
