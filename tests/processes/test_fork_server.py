"""A forked program is to its caller what a program in a new interpreter is."""

from __future__ import annotations

import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.processes.fork_server import ForkServer, is_alive
from tests.waiting import PATIENCE, eventually


def run(server: ForkServer, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = server.command(*arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, **options)  # type: ignore[call-overload,no-any-return]


def test_the_process_has_the_arguments_the_streams_and_the_status(fork_server: ForkServer) -> None:
    version = run(fork_server, "version")
    assert (version.returncode, version.stderr) == (0, "")
    assert version.stdout.startswith("ruleop ")
    unknown = run(fork_server, "--what")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "--what" in unknown.stderr


def test_the_process_runs_in_the_folder_with_the_environment(fork_server: ForkServer, tmp_path: Path) -> None:
    assert run(fork_server, "check", cwd=tmp_path).stderr.startswith("ruleop: not a ruleop project")
    completed = run(
        fork_server, env={"_RULEOP_COMPLETE": "bash_complete", "COMP_WORDS": "ruleop rend", "COMP_CWORD": "1"}
    )
    assert completed.stdout == "plain,render\n"


def test_a_closed_stream_is_closed(fork_server: ForkServer, tmp_path: Path) -> None:
    ran = run(fork_server, "render", "-f", "-", cwd=tmp_path, preexec_fn=partial(os.close, 0))
    assert ran.returncode == 2


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_signal_to_the_client_reaches_the_process(
    fork_server: ForkServer, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    kubeconfig = tmp_path / "config"
    command = fork_server.command("cluster", "--kubeconfig", str(kubeconfig))
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    eventually("the process", kubeconfig.exists)
    started.send_signal(number)
    started.communicate(timeout=PATIENCE)  # until nobody has its stdout open
    assert started.returncode == status


@pytest.mark.slow
def test_the_process_ends_with_the_server(tmp_path: Path) -> None:
    with ForkServer() as server:
        pid = server.start(["cluster", "--kubeconfig", str(tmp_path / "config")], tmp_path / "log", tmp_path / "clock")
        assert is_alive(pid)
    eventually("the process", lambda: not is_alive(pid))
