"""Scrapes cost the operator one rendering a second, however many there are."""

from __future__ import annotations

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families

from ruleop.operator.manager.ready_checks import StateCollector
from ruleop.operator.passes.pass_log import Reported
from ruleop.operator.telemetry import http_server
from ruleop.operator.telemetry.http_server import Exposition
from tests.waiting import PATIENCE


class Source:
    """Counts how often it is asked, and how many threads ask at once."""

    def __init__(self, ready=None):
        self.asked = self.at_once = self.most_at_once = 0
        self.ready = ready

    def collect(self):
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if self.ready is not None:
            assert self.ready.wait(PATIENCE)
        yield GaugeMetricFamily("scrapes", "How often it was asked.", value=self.asked)
        self.at_once -= 1


def ask(app, query="", **headers):
    head = []
    environ = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    body = b"".join(app({"QUERY_STRING": query, **environ}, lambda status, fields: head.extend([status, dict(fields)])))
    assert head[0] == "200 OK"
    assert head[1]["Content-Length"] == str(len(body))
    return (gzip.decompress(body) if head[1].get("Content-Encoding") == "gzip" else body).decode()


def test_a_rendered_text_is_kept_for_a_second():
    now, source = [100.0], Source()
    app = Exposition(source, clock=lambda: now[0])
    assert "\nscrapes 1.0\n" in ask(app)
    now[0] += 0.9
    assert "\nscrapes 1.0\n" in ask(app)
    assert "\nscrapes 1.0\n" in ask(app, accept="application/openmetrics-text", accept_encoding="gzip")
    assert "\nscrapes 1.0\n" in ask(app, "name[]=scrapes")
    now[0] += 0.2
    assert "\nscrapes 2.0\n" in ask(app)
    assert source.asked == 2


def test_concurrent_scrapes_share_one_rendering():
    ready = threading.Event()
    source = Source(ready)
    app = Exposition(source)
    with ThreadPoolExecutor(8) as pool:
        texts = [pool.submit(ask, app) for _ in range(8)]
        ready.set()
        assert {text.result() for text in texts} == {ask(app)}
    assert (source.asked, source.most_at_once) == (1, 1)


def test_a_scrape_waits_for_the_rendering_for_a_limited_time(monkeypatch):
    monkeypatch.setattr(http_server, "PATIENCE", 0.01)
    ready = threading.Event()
    source = Source(ready)
    app = Exposition(source)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, app)
        while not source.asked:
            pass
        with pytest.raises(TimeoutError):
            ask(app)
        ready.set()
        assert "\nscrapes 1.0\n" in first.result()


def test_a_failed_rendering_is_repeated():
    class Failing(Source):
        def collect(self):
            if not self.asked:
                self.asked = 1
                raise TimeoutError
            return super().collect()

    app = Exposition(Failing())
    with pytest.raises(TimeoutError):
        ask(app)
    assert "\nscrapes 2.0\n" in ask(app)


@pytest.mark.parametrize(
    ("accept", "is_openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain;version=0.0.4;q=0.3,*/*;q=0.1", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;q=0.3", True),
        ("application/openmetrics-text; version=0.0.1", False),
        ("application/openmetrics-text;version=x", True),
    ],
)
def test_metrics_are_rendered_in_a_format_that_the_scraper_accepts(accept, is_openmetrics):
    assert ask(Exposition(Source()), accept=accept).endswith("# EOF\n") == is_openmetrics


def test_a_metric_is_chosen_by_its_name_or_that_of_a_sample():
    registry = CollectorRegistry()
    Counter("a", "A.", ["x"], registry=registry).labels("1").inc()
    Histogram("b", "B.", registry=registry).observe(1)
    app = Exposition(registry)
    for name in ("a", "a_total"):
        text = ask(app, f"name[]={name}", accept="application/openmetrics-text")
        assert [family.name for family in openmetrics_families(text)] == ["a"]
    assert "b_bucket" in ask(app, "name[]=b_sum&name[]=nothing")
    assert ask(app, "name[]=nothing") == ""
    assert ask(app, "name[]=a&name[]=b") == ask(app)


def test_the_reports_of_many_crs_are_not_counted_on_the_event_loop():
    class Watched(Reported):
        on_loop = False
        read_on_loop = 0

        @property
        def states(self):
            Watched.read_on_loop += Watched.on_loop
            return ("ready",)

        @states.setter
        def states(self, _value):
            pass

    work = dict.fromkeys(
        ("active_workers", "max_concurrent_reconciles", "depth", "unfinished_work_seconds", "failing"), 0
    )
    work |= {"longest_running_processor_seconds": 0, "longest_wait_seconds": 0}
    controller = SimpleNamespace(
        workers=SimpleNamespace(title="App", statistics=lambda: work),
        reconciler=SimpleNamespace(
            pass_log=SimpleNamespace(reported={n: Watched("Ready") for n in range(7)}), large=set()
        ),
    )

    def on_loop(function):
        Watched.on_loop = True
        try:
            return function()
        finally:
            Watched.on_loop = False

    recorder = SimpleNamespace(statistics=dict)
    collector = StateCollector(controllers=[controller], informers=list, recorder=recorder, on_loop=on_loop)
    families = {family.name: family for family in collector.collect()}
    assert [(sample.labels, sample.value) for sample in families["ruleop_children"].samples] == [
        ({"controller": "App", "state": "ready"}, 7)
    ]
    assert Watched.read_on_loop == 0
