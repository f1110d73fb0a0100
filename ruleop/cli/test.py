"""`ruleop test`: runs the test files of a project."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ruleop.cli import findings as found
from ruleop.cli.passes import load_for_planning
from ruleop.cli.program import DONE, NO, Command, UsageError, output_option, write_to
from ruleop.cli.project import project_options, variables
from ruleop.cli.terminal import has_colour, json_document, print_diagnostics, print_lines, print_text, styled
from ruleop.report.plan_text import Span, Tone
from ruleop.ruletests.cases import SUFFIX, TestFile, find_files, parse_file
from ruleop.ruletests.projects import Projects
from ruleop.ruletests.report import Run, as_json, failure_lines, junit, summary
from ruleop.ruletests.runner import Runner
from ruleop.ruletests.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.ruletests.results import Result


@click.command(cls=Command, example="ruleop test -k replicas --junit results.xml")
@click.argument("files", nargs=-1, metavar="[FILES]...")
@project_options
@click.option("-k", "part", default="", metavar="TEXT", help="Run only cases whose file or name contains this text.")
@click.option("-x", "first", is_flag=True, help="Stop at the first failure.")
@click.option("--update", is_flag=True, help="Write missing and different snapshots.")
@click.option("--junit", "junit_file", default="", metavar="FILE", help="Write the results as JUnit XML.")
@output_option("text", "json")
def command(
    folder: str,
    env_files: tuple[str, ...],
    files: tuple[str, ...],
    part: str,
    first: bool,
    update: bool,
    junit_file: str,
    output: str,
) -> int:
    """Run the tests of a project.

    FILES are test files or folders; by default, all *.test.yaml below the project's folder. Each case plans a custom
    resource as the operator would, without a cluster, and compares the result. Exit status 0: all cases passed. 1: some
    failed. 2: wrong usage, no tests, or the project has mistakes.
    """
    load_for_planning(folder, env_files)
    paths = _paths(folder, files)
    snapshots = Snapshots(update=update, ci=bool(os.environ.get("CI")))
    runner = Runner(Projects(Path(folder), variables(env_files)), snapshots)
    run = _run(runner, _parsed(paths), part, first=first, quiet=output == "json")
    if not part and not first and not run.broken and not files:
        run.stale = [_shown(file) for file in snapshots.stale({path.parent for path in paths})]
    if junit_file:
        _write(junit_file, junit(run))
    if output == "json":
        print_text(json_document(as_json(run)))
    else:
        _print(run)
    return DONE if run.passed else NO


def _paths(folder: str, files: Iterable[str]) -> list[Path]:
    """The test files that are named, or all of the project."""
    found: list[Path] = []
    for name in files:
        path = Path(name)
        if path.is_dir():
            found += find_files(path)
        elif path.is_file():
            found.append(path)
        else:
            inside = Path(folder) / name
            meant = f" (did you mean {inside.as_posix()}?)" if inside.exists() else ""
            raise UsageError(f"{name}: no such file{meant}")
    found = list(dict.fromkeys(found)) if files else find_files(Path(folder))
    if not found:
        raise UsageError(f"no tests: no file here ends in {SUFFIX}")
    return found


def _parsed(paths: Iterable[Path]) -> Iterator[TestFile]:
    for path in paths:
        try:
            text = path.read_text("utf-8-sig")
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not valid UTF-8") from None
        yield parse_file(path, _shown(path), text)


def _shown(path: Path) -> str:
    return path.as_posix()


def _run(runner: Runner, files: Iterable[TestFile], part: str, *, first: bool, quiet: bool) -> Run:
    run, start = Run(), time.perf_counter()
    progress = Progress(quiet=quiet)
    for file in files:
        if file.findings:
            run.broken.append(file)
        for case in file.cases:
            if part and part.casefold() not in f"{file.name} {case.name}".casefold():
                run.deselected += 1
                continue
            result = runner.run(case)
            run.results.append(result)
            progress.add(result)
            if first and not result.passed:
                break
        if first and not run.passed:
            break
    progress.end()
    run.seconds = time.perf_counter() - start
    return run


class Progress:
    """A character for each case, on stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet, self.column = quiet, 0

    def add(self, result: Result) -> None:
        if self.quiet:
            return
        sign = Span(".", Tone.GOOD) if result.passed else Span("F", Tone.BAD)
        end = "\n" if self.column == 99 else ""
        write_to(sys.stderr, styled([(sign,)], colour=has_colour(sys.stderr)).removesuffix("\n") + end)
        self.column = (self.column + 1) % 100

    def end(self) -> None:
        if self.column:
            write_to(sys.stderr, "\n")


def _print(run: Run) -> None:
    for file in run.broken:
        for each in file.findings:
            print_lines([*found.mistake(str(each.site), each.message), *found.excerpt(file.text, each.site)])
    for number, result in enumerate(run.failed):
        if not number and any(failure.differences for each in run.failed for failure in each.failures):
            print_lines([(Span("- expected  + found", Tone.FAINT),)])
        print_lines([(), *failure_lines(result)])
    if run.failed:
        print_lines([()])
    for name in run.stale:
        print_diagnostics(found.mistake(name, "no case uses this snapshot", warning=True))
    print_lines([summary(run)])


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None
