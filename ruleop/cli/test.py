"""`ruleop test`: pytest with the tests of a project, without the configuration and the plugins of other tests."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ruleop.authoring.report import Span, Tone, mistake
from ruleop.authoring.ruletests import coverage
from ruleop.authoring.ruletests.cases import SUFFIX, find_files, read_test_file
from ruleop.cli import finding_formats as found
from ruleop.cli.loading import load_with_sources
from ruleop.cli.options import Folder, project_options, variables
from ruleop.cli.passes import load_for_planning
from ruleop.cli.program import DONE, NO, UNUSABLE, Command, UsageError, output_option, write_to
from ruleop.cli.terminal import print_diagnostics, print_lines, print_text
from ruleop.errors import RuleopError
from ruleop.files import read_regular
from ruleop.language.rules import ProjectErrors
from ruleop.printable import json_document
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from ruleop.authoring.ruletests.pytest_items import RuleTests

WATCH_PERIOD: Final = 0.3  # seconds between two readings of the times of files

# No configuration, no conftest.py and no module of the folder, no assertions to rewrite, no cache in the project.
_ARGUMENTS: Final = (
    *("-p", "ruleop.pytest_plugin", "-c", os.devnull, "--noconftest", "--disable-plugin-autoload", "--assert=plain"),
    *("-q", "--no-header", "-rN", "--capture=no", "--continue-on-collection-errors"),
    *("-o", "console_output_style=classic", "-o", "junit_family=xunit1", "-o", "junit_suite_name=ruleop"),
    *("-pno:cacheprovider", "-pno:doctest", "-pno:faulthandler", "-pno:logging", "-pno:python", "-pno:threadexception"),
    *("-pno:unittest", "-pno:unraisableexception", "-pno:warnings"),
)
_OF_OTHER_TESTS: Final = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
_WORD: Final = r"(?<![^\s()])(?!(?:and|or|not)(?![^\s()]))[^\s()]+"  # without `and`, `or` and `not`
_WORDS: Final = re.compile(rf"{_WORD}(?:\s+{_WORD})*")


class _TestCommand(Command):
    """Arguments after `--` are options of pytest."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        ctx.meta["pytest"] = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])


@dataclass(frozen=True, slots=True)
class TestOptions:
    folder: str
    env_files: tuple[str, ...]
    files: tuple[str, ...]
    output: str
    part: str
    first: bool
    processes: str
    update: bool
    junit_file: str
    coverage: bool
    coverage_html: str
    coverage_lcov: str
    of_pytest: tuple[str, ...]

    @property
    def measures(self) -> bool:
        return bool(self.coverage or self.coverage_html or self.coverage_lcov)


