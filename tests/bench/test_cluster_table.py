"""The tables that `bench/cluster.py` prints are Markdown, and count what was measured until all was settled."""

from dataclasses import replace

import pytest

from bench.cluster_table import Measured, calmest, costs, requests

CREATE = Measured(
    action="create",
    items=100,
    seconds=1.0,
    settled_seconds=2.0,
    p50=100.0,
    p99=200.0,
    cpu=0.25,
    api_cpu=0.8,
    rest_cpu=0.1,
    other_cpu=0.0,
    memory=50.0,
    requests={"POST deployments": 100, "PATCH apps/status": 100, "WATCH apps": 1},
)
GO = replace(CREATE, settled_seconds=1.0, cpu=0.2, memory=40.0, requests={"POST deployments": 100})


def cells(table: str) -> dict[str, list[str]]:
    return {line[0]: line[1:] for line in split(table)}


def split(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


@pytest.fixture
def table() -> dict[str, list[str]]:
    bare = replace(GO, cpu=0.0, memory=0.0, requests={})
    return cells(costs({"bare": {"create": bare}, "go": {"create": GO}, "ruleop": {"create": CREATE}}))


def test_each_operator_has_a_column_and_ruleop_its_multiples(table):
    assert table[""] == ["bare client", "Go", "ruleop", "/ Go"]


def test_rates_until_the_effects_and_until_settled_are_two_rows(table):
    assert table["Apps created, until children exist, per s"] == ["100", "100", "100", "1.00"]
    assert table["Apps created, until settled, per s"] == ["100", "100", "50", "0.50"]


def test_the_operators_cpu_is_for_one_item_until_settled(table):
    assert table["operator's CPU for an App created, ms"] == ["", "2.00", "2.50", "1.25"]


def test_actions_that_were_not_measured_have_no_row(table):
    assert not [label for label in table if "drifted" in label or "at rest" in label]


def test_requests_are_listed_by_kind_without_those_that_are_rare():
    table = requests({"bare": {"create": GO}, "go": {"create": GO}, "ruleop": {"create": CREATE}})
    assert split(table)[2:] == [
        ["an App created", "PATCH apps/status", "", "1.00"],
        ["an App created", "POST deployments", "1.00", "1.00"],
    ]


def test_the_calmest_of_several_rounds_counts_for_each_action():
    noisy, calm = replace(CREATE, other_cpu=1.0), replace(CREATE, other_cpu=0.1)
    rounds = [{"create": noisy, "drift": calm}, {"create": calm, "drift": noisy}]
    assert calmest(rounds) == {"create": calm, "drift": calm}


def test_a_line_of_a_full_table_fits_the_pages():
    names = ("create", "status", "edit", "drift", "recreate", "single", "idle")
    actions = {name: replace(CREATE, action=name) for name in names}
    full = dict.fromkeys(("bare", "go", "go-reporting", "ruleop"), actions)
    assert max(map(len, costs(full).splitlines())) <= 120
