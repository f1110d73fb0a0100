"""Failures of tests show no value of a Secret that the test does not expect."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.authoring.ruletests import running

MARK = "planted-value"
STORED = base64.b64encode(MARK.encode()).decode()
SHORT = "q7"
CHILDREN = f"""\
    secret:
      object:
        apiVersion: v1
        kind: Secret
        metadata: {{name: "{{{{ metadata.name }}}}-secret"}}
        data: {{v: {STORED}}}
        stringData: {{plain: {MARK}, short: {SHORT}}}
    copy:
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {{name: "{{{{ metadata.name }}}}-copy"}}
        data: {{v: "{{{{ secret.data.v }}}}", text: "a {MARK} inside"}}
    computed:
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {{name: "{{{{ metadata.name }}}}-computed"}}
        data:
          part: "{{{{ (secret.data.v | b64decode)[:7] }}}}"
          loud: "{{{{ secret.data.v | b64decode | upper }}}}"
          url: "https://user:{{{{ (secret.data.v | b64decode)[8:] }}}}@host"
"""


@pytest.fixture(autouse=True)
def project(monkeypatch):
    watches = running.WATCHES.replace("  children:\n", f"  children:\n{CHILDREN}")
    monkeypatch.setitem(running.FILES, "watches.yaml", watches)


def failed(folder: Path, expectation: str) -> str:
    text = running.expected(folder, expectation)
    assert text
    return text


@pytest.mark.parametrize(
    "expectation",
    [
        "{children: {secret: {data: {v: b3RoZXI=}}}}",
        "{children: {secret: {data: null}}}",
        "{children: {secret: {stringData: {plain: other, short: other}}}}",
        "{children: {secret: {data: other}}}",
        "{exact: true, children: {secret: {metadata: {name: blog-secret}}}}",
        "{exact: true, children: {copy: {metadata: {name: blog-copy}}}}",
        "{children: {copy: {data: {v: other, text: other}}}}",
    ],
)
def test_a_failure_shows_no_value_of_a_secret(tmp_path: Path, expectation: str) -> None:
    text = failed(tmp_path, expectation)
    for value in (MARK, STORED, SHORT):
        assert value not in text


@pytest.mark.parametrize(
    "expectation",
    [
        "{children: {computed: {data: {part: other, loud: other, url: other}}}}",
        "{children: {computed: {data: other}}}",
        "{exact: true, children: {computed: {metadata: {name: blog-computed}}}}",
    ],
)
@pytest.mark.parametrize("mode", ["plan", pytest.param("dev", marks=pytest.mark.slow)])
def test_a_failure_shows_nothing_that_was_computed_from_a_secret(tmp_path: Path, expectation: str, mode: str) -> None:
    case = f"- {{name: a, mode: {mode}, resource: site.yaml, expect: {expectation}}}\n"
    text = running.shown(tmp_path, case)
    assert "(hidden)" in text
    for value in (MARK[:7], MARK.upper(), MARK[8:]):
        assert value not in text


def test_a_failure_shows_values_that_the_test_expects(tmp_path: Path) -> None:
    text = failed(tmp_path, f"{{children: {{secret: {{data: {{v: b3RoZXI=}}}}, copy: {{data: {{text: {STORED}}}}}}}}}")
    assert "b3RoZXI=" in text
    assert STORED in text


def test_the_difference_of_a_snapshot_shows_no_new_value_of_a_secret(tmp_path: Path) -> None:
    snapshots = tmp_path / "snapshots"
    snapshots.mkdir(parents=True)
    (snapshots / "a.yaml").write_text("old\n")
    text = running.shown(tmp_path, "- {name: a, resource: site.yaml, snapshot: snapshots/a.yaml}\n")
    assert "(hidden)" in text
    for value in (MARK, STORED, SHORT):
        assert value not in text
