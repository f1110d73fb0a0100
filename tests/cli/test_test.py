"""`ruleop test`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Project, Ran
from tests.waiting import PATIENCE

PASSES = "- name: a page\n  resource: ../site.yaml\n  expect: {children: {config: {data: {page: hello}}}}\n"
FAILS = "- name: no page\n  resource: ../site.yaml\n  expect: {children: {config: {data: {page: bye}}}}\n"
SNAPSHOT = "- name: all\n  resource: ../site.yaml\n  snapshot: snapshots/site.yaml\n"


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def test_a_run_with_passing_cases_succeeds(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", PASSES)
    ran = ruleop("test")
    assert (ran.status, ran.err) == (0, ".\n")
    assert ran.out.startswith("1 passed in ")


def test_a_failure_is_shown_with_the_positions_of_test_and_template(
    project: Project, ruleop: Callable[..., Ran]
) -> None:
    project.write("tests/site.test.yaml", PASSES + FAILS)
    ran = ruleop("test")
    assert (ran.status, ran.err) == (1, ".F\n")
    assert "FAILED tests/site.test.yaml:4:3: no page" in ran.out
    assert "tests/site.test.yaml:6:23: children.config: ConfigMap/blog-config differs" in ran.out
    assert "-   page: bye" in ran.out
    assert "+   page: hello                               # templates/config.yaml.j2:4" in ran.out
    assert "1 failed, 1 passed in " in ran.out


def test_cases_can_be_selected_by_name_or_file(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", PASSES + FAILS)
    assert "1 passed, 1 not selected" in ruleop("test", "-k", "A PAGE").out
    assert "1 failed, 1 not selected" in ruleop("test", "-k", "no page").out
    project.write("b.test.yaml", PASSES.replace("..", "."))
    assert "1 passed in " in ruleop("test", "b.test.yaml").out


def test_the_option_x_stops_at_the_first_failure(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", FAILS + PASSES)
    assert ruleop("test", "-x").err == "F\n"


def test_an_error_in_a_test_file_fails_the_run(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/a.test.yaml", PASSES.replace("expect", "expekt"))
    project.write("tests/b.test.yaml", PASSES)
    ran = ruleop("test")
    assert ran.status == 1
    assert 'tests/a.test.yaml:3:3: error: unknown key "expekt" in a case (did you mean "expect"?)' in ran.out
    assert "1 passed, 1 file with mistakes" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no tests: no file here ends in .test.yaml"),
        (("site.test.yaml",), "site.test.yaml: no such file"),
        (("-C", "nowhere"), "nowhere: no such folder"),
    ],
)
def test_without_tests_nothing_has_passed(
    project: Project, ruleop: Callable[..., Ran], arguments: tuple[str, ...], message: str
) -> None:
    ran = ruleop("test", *arguments)
    assert ran.status == 2
    assert message in ran.err


def test_a_selection_without_any_case_is_wrong_usage(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", PASSES + FAILS)
    ran = ruleop("test", "-k", "mispelt", "--junit", "results.xml")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "ruleop: no test selected: 'mispelt' is in no file and no name of a case (2 not selected)\n"
    assert not (project.root / "results.xml").exists()
    project.write("tests/broken.test.yaml", PASSES.replace("expect", "expekt"))
    assert ruleop("test", "-k", "mispelt").status == 1


def test_errors_of_the_project_are_listed(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", PASSES)
    project.edit("watches.yaml", "children", "childs")
    ran = ruleop("test")
    assert ran.status == 2
    assert 'unknown key "childs"' in ran.err


# -- snapshots ---------------------------------------------------------------------------------------------------------


def test_a_missing_snapshot_fails_until_it_is_written(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", SNAPSHOT)
    ran = ruleop("test")
    assert ran.status == 1
    assert "snapshot: snapshots/site.yaml does not exist: --update writes it" in ran.out
    assert "1 passed, 1 snapshot written" in ruleop("test", "--update").out
    text = (project.root / "tests/snapshots/site.yaml").read_text()
    assert text.startswith("# config: templates/config.yaml.j2\napiVersion: v1\nkind: ConfigMap\n")
    assert ruleop("test").status == 0
    assert (project.root / "tests/snapshots/site.yaml").read_text() == text


@pytest.mark.slow
def test_a_different_snapshot_is_a_diff(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", SNAPSHOT)
    ruleop("test", "--update")
    project.edit("site.yaml", "hello", "bye")
    ran = ruleop("test")
    assert ran.status == 1
    assert "-   page: hello" in ran.out
    assert "+   page: bye" in ran.out
    assert ruleop("test", "--update").status == 0
    assert ruleop("test").status == 0


def test_in_ci_a_missing_snapshot_always_fails(
    project: Project, ruleop: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("tests/site.test.yaml", SNAPSHOT)
    monkeypatch.setenv("CI", "true")
    ran = ruleop("test", "--update")
    assert ran.status == 1
    assert "CI is set, so --update does not write it" in ran.out
    assert not (project.root / "tests/snapshots").exists()


def test_a_snapshot_that_no_case_names_is_reported(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", SNAPSHOT)
    project.write("tests/snapshots/old.yaml", "")
    ruleop("test", "--update")
    assert "tests/snapshots/old.yaml: warning: no case uses this snapshot" in ruleop("test").err


def test_two_cases_with_one_snapshot_fail(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", SNAPSHOT + SNAPSHOT.replace("all", "again"))
    assert 'snapshots/site.yaml is the snapshot of the case "all" too' in ruleop("test", "--update").out


# -- for programs ------------------------------------------------------------------------------------------------------


def test_results_are_json(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", PASSES + FAILS)
    ran = ruleop("test", "-o", "json")
    found = json.loads(ran.out)
    assert (ran.status, ran.err, found["passed"], found["failed"]) == (1, "", 1, 1)
    [difference] = found["cases"][1]["failures"][0]["differences"]
    assert difference == {
        "path": "data.page",
        "expected": "bye",
        "actual": "hello",
        "source": "templates/config.yaml.j2:4",
    }


def test_results_are_junit(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/a.test.yaml", PASSES + FAILS)
    project.write("tests/b.test.yaml", "- {}")
    assert ruleop("test", "--junit", "junit.xml").status == 1
    top = ET.fromstring((project.root / "junit.xml").read_text())  # noqa: S314 - written by the line above
    first, second = top.findall("testsuite")
    assert (first.get("name"), first.get("tests"), first.get("failures")) == ("tests/a.test.yaml", "2", "1")
    failure = first.findall("testcase")[1].find("failure")
    assert failure is not None
    assert failure.text is not None
    assert "+   page: hello" in failure.text
    assert second.get("errors") == "1"


# -- pytest ------------------------------------------------------------------------------------------------------------


def run_pytest(project: Project) -> Ran:
    """pytest in a process of its own, with the plugin."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(project.root)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project.root)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.slow
