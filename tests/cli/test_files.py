"""Files of a project and files that a command line names: links, pipes, devices and sizes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ruleop.files import MAX_FILE, read_named, read_regular
from tests.cli.conftest import SITE, Project, Ran

OUTSIDE = "this link points outside of the project folder: only files inside are read"
REGULAR = "cannot be read: it is not a regular file"
CASE = "- name: a page\n  resource: {}\n  expect: {{children: {{config: {{data: {{page: hello}}}}}}}}\n"


@pytest.fixture
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the user who runs the command."""
    file = tmp_path_factory.mktemp("home") / "private.yaml"
    file.write_text("- password: hunter2\n- [\n")
    return file


def link(project: Project, path: str, target: Path) -> None:
    file = project.root / path
    file.parent.mkdir(exist_ok=True)
    file.symlink_to(target)


@pytest.mark.parametrize(
    ("command", "path"),
    [("check", "examples/x.yaml"), ("test", "tests/x.test.yaml"), ("test", "tests/data.yaml")],
)
def test_a_link_of_a_project_to_a_file_outside_shows_nothing_of_it(
    project: Project, ruleop: Callable[..., Ran], private: Path, command: str, path: str
) -> None:
    link(project, path, private)
    if path == "tests/data.yaml":
        project.write("tests/x.test.yaml", CASE.format("data.yaml"))
    ran = ruleop(command)
    assert ran.status != 0
    assert OUTSIDE in ran.out + ran.err
    assert "hunter2" not in ran.out + ran.err


def test_a_snapshot_that_is_a_link_to_a_file_outside_is_neither_read_nor_written(
    project: Project, ruleop: Callable[..., Ran], private: Path
) -> None:
    before = private.read_text()
    link(project, "tests/all.yaml", private)
    project.write("tests/x.test.yaml", "- name: all\n  resource: ../site.yaml\n  snapshot: all.yaml\n")
    ran = ruleop("test", "--update")
    assert "all.yaml is outside of the project folder" in ran.out
    assert "hunter2" not in ran.out
    assert private.read_text() == before


def test_links_inside_a_project_are_followed(project: Project, ruleop: Callable[..., Ran]) -> None:
    link(project, "examples/site.yaml", project.root / "site.yaml")
    link(project, "tests/data.yaml", project.root / "site.yaml")
    project.write("more/x.test.yaml", CASE.format("../site.yaml"))
    link(project, "tests/x.test.yaml", project.root / "more/x.test.yaml")
    assert ruleop("check").status == 0
    assert ruleop("test").status == 0


@pytest.mark.parametrize(
    ("command", "path"), [("check", "examples/x.yaml"), ("test", "tests/x.test.yaml"), ("test", "tests/data.yaml")]
)
def test_a_pipe_in_a_project_is_not_waited_for(
    project: Project, ruleop: Callable[..., Ran], command: str, path: str
) -> None:
    (project.root / path).parent.mkdir(exist_ok=True)
    os.mkfifo(project.root / path)
    if path == "tests/data.yaml":
        project.write("tests/x.test.yaml", CASE.format("data.yaml"))
    ran = ruleop(command)
    assert ran.status != 0
    assert REGULAR in ran.out + ran.err


@pytest.mark.parametrize(
    "options",
    [
        ("plan", "-f", "/dev/zero"),
        ("plan", "-f", "site.yaml", "--with", "/dev/zero"),
        ("plan", "-f", "site.yaml", "--env-file", "/dev/zero"),
        ("plan", "--replay", "/dev/zero"),
        ("init", "x", "--from-manifests", "/dev/zero"),
        ("init", "x", "--from-sample", "/dev/zero"),
    ],
    ids=" ".join,
)
def test_an_endless_file_is_read_up_to_the_limit(
    project: Project, ruleop: Callable[..., Ran], options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ruleop.files.read_named.__defaults__", (1 << 20,))
    ran = ruleop(*options)
    assert ran.status == 2
    assert "/dev/zero: is larger than 1024 KiB" in ran.err


def test_a_file_that_a_command_line_names_may_be_a_pipe(project: Project, ruleop: Callable[..., Ran]) -> None:
    """As `plan -f <(command)` has it."""
    os.mkfifo(pipe := project.root / "pipe")
    writer = threading.Thread(target=pipe.write_text, args=(SITE,))
    writer.start()
    ran = ruleop("plan", "-f", "pipe")
    writer.join()
    assert ran.status == 0


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"x" * 100)
    assert len(read_regular(file, 100)) == len(read_named(file, 100)) == 100
    for read in (read_regular, read_named):
        with pytest.raises(OSError, match="is larger than"):
            read(file, 99)
    assert MAX_FILE == 64 << 20
