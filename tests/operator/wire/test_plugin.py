"""Exec plugins: their input and their output. Tests that their credentials are sent are in test_credentials."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import os
import pty
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ruleop.operator.wire.auth.exec_plugin import (
    CALL_AGAIN,
    EXPIRY_MARGIN,
    MAX_COMPLAINT,
    Credential,
    Plugin,
    PluginError,
)

VERSION = "client.authentication.k8s.io/v1"


def script(folder: Path, *lines: str, name: str = "plugin") -> str:
    path = folder / name
    path.write_text(
        "\n".join(
            [
                f"#!{sys.executable}",
                "import json, os, sys",
                "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])",
                *lines,
            ]
        )
    )
    path.chmod(0o755)
    return str(path)


def answer(status: str) -> str:
    return f"print(json.dumps({{'apiVersion': {VERSION!r}, 'kind': 'ExecCredential', 'status': {status}}}))"


def called(folder: Path, *lines: str, cluster: dict[str, Any] | None = None, **declared: Any) -> Credential:
    declared = {"apiVersion": VERSION, "command": script(folder, *lines), **declared}
    return asyncio.run(Plugin(declared, folder, cluster or {}).credential())


def word(folder: Path, *lines: str, **options: Any) -> str:
    """The token."""
    return called(folder, *lines, **options).token


def test_the_plugin_receives_the_cluster_and_its_exec_extension(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("the authority")
    cluster = {
        "server": "https://kube",
        "tls-server-name": "name",
        "insecure-skip-tls-verify": False,
        "certificate-authority": str(tmp_path / "ca.crt"),
        "extensions": [
            {"name": "other", "extension": 1},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}},
        ],
    }
    told = json.loads(word(tmp_path, answer("{'token': json.dumps(info)}"), cluster=cluster, provideClusterInfo=True))
    assert told == {
        "apiVersion": VERSION,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://kube",
                "tls-server-name": "name",
                "certificate-authority-data": base64.b64encode(b"the authority").decode(),
                "config": {"audience": "a"},
            },
        },
    }
    told = json.loads(word(tmp_path, answer("{'token': json.dumps(info)}"), cluster=cluster))
    assert told["spec"] == {"interactive": False}


def test_the_plugin_receives_its_arguments_and_environment(tmp_path: Path) -> None:
    said = word(
        tmp_path,
        answer("{'token': ' '.join([*sys.argv[1:], os.environ['WHO']])}"),
        args=["--port", 1],
        env=[{"name": "WHO", "value": "me"}],
    )
    assert said == "--port 1 me"


def test_a_plugin_path_is_relative_to_the_kubeconfig_and_a_bare_name_is_found_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin", answer("{'token': 'x'}"))

    async def run(command: str) -> str:
        return (await Plugin({"apiVersion": VERSION, "command": command}, tmp_path, {}).credential()).token

    assert asyncio.run(run("bin/plugin")) == "x"
    with pytest.raises(PluginError, match=r"exec plugin plugin: .*No such file"):
        asyncio.run(run("plugin"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert asyncio.run(run("plugin")) == "x"


def test_a_plugin_returns_a_token_and_a_certificate(tmp_path: Path) -> None:
    said = called(
        tmp_path,
        answer(
            "{'token': 't', 'clientCertificateData': 'c', 'clientKeyData': 'k', 'expirationTimestamp': '2100-01-01T00:00:00Z'}"
        ),
    )
    assert (said.token, said.identity.certificate, said.identity.key) == ("t", b"c", b"k")
    assert said.expires == dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
    assert "'t'" not in repr(said)
    assert "b'k'" not in repr(said)


@pytest.mark.parametrize(
    ("left", "fresh_for"),
    [(3600, 3600 - EXPIRY_MARGIN), (EXPIRY_MARGIN + 1, CALL_AGAIN), (-5, CALL_AGAIN)],
)
def test_the_plugin_is_called_again_before_its_credential_expires_but_not_all_the_time(
    left: float, fresh_for: float
) -> None:
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=left)
    assert Credential("t", expires=ends).fresh_for == pytest.approx(fresh_for, abs=5)
    assert Credential("t").fresh_for is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("print('hello')", "its output is not JSON"),
        ("print('[]')", f"its output is not an ExecCredential of {VERSION}"),
        (
            "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': 'other/v1'}))",
            f"not an ExecCredential of {VERSION}",
        ),
        (answer("None"), "its output has no credentials"),
        (answer("{}"), "its output has no credentials: a token"),
        (answer("{'token': 1}"), "its output has no credentials: a token"),
        (answer("{'clientCertificateData': 'c'}"), "its output has no credentials: a token"),
        (answer("{'token': 't', 'clientKeyData': 'k'}"), "its output has no credentials: a token"),
        (answer("{'token': 't', 'expirationTimestamp': 'soon'}"), "its expirationTimestamp is 'soon'"),
        ("sys.exit('log in first: \\xe9')", "exit status 1: log in first: \xe9"),
        ("sys.exit(3)", "exit status 3: no message"),
    ],
)
def test_invalid_output_of_the_plugin_is_reported_with_its_install_hint(tmp_path: Path, line: str, why: str) -> None:
    with pytest.raises(PluginError) as caught:
        called(tmp_path, line, installHint="get it anew\n")
    assert str(caught.value).startswith(f"exec plugin {tmp_path / 'plugin'}: ")
    assert why in str(caught.value)
    assert str(caught.value).endswith(" (get it anew)")


@pytest.mark.parametrize(
    "declared", [{"command": ""}, {"env": [{"name": "x"}]}, {"env": "x"}, {"args": 1}, {"command": "a\0b"}]
)
def test_an_invalid_exec_declaration_is_an_error(tmp_path: Path, declared: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match="exec plugin"):
        called(tmp_path, answer("{'token': 't'}"), **declared)


def test_a_plugin_that_must_be_interactive_is_an_error_without_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(PluginError, match=r"it is interactive \(interactiveMode: Always\), and there is no terminal"):
        called(tmp_path, answer("{'token': 't'}"), interactiveMode="Always")
    assert word(tmp_path, answer("{'token': str(sys.stdin.read() == '')}"), interactiveMode="IfAvailable") == "True"


def test_the_prompt_of_an_interactive_plugin_is_shown_on_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = pty.openpty()
    with open(theirs) as terminal:  # noqa: PTH123 - it has no path
        monkeypatch.setattr(sys, "stdin", terminal)
        told = word(
            tmp_path, "print('your code?', file=sys.stderr)", answer("{'token': str(info['spec']['interactive'])}")
        )
        assert told == "True"
        assert capsys.readouterr().err == "your code?\n"
        told = word(
            tmp_path,
            "print('hm', file=sys.stderr)",
            answer("{'token': str(info['spec']['interactive'])}"),
            interactiveMode="Never",
        )
        assert told == "False"
        assert capsys.readouterr().err == ""
    os.close(ours)


def test_a_hanging_plugin_is_killed_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    (tmp_path / "pid").touch()
    command = script(
        tmp_path, f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))", "import time; time.sleep(600)"
    )

    async def run() -> int:
        waiting = asyncio.create_task(Plugin({"apiVersion": VERSION, "command": command}, tmp_path, {}).credential())
        while not (pid := (tmp_path / "pid").read_text()):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return int(pid)

    pid = asyncio.run(run())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_plugin_can_be_called_in_the_thread_of_leader_election(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(word, tmp_path, answer("{'token': 'x'}")).result(60) == "x"


def test_a_plugin_that_prints_without_end_is_stopped_at_the_limit(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="its output is larger than 1024 KiB"):
        called(tmp_path, "while True: print('x' * 10000)")


def test_the_complaint_of_a_plugin_is_cut(tmp_path: Path) -> None:
    with pytest.raises(PluginError) as caught:
        called(tmp_path, "sys.stderr.write('x' * 5_000_000)", "sys.exit(1)")
    assert MAX_COMPLAINT < len(str(caught.value)) < MAX_COMPLAINT + 1000
