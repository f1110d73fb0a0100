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
    assert (ran.status, ran.err) == (0, "")
    assert re.fullmatch(r"\.\n1 passed in \d+\.\d\ds\n", ran.out)


def test_a_failure_is_shown_with_the_positions_of_test_and_template(
    project: Project, ruleop: Callable[..., Ran]
) -> None:
    project.write("tests/site.test.yaml", PASSES + FAILS)
    ran = ruleop("test")
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.startswith(".F\n")
    assert "_ tests/site.test.yaml:4:3: no page _" in ran.out
    assert "tests/site.test.yaml:6:23: children.config: ConfigMap/blog-config differs" in ran.out
    assert "-   page: bye" in ran.out
    assert "+   page: hello                               # templates/config.yaml.j2:4" in ran.out
    assert "1 failed, 1 passed in " in ran.out


def test_cases_can_be_selected_by_name_or_file(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", PASSES + FAILS)
    assert "1 passed, 1 deselected" in ruleop("test", "-k", "A PAGE").out
    assert "1 failed, 1 deselected" in ruleop("test", "-k", "no page").out
    assert "1 failed, 1 deselected" in ruleop("test", "-k", "tests/site and (no page or other) and not a page").out
    assert "1 failed in " in ruleop("test", "tests/site.test.yaml::no page").out
    project.write("b.test.yaml", PASSES.replace("..", "."))
    assert "1 passed in " in ruleop("test", "b.test.yaml").out
    assert "1 passed, 2 deselected" in ruleop("test", "-k", "b.test.yaml").out


def test_the_option_x_stops_at_the_first_failure(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", FAILS + PASSES)
    ran = ruleop("test", "-x")
    assert (ran.status, ran.out.splitlines()[0]) == (1, "F")


def test_an_error_in_a_test_file_fails_the_run(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/a.test.yaml", PASSES.replace("expect", "expekt"))
    project.write("tests/b.test.yaml", PASSES)
    ran = ruleop("test")
    assert ran.status == 1
    assert 'tests/a.test.yaml:3:3: error: unknown key "expekt" in a case (did you mean "expect"?)' in ran.out
    assert "    3 │   expekt: {" in ran.out
    assert "1 passed, 1 error in" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no tests: no file here ends in .test.yaml"),
        (("site.test.yaml",), "site.test.yaml: no such file"),
        (("site.test.yaml::a page",), "site.test.yaml: no such file"),
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
    ran = ruleop("test", "-k", "mispelt")
    assert ran.status == 2
    assert ran.err == "ruleop: no test selected: 'mispelt' is in no file and no name of a case (2 not selected)\n"
    ran = ruleop("test", "tests/site.test.yaml::another")
    assert (ran.status, "not found: " in ran.err) == (2, True)
    ran = ruleop("test", "-k", "a and and")
    assert (ran.status, "Wrong expression passed to '-k'" in ran.err) == (2, True)
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
    assert "1 snapshot written\n1 passed" in ruleop("test", "--update").out
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
    for option in ("--junitxml", "--junit"):
        assert ruleop("test", option, f"{option}.xml").status == 1
        top = ET.fromstring((project.root / f"{option}.xml").read_text())  # noqa: S314 - written by the line above
        [suite] = top.findall("testsuite")
        counts = {name: suite.get(name) for name in ("name", "tests", "failures", "errors")}
        assert counts == {"name": "ruleop", "tests": "3", "failures": "1", "errors": "1"}
        [test] = [each for each in suite.findall("testcase") if each.get("name") == "no page"]
        assert (test.get("classname"), test.get("file")) == ("tests.a.test.yaml", "tests/a.test.yaml")
        [failure] = test.findall("failure")
        assert failure.get("message") == "children.config: ConfigMap/blog-config differs"
        assert failure.text is not None
        assert "+   page: hello" in failure.text


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
    assert "_ tests/site.test.yaml:4:3: no page _" in ran.out
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


# -- apart from the tests of other tools -------------------------------------------------------------------------------


def test_the_configuration_of_other_tests_does_not_matter(
    project: Project, ruleop: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("tests/site.test.yaml", PASSES)
    for file in ("conftest.py", "tests/__init__.py", "tests/conftest.py", "tests/test_other.py"):
        project.write(file, f"raise RuntimeError('{file} is imported')\n")
    project.write("pytest.ini", "[pytest]\naddopts = --no-such-option\nnorecursedirs = tests\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option-either")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    before = sorted(project.root.rglob("*"))
    ran = ruleop("test")
    assert (ran.status, ran.err, "1 passed" in ran.out) == (0, "", True)
    assert sorted(project.root.rglob("*")) == before
    assert os.environ["PYTEST_ADDOPTS"] == "--no-such-option-either"


def test_names_of_files_are_no_options_of_pytest(project: Project, ruleop: Callable[..., Ran]) -> None:
    case = PASSES.replace("..", ".")
    for name in ("-x.test.yaml", "--no-such-option.test.yaml", "other-name.yaml"):
        project.write(name, case)
    project.write("@options.test.yaml", "--no-such-option\n")
    ran = ruleop("test")
    assert (ran.status, ran.err, "2 passed, 1 error in" in ran.out) == (1, "", True)
    assert "@options.test.yaml:1:1: error: a test file must be a list of cases" in ran.out
    assert "1 passed in" in ruleop("test", "other-name.yaml").out


def test_options_of_pytest_follow_two_dashes(project: Project, ruleop: Callable[..., Ran]) -> None:
    project.write("tests/site.test.yaml", PASSES + FAILS)
    ran = ruleop("test", "tests/site.test.yaml", "--", "--collect-only")
    assert ran.out.splitlines()[:2] == ["tests/site.test.yaml::a page", "tests/site.test.yaml::no page"]
    ran = ruleop("test", "--", "-r", "f")
    assert "FAILED tests/site.test.yaml::no page - children.config: ConfigMap/blog-config" in ran.out
    ran = ruleop("test", "--", "--no-such-option")
    assert (ran.status, "unrecognized arguments: --no-such-option" in ran.err) == (2, True)
    ran = ruleop("test", "--no-such-option")
    assert (ran.status, "unknown option --no-such-option" in ran.err) == (2, True)


def test_without_pytest_an_error_names_the_package(
    project: Project, ruleop: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image of the operator has no pytest."""
    project.write("tests/site.test.yaml", PASSES)
    monkeypatch.setitem(sys.modules, "pytest", None)
    ran = ruleop("test")
    assert ran.status == 2
    assert ran.err == "ruleop: pytest is not installed, as in the operator's image: pip install pytest\n"
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert "-n needs pytest-xdist" in ruleop("test", "-n", "2").err


@pytest.mark.slow
def test_a_closed_pipe_does_not_change_the_exit_status(
    project: Project, process: Callable[..., subprocess.Popen[str]]
) -> None:
    project.write("tests/site.test.yaml", PASSES)
    reading, writing = os.pipe()
    os.close(reading)
    started = process("test", stdout=writing)
    os.close(writing)
    assert (started.communicate(timeout=PATIENCE)[1], started.returncode) == ("", 0)


# -- in several processes ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_cases_run_in_several_processes(project: Project, process: Callable[..., subprocess.Popen[str]]) -> None:
    def run(*arguments: str) -> Ran:
        started = process("test", "-n", "2", *arguments)
        out, err = started.communicate(timeout=PATIENCE)
        return Ran(started.returncode, out, err)

    project.write("tests/site.test.yaml", PASSES + FAILS + SNAPSHOT)
    project.write("tests/broken.test.yaml", PASSES.replace("expect", "expekt"))
    project.write("tests/snapshots/old.yaml", "")
    ran = run("--update", "--coverage")
    assert ran.status == 1
    assert ran.out.count('tests/broken.test.yaml:3:3: error: unknown key "expekt"') == 1
    assert "+   page: hello                               # templates/config.yaml.j2:4" in ran.out
    assert "1 snapshot written\n1 failed, 2 passed, 1 error in" in ran.out
    assert re.search(r"^total +\S+ % +- *$", ran.out, re.MULTILINE)
    assert (project.root / "tests/snapshots/site.yaml").exists()
    (project.root / "tests/broken.test.yaml").unlink()
    found = json.loads(run("-o", "json", "-k", "page").out)
    assert (found["passed"], found["failed"], found["deselected"]) == (1, 1, 1)
    assert found["staleSnapshots"] == ["tests/snapshots/old.yaml"]
    assert run("-x", "-k", "no page").status == 1


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
def test_watching_runs_the_cases_again_after_an_edit(
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
        assert "1 failed, 2 passed in" in until_it_waits()
        project.edit("templates/config.yaml.j2", "{{ spec.page }}", "bye")
        assert "2 failed, 1 passed in" in until_it_waits()
        assert sorted(project.root.rglob("*cache*")) == []
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
    assert f"_ {name}/tests/site.test.yaml:1:3: no page _" in ran.out
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
