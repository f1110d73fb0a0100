"""Values that cannot be written as JSON, or that are nested too deeply: they fail one CR with a clear message."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ruleop.errors import RuleopError
from ruleop.planning import planner
from tests.planning.harness import Harness
from tests.planning.settled import settled

MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: "{{ spec.v }}"}\n'


def nested(levels: int, value: Any = 1, *, lists: bool = False) -> Any:
    for _ in range(levels):
        value = [value] if lists else {"a": value}
    return value


def edited(body: str, deep: Any) -> Harness:
    """A settled CR after an edit with this value."""
    harness = settled(body, {"v": "1", "deep": 1}, a=MAP)
    harness.resource["spec"]["deep"] = deep  # type: ignore[index]
    return harness


def condition(harness: Harness) -> tuple[str, str, str]:
    ready = harness.plan().conditions.ready
    return ready.status, ready.reason, ready.message


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("levels", [200, 260, 900, 1020])
def test_a_deeply_nested_value_that_no_template_prints_is_ignored(levels: int, lists: bool) -> None:
    harness = edited("children: {a: {template: a.yaml}}", nested(levels, lists=lists))
    assert harness.plan().quiet
    assert condition(harness)[0] == "True"


DEEP_CHILD = """
children:
  deep:
    object: {apiVersion: example.com/v1, kind: Other, metadata: {name: deep}, spec: {x: "{{ spec.deep }}"}}
  a: {template: a.yaml}
"""


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("levels", [260, 900, 1020])
def test_a_child_with_a_too_deeply_nested_value_fails_before_it_is_sent(levels: int, lists: bool) -> None:
    harness = edited(DEEP_CHILD, nested(levels, lists=lists))
    assert harness.plan().actions == ()
    _, reason, message = condition(harness)
    assert reason == "RenderFailed"
    assert re.search(
        r"deep: watches.yaml:\d+:\d+: the Other 'deep' cannot be written as JSON \(Recursion limit reached\)", message
    )


@pytest.mark.parametrize("status", ['{z: "{{ spec.deep }}"}', '{fine: "{{ spec.v }}", z: {inner: "{{ spec.deep }}"}}'])
@pytest.mark.parametrize("levels", [260, 900, 1020])
def test_a_too_deeply_nested_status_field_is_left_out_and_reported(levels: int, status: str) -> None:
    harness = edited(f"children: {{a: {{template: a.yaml}}}}\nstatus: {status}", nested(levels))
    written = harness.plan().status
    assert written is not None
    assert "z" not in written.status
    assert written.status.get("fine", "1") == "1"
    _, reason, message = condition(harness)
    assert reason == "RenderFailed"
    assert "z cannot be written as JSON (Recursion limit reached)" in message


def test_an_unpaired_surrogate_fails_its_child_only() -> None:
    harness = Harness.of("children: {a: {template: a.yaml}}", {"v": 0xD800}, a=MAP.replace("spec.v", "'%c' % spec.v"))
    harness.step()
    _, reason, message = harness.ready()
    assert reason == "RenderFailed"
    assert "the ConfigMap 'a' cannot be written as JSON (str is not valid UTF-8: surrogates not allowed)" in message


def test_a_resource_nested_too_deeply_for_the_stack_is_a_described_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """In any part of planning."""
    harness = edited("children: {a: {template: a.yaml}}", 1)
    monkeypatch.setattr(planner, "overall_conditions", lambda *_, **__: nested(100_000) == nested(100_000))
    with pytest.raises(RuleopError, match="nested too deeply to be planned"):
        harness.plan()