def test_pytest_collects_the_same_files(project: Project) -> None:
    project.write("tests/site.test.yaml", PASSES + FAILS)
    project.write("elsewhere.yaml", PASSES)
    ran = run_pytest(project)
    assert ran.status == 1
    assert "1 failed, 1 passed" in ran.out
    assert "FAILED tests/site.test.yaml:4:3: no page" in ran.out
    assert "+   page: hello                               # templates/config.yaml.j2:4" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("key", ["role: memcached", "playbook: memcached.yaml", "chart: helm-charts/memcached"])
def test_pytest_ignores_files_of_other_tools_with_the_same_names(project: Project, key: str) -> None:
    """operator-sdk's Ansible and Helm operators have a watches.yaml, too."""
    project.write("watches.yaml", f"---\n- version: v1\n  group: example.com\n  kind: Memcached\n  {key}\n")
    project.write("tests/site.test.yaml", "- resource: x\n  other: true\n")
    project.write("test_one.py", "def test_one():\n    pass\n")
    ran = run_pytest(project)
    assert (ran.status, ran.out.splitlines()[-1].split(" in ")[0]) == (0, "1 passed")


@pytest.mark.slow
def test_pytest_ignores_test_files_that_have_no_case_of_ruleop(project: Project) -> None:
    project.write("tests/other.test.yaml", "suite: of another tool\n")
    project.write("test_one.py", "def test_one():\n    pass\n")
    assert run_pytest(project).status == 0


@pytest.mark.slow
def test_pytest_does_not_wait_for_a_pipe(project: Project) -> None:
    (project.root / "tests").mkdir()
    os.mkfifo(project.root / "tests/site.test.yaml")
    project.write("test_one.py", "def test_one():\n    pass\n")
    assert run_pytest(project).status == 0


