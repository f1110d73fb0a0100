"""Wrong usage of commands and unusable files: a message, a position and an exit status; never a traceback."""

import errno
import os
from pathlib import Path

import pytest

from ruleop.cli.program import COMMANDS, program
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.checking import checked


def make_large(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(2 * 10**10)


def make_endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


def make_pipe(file: Path) -> None:
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chek"], "ruleop: unknown command 'chek' (did you mean check?)\nTry: ruleop --help\n"),
        (["nonsense"], "ruleop: unknown command 'nonsense'\nTry: ruleop --help\n"),
        (["--colour"], "ruleop: unknown option --colour\nTry: ruleop --help\n"),
        (
            ["check", "--debg"],
            "ruleop check: unknown option --debg (did you mean --debug?)\nTry: ruleop check --help\n",
        ),
        (["check", "extra"], "ruleop check: got unexpected extra argument (extra)\nTry: ruleop check --help\n"),
        (
            ["check", "-o", "xml"],
            "ruleop check: -o: 'xml' is not one of 'text', 'json', 'sarif', 'github'\nTry: ruleop check --help\n",
        ),
        (["plan", "-o"], "ruleop: -o needs a value\nTry: ruleop --help\n"),
        (["render"], "ruleop render: -f is missing: name a file of custom resources\nTry: ruleop render --help\n"),
        (["render", "-f", "none.yaml"], "ruleop: none.yaml: no such file\n"),
        (["render", "-f", "templates"], "ruleop: templates: no .yaml, .yml or .json file in this folder\n"),
        (
            ["plan", "-f", "site.yaml", "--with", "templates"],
            "ruleop: templates: no .yaml, .yml or .json file in this folder\n",
        ),
        (["render", "-f", "site.yaml", "--with", "none.yaml"], "ruleop: none.yaml: no such file\n"),
        (["check", "-C", "none"], "ruleop: none: no such folder\n"),
        (["check", "-C", "site.yaml"], "ruleop: site.yaml: is a file: name the project's folder\n"),
        (["check", "--env-file", "none.env"], "ruleop: none.env: cannot be read: No such file or directory\n"),
        (
            ["check", "--env-file", "site.yaml"],
            "ruleop: site.yaml:1: expected NAME=value, a comment (#) or an empty line\n",
        ),
    ],
)
def test_wrong_usage_has_status_2_and_a_message(project, ruleop, arguments, message):
    ran = ruleop(*arguments)
    assert (ran.status, ran.out, ran.err) == (2, "", message)


def test_a_folder_without_watches_yaml_is_not_a_project(project, ruleop):
    (project.root / "watches.yaml").unlink()
    ran = ruleop("check")
    assert (ran.status, ran.err) == (
        2,
        "ruleop: not a ruleop project: no watches.yaml in this folder (use -C DIR for another folder)\n",
    )


def test_watches_yaml_as_a_link_or_folder_is_reported(project, ruleop):
    rules = project.root / "watches.yaml"
    rules.unlink()
    rules.symlink_to("watches.yaml")
    assert ruleop("check").out == "watches.yaml: error[RO101]: this link is broken\n1 error.\n"
    rules.unlink()
    rules.mkdir()
    assert ruleop("check").out == "watches.yaml: error[RO101]: cannot be read: it is a folder\n1 error.\n"


def test_a_subfolder_of_a_project_names_the_project(project, ruleop):
    ran = ruleop("check", "-C", "templates")
    assert (ran.status, ran.err) == (
        2,
        f"ruleop: not a ruleop project: no watches.yaml in templates (its parent folder {project.root} has one)\n",
    )


def test_a_file_in_the_project_is_suggested_but_not_used(project, ruleop, monkeypatch):
    monkeypatch.chdir("/")
    ran = ruleop("plan", "-C", str(project.root), "-f", "site.yaml")
    assert ran.status == 2
    assert ran.err == (
        f"ruleop: site.yaml: no such file (paths are relative to the current folder; did you mean {project.root}/site.yaml?)\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [\n", "site.yaml:2:1: error: not YAML: "),
        ("a: b: c\n", "site.yaml:1:5: error: not YAML: a second `: ` in one value"),
        ("a: 1\na: 2\n", 'site.yaml:2:1: error: duplicate key "a"'),
        ("- a\n", "site.yaml:1:1: error: not an object: expected a mapping with apiVersion, kind and metadata\n"),
        ("kind: Site\n", "site.yaml:1:1: error: apiVersion is missing or not a string\n"),
        ("apiVersion: 1\nkind: Site\n", "site.yaml:1:13: error: apiVersion is missing or not a string\n"),
        (
            "kind: SiteList\napiVersion: v1\nitems: [3]\n",
            "site.yaml:3:9: error: not an object: expected a mapping with apiVersion, kind and metadata\n",
        ),
    ],
)
def test_a_file_without_objects_is_reported_with_its_line(project, ruleop, text, message):
    project.write("site.yaml", text)
    ran = ruleop("plan", "-f", "site.yaml")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(message)
    assert ran.err.endswith("\nruleop: site.yaml cannot be used\n")


