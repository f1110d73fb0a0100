"""The names that dashboards of the field know, and a text that Prometheus reads."""

from __future__ import annotations

import re

import pytest
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.parser import text_string_to_metric_families

from ruleop.engine.metrics import Metrics


def parsed(metrics):
    return {family.name: family for family in text_string_to_metric_families(metrics.text().decode())}


def all_of(metrics):
    return {name: each for name, each in vars(metrics).items() if isinstance(each, (Counter, Gauge, Histogram))}


def touched():
    """Metrics of which each has been used once."""
    metrics = Metrics()
    for each in all_of(metrics).values():
        labelled = each.labels(*("x" for _ in each._labelnames)) if each._labelnames else each
        if isinstance(each, Counter):
            labelled.inc()
        elif isinstance(each, Gauge):
            labelled.set(1)
        else:
            labelled.observe(0.02)
    return metrics


@pytest.mark.parametrize(
    ("sample", "labels"),
    [
        ("controller_runtime_reconcile_total", {"controller", "result"}),
        ("controller_runtime_reconcile_errors_total", {"controller"}),
        ("controller_runtime_reconcile_time_seconds_count", {"controller"}),
        ("controller_runtime_active_workers", {"controller"}),
        ("workqueue_depth", {"name"}),
        ("workqueue_adds_total", {"name"}),
        ("workqueue_queue_duration_seconds_count", {"name"}),
        ("workqueue_work_duration_seconds_count", {"name"}),
        ("workqueue_unfinished_work_seconds", {"name"}),
        ("workqueue_longest_running_processor_seconds", {"name"}),
        ("workqueue_retries_total", {"name"}),
        ("rest_client_requests_total", {"code", "method"}),
        ("leader_election_master_status", {"name"}),
    ],
)
def test_the_fields_names_are_there(sample, labels):
    samples = {each.name: each for family in parsed(touched()).values() for each in family.samples}
    assert set(samples[sample].labels) >= labels


def test_each_is_explained_and_written_as_it_should_be():
    families = parsed(touched())
    assert len(families) == len(all_of(Metrics()))
    for family in families.values():
        assert re.fullmatch(r"(controller_runtime|workqueue|rest_client|leader_election|ruleop)_[a-z_]+", family.name)
        assert family.documentation.endswith("."), "a sentence"
        if family.type == "histogram":
            assert family.name.endswith("_seconds")
            assert [each for each in family.samples if each.name.endswith("_bucket") and each.labels["le"] == "+Inf"]
        assert not [each for each in family.samples if each.name.endswith("_created")]


def test_no_label_names_an_object():
    for each in all_of(Metrics()).values():
        assert not {"namespace", "resource", "uid", "object", "cr"} & set(each._labelnames)


def test_two_operators_in_one_process_count_apart():
    one, two = Metrics(), Metrics()
    one.quiet.labels("App").inc()
    assert b'controller="App"' in one.text()
    assert b'controller="App"' not in two.text()
