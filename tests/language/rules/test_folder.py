"""A project on disk: the files that are read, and links that are not followed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ruleop.language.rules import Project, ProjectErrors, places, project_files
from ruleop.language.rules.checking import build_project, load_project
from ruleop.language.rules.project_files import read_regular
from tests.folders import write_files
from tests.language.rules.projects import CRD, SERVICE, watch

USES_A = watch("children: {a: {template: a.yaml}}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write_files(folder, {"watches.yaml": USES_A, "templates/a.yaml": SERVICE, "crds/apps.yaml": CRD})
    return folder


def load(root: Path) -> Project:
    return load_project(root, environ={})


def refused(root: Path) -> list[str]:
    with pytest.raises(ProjectErrors) as caught:
        load(root)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_a_folder_is_loaded_like_the_same_files_in_memory(root: Path) -> None:
    in_memory = build_project(
        {"watches.yaml": USES_A, "templates/a.yaml": SERVICE, "crds/apps.yaml": CRD}, root=str(root), environ={}
    )
    found = load(root)
    assert (found.digest, found.root, dict(found.templates)) == (in_memory.digest, str(root), {"a.yaml": SERVICE})
    assert load_project(str(root), environ={}).digest == found.digest


def test_a_digest_follows_the_contents_of_the_files(root: Path) -> None:
    before = load(root).digest
    write_files(root, {"templates/a.yaml": SERVICE + "spec: {}\n"})
    assert load(root).digest != before
    write_files(root, {"templates/a.yaml": SERVICE})
    assert load(root).digest == before


def test_a_missing_folder_and_a_missing_file_are_reported(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere") == [f"{tmp_path}/nowhere: no such folder"]
    assert refused(tmp_path) == ["watches.yaml: no such file: it contains the rules of a project"]


def test_hidden_files_and_backups_of_editors_are_not_read(root: Path) -> None:
    write_files(
        root, {"templates/.a.yaml.swp": "x", "templates/a.yaml~": "x", "templates/.git/x": "x", "crds/.x.yaml": "{"}
    )
    assert set(load(root).templates) == {"a.yaml"}


def test_only_yaml_and_json_files_directly_in_crds_are_read(root: Path) -> None:
    write_files(root, {"crds/README.md": "{", "crds/old/x.yaml": "{"})
    write_files(root, {"crds/more.yml": CRD.replace("apps", "bpps").replace("kind: App", "kind: Bpp")})
    write_files(
        root, {"crds/z.json": json.dumps(yaml.safe_load(CRD.replace("apps", "cpps").replace("kind: App", "kind: Cpp")))}
    )
    assert [crd.kind for crd in load(root).crds] == ["App", "Bpp", "Cpp"]


def test_a_template_with_an_invalid_file_name_is_refused(root: Path) -> None:
    write_files(root, {"templates/a b.yaml": "x"})
    assert refused(root) == [
        "templates/a b.yaml: the name of a template may only contain letters, digits and . _ -: rename it"
    ]


@pytest.mark.parametrize("path", ["templates/out.yaml", "crds/out.yaml", "rules/out.yaml"])
def test_a_link_to_a_file_outside_is_refused(root: Path, path: str) -> None:
    outside = root.parent / "secret"
    outside.write_text("hunter2")
    link = root / path
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)
    write_files(root, {"watches.yaml": "include: ['rules/*.yaml']\nwatches:\n" + USES_A})
    lines = refused(root)
    assert f"{path}: this link points outside of the project folder: only files inside are read" in lines
    assert "hunter2" not in "".join(lines)


def test_watches_yaml_may_not_be_a_link_to_a_file_outside(root: Path) -> None:
    outside = root.parent / "watches.yaml"
    outside.write_text(USES_A)
    (root / "watches.yaml").unlink()
    (root / "watches.yaml").symlink_to(outside)
    assert refused(root) == ["watches.yaml: this link points outside of the project folder: only files inside are read"]


def test_a_link_to_a_folder_outside_is_refused(root: Path) -> None:
    write_files(root.parent, {"elsewhere/x.yaml": "x"})
    (root / "templates/more").symlink_to(root.parent / "elsewhere")
    assert refused(root) == [
        "templates/more: this link points outside of the project folder: only files inside are read"
    ]


def test_a_sibling_folder_with_the_same_prefix_is_outside(root: Path) -> None:
    write_files(root, {"templates-old/x.yaml": "x"})
    (root / "templates/x.yaml").symlink_to(root / "templates-old/x.yaml")
    assert refused(root) == [
        "templates/x.yaml: this link points outside of the project folder: only files inside are read"
    ]


def test_a_link_to_a_parent_folder_is_refused_and_one_to_a_sibling_is_followed(root: Path) -> None:
    write_files(root, {"templates/one/x.yaml": "x"})
    (root / "templates/two").symlink_to(root / "templates/one")
    assert set(load(root).templates) == {"a.yaml", "one/x.yaml", "two/x.yaml"}
    (root / "templates/one/up").symlink_to(root / "templates")
    assert "templates/one/up: this link points to one of its parent folders: remove it" in refused(root)


def test_a_broken_link_is_refused(root: Path) -> None:
    (root / "templates/x.yaml").symlink_to(root / "templates/gone.yaml")
    assert refused(root) == ["templates/x.yaml: this link is broken"]


@pytest.mark.parametrize(
    "path", ["templates/x.yaml", "templates/x", "crds/x.yaml", "rules.yaml", "templates", "crds", "watches.yaml"]
)
def test_a_link_to_itself_is_a_broken_link(root: Path, path: str) -> None:
    write_files(root, {"watches.yaml": "include: [rules.yaml]\nwatches:\n" + USES_A})
    link = root / path
    if link.exists():
        link.rename(root / "elsewhere")
    link.symlink_to(link.name)
    assert f"{path}: this link is broken" in refused(root)


def test_a_mounted_config_map_is_read_through_its_data_link(root: Path) -> None:
    for folder, names in (("templates", ["a.yaml"]), (".", ["watches.yaml"])):
        mount = root / folder
        write_files(mount, {f"..2026_11_21/{name}": (mount / name).read_text() for name in names})
        (mount / "..data").symlink_to("..2026_11_21")
        for name in names:
            (mount / name).unlink()
            (mount / name).symlink_to(f"..data/{name}")
    assert dict(load(root).templates) == {"a.yaml": SERVICE}


def test_the_templates_folder_may_be_a_link(root: Path) -> None:
    (root / "templates").rename(root.parent / "mounted")
    (root / "templates").symlink_to(root.parent / "mounted")
    assert dict(load(root).templates) == {"a.yaml": SERVICE}


@pytest.mark.parametrize("path", ["watches.yaml", "templates/pipe", "crds/pipe.yaml", "rules/pipe.yaml"])
def test_only_regular_files_are_opened(root: Path, path: str) -> None:
    write_files(
        root, {"watches.yaml": "include: ['rules/*']\nwatches:\n" + USES_A, "rules/x.yaml": watch("selector: {a: x}")}
    )
    (root / path).unlink(missing_ok=True)
    os.mkfifo(root / path)
    assert f"{path}: cannot be read: it is not a regular file" in refused(root)
    assert root in {place.folder for place in places(root)}  # what is followed is read without waiting, too


def test_text_must_be_utf8_and_may_have_a_byte_order_mark(root: Path) -> None:
    (root / "templates/a.yaml").write_bytes(b"\xef\xbb\xbf" + SERVICE.encode())
    assert load(root).templates["a.yaml"] == SERVICE
    (root / "templates/a.yaml").write_bytes(SERVICE.encode() + b"x: \xff\n")
    assert refused(root) == ["templates/a.yaml:4: is not valid UTF-8"]


def test_the_size_of_files_is_limited_with_a_larger_limit_for_definitions(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_files, "MAX_BYTES", 1024)
    monkeypatch.setattr(project_files, "MAX_CRD_BYTES", 4096)
    write_files(root, {"templates/a.yaml": SERVICE + "#" * 1024, "crds/apps.yaml": CRD + "#" * 1024})
    assert refused(root) == ["templates/a.yaml: is larger than 1 KiB"]
    write_files(root, {"templates/a.yaml": SERVICE})
    load(root)


@pytest.mark.parametrize("path", ["watches.yaml", "templates/a.yaml", "rules/x.yaml"])
@pytest.mark.parametrize(
    ("data", "message"),
    [(b"x" * (project_files.MAX_BYTES + 1), ": is larger than 1024 KiB"), (b"\xff", ":1: is not valid UTF-8")],
)
def test_an_unreadable_file_is_not_reported_as_missing(root: Path, path: str, data: bytes, message: str) -> None:
    write_files(
        root,
        {"watches.yaml": "include: [rules/x.yaml]\nwatches:\n" + USES_A, "rules/x.yaml": watch("selector: {a: x}")},
    )
    (root / path).write_bytes(data)
    assert [line for line in refused(root) if "there is no" in line or path in line] == [path + message]


def test_a_project_of_too_many_files_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "MAX_FILES", 2)
    assert f"{root}: the project has more than 2 files" in refused(root)


def test_a_file_without_read_permission_is_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(file: Path, most: int) -> bytes:
        if file.name == "a.yaml":
            raise PermissionError(13, "Permission denied")
        return read_regular(file, most)

    monkeypatch.setattr(project_files, "read_regular", denied)
    assert refused(root) == ["templates/a.yaml: cannot be read: Permission denied"]


def unlistable(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Simulates a folder without permission to list it; root, who may run these tests, can list all."""
    listing = Path.iterdir

    def denied(path: Path) -> Iterator[Path]:
        if path.name == name:
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(Path, "iterdir", denied)


