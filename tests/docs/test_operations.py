"""docs/operations.md agrees with the code: metrics, flags, log lines and reasons of waits."""

from __future__ import annotations

import ast
import re

import pytest

from ruleop.cli.run import command
from ruleop.planning.changes.writes import Verb
from tests.docs.console import agrees, commands
from tests.docs.manifests import GENERATED, TEXT
from tests.docs.messages import ROOT, announcements, complaints, constants, log_calls
from tests.docs.metrics import written


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_metric_and_alert_has_a_row_and_every_row_a_metric_or_alert() -> None:
    assert written(TEXT) == TEXT, "python -m tests.docs.metrics updates the tables"


@pytest.mark.slow
def test_the_page_lists_all_reasons_of_waits() -> None:
    found = {"value"}  # by default
    for room in ("planning", "language/templates"):
        for file in (ROOT / "ruleop" / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.keyword) and node.arg == "why" and isinstance(node.value, ast.Constant):
                    found.add(node.value.value)
    sentence = section("Metrics").split("Reasons of `ruleop_waits`:")[1].split("\n\n")[0]
    on_page = set(re.findall(r"`(\w+)`", sentence)) - {"waitFor", "ruleop_resources"}
    assert on_page == found - {"changed", "released", "adopted", "skipped"}


def test_flags_on_the_page_exist() -> None:
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert set(re.findall(r"`(--[a-z-]+)", TEXT)) - {"--cascade"} <= known


@pytest.mark.slow
def test_log_events_on_the_page_exist() -> None:
    said = set(constants())
    events = [
        event
        for row in re.findall(r"^\| (`.*?) \|", section("The log"), re.MULTILINE)
        for event in re.findall(r"`(.+?)`", row)
    ]
    assert events
    assert [event for event in events if event not in said] == []


def test_every_log_event_is_on_the_page() -> None:
    on_page = {
        event
        for row in re.findall(r"^\| (`.*?) \|", section("The log"), re.MULTILINE)
        for event in re.findall(r"`(.+?)`", row)
    }
    announced = set(announcements())
    assert {*announced, *complaints()} - on_page == set()
    assert {verb.done for verb in Verb} - on_page == set()
    assert "event" not in announced, "a line says what happened"


def test_log_lines_name_a_cr_in_one_form() -> None:
    named = {
        ast.unparse(keyword.value) for call in log_calls() for keyword in call.keywords if keyword.arg == "resource"
    }
    assert named <= {"str(request)", "str(Request.of(resource))"}
    assert len(named) == 2, "of which there are some"


def test_the_verbs_of_a_dry_run_are_on_the_page() -> None:
    text = section("A dry run")
    assert [verb.do for verb in Verb if verb.do not in text and "finalizer" not in verb.do] == []


def test_the_page_shows_the_roles_that_are_generated() -> None:
    (lines,) = (
        block.splitlines() for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL) if "generate rbac" in block
    )
    shown = commands(lines)[0]
    assert shown.line == "ruleop generate rbac"
    assert agrees(shown.output, GENERATED.splitlines())
