"""An operator whose API server is not reachable yet is alive and not ready, and reports the reason."""

from __future__ import annotations

import asyncio
import json
import socket

import aiohttp
import pytest
from structlog.testing import capture_logs

from ruleop.operator.manager.manager import Manager
from ruleop.operator.manager.parts import Options
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from tests.operator.virtual_time import run_in_virtual_time
from tests.planning.harness import project

RULES = project("children: {a: {template: a.yaml}}", a="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def unreachable(tmp_path):
    """A kubeconfig of an API server that is not reachable."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    return file


async def test_the_operator_is_alive_and_not_ready_before_the_api_server_answers(unreachable, tmp_path):
    port = free_port()
    options = Options(
        kubeconfig=str(unreachable),
        metrics_address=f"127.0.0.1:{port}",
        health_address=f"127.0.0.1:{port}",
        reload=False,
    )
    manager = Manager(RULES, tmp_path, options)
    running = asyncio.create_task(manager.run())
    async with aiohttp.ClientSession() as client:

        async def get(path):
            async with client.get(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, await answer.text()

        body = ""
        while "cannot be reached" not in body:
            await asyncio.sleep(0.05)
            try:
                status, body = await get("/readyz")
            except aiohttp.ClientConnectionError:
                continue
            assert status == 503
        assert body.startswith("[-] start: ")
        assert body.endswith("not ready\n")
        assert await get("/healthz") == (200, "ok")
        status, text = await get("/metrics")
        assert status == 200
        assert "rest_client_requests_total" in text
    manager.stopping.set()
    assert await running is True


def test_retries_back_off_up_to_ten_seconds(tmp_path):
    async def scenario():
        manager, attempts = Manager(RULES, tmp_path, Options()), iter(range(7))

        async def step():
            if next(attempts, None) is not None:
                raise ApiError(Problem.UNREACHABLE, verb="get", resource="/version", text="nobody answers")

        with capture_logs() as lines:
            await manager.retry(step)
        return [line["retry_in"] for line in lines]

    assert run_in_virtual_time(scenario()) == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_credentials_in_the_servers_address_are_in_no_log_probe_or_metric(run, unreachable, tmp_path):
    unreachable.write_text(unreachable.read_text().replace("http://", "http://joe:s3cret@"))
    texts = []

    async def scenario():
        port = free_port()
        address = f"127.0.0.1:{port}"
        options = Options(kubeconfig=str(unreachable), metrics_address=address, health_address=address, reload=False)
        manager = Manager(RULES, tmp_path, options)
        running = asyncio.create_task(manager.run())
        async with aiohttp.ClientSession() as client:
            while not texts or "cannot be reached" not in texts[-1]:
                await asyncio.sleep(0.05)
                try:
                    async with client.get(f"http://{address}/readyz") as answer:
                        texts.append(await answer.text())
                except aiohttp.ClientConnectionError:
                    continue
            async with client.get(f"http://{address}/metrics") as answer:
                texts.append(await answer.text())
        manager.stopping.set()
        assert await running is True

    with capture_logs() as lines:
        run(scenario())
    texts.append(str(lines))
    assert [text for text in texts if "s3cret" in text or "joe" in text] == []
    assert 'host="127.0.0.1:1"' in texts[-2]
    assert "http://127.0.0.1:1 cannot be reached" in texts[-1]
