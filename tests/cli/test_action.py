"""The GitHub Action and the hooks of pre-commit: their commands are run in projects with and without mistakes."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Project
from tests.docs.messages import ROOT
from tests.processes.fork_server import ForkServer
from tests.waiting import PATIENCE

ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS: Any = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
CASE = "- {name: a site, resource: site.yaml, expect: {children: {config: {data: {page: hello}}}}}\n"


@dataclass
class Runner:
    """A machine that runs the steps of the action in a checkout, where ruleop is installed already."""

    home: Path
    checkout: Path

    def step(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        (step,) = [each for each in ACTION["runs"]["steps"] if each.get("name") == name]
        given = {key: each["default"] for key, each in ACTION["inputs"].items()} | inputs
        environment = {
            variable: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: given[found[1]], text)
            for variable, text in step.get("env", {}).items()
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.checkout,
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "RUNNER_TEMP": str(self.home),
                "GITHUB_OUTPUT": str(self.home / "output"),
                "GITHUB_STEP_SUMMARY": str(self.home / "summary"),
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    @property
    def comment(self) -> str:
        (path,) = re.findall(r"^comment=(.+)$", (self.home / "output").read_text(), re.MULTILINE)
        return Path(path).read_text()


@pytest.fixture
def runner(tmp_path_factory: pytest.TempPathFactory, project: Project, fork_server: ForkServer) -> Runner:
    home = tmp_path_factory.mktemp("runner")
    program = home / "ruleop" / "bin" / "ruleop"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.join(fork_server.command())} "$@"\n')
    program.chmod(0o755)
    return Runner(home, project.root)


@pytest.mark.slow
def test_a_project_without_mistakes_passes(runner: Runner, project: Project) -> None:
    project.write("tests/site.test.yaml", CASE.replace("site.yaml", "../site.yaml"))
    assert runner.step("check").returncode == 0
    ran = runner.step("test")
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True)


def test_a_mistake_is_an_annotation_of_its_line(runner: Runner, project: Project) -> None:
    project.edit("templates/web.yaml.j2", "{{ metadata.name }}", "{{ metadta.name }}")
    ran = runner.step("check")
    assert ran.returncode == 1
    assert "::error file=templates/web.yaml.j2,line=4,col=12" in ran.stdout


@pytest.mark.slow
def test_a_failed_test_fails_the_step_and_a_project_without_tests_does_not(runner: Runner, project: Project) -> None:
    assert runner.step("test").returncode == 0
    project.write("tests/site.test.yaml", CASE.replace("site.yaml", "../site.yaml").replace("hello", "bye"))
    assert runner.step("test").returncode == 1


@pytest.mark.slow
def test_a_project_can_be_in_a_folder(runner: Runner, project: Project) -> None:
    (project.root / "my rules").mkdir()
    for each in ("watches.yaml", "templates", "crds", "site.yaml"):
        (project.root / each).rename(project.root / "my rules" / each)
    assert runner.step("check", folder="my rules").returncode == 0
    assert runner.step("plan", folder="my rules", plan="-f site.yaml").returncode == 0
    assert "create Deployment/blog" in runner.comment


def test_the_plan_is_the_text_of_a_comment(runner: Runner) -> None:
    ran = runner.step("plan", plan="-f site.yaml")
    assert ran.returncode == 0
    assert runner.comment.startswith("### `ruleop plan`: exit status 0\n\n<pre>\n")
    assert "+ create Deployment/blog" in runner.comment
    assert "</pre>\n" in runner.comment
    assert (runner.home / "summary").read_text() == runner.comment


@pytest.mark.slow
def test_a_plan_with_errors_fails_the_step_and_has_a_comment(runner: Runner, project: Project) -> None:
    project.edit("templates/config.yaml.j2", "spec.page", "spec.nothing")
    ran = runner.step("plan", plan="-f site.yaml")
    assert ran.returncode != 0
    assert f"exit status {ran.returncode}\n" in runner.comment


def test_no_text_of_a_custom_resource_is_markup_or_a_command(runner: Runner, project: Project) -> None:
    site = (project.root / "site.yaml").read_text()
    project.write("site.yaml", f"{site}  '</pre>&$(touch x)`touch x`': 1\n")
    runner.step("plan", plan="-f site.yaml")
    assert runner.comment.count("</pre>") == 1
    assert "&lt;/pre>&amp;$(touch x)`touch x`" in runner.comment
    assert not (project.root / "x").exists()


@pytest.mark.slow
def test_the_arguments_of_the_plan_are_no_command(runner: Runner, project: Project) -> None:
    runner.step("plan", plan="-f site.yaml; touch x $(touch x) `touch x`")
    assert not (project.root / "x").exists()


@pytest.mark.slow
def test_a_long_plan_fits_into_a_comment(runner: Runner, project: Project) -> None:
    site = (project.root / "site.yaml").read_text()
    project.write("site.yaml", "---\n".join(site.replace("blog", f"blog{number}") for number in range(300)))
    ran = runner.step("plan", plan="-f site.yaml")
    assert ran.returncode == 0
    assert len(ran.stdout) > 65536
    assert len(runner.comment) < 65536
    assert "The plan is longer" in runner.comment


def test_inputs_reach_commands_as_variables_alone() -> None:
    """An expression inside of a command would be text that the shell runs."""
    assert [each["name"] for each in ACTION["runs"]["steps"] if "${{" in each.get("run", "")] == []
    assert {each["shell"] for each in ACTION["runs"]["steps"] if "run" in each} == {"bash"}


def test_a_hook_has_the_keys_of_pre_commit() -> None:
    assert [each["id"] for each in HOOKS] == ["ruleop-check", "ruleop-test"]
    for each in HOOKS:
        assert set(each) == {"id", "name", "description", "entry", "language", "pass_filenames", "files"}
        assert (each["language"], each["pass_filenames"]) == ("python", False)


@pytest.mark.parametrize("hook", HOOKS, ids=lambda each: each["id"])
def test_the_command_of_a_hook_passes_in_a_project_without_mistakes(hook: Any, project: Project, ruleop: Any) -> None:
    project.write("tests/site.test.yaml", CASE.replace("site.yaml", "../site.yaml"))
    program, *arguments = hook["entry"].split()
    assert program == "ruleop"
    assert ruleop(*arguments).status == 0
    project.write("tests/site.test.yaml", CASE.replace("site.yaml", "../missing.yaml"))
    assert ruleop(*arguments).status != 0 or hook["id"] == "ruleop-check"


@pytest.mark.parametrize("hook", HOOKS, ids=lambda each: each["id"])
def test_a_hook_runs_for_the_files_of_a_project(hook: Any) -> None:
    runs = re.compile(hook["files"]).search
    for path in (
        "watches.yaml",
        "templates/web.yaml.j2",
        "ops/templates/a/b.txt",
        "tests/site.test.yaml",
        "crds/a.yaml",
    ):
        assert runs(path), path
    for path in ("README.md", "src/watches.yaml.py", "docs/site.md"):
        assert not runs(path), path
