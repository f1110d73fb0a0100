"""The workflow of a release, as far as it runs without GitHub: the version is that of the tag, the notes are those of
the changelog, and whatever it publishes is signed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import ruleop
from tests.docs.messages import ROOT
from tests.folders import write_files
from tests.waiting import PATIENCE

JOBS: Any = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text(encoding="utf-8"))["jobs"]
CHANGELOG = """\
# Changelog

## Unreleased

- not yet

## 9.8.7 (2026-12-01)

### Added

- a page

## 9.8.6

## 9.8.70

- another
"""


def notes(folder: Path, version: str) -> tuple[int, str]:
    write_files(folder, {"CHANGELOG.md": CHANGELOG})
    command = ["sh", str(ROOT / ".ci" / "notes"), version]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return ran.returncode, ran.stdout


def step(folder: Path, job: str, name: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of the workflow in a folder that has the files of the repository that it needs."""
    (found,) = [each for each in JOBS[job]["steps"] if each.get("name", "").startswith(name)]
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "notes", folder / ".ci")
    write_files(folder, {"CHANGELOG.md": CHANGELOG, "ruleop/__init__.py": '__version__ = "9.8.7"\n'})
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", found["run"]],
        cwd=folder,
        env={"PATH": f"{folder}/bin:/usr/local/bin:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_the_notes_of_a_version_are_its_section_of_the_changelog(tmp_path: Path) -> None:
    assert notes(tmp_path, "9.8.7") == (0, "\n### Added\n\n- a page\n\n")
    assert notes(tmp_path, "9.8.70") == (0, "\n- another\n")


@pytest.mark.parametrize("version", ["9.8.6", "9.8", "1.0.0"], ids=["empty", "a part of a version", "missing"])
def test_a_version_without_notes_is_refused(tmp_path: Path, version: str) -> None:
    assert notes(tmp_path, version)[0] == 1


@pytest.mark.parametrize(("tag", "status"), [("v9.8.7", 0), ("v9.8.8", 1)])
def test_a_tag_that_is_not_the_version_of_the_package_ends_the_release(tmp_path: Path, tag: str, status: int) -> None:
    assert step(tmp_path, "version", "the tag is", GITHUB_REF_NAME=tag).returncode == status


def test_the_release_has_the_notes_the_digests_and_the_command_that_verifies_them(tmp_path: Path) -> None:
    gh = tmp_path / "bin" / "gh"
    write_files(tmp_path, {"bin/gh": '#!/bin/sh\necho "$@" > called\n', "dist/ruleop-9.8.7-py3-none-any.whl": ""})
    gh.chmod(0o755)
    ran = step(
        tmp_path,
        "wheel",
        "release",
        GITHUB_REF_NAME="v9.8.7",
        GITHUB_SERVER_URL="https://github.com",
        GITHUB_WORKFLOW_REF="Acme/ruleop/.github/workflows/release.yaml@refs/tags/v9.8.7",
        IMAGE="ghcr.io/Acme/ruleop",
        IMAGE_DIGEST="sha256:1",
        CHART_DIGEST="sha256:2",
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    text = (tmp_path / "notes.md").read_text()
    assert text.startswith("\n### Added\n\n- a page\n")
    assert "Image: `ghcr.io/acme/ruleop@sha256:1`. Chart: `oci://ghcr.io/acme/charts/ruleop@sha256:2`." in text
    assert "release.yaml@refs/tags/v9.8.7 \\\n  ghcr.io/acme/ruleop@sha256:1\n" in text
    called = (tmp_path / "called").read_text()
    assert called.startswith("release create v9.8.7 --verify-tag")
    assert "dist/ruleop-9.8.7-py3-none-any.whl ruleop.whl.sigstore.json ruleop.spdx.json" in called


@pytest.mark.parametrize("job", ["image", "chart", "wheel"])
def test_a_published_artifact_is_signed_and_has_its_provenance(job: str) -> None:
    commands = "\n".join(each.get("run", "") for each in JOBS[job]["steps"])
    assert "cosign sign" in commands
    assert any("attest-build-provenance@" in each.get("uses", "") for each in JOBS[job]["steps"])
    assert JOBS[job]["permissions"]["id-token"] == "write"


def test_the_package_index_comes_after_all_that_can_be_repeated() -> None:
    assert JOBS["wheel"]["needs"] == ["image", "chart"]
    assert [JOBS[job]["needs"] for job in ("test", "image", "chart")] == ["version", "test", "image"]


def test_the_image_is_built_for_two_architectures() -> None:
    (build,) = [each for each in JOBS["image"]["steps"] if each.get("id") == "build"]
    assert build["with"]["platforms"] == "linux/amd64,linux/arm64"
    assert (build["with"]["sbom"], build["with"]["push"]) == (True, True)


def test_the_version_is_a_part_of_the_package_alone() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in text
    assert f'"{ruleop.__version__}"' not in text