def test_lines_of_existing_objects_are_not_printed_as_they_may_contain_secrets(project, ruleop):
    project.write("live.yaml", "apiVersion: v1\nkind: Secret\nstringData: {password: hunter2}}\n")
    ran = ruleop("plan", "-f", "site.yaml", "--with", "live.yaml")
    assert ran.status == 2
    assert ran.err.startswith("live.yaml:3:")
    assert "hunter2" not in ran.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no objects in the files of -f; this project watches example.com/v1 Site"),
        (
            "apiVersion: example.com/v1\nkind: Sight\n",
            "site.yaml:2:1: no rule watches example.com/v1 Sight; this project watches example.com/v1 Site",
        ),
        (
            "apiVersion: example.com/v1\nkind: Sites\n",
            "site.yaml:2:1: no rule watches example.com/v1 Sites (did you mean Site?); this project watches example.com/v1 Site",
        ),
        (
            "apiVersion: example.com/v2\nkind: Site\n",
            "site.yaml:1:1: Site is watched in example.com/v1, not in example.com/v2",
        ),
    ],
)
def test_a_kind_that_no_rule_watches_is_reported(project, ruleop, text, message):
    project.write("site.yaml", text)
    ran = ruleop("render", "-f", "site.yaml")
    assert (ran.status, ran.err) == (2, f"ruleop: {message}\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "metadata:\n  name: blog\n",
            "",
            "site.yaml:1:1: error: metadata: is required, and must be an object with a name\n",
        ),
        (
            "  name: blog\n",
            "  labels: {}\n",
            "site.yaml:3:1: error: metadata.name: is required, and must be a string\n",
        ),
        ("name: blog", "name: My_Blog", "site.yaml:4:3: error: metadata.name: 'My_Blog' is not valid: a name has "),
        (
            "name: blog",
            "name: blog\n  labels: {a: 1}",
            "site.yaml:5:12: error: metadata.labels.a: must be a string: put it in quotes\n",
        ),
        ("spec:\n  page: hello\n", "spec: 3\n", "site.yaml:5:1: error: spec: must be an object\n"),
        ("page: hello", "page: 3", "site.yaml:6:3: error: spec.page: must be a string, not 3\n"),
        ("page: hello", "replicas: 2", "site.yaml:5:1: error: spec.page: is required\n"),
    ],
)
def test_an_invalid_resource_is_reported_with_its_line(project, ruleop, old, new, message):
    project.edit("site.yaml", old, new)
    for command in ("render", "plan"):
        ran = ruleop(command, "-f", "site.yaml")
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.startswith(message)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("x", "3:11: error: metadata must be a mapping\n"),
        ("[1]", "3:11: error: metadata must be a mapping\n"),
        ("{name: 3}", "3:18: error: metadata.name must be a string: put it in quotes\n"),
        ("{name: a, namespace: 3}", "3:32: error: metadata.namespace must be a string: put it in quotes\n"),
        ("{name: a, namespace: [x]}", "3:32: error: metadata.namespace must be a string\n"),
        ("{name: a, labels: [x]}", "3:29: error: metadata.labels must be a mapping\n"),
        ("{name: a, ownerReferences: 3}", "3:38: error: metadata.ownerReferences must be a list of mappings\n"),
        ("{name: a, ownerReferences: [3]}", "3:38: error: metadata.ownerReferences must be a list of mappings\n"),
    ],
)
def test_metadata_of_another_form_is_reported_with_its_place(project, ruleop, metadata, message):
    project.write("bad.yaml", f"apiVersion: example.com/v1\nkind: Site\nmetadata: {metadata}\n")
    for arguments in (("-f", "bad.yaml"), ("-f", "site.yaml", "--with", "bad.yaml")):
        for command in ("render", "plan"):
            ran = ruleop(command, *arguments)
            assert (ran.status, ran.out) == (2, "")
            assert ran.err.startswith(f"bad.yaml:{message}")
    project.write("examples/bad.yaml", (project.root / "bad.yaml").read_text())
    assert f"examples/bad.yaml:{message}".replace("error", "error[RO506]") in ruleop("check").out


def test_an_invalid_project_is_not_planned(project, ruleop):
    project.edit("templates/web.yaml.j2", "{{ metadata.name }}", "{{ metadta.name }}")
    for command in ("render", "plan"):
        ran = ruleop(command, "-f", "site.yaml")
        assert (ran.status, ran.out) == (2, "")
        assert ran.err.startswith("templates/web.yaml.j2:4:12: error[RO302]: ")
        assert ran.err.endswith("ruleop: the project has 1 error: nothing can be planned\n")


