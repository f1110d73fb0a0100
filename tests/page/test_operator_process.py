"""The page of `ruleop run`, and the requests that it makes as the operator."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from ruleop.authoring.live import live_planner
from ruleop.authoring.live.reader import ReadingClient
from ruleop.localcluster import LocalCluster
from ruleop.operator.wire.client.server_errors import response_error
from ruleop.operator.wire.http.connection import PreparedRequest
from ruleop.planning import Plan
from ruleop.planning.guard import GUARD
from tests.folders import write_files
from tests.page.projects import NOTES, note, url_of
from tests.page.session import running
from tests.waiting import PATIENCE, eventually


@pytest.mark.slow
def test_ruleop_run_serves_the_page_on_loopback(tmp_path: Path) -> None:
    write_files(tmp_path, NOTES)
    with socket.socket() as found, LocalCluster() as cluster:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
        found.close()
        for each in (yaml.safe_load(NOTES["crds/notes.yaml"]), note("a")):
            cluster.call(lambda each=each: cluster.apply(each))  # type: ignore[misc]
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        command = [sys.executable, "-m", "ruleop", "run", "-C", str(tmp_path), f"--page-bind-address={address}"]
        command += [f"--kubeconfig={tmp_path}/kubeconfig", "--metrics-bind-address=0", "--health-probe-bind-address=0"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        try:

            def shown() -> bool:
                with urllib.request.urlopen(f"http://{address}/resources", timeout=PATIENCE) as answer:
                    return "Waiting" in answer.read().decode()

            eventually("the page", shown, missing=(urllib.error.URLError,))
        finally:
            process.terminate()
            _, log = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, log


@pytest.mark.slow
def test_the_page_asks_for_nothing_that_the_roles_of_the_operator_do_not_permit(tmp_path: Path) -> None:
    """They have no `get` for observed objects and CRDs. Events, and pods that are not ready, need a role of their
    own."""

    async def look() -> None:
        async with running(tmp_path, [note("a")], files=NOTES) as shown:
            await shown.shows("/resources", "1 of 1", "Waiting")
            audit = shown.session.cluster.audit
            audit.enabled = True
            assert "cannot be planned" not in (await shown.get(url_of("a", node="config"))).words
            asked = {(each.verb, each.resource) for each in audit.entries if each.verb != "watch"}
            assert asked == {
                ("get", "notes"),
                ("list", "configmaps"),
                ("list", "secrets"),
                ("list", "events"),
                ("list", "leases"),
                ("get", "leases"),
            }

    asyncio.run(look())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("denied", "reported"),
    [
        ("events", "not permitted to list: events"),
        ("configmaps", "the next reconcile cannot be planned: not permitted to read ConfigMap"),
    ],
)
def test_the_page_shows_the_rest_where_a_permission_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, denied: str, reported: str
) -> None:
    fetch = ReadingClient.fetch

    async def denying(client: ReadingClient, request: PreparedRequest) -> tuple[bytes, str]:
        if request.resource.partition(" ")[0] == denied:
            body = b'{"kind": "Status", "reason": "Forbidden", "message": "forbidden"}'
            raise response_error(403, body, verb=request.verb, resource=request.resource, retry_after=None)
        return await fetch(client, request)

    monkeypatch.setattr(ReadingClient, "fetch", denying)

    async def look() -> None:
        async with running(tmp_path, [note("a")], files=NOTES) as shown:
            found = await shown.shows(url_of("a"), reported)  # the operator may not have read the resource yet
            assert found.status == 200

    asyncio.run(look())


@pytest.mark.slow
def test_a_custom_resource_whose_plan_takes_long_is_planned_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    original = live_planner.plan

    def slow(*args: Any, **more: Any) -> Plan:
        threads.append(threading.current_thread().name)
        while threading.current_thread() is threading.main_thread():
            pass
        return original(*args, **more)

    async def look() -> None:
        async with running(tmp_path, [note("a")], files=NOTES) as shown:
            await shown.shows("/resources", "1 of 1", "Waiting")
            monkeypatch.setattr(live_planner, "plan", slow)
            monkeypatch.setattr(GUARD, "patience", 0.002)
            found = await shown.get(url_of("a"))
            assert "ConfigMap a" in found.words
            assert "cannot be planned" not in found.words

    asyncio.run(look())
    assert {"MainThread", "ruleop plan"} <= {*threads}
