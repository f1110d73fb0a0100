"""What Kubernetes and people are told when they ask, over HTTP."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ruleop.engine.telemetry import probes as health
from ruleop.engine.telemetry.loop_watchdog import HUNG, LoopWatchdog
from ruleop.engine.telemetry.metrics import Metrics
from ruleop.engine.telemetry.probes import Check, Probes
from ruleop.errors import RuleopError

ANY = "127.0.0.1:0"


class Asking:
    """A health server with some checks, and somebody who asks it."""

    def __init__(self, *checks, health=ANY, metrics="0"):
        self.checks = list(checks)
        self.metrics = Metrics()
        self.time = 0.0
        self.health = Probes(lambda: self.checks, self.metrics, LoopWatchdog(self.metrics.lag.observe, clock=lambda: self.time))
        self.listen = {"health": health, "metrics": metrics}

    async def __aenter__(self):
        await self.health.serve(**self.listen)
        self.client = await aiohttp.ClientSession().__aenter__()
        return self

    async def __aexit__(self, *_):
        await self.client.close()
        await self.health.stop()

    async def get(self, path, place=0):
        host, port = self.health.addresses[place]
        async with self.client.get(f"http://{host}:{port}{path}") as answer:
            return answer.status, await answer.text()

    def get_while_the_loop_is_busy(self, path):
        """The loop does not turn before the answer is there."""
        host, port = self.health.addresses[0]

        def ask():
            try:
                with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=20) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()

        with ThreadPoolExecutor() as pool:
            return pool.submit(ask).result()


def nothing():
    return Probes(list, Metrics(), LoopWatchdog(lambda late: None))


GOOD = Check("watch App", True)
BAD = Check("watch ConfigMap", False, "the first list has not been answered")
TOLD = Check("watch Certificate", False, "the cluster does not serve it", counts=False)


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
def test_it_is_alive_whatever_the_checks_say(run, path):
    async def scenario():
        async with Asking(BAD) as asking:
            assert await asking.get(path) == (200, "ok")

    run(scenario())


def test_a_loop_that_is_busy_for_a_while_is_alive(run):
    async def scenario():
        async with Asking(GOOD) as asking:
            asking.time += HUNG
            assert asking.get_while_the_loop_is_busy("/healthz") == (200, "ok")

    run(scenario())


def test_a_loop_that_hangs_is_told_by_an_answer(run):
    async def scenario():
        async with Asking(GOOD) as asking:
            asking.time += HUNG + 1
            assert asking.get_while_the_loop_is_busy("/healthz") == (503, "the event loop has not turned for 61 s\n")

    run(scenario())


@pytest.mark.parametrize("path", ["/readyz", "/metrics"])
def test_what_only_a_turning_loop_can_tell_is_not_waited_for_long(run, monkeypatch, path):
    monkeypatch.setattr(health, "PATIENCE", 0.05)

    async def scenario():
        async with Asking(GOOD, metrics=ANY) as asking:
            asking.time += 7
            assert asking.get_while_the_loop_is_busy(path) == (503, "the event loop has not turned for 7 s\n")
            assert (await asking.get(path))[0] == 200, "it turns again"

    run(scenario())


@pytest.mark.parametrize(
    ("checks", "path", "said"),
    [
        ([], "/readyz", (200, "ok\n")),
        ([GOOD, TOLD], "/readyz", (200, "ok\n")),
        ([GOOD, TOLD], "/readyz?verbose", (200, "[+] watch App\n[-] watch Certificate: the cluster does not serve it\nready\n")),
        (
            [GOOD, BAD],
            "/readyz",
            (503, "[+] watch App\n[-] watch ConfigMap: the first list has not been answered\nnot ready\n"),
        ),
        (
            [Check("rules", False, "two mistakes\n[+] a lie", counts=False)],
            "/readyz?verbose",
            (200, "[-] rules: two mistakes\n    [+] a lie\nready\n"),
        ),
    ],
)
def test_ready_is_when_all_that_counts_holds(run, checks, path, said):
    async def scenario():
        async with Asking(*checks) as asking:
            assert await asking.get(path) == said

    run(scenario())


def test_readiness_is_asked_anew_each_time(run):
    async def scenario():
        async with Asking(BAD) as asking:
            assert (await asking.get("/readyz"))[0] == 503
            asking.checks[:] = [GOOD]
            assert (await asking.get("/readyz"))[0] == 200

    run(scenario())


def test_metrics_are_served_as_prometheus_reads_them(run):
    async def scenario():
        async with Asking(health="0", metrics=ANY) as asking:
            asking.metrics.leader.labels("ruleop").set(1)
            host, port = asking.health.addresses[0]
            async with asking.client.get(f"http://{host}:{port}/metrics") as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=")
                text = await answer.text()
            families = {family.name: family for family in text_string_to_metric_families(text)}
            assert families["leader_election_master_status"].samples[0].value == 1
            assert (await asking.get("/readyz"))[0] == 404

    run(scenario())


def test_each_has_its_own_address(run):
    async def scenario():
        async with Asking(GOOD, health=ANY, metrics="localhost:0") as asking:
            assert len(asking.health.addresses) == 2
            assert (await asking.get("/readyz", 0))[0] == 200
            assert (await asking.get("/metrics", 0))[0] == 404
            assert (await asking.get("/metrics", 1))[0] == 200

    run(scenario())


def test_both_may_share_one_address(run):
    async def scenario():
        async with Asking(GOOD, health=ANY, metrics=ANY) as asking:
            assert len(asking.health.addresses) == 1
            assert (await asking.get("/readyz"))[0] == (await asking.get("/metrics"))[0] == 200

    run(scenario())


@pytest.mark.parametrize("off", ["", "0", ":0"])
def test_off_is_off(run, off):
    async def scenario():
        async with Asking(health=off, metrics=off) as asking:
            assert asking.health.addresses == []

    run(scenario())


def test_an_address_in_brackets_is_one_of_ipv6(run):
    async def scenario():
        async with Asking(health="[::1]:0") as asking:
            host, port = asking.health.addresses[0]
            assert (host, port > 0) == ("::1", True)

    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    run(scenario())


def test_a_port_alone_is_every_address(run):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def scenario():
        async with Asking(health=f":{port}") as asking, asking.client.get(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.status == 200

    run(scenario())


def test_an_address_in_use_is_told_in_a_sentence(run):
    async def scenario():
        async with Asking() as first:
            host, port = first.health.addresses[0]
            second = nothing()
            with pytest.raises(RuleopError, match=rf"cannot listen on {host}:{port}: .*in use.*; choose another"):
                await second.serve(health=f"{host}:{port}", metrics="0")
            await second.stop()

    run(scenario())


async def refused(health_, address):
    try:
        await health_.serve(health=address, metrics="0")
    finally:
        await health_.stop()


@pytest.mark.parametrize("address", [":http", "localhost", ":70000", "host:-1", "host:²"])
def test_what_is_no_address_is_told_in_a_sentence(run, address):
    with pytest.raises(RuleopError, match="an address is host:port"):
        run(refused(nothing(), address))


def test_after_its_end_nobody_answers(run):
    async def scenario():
        async with Asking() as asking:
            host, port = asking.health.addresses[0]
            await asking.health.stop()
            await asking.health.stop()
            with pytest.raises(aiohttp.ClientConnectionError):
                await asking.client.get(f"http://{host}:{port}/healthz")

    run(scenario())
