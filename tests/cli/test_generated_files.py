"""Files of `ruleop generate`: all of them or none, the same bytes anywhere, and nothing of a project with mistakes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.cli.generated_project import CHOICES, WATCHES, project
from tests.waiting import PATIENCE

__all__ = ["project"]

COMMANDS = ("bundle", "crd", "helm", "image", "manifests", "rbac")


@pytest.fixture
def generate(project, tmp_path, ruleop):
    def run(what: str, *arguments: str):
        return ruleop("generate", what, "-C", str(project), "--out", str(tmp_path / "out"), *arguments)

    return run


def entries(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@contextmanager
def files_of_at_most(size: int):
    """A write beyond it fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_fails_leaves_no_file_and_no_folder(generate, tmp_path):
    before = entries(tmp_path)
    with files_of_at_most(1000):  # larger than Chart.yaml, which is written first
        ran = generate("helm")
    assert (ran.status, entries(tmp_path)) == (2, before)
    assert ran.err.endswith("cannot be written: File too large; nothing was written\n")


@pytest.mark.slow
def test_a_write_that_fails_leaves_the_files_of_before(generate, project, tmp_path):
    assert generate("helm").status == 0
    (project / "ruleop.yaml").write_text(f"{CHOICES}version: 0.2.0\n")
    (project / "watches.yaml").write_text(f"{WATCHES}# {'x' * 2000}\n")
    before = entries(tmp_path)
    with files_of_at_most(2000):
        ran = generate("helm")
    assert (ran.status, entries(tmp_path)) == (2, before)
    assert generate("helm").status == 0


def test_a_file_in_place_of_a_folder_is_found_before_anything_is_written(generate, tmp_path):
    (tmp_path / "out" / "files").mkdir(parents=True)
    (tmp_path / "out" / "files" / "rules").write_text("mine\n")
    before = entries(tmp_path)
    ran = generate("helm")
    assert (ran.status, entries(tmp_path)) == (2, before)


def test_a_path_through_a_missing_folder_is_made(ruleop, project, tmp_path):
    out = tmp_path / "missing" / ".." / "out"
    assert ruleop("generate", "rbac", "-C", str(project), "--out", str(out)).status == 0
    assert (tmp_path / "out" / "rbac.yaml").exists()


@pytest.mark.parametrize("what", COMMANDS)
@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "watches.yaml",
            WATCHES.replace("children", "childen"),
            'watches.yaml:7:3: error[RO201]: unknown key "childen"',
        ),
        ("templates/config.yaml", "a: {{ b", "templates/config.yaml:1:"),
        ("ruleop.yaml", "namespaces: [a, B]\n", "ruleop.yaml:1:17: error[RO204]: a namespace must be up to 63"),
        (
            "ruleop.yaml",
            "name: site-operator\n",
            "watches.yaml:4:18: error[RO206]: the variable DOMAIN is not set: set it",
        ),
    ],
)
def test_a_mistake_has_its_place_and_nothing_is_written(generate, project, tmp_path, what, file, text, message):
    (project / file).write_text(text)
    before = entries(tmp_path)
    ran = generate(what)
    assert (ran.status, ran.out, entries(tmp_path)) == (1, "", before)
    assert message in ran.err


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ('image: "app:$(TAG)"', '"image" must be an image such as'),
        ('image: "{{.Values.image}}"', '"image" must be an image such as'),
        ('image: "app:1\\nUSER 0"', '"image" must be an image such as'),
        ("image: App:1", '"image" must be an image such as'),
        ("name: -a", '"name" must be up to 40'),
        (f"namespace: {'a' * 64}", '"namespace" must be up to 63'),
        ('env: {A: "a\\0b"}', 'the variable "A" must be text without the character NUL'),
        ('about: {summary: "a\\nb"}', '"summary" must be one line of text'),
    ],
)
def test_a_hostile_choice_is_refused(generate, project, tmp_path, choice, message):
    (project / "ruleop.yaml").write_text(f"{choice}\n")
    ran = generate("helm")
    assert (ran.status, (tmp_path / "out").exists()) == (1, False)
    assert "ruleop.yaml:1:" in ran.err
    assert message in ran.err


@pytest.mark.parametrize("base", ["ruleop:1\nUSER 0", "$BASE", "a b"])
def test_a_base_image_cannot_add_instructions(generate, tmp_path, base):
    ran = generate("image", "--base", base)
    assert (ran.status, (tmp_path / "out").exists()) == (2, False)
    assert ran.err.startswith("ruleop: --base must be an image such as registry.example.com/operator:1.2.0, not")


@pytest.mark.parametrize("out", [".", "templates", "templates/chart"])
def test_a_chart_is_not_written_among_the_rules(ruleop, project, out):
    before = entries(project)
    ran = ruleop("generate", "helm", "-C", str(project), "--out", str(project / out))
    assert (ran.status, entries(project)) == (2, before)
    assert "the templates of the chart would be among those of the project: name another folder" in ran.err


ALL = f"""
import sys
from click.testing import CliRunner
from ruleop.cli.program import program
for each in {(*COMMANDS, "dashboard")}:
    ran = CliRunner().invoke(program, ["generate", each, "-C", sys.argv[1]])
    print(each, ran.exit_code, ran.stdout)
"""


def printed_in(folder, place: str, seed: str) -> bytes:
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", ALL, place]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, check=True, timeout=PATIENCE
    ).stdout


@pytest.mark.slow
def test_the_bytes_depend_on_neither_the_folder_nor_the_seed_of_hashes(project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    here, there = printed_in(project, ".", "1"), printed_in(tmp_path / "elsewhere", "../project", "2")
    assert here == there
    assert [f"\n{each} 0 ".encode() in b"\n" + here for each in (*COMMANDS, "dashboard")] == [True] * 7
