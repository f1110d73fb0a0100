"""The HTTP responses to Kubernetes and Prometheus."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from ruleop.errors import RuleopError
from ruleop.operator.manager.ready_checks import StateCollector
from ruleop.operator.telemetry import probes
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.operator.telemetry.probes import BLOCKED_AFTER, Check, LoopWatchdog, Probes, call_on_loop
from tests.waiting import PATIENCE

ANY = "127.0.0.1:0"


class ProbesHarness:
    """Probes with some checks, and a client that asks them."""

    def __init__(self, *checks, health=ANY, metrics="0"):
        self.checks = list(checks)
        self.metrics = Metrics()
        self.time = 0.0
        self.listen = {"health": health, "metrics": metrics}

    async def __aenter__(self):
        on_loop = partial(call_on_loop, asyncio.get_running_loop())
        recorder = SimpleNamespace(statistics=lambda: {"sent": 3})
        self.metrics.registry.register(
            StateCollector(controllers=(), informers=list, recorder=recorder, on_loop=on_loop)
        )
        watchdog = LoopWatchdog(self.metrics.lag.observe, clock=lambda: self.time)
        self.probes = Probes(lambda: self.checks, self.metrics, watchdog)
        await self.probes.serve(**self.listen)
        self.client = await aiohttp.ClientSession().__aenter__()
        return self

    async def __aexit__(self, *_):
        await self.client.close()
        await self.probes.stop()

    def url(self, path, place=0):
        host, port = self.probes.addresses[place]
        return f"http://{host}:{port}{path}"

    async def get(self, path, place=0, method="GET"):
        async with self.client.request(method, self.url(path, place)) as response:
            return response.status, await response.text()

    def get_while_the_loop_is_blocked(self, path):
        host, port = self.probes.addresses[0]

        def get():
            try:
                with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=PATIENCE) as response:
                    return response.status, response.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()

        with ThreadPoolExecutor() as pool:
            return pool.submit(get).result()


async def serve_and_stop(health):
    probes = Probes(list, Metrics(), LoopWatchdog(lambda _lag: None))
    try:
        await probes.serve(health=health, metrics="0")
    finally:
        await probes.stop()


GOOD = Check("watch App", True)
BAD = Check("watch ConfigMap", False, "not listed yet")
OPTIONAL = Check("watch Certificate", False, "not served by the cluster", counts=False)


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
async def test_healthz_is_ok_whatever_the_results_of_the_checks(path):
    async with ProbesHarness(BAD) as harness:
        assert await harness.get(path) == (200, "ok")


async def test_healthz_is_ok_while_the_loop_is_busy_for_less_than_a_minute():
    async with ProbesHarness(GOOD) as harness:
        harness.time += BLOCKED_AFTER
        assert harness.get_while_the_loop_is_blocked("/healthz") == (200, "ok")


async def test_healthz_fails_when_the_loop_is_blocked():
    async with ProbesHarness(GOOD) as harness:
        harness.time += BLOCKED_AFTER + 1
        assert harness.get_while_the_loop_is_blocked("/healthz") == (
            503,
            "the event loop has been blocked for 61 s\n",
        )


@pytest.mark.parametrize("path", ["/readyz", "/metrics"])
async def test_readyz_and_metrics_fail_while_the_loop_is_blocked(monkeypatch, path):
    monkeypatch.setattr(probes, "CALL_TIMEOUT", 0.05)
    async with ProbesHarness(GOOD, metrics=ANY) as harness:
        harness.time += 7
        assert harness.get_while_the_loop_is_blocked(path) == (503, "the event loop has been blocked for 7 s\n")
        monkeypatch.setattr(probes, "CALL_TIMEOUT", PATIENCE)
        assert (await harness.get(path))[0] == 200, "the loop runs again"


@pytest.mark.parametrize(
    ("checks", "path", "body"),
    [
        ([], "/readyz", (200, "ok\n")),
        ([GOOD, OPTIONAL], "/readyz", (200, "ok\n")),
        (
            [GOOD, OPTIONAL],
            "/readyz?verbose",
            (200, "[+] watch App\n[-] watch Certificate: not served by the cluster\nready\n"),
        ),
        (
            [GOOD, BAD],
            "/readyz",
            (503, "[+] watch App\n[-] watch ConfigMap: not listed yet\nnot ready\n"),
        ),
        (
            [Check("rules", False, "two mistakes\n[+] a lie", counts=False)],
            "/readyz?verbose",
            (200, "[-] rules: two mistakes\n    [+] a lie\nready\n"),
        ),
    ],
)
async def test_readyz_is_ok_when_all_checks_that_count_are(checks, path, body):
    async with ProbesHarness(*checks) as harness:
        assert await harness.get(path) == body


async def test_readyz_evaluates_the_checks_each_time():
    async with ProbesHarness(BAD) as harness:
        assert (await harness.get("/readyz"))[0] == 503
        harness.checks[:] = [GOOD]
        assert (await harness.get("/readyz"))[0] == 200


def test_a_check_that_raises_is_an_internal_error_of_that_request(run):
    async def scenario():
        async with ProbesHarness(None) as harness:
            assert await harness.get("/readyz?verbose") == (500, "internal error; see the log\n")
            assert await harness.get("/healthz") == (200, "ok")

    with capture_logs() as lines:
        run(scenario())
    assert [(line["event"], line["path"]) for line in lines] == [("request failed with an internal error", "/readyz")]


@pytest.mark.parametrize(
    ("method", "path", "response"),
    [
        ("HEAD", "/healthz", (200, "")),
        ("POST", "/healthz", (405, "only GET is allowed\n")),
        ("GET", "/", (404, "not found\n")),
        ("GET", "/healthz/", (404, "not found\n")),
    ],
)
async def test_only_get_and_head_of_the_known_paths_are_answered(method, path, response):
    async with ProbesHarness(GOOD) as harness:
        assert await harness.get(path, method=method) == response


@pytest.mark.parametrize(
    ("accept", "content_type", "parse"),
    [
        ("", "text/plain; version=0.0.4", text_string_to_metric_families),
        (
            "application/openmetrics-text; version=1.0.0",
            "application/openmetrics-text; version=1.0.0",
            openmetrics_families,
        ),
    ],
)
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_metrics_are_served_in_the_format_and_encoding_that_the_scraper_accepts(
    accept, content_type, parse, encoding
):
    async with ProbesHarness(health="0", metrics=ANY) as harness:
        harness.metrics.leader.labels("ruleop").set(1)
        headers = {"Accept": accept, "Accept-Encoding": encoding}
        async with harness.client.get(harness.url("/metrics"), headers=headers) as response:
            assert response.headers["Content-Type"].startswith(content_type)
            assert response.headers.get("Content-Encoding", "identity") == encoding
            text = await response.text()
        samples = {(each.name, *each.labels.values()): each.value for family in parse(text) for each in family.samples}
        assert samples["leader_election_master_status", "ruleop"] == 1
        assert samples["ruleop_events_total", "sent"] == 3


async def test_metrics_can_be_chosen_by_name():
    async with ProbesHarness(health="0", metrics=ANY) as harness:
        _, text = await harness.get("/metrics?name[]=ruleop_events_total")
        assert [family.name for family in text_string_to_metric_families(text)] == ["ruleop_events"]


async def test_health_and_metrics_have_addresses_of_their_own():
    async with ProbesHarness(GOOD, health=ANY, metrics="localhost:0") as harness:
        assert len(harness.probes.addresses) == 2
        assert (await harness.get("/readyz", 0))[0] == 200
        assert (await harness.get("/metrics", 0))[0] == 404
        assert (await harness.get("/metrics", 1))[0] == 200


async def test_health_and_metrics_can_share_an_address():
    async with ProbesHarness(GOOD, health=ANY, metrics=ANY) as harness:
        assert len(harness.probes.addresses) == 1
        assert (await harness.get("/readyz"))[0] == (await harness.get("/metrics"))[0] == 200


@pytest.mark.parametrize("off", ["", "0", ":0"])
async def test_an_address_of_zero_turns_the_server_off(off):
    async with ProbesHarness(health=off, metrics=off) as harness:
        assert harness.probes.addresses == []


def test_an_address_in_brackets_is_an_ipv6_address(run):
    async def scenario():
        async with ProbesHarness(health="[::1]:0") as harness:
            host, port = harness.probes.addresses[0]
            assert (host, port > 0) == ("::1", True)

    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    run(scenario())


async def test_a_port_alone_listens_on_every_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with (
        ProbesHarness(health=f":{port}") as harness,
        harness.client.get(f"http://127.0.0.1:{port}/healthz") as answer,
    ):
        assert answer.status == 200


async def test_an_address_in_use_is_an_error_with_a_remedy():
    async with ProbesHarness() as first:
        host, port = first.probes.addresses[0]
        with pytest.raises(RuleopError, match=rf"cannot listen on {host}:{port}: .*in use.*; choose another"):
            await serve_and_stop(f"{host}:{port}")


@pytest.mark.parametrize("address", [":http", "localhost", ":70000", "host:-1", "host:²"])
def test_an_invalid_address_is_an_error_with_a_remedy(run, address):
    with pytest.raises(RuleopError, match="an address is host:port"):
        run(serve_and_stop(address))


def test_an_invalid_host_is_an_error_with_a_remedy(run):
    with pytest.raises(
        RuleopError, match=r"cannot listen on a\.\.b:1: a\.\.b is not a valid host name; choose another address"
    ):
        run(serve_and_stop("a..b:1"))


async def test_after_stop_connections_are_refused():
    async with ProbesHarness() as harness:
        host, port = harness.probes.addresses[0]
        await harness.probes.stop()
        await harness.probes.stop()
        with pytest.raises(aiohttp.ClientConnectionError):
            await harness.client.get(f"http://{host}:{port}/healthz")