def test_files_that_are_not_utf_8_are_reported(project, ruleop):
    (project.root / "site.yaml").write_bytes(b"a: 1\nb: \xff\n")
    ran = ruleop("plan", "-f", "site.yaml")
    assert (ran.status, ran.err) == (2, "ruleop: site.yaml:2: not valid UTF-8\n")
    ran = ruleop("check", "--env-file", "site.yaml")
    assert (ran.status, ran.err) == (2, "ruleop: site.yaml: not valid UTF-8\n")


def test_an_unreadable_project_file_has_status_2(project, ruleop):
    (project.root / "templates/web.yaml.j2").write_bytes(b"\xff")
    ran = ruleop("check")
    assert ran.status == 2
    assert "templates/web.yaml.j2:1: error[RO101]: is not valid UTF-8\n" in ran.out


@pytest.mark.parametrize("make", [make_large, make_endless, make_pipe])
def test_an_endless_file_is_not_read_for_an_excerpt(project, ruleop, monkeypatch, make):
    file = project.root / "templates/web.yaml.j2"
    file.unlink()
    make(file)
    read = []
    monkeypatch.setattr("ruleop.cli.options.read_regular", lambda each, _: read.append(each.name) or b"")
    assert ruleop("check").status == 2
    assert "web.yaml.j2" not in read


@pytest.mark.parametrize("make", [make_large, make_endless, make_pipe])
def test_a_file_that_becomes_endless_is_not_read_for_an_excerpt(project, ruleop, monkeypatch, make):
    """It was a regular file when it was loaded, and has changed when its error is printed."""
    project.edit("templates/web.yaml.j2", "{{ metadata.name }}", "{{ metadta.name }}")

    def loaded(*arguments, **options):
        try:
            return checked(*arguments, **options)
        except ProjectErrors:
            file = project.root / "templates/web.yaml.j2"
            file.unlink()
            make(file)
            raise

    monkeypatch.setattr("ruleop.cli.loading.checked", loaded)
    ran = ruleop("check")
    assert (ran.status, ran.out.startswith('templates/web.yaml.j2:4:12: error[RO302]: "metadta" is not known')) == (
        1,
        True,
    )
    assert "│" not in ran.out


@pytest.mark.parametrize(
    "path", ["templates/\udcff.j2", "templates/\udcff/web.j2", "crds/\udcff.yaml", "rules/\udcff.yaml"]
)
@pytest.mark.parametrize("output", ["text", "json", "sarif", "github"])
def test_a_file_name_that_is_not_utf_8_is_printed_in_every_format(project, ruleop, path, output):
    project.write(
        "watches.yaml", "include: ['rules/*.yaml']\nwatches:\n" + (project.root / "watches.yaml").read_text("utf-8")
    )
    project.write(path, "x")
    ran = ruleop("check", "-o", output)
    assert ran.status == 2
    assert "rename it" in ran.out
    assert "dcff" in ran.out
    assert ran.err == ""


def test_the_folder_of_a_project_may_have_any_name(project, ruleop):
    folder = project.root / "\udcff"
    (project.root / "templates/web.yaml.j2").write_text("")
    folder.mkdir()
    for name in ("watches.yaml", "templates", "crds"):
        (project.root / name).rename(folder / name)
    ran = ruleop("check", "-C", str(folder), "-o", "json")
    assert (ran.status, ran.err) == (1, "")
    assert "/\\\\udcff/templates/web.yaml.j2" in ran.out


def test_a_folder_without_read_permission_is_reported(project, ruleop, monkeypatch):
    listing = Path.iterdir

    def forbidden(path: Path) -> object:
        if path.name == "templates":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))  # what root never meets
        return listing(path)

    monkeypatch.setattr(Path, "iterdir", forbidden)
    ran = ruleop("check")
    assert ran.status == 2
    assert "templates: error[RO101]: cannot be read: Permission denied\n" in ran.out


def test_an_internal_error_is_one_line_and_a_traceback_with_debug(project, ruleop, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise TypeError("inner workings")

    monkeypatch.setattr("ruleop.cli.check.load_with_sources", broken)
    ran = ruleop("check")
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("ruleop: internal error (TypeError); your project is not the cause. Please report it")
    assert "inner workings" not in ran.err
    shown = ruleop("check", "--debug").err
    assert shown.startswith("TypeError\n")
    assert "inner workings" not in shown, "the message may be a value of a Secret"
    monkeypatch.setenv("RULEOP_DEBUG", "1")
    assert ruleop("check").err.startswith("TypeError\n  ")


def test_help_has_the_first_line_of_each_commands_help(ruleop):
    for name, message in COMMANDS.items():
        command = program.get_command(None, name)
        assert command is not None
        assert (command.help or "").split("\n")[0] == message
        assert message in ruleop("--help").out
        assert message in ruleop(name, "-h").out


def test_a_missing_command_prints_help_with_status_2(ruleop):
    ran = ruleop()
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("Usage: ruleop")