@pytest.mark.slow
def test_pytest_reports_errors_of_a_test_file(project: Project) -> None:
    project.write("tests/site.test.yaml", PASSES.replace("expect", "expekt"))
    ran = run_pytest(project)
    assert ran.status == 2
    assert 'unknown key "expekt" in a case (did you mean "expect"?)' in ran.out


# -- coverage and watching ---------------------------------------------------------------------------------------------


def test_coverage_is_a_table_a_page_and_a_tracefile(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", PASSES)
    ran = ruleop("test", "--coverage", "--coverage-html", "coverage.html", "--coverage-lcov", "lcov.info")
    assert ran.status == 0
    assert re.search(r"^templates/config.yaml.j2 +100 % +- *$", ran.out, re.MULTILINE)
    assert '<h2 id="templates/web.yaml.j2">' in (project.root / "coverage.html").read_text()
    assert "SF:templates/web.yaml.j2\n" in (project.root / "lcov.info").read_text()


def test_a_file_that_cannot_be_written_is_an_error(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", PASSES)
    ran = ruleop("test", "--coverage-lcov", "nowhere/lcov.info")
    assert ran.status == 2
    assert "nowhere/lcov.info: cannot be written: No such file or directory" in ran.err


@pytest.mark.parametrize("more", [("-o", "json"), ("--coverage",), ("--junit", "a.xml")])
def test_watching_prints_text_only(project: Project, ruleop: Callable[..., Ran], more: tuple[str, ...]) -> None:
    project.write("tests/site.test.yaml", PASSES)
    ran = ruleop("test", "--watch", *more)
    assert ran.status == 2
    assert "--watch prints text only" in ran.err


@pytest.mark.slow
def test_watching_runs_again_what_an_edit_touches(
    project: Project, process: Callable[..., subprocess.Popen[str]]
) -> None:
    project.write("tests/site.test.yaml", PASSES + PASSES.replace("a page", "another"))
    project.write("tests/web.test.yaml", PASSES.replace("a page", "a third"))
    started = process("test", "--watch", stderr=subprocess.STDOUT)
    assert started.stdout is not None

    def until_it_waits() -> str:
        lines: list[str] = []
        for line in started.stdout:  # type: ignore[union-attr]
            if line.startswith("waiting for a change"):
                return "".join(lines)
            lines.append(line)
        raise AssertionError("".join(lines))

    try:
        assert "3 passed in" in until_it_waits()
        project.write("tests/web.test.yaml", FAILS)
        assert "1 failed, 2 not selected in" in until_it_waits()
        project.edit("templates/config.yaml.j2", "{{ spec.page }}", "bye")
        assert "2 failed, 1 passed in" in until_it_waits()
        project.edit("watches.yaml", "children", "childs")
        assert 'unknown key "childs"' in until_it_waits()
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=PATIENCE)
    assert started.returncode == 130


@pytest.mark.slow
def test_the_plugin_imports_nothing_before_there_is_a_test_file() -> None:
    code = "import sys, ruleop.pytest_plugin; print(sorted(name for name in sys.modules if name.startswith('ruleop')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['ruleop', 'ruleop.pytest_plugin']\n"


def test_places_are_relative_to_the_current_folder(
    project: Project, ruleop: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("tests/site.test.yaml", FAILS)
    monkeypatch.chdir(project.root.parent)
    name = project.root.name
    ran = ruleop("test", "-C", name, "--coverage", "--coverage-lcov", "lcov.info")
    assert f"FAILED {name}/tests/site.test.yaml:1:3: no page" in ran.out
    assert f"# {name}/templates/config.yaml.j2:4" in ran.out
    assert f"{name}/templates/config.yaml.j2  " in ran.out
    assert f"SF:{name}/templates/web.yaml.j2" in (project.root.parent / "lcov.info").read_text()


def test_variables_may_come_with_the_cases_alone(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.edit("watches.yaml", "  children:", "  vars: {region: '${REGION_OF_TESTS}'}\n  children:")
    project.edit("templates/config.yaml.j2", "spec.page", "vars.region")
    region = "{children: {config: {data: {page: eu}}}}"
    project.write(
        "a.test.yaml", f"- {{name: a, resource: site.yaml, env: {{REGION_OF_TESTS: eu}}, expect: {region}}}\n"
    )
    assert ruleop("test", "--coverage").status == 0
    project.write("b.test.yaml", f"- {{name: b, resource: site.yaml, expect: {region}}}\n")
    ran = ruleop("test")
    assert ran.status == 1
    assert "not run: the project has mistakes: watches.yaml:4:" in ran.out
