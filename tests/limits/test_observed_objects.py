"""Objects of others are read one by one and charged: tenants decide how many there are, and what a selector matches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ruleop.language.templates.values import cost
from ruleop.planning import FixedObjects, Plan, plan
from tests.limits.shapes import template
from tests.planning.harness import Harness, config

BODY = """
    observe: {seen: {version: v1, kind: ConfigMap, selector: {seen: "yes"}}}
    children: {a: {template: a.yaml}}
"""
TEXT = template("  a: '{{ seen | length }}'\n")


class Flooded(FixedObjects):
    """Objects that are made when they are read, and counted."""

    def __init__(self, number: int, size: int, labels: dict[str, str], text: str) -> None:
        super().__init__()
        self.number, self.size, self.labels, self.text, self.read = number, size, labels, text, 0

    def select(self, query):
        for count in range(self.number):
            self.read += 1
            if query.matches(self.labels):
                yield config(f"c{count}", {f"k{each}": self.text for each in range(self.size)}, labels=self.labels)


def planned(number: int, size: int = 1, text: str = "v", **labels: str) -> tuple[Plan, cost.Account, int]:
    """A plan, its account, and the number of objects that it has read."""
    harness, objects = Harness.of(BODY, **TEXT), Flooded(number, size, labels, text)
    assert harness.resource is not None
    account = cost.Account()
    found = plan(harness.rule, harness.resource, replace(harness.observed(), objects=objects), account=account)
    return found, account, objects.read


def test_each_is_charged_and_those_that_match_by_their_size():
    _, none, _ = planned(0)
    _, others, _ = planned(100)
    _, small, _ = planned(100, seen="yes")
    _, large, _ = planned(100, 400, seen="yes")
    assert none.bytes + 100 * cost.OBJECT_BYTES <= others.bytes < small.bytes
    assert large.bytes > small.bytes + 100 * 390 * 16


@pytest.mark.parametrize("labels", [{}, {"seen": "yes"}])
def test_a_flood_ends_the_pass_before_all_are_read(labels, monkeypatch):
    monkeypatch.setattr(cost, "MEMORY", 500 * cost.OBJECT_BYTES)
    found, _, read = planned(5000, **labels)
    assert [each.reason for each in found.problems] == ["RenderFailed"]
    assert "too much work for one resource" in found.problems[0].message
    assert read < 600


def test_large_ones_end_the_pass_by_their_bytes(monkeypatch):
    monkeypatch.setattr(cost, "MEMORY", 1 << 20)
    found, _, read = planned(5000, 400, seen="yes")
    assert "too much work for one resource" in found.problems[0].message
    assert read < 200


def test_one_of_few_long_values_is_charged_by_its_bytes():
    _, short, _ = planned(10, seen="yes")
    _, long, _ = planned(10, text="v" * 100_000, seen="yes")
    assert long.bytes >= short.bytes + 10 * 2 * 99_000
