"""After an edit, the cases that it touches are run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from ruleop.authoring.ruletests.cases import Case, parse_file
from ruleop.authoring.ruletests.watching import CaseFiles, changed_files, modified

TEXT = """\
- {name: web, resource: web.yaml, existing: [objects.yaml], snapshot: snapshots/web.yaml}
- {name: job, resource: job.yaml, snapshot: snapshots/job.yaml}
"""


def cases(root: Path) -> tuple[Case, ...]:
    return parse_file(root / "tests/a.test.yaml", "a.test.yaml", TEXT).cases


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("templates/web.yaml.j2", ["web"]),
        ("templates/macros.j2", ["web", "job"]),
        ("templates/new.yaml.j2", ["web", "job"]),
        ("tests/web.yaml", ["web"]),
        ("tests/objects.yaml", ["web"]),
        ("tests/snapshots/job.yaml", ["job"]),
        ("tests/a.test.yaml", ["web", "job"]),
        ("tests/b.test.yaml", []),
        ("watches.yaml", ["web", "job"]),
        ("crds/a.yaml", ["web", "job"]),
    ],
)
def test_an_edit_touches_cases(tmp_path: Path, changed: str, touched: list[str]) -> None:
    case_files = CaseFiles(tmp_path)
    web, job = cases(tmp_path)
    case_files.record(web, ["templates/web.yaml.j2", "templates/macros.j2"])
    case_files.record(job, ["templates/job.yaml.j2", "templates/macros.j2"])
    assert [each.name for each in (web, job) if case_files.is_touched(each, [tmp_path / changed])] == touched


def test_a_case_that_was_never_run_is_touched(tmp_path: Path) -> None:
    assert all(CaseFiles(tmp_path).is_touched(each, []) for each in cases(tmp_path))


def test_changed_files_are_found(tmp_path: Path) -> None:
    for name in ("a", "b", ".hidden/c", "inner/d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    before = modified(tmp_path)
    (tmp_path / "b").unlink()
    (tmp_path / ".hidden/c").write_text("x")
    (tmp_path / "inner/e").write_text("")
    assert {path.name for path in changed_files(before, modified(tmp_path))} == {"b", "e"}