@pytest.mark.parametrize("path", ["templates", "templates/deep", "crds", "rules", "more/rules"])
def test_a_folder_that_cannot_be_listed_is_an_error_and_not_empty(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Its watches and templates still exist: if they counted as removed, their objects would be released."""
    write_files(root, {"watches.yaml": "include: ['rules/*.yaml', '*/rules/*.yaml']\nwatches:\n" + USES_A})
    write_files(
        root,
        {
            "templates/deep/x.yaml": "x",
            "rules/x.yaml": watch("selector: {a: x}"),
            "more/rules/y.yaml": watch("selector: {a: y}"),
        },
    )
    unlistable(monkeypatch, path.rpartition("/")[2])
    assert f"{path}: cannot be read: Permission denied" in refused(root)


def test_missing_folders_are_empty(root: Path) -> None:
    write_files(
        root,
        {
            "watches.yaml": "include: ['rules/*.yaml', '*/rules/*.yaml', 'a file/*.yaml']\nwatches:\n" + watch(),
            "a file": "x",
        },
    )
    shutil.rmtree(root / "templates")
    shutil.rmtree(root / "crds")
    (root / "crds").write_text("x")
    assert [rule.kind.kind for rule in load(root).rules] == ["App"]


def test_included_files_are_read_by_name_and_by_pattern(root: Path) -> None:
    write_files(
        root,
        {
            "watches.yaml": "include: [one.yaml, rules/*.yaml, deep/*/x.yaml]\n",
            "one.yaml": watch("name: one\nselector: {a: one}"),
            "rules/two.yaml": watch("name: two\nselector: {a: two}"),
            "rules/.three.yaml": "{",
            "rules/four.txt": "{",
            "deep/er/x.yaml": watch("name: five\nselector: {a: five}"),
            "deep/x.yaml": "{",
        },
    )
    assert [rule.name for rule in load(root).rules] == ["one", "two", "five"]


def test_hidden_folders_are_included_only_by_their_name(root: Path) -> None:
    """A mounted ConfigMap has each file once more in its ..data."""
    write_files(
        root,
        {
            "watches.yaml": "include: ['*/*.yaml', .own/x.yaml]\n",
            "rules/x.yaml": watch("name: one\nselector: {a: one}"),
            ".own/x.yaml": watch("name: two\nselector: {a: two}"),
            ".own/more.yaml": "{",
            ".git/x.yaml": "{",
            "..data/x.yaml": "{",
        },
    )
    shutil.rmtree(root / "templates")
    (root / "crds").rename(root / "definitions")
    (root / "definitions/apps.yaml").unlink()
    assert [rule.name for rule in load(root).rules] == ["one", "two"]


def test_a_dot_in_an_include_path_is_ignored(root: Path) -> None:
    write_files(
        root, {"watches.yaml": "include: [./rules/x.yaml, rules//x.yaml, './rules/./*.yaml']\n", "rules/x.yaml": USES_A}
    )
    assert [rule.kind.kind for rule in load(root).rules] == ["App"]


@pytest.mark.parametrize("name", ["watches.yaml", "./watches.yaml"])
def test_watches_yaml_does_not_include_itself(root: Path, name: str) -> None:
    write_files(root, {"watches.yaml": f"include: [{name}]\nwatches:\n" + USES_A})
    assert refused(root) == ["watches.yaml:1:11: watches.yaml cannot include itself: remove it from the list"]
    write_files(root, {"watches.yaml": "include: ['./*.yaml']\nwatches:\n" + USES_A})
    assert [rule.kind.kind for rule in load(root).rules] == ["App"]


def test_an_include_outside_of_the_project_is_not_read(root: Path) -> None:
    write_files(root.parent, {"x.yaml": watch()})
    write_files(root, {"watches.yaml": "include: [../x.yaml]\nwatches:\n" + watch()})
    assert refused(root) == ['watches.yaml:1:11: "../x.yaml" is outside of the project: included files must be inside']


def test_an_include_of_a_missing_file_is_an_error(root: Path) -> None:
    write_files(root, {"watches.yaml": "include: [x.yaml]\nwatches:\n" + watch()})
    assert refused(root) == ['watches.yaml:1:11: the file "x.yaml" does not exist']
