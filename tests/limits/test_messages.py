"""No log line, condition or event has more than 1,024 characters of a custom resource."""

from __future__ import annotations

import orjson
import pytest
import structlog

from ruleop.messages import MAX_MESSAGE, shortened
from ruleop.operator.telemetry.logging import set_up
from ruleop.planning import Event
from ruleop.planning.model.actions import FieldConflict, Problem, Wait
from ruleop.planning.model.conditions import Condition
from tests.limits.shapes import EACH, FROM_FILE, of_each, template
from tests.logs import captured_stderr
from tests.planning.harness import CR, Harness

LONG = "x" * 1_000_000
FIXED = 300  # characters of a line that are the operator's own: time, level, names of fields


@pytest.fixture
def lines():
    with captured_stderr() as text:
        set_up("debug", "json")
        yield lambda: text.getvalue().splitlines()


@pytest.mark.parametrize(
    "fields",
    [
        {"message": LONG},
        {"message": LONG, "error": LONG, "object": LONG},
        {"fields": [LONG] * 5},
        {"fields": ["y" * 100] * 5000},
        {"waits": ["y" * 100] * 5, "message": LONG},
    ],
    ids=",".join,
)
def test_a_log_line_is_cut(lines, fields):
    structlog.get_logger().warning("problem", **fields)
    (line,) = lines()
    assert len(line) <= MAX_MESSAGE + FIXED
    assert orjson.loads(line)["event"] == "problem"


def test_short_values_are_not_cut_after_a_long_one(lines):
    structlog.get_logger().warning("problem", message=LONG, reason="RenderFailed", child="a")
    found = orjson.loads(lines()[0])
    assert (found["reason"], found["child"]) == ("RenderFailed", "a")
    assert len(found["message"]) == MAX_MESSAGE
    assert found["message"].endswith("…")


def test_conditions_events_problems_and_waits_are_cut():
    conflict = FieldConflict(CR, "a", frozenset(), LONG, new=True)
    for message in (
        Condition("Ready", "False", "RenderFailed", LONG).message,
        Event("Warning", "RenderFailed", LONG).message,
        Problem("a", "RenderFailed", LONG).message,
        Wait("a", LONG).for_what,
        conflict.message,
    ):
        assert len(message) == MAX_MESSAGE


def test_a_short_text_is_not_cut():
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "ab…"


@pytest.mark.parametrize(
    ("body", "spec", "text"),
    [
        (FROM_FILE, {"map": {"a" * 100_000: 1}}, "  a: '{{ spec.map.b }}'\n"),
        (FROM_FILE, {"map": {}, "key": LONG}, "  a: '{{ spec.map[spec.key] }}'\n"),
        (FROM_FILE, {"key": LONG}, "  a: '{{ spec.key.nothing }}'\n"),
        (FROM_FILE, {"map": {LONG: 1}}, "  {{ spec.map }}\n  '{{ spec.map | first }}': a\n"),
        (EACH, {"items": [LONG] * 20}, "  a: '{{ item | int }}{{ item.missing }}'\n"),
    ],
)
def test_conditions_are_short_whatever_the_resource_contains(body, spec, text):
    made = of_each(text) if body is EACH else template(text)
    harness = Harness.of(body, spec, **made)
    planned = harness.plan()
    assert planned.conditions is not None
    assert all(len(each.message) <= MAX_MESSAGE for each in (*planned.conditions, *planned.events, *planned.problems))