@click.command(cls=_TestCommand, example="ruleop test -k 'replicas and not ready' --junitxml results.xml")
@click.argument("files", nargs=-1, metavar="[FILES]... [-- OPTIONS OF PYTEST]")
@project_options
@click.option("-k", "part", default="", metavar="TEXT", help="Run only cases whose file or name contains this text.")
@click.option("-x", "first", is_flag=True, help="Stop at the first failure.")
@click.option("-n", "processes", default="", metavar="NUMBER", help="Number of processes, or auto. Needs pytest-xdist.")
@click.option("--update", is_flag=True, help="Write missing and different snapshots.")
@click.option("--watch", is_flag=True, help="Run the cases again after each edit, until Ctrl-C.")
@click.option("--junitxml", "--junit", "junit_file", default="", metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--coverage", is_flag=True, help="Print which lines and branches of the rules no case exercised.")
@click.option("--coverage-html", default="", metavar="FILE", help="Write the coverage as an HTML page.")
@click.option("--coverage-lcov", default="", metavar="FILE", help="Write the coverage in lcov's format.")
@output_option("text", "json")
@click.pass_context
def command(context: click.Context, /, watch: bool, **flags: Any) -> int:
    """Run the tests of a project.

    FILES are test files or folders; by default, all *.test.yaml below the project's folder. FILE::NAME is one case.
    Each case plans a custom resource as the operator would, without a cluster, and compares the result. Pytest runs the
    cases: -k knows `and`, `or` and `not`, and arguments after `--` are options of pytest. Exit status 0: all cases
    passed. 1: some failed. 2: wrong usage, no tests, none selected, or the project has mistakes.
    """
    options = TestOptions(**flags, of_pytest=context.meta["pytest"])
    if options.processes and importlib.util.find_spec("xdist") is None:
        raise UsageError("-n needs pytest-xdist: pip install pytest-xdist")
    if not watch:
        return _run_once(options)
    if options.output != "text" or options.measures or options.junit_file:
        raise UsageError("--watch prints text only: leave out -o, --junitxml and --coverage")
    _watch(options)
    return DONE


def _run_once(options: TestOptions) -> int:
    status, run = _run(options)
    stale = run.stale if not options.files and not run.mistakes else []
    if options.output == "json":
        passed = sum(case["passed"] for case in run.cases)
        document = {"passed": passed, "failed": len(run.cases) - passed, "deselected": run.deselected}
        document |= {"cases": run.cases, "mistakes": run.mistakes, "staleSnapshots": stale}
        print_text(json_document(document))
    for name in stale if options.output == "text" else ():
        print_diagnostics(mistake(name, "no case uses this snapshot", warning=True))
    if run.probe is not None:
        _report_coverage(options, run.probe)
    return status


def _run(options: TestOptions) -> tuple[int, RuleTests]:
    """Runs pytest. Returns the exit status, and the run with its results."""
    _check_project(options)
    try:
        import pytest  # noqa: PLC0415 - the image of the operator does not have it
    except ModuleNotFoundError:
        raise UsageError("pytest is not installed, as in the operator's image: pip install pytest") from None
    from ruleop.authoring.ruletests.pytest_items import RuleTests, RunSettings  # noqa: PLC0415

    run = RuleTests(RunSettings(options.folder, options.update, options.measures))
    arguments = [*_ARGUMENTS, *_chosen(options), *options.of_pytest, *_tests(options)]
    output: Any = _Output(sys.stdout) if options.output == "text" else io.StringIO()
    with pytest.MonkeyPatch.context() as environment, contextlib.redirect_stdout(output):
        for name, value in variables(options.env_files).items():
            environment.setenv(name, value)
        for name in _OF_OTHER_TESTS:
            environment.delenv(name, raising=False)
        status = pytest.main(arguments, plugins=[run])
    if run.interrupted:
        raise KeyboardInterrupt
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        why = f": {options.part!r} is in no file and no name of a case" if options.part else ""
        raise UsageError(f"no test selected{why} ({run.deselected} not selected)")
    return {0: DONE, 1: NO, 2: NO}.get(status, UNUSABLE), run  # 2: -x of pytest-xdist


class _Output:
    """Stdout, which may be closed, or lack a character."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        write_to(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _check_project(options: TestOptions) -> None:
    """Raises UsageError after printing the project's mistakes. Variables that are missing may come with the cases."""
    try:
        print_diagnostics(found.notes(load_with_sources(Folder(options.folder), options.env_files).project))
    except ProjectErrors as errors:
        if any(each.code != "environment" for each in errors.findings if each.severity == "error"):
            load_for_planning(options.folder, options.env_files)


def _chosen(options: TestOptions) -> Iterator[str]:
    """The options of pytest for those of `ruleop test`."""
    from ruleop.authoring.ruletests.pytest_items import keyword  # noqa: PLC0415 - imports pytest

    root = Path(options.folder).absolute()
    yield from (f"--rootdir={root}", f"--confcutdir={root}")
    if options.part:  # words beside each other are one text
        yield f"-k={_WORDS.sub(lambda words: keyword(words[0]), options.part)}"
    if options.first:
        yield "-x"
    if options.processes:
        yield from ("-p", "xdist", f"-n{options.processes}")
    if options.junit_file:
        yield f"--junitxml={options.junit_file}"


def _tests(options: TestOptions) -> list[str]:
    """The files and cases that are named, or all files of the project. Raises UsageError if one cannot be read."""
    named: list[str] = []
    for name in options.files or (options.folder,):
        file, colons, case = name.partition("::")
        path = Path(file)
        if path.is_dir():
            named += map(str, find_files(path))
        elif path.is_file():
            named.append(f"{path}{colons}{case}")
        else:
            inside = Path(options.folder) / file
            meant = f" (did you mean {inside.as_posix()}?)" if inside.exists() else ""
            raise UsageError(f"{file}: no such file{meant}")
    for path in dict.fromkeys(Path(each.partition("::")[0]) for each in named):
        try:
            read_test_file(path, str(path))
        except RuleopError as error:
            raise UsageError(str(error)) from None
    if not named:
        raise UsageError(f"no tests: no file here ends in {SUFFIX}")
    # A name must not be an option, or the file of options that @ stands for: rules of strangers run no code.
    return list(dict.fromkeys(each if Path(each).is_absolute() else f"./{each}" for each in named))


def _report_coverage(options: TestOptions, probe: coverage.Probe) -> None:
    files = probe.files()
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


def _watch(options: TestOptions) -> None:
    """Runs the cases again after each edit: all, because a summary of some would hide the failures of the others."""
    while True:
        before = _modified(options.folder)
        try:
            _run(options)
        except UsageError as error:
            print_diagnostics([(Span(f"{error}", Tone.BAD),)])
        print_diagnostics([(Span("waiting for a change; Ctrl-C ends", Tone.FAINT),)])
        while _modified(options.folder) == before:
            time.sleep(WATCH_PERIOD)


def _modified(root: str) -> dict[Path, int]:
    """The files of a project, with the times of their last change."""
    found: dict[Path, int] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        for path in (Path(folder, name) for name in names):
            with contextlib.suppress(OSError):  # it was removed meanwhile
                found[path] = path.stat().st_mtime_ns
    return found
