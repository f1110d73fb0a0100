"""Only what belongs to a project is watched."""

from __future__ import annotations

from pathlib import Path

import pytest

from ruleop.language.rules import Place, places
from tests.folders import write_files
from tests.language.rules.projects import SERVICE, watch

WATCHES = watch("children: {a: {template: a.yaml}}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write_files(
        folder, {"watches.yaml": WATCHES, "templates/deep/a.yaml": SERVICE, ".venv/lib/x.py": "", "src/y.py": ""}
    )
    return folder


def said(root: Path) -> dict[str, tuple[tuple[str, ...], bool]]:
    return {str(place.folder.relative_to(root.resolve().parent)): (place.names, place.deep) for place in places(root)}


def test_only_the_files_of_a_project_in_a_repository_are_watched(root: Path) -> None:
    names = ("crds", "templates", "watches.yaml")
    assert said(root) == {"project": (names, False), "project/templates": (("*",), True)}


def test_a_missing_folder_is_awaited_in_its_parent(root: Path) -> None:
    write_files(root, {"watches.yaml": "include: [rules/small/*.yaml]\nwatches: []"})
    assert said(root)["project"][0] == ("crds", "rules", "templates", "watches.yaml")
    (root / "rules").mkdir()
    assert said(root)["project/rules"] == (("small",), False)
    (root / "rules/small").mkdir()
    assert said(root)["project/rules/small"] == (("*.yaml",), False)


def test_glob_patterns_of_folders_are_watched_in_matching_folders(root: Path) -> None:
    write_files(
        root,
        {
            "watches.yaml": "include: ['team-*/rules.yaml', 'one[.yaml']\nwatches: []",
            "team-a/rules.yaml": "",
            "team-b/x": "",
            "other/rules.yaml": "",
        },
    )
    found = said(root)
    assert {name: found[name] for name in found if "team" in name} == {
        "project/team-a": (("rules.yaml",), False),
        "project/team-b": (("rules.yaml",), False),
    }
    assert "team-*" in found["project"][0]
    assert "project/other" not in found


def test_each_link_on_the_path_is_watched(root: Path, tmp_path: Path) -> None:
    write_files(root / "..2026", {"watches.yaml": WATCHES})
    (root / "watches.yaml").unlink()
    (root / "watches.yaml").symlink_to("..data/watches.yaml")
    (root / "..data").symlink_to("..2026")
    assert said(root)["project"][0] == ("..2026", "..data", "crds", "templates", "watches.yaml")
    assert said(root)["project/..2026"] == (("watches.yaml",), False)


def test_a_link_to_a_folder_outside_is_watched_at_its_target(root: Path, tmp_path: Path) -> None:
    write_files(tmp_path / "shared", {"templates/a.yaml": SERVICE})
    (root / "templates").rename(root / "old")
    (root / "templates").symlink_to(tmp_path / "shared/templates")
    found = {place.folder: place for place in places(root)}
    assert found[(tmp_path / "shared/templates").resolve()].deep
    assert Path("/") not in found


def test_circular_links_end_the_search_for_watched_paths(root: Path) -> None:
    (root / "crds").symlink_to("rounds")
    (root / "rounds").symlink_to("crds")
    assert "project/templates" in said(root)


def test_definitions_below_templates_need_no_separate_watch(root: Path) -> None:
    (root / "crds").symlink_to("templates/deep")
    assert "project/templates/deep" not in said(root)


@pytest.mark.parametrize("text", ["- [", "include: 7", "\0", "include: [../x.yaml, /etc/*]"])
def test_unreadable_rules_are_still_watched(root: Path, text: str) -> None:
    (root / "watches.yaml").write_text(text)
    assert said(root).keys() == {"project", "project/templates"}


@pytest.mark.parametrize(
    ("path", "concerns"),
    [
        ("watches.yaml", True),
        ("..data", True),
        ("watches.yaml~", False),
        (".watches.yaml.swp", False),
        ("README.md", False),
        ("", True),
    ],
)
def test_a_place_ignores_events_of_unrelated_files(path: str, concerns: bool) -> None:
    place = Place(Path("/project"), ("watches.yaml", "..data"))
    assert place.concerns(Path("/project") / path) is concerns
