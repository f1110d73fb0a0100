"""The cells of `kubectl get`. `tests/cluster/test_tables.py` compares all kinds with the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.builtin.builtin_types import served_resources
from ruleop.kubernetes.crd import PrinterColumn
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.times import seconds_of
from ruleop.localcluster.tables import (
    conditions,
    custom_printer,
    human_duration,
    label_selector,
    printer_of,
    values_at,
)

CREATED = "2026-01-01T00:00:00Z"
NOW = seconds_of(CREATED) + 100
POD = Kind("", "v1", "Pod")
MINUTE, HOUR, DAY = 60, 3600, 86400


def pod(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "creationTimestamp": CREATED},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        "status": status,
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR, "3h"),
        (5 * HOUR + 3 * MINUTE, "5h3m"),
        (8 * HOUR + 3 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (5 * DAY + 2 * HOUR, "5d2h"),
        (7 * DAY, "7d"),
        (100 * DAY, "100d"),
        (2 * 365 * DAY, "2y"),
        (3 * 365 * DAY + 40 * DAY, "3y40d"),
        (9 * 365 * DAY + 40 * DAY, "9y"),
    ],
)
def test_durations_have_two_or_three_digits(seconds: float, text: str):
    assert human_duration(seconds) == text


def test_a_printed_selector_is_sorted_by_key():
    assert (
        label_selector(
            {
                "matchLabels": {"b": "1", "d": "2"},
                "matchExpressions": [
                    {"key": "c", "operator": "In", "values": ["y", "x"]},
                    {"key": "a", "operator": "Exists"},
                    {"key": "e", "operator": "DoesNotExist"},
                    {"key": "f", "operator": "NotIn", "values": ["z"]},
                ],
            }
        )
        == "a,b=1,c in (x,y),d=2,!e,f notin (z)"
    )
    assert label_selector(None) == label_selector({}) == ""


@pytest.mark.parametrize("resource", served_resources(), ids=lambda resource: str(resource.kind))
def test_each_kind_has_a_cell_for_each_column_also_of_an_empty_object(resource: Any):
    kind = resource.kind
    assert len(printer_of(kind).cells({"metadata": {"name": "n"}}, NOW)) == len(printer_of(kind).columns)
    assert next(each.name for each in printer_of(kind).columns if each.format == "name") == "Name"


def test_wide_columns_come_after_the_others():
    assert [each.name for each in printer_of(POD).columns if not each.priority] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert [each.name for each in printer_of(POD).columns if each.priority] == [
        "IP",
        "Node",
        "Nominated Node",
        "Readiness Gates",
    ]
    assert printer_of(POD).definitions()[0] == {
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "",
        "priority": 0,
    }


def test_the_name_of_an_event_is_only_in_wide_output():
    for kind in (Kind("", "v1", "Event"), Kind("events.k8s.io", "v1", "Event")):
        (column,) = [each for each in printer_of(kind).columns if each.format == "name"]
        assert (column.name, column.priority) == ("Name", 1)


def test_the_row_of_a_crashing_pod_has_the_reason_and_the_restarts():
    crashed = {
        "name": "app",
        "ready": False,
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "finishedAt": CREATED}},
    }
    row = printer_of(POD).cells(pod(phase="Running", containerStatuses=[crashed]), NOW)
    assert row[:5] == ["p", "0/1", "CrashLoopBackOff", "4 (100s ago)", "100s"]


def test_the_row_of_a_deleted_pod_is_terminating():
    deleted = pod(phase="Running")
    deleted["metadata"]["deletionTimestamp"] = CREATED
    assert printer_of(POD).cells(deleted, NOW)[2] == "Terminating"
    deleted["status"]["phase"] = "Failed"
    assert printer_of(POD).cells(deleted, NOW)[2] == "Failed"


def test_only_rows_of_finished_pods_have_conditions():
    (ended,) = conditions(POD, pod(phase="Succeeded"))
    assert (ended["type"], ended["reason"]) == ("Completed", "Succeeded")
    assert conditions(POD, pod(phase="Running")) == []
    assert conditions(Kind("", "v1", "Namespace"), pod(phase="Failed")) == []


@pytest.mark.parametrize(
    "kind", [Kind("batch", "v1", "Job"), Kind("", "v1", "PersistentVolumeClaim"), Kind("", "v1", "PersistentVolume")]
)
def test_rows_of_deleted_jobs_claims_and_volumes_are_terminating(kind: Kind):
    deleted = {"metadata": {"name": "n", "deletionTimestamp": CREATED}, "status": {"phase": "Bound"}}
    assert "Terminating" in printer_of(kind).cells(deleted, NOW)


ITEMS = {"items": [{"name": "a", "size": 1}, {"name": "b", "size": 5, "x.y": True}, {"name": "c"}]}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".items[0].name", ["a"]),
        (".items[7].name", []),
        (".items[*].size", [1, 5]),
        ('.items[?(@.name == "c")].name', ["c"]),
        (".items[?(@.name=='d')].name", []),
        (r".items[1].x\.y", [True]),
        (".items.name", []),
        ("", [ITEMS]),
    ],
)
def test_paths_of_columns_are_evaluated(path: str, values: list[Any]):
    assert values_at(path, ITEMS) == values


@pytest.mark.parametrize(
    "path", ["items", ".items[", ".items[0:2]", "..name", ".items['a','b']", ".items[?(@.size==x)]", ".a b["]
)
def test_the_columns_of_other_paths_are_empty(path: str):
    assert custom_printer([PrinterColumn("C", "string", path)]).cells({"metadata": {"name": "n"}}, NOW) == ["n", None]


def test_a_custom_kind_without_columns_shows_its_age():
    assert [each.name for each in custom_printer(()).columns] == ["Name", "Age"]
    assert custom_printer(()).cells({"metadata": {"name": "n", "creationTimestamp": CREATED}}, NOW) == ["n", "100s"]


@pytest.mark.parametrize(
    ("of_type", "value", "cell"),
    [
        ("string", {"b": 1, "a": [True]}, '{"a":[true],"b":1}'),
        ("string", 3, "3"),
        ("string", 2.5, "2.5"),
        ("string", False, "false"),
        ("integer", 2.7, 2),
        ("integer", "2", None),
        ("integer", True, None),
        ("number", 2.5, 2.5),
        ("boolean", "true", None),
        ("date", "soon", "<invalid>"),
        ("date", CREATED, "100s"),
        ("date", 5, None),
    ],
)
def test_a_cell_has_the_type_of_its_column(of_type: str, value: Any, cell: Any):
    column = PrinterColumn("C", of_type, ".spec.value")
    obj = {"metadata": {"name": "n"}, "spec": {"value": value}}
    assert custom_printer([column]).cells(obj, NOW)[1] == cell
