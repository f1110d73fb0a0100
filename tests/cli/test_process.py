"""Commands as real processes: exit statuses, closed pipes, interrupts, and imported modules."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from functools import partial
from pathlib import Path

import pytest

from tests.exploration import others_slow
from tests.waiting import PATIENCE

HEAVY = {"kubernetes", "aiohttp", "structlog", "prometheus_client", "watchdog"}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["check"], 0),
        (["plan", "-f", "site.yaml"], 0),
        (["version"], 0),
        (["check", "-C", "none"], 2),
        (["check", "--what"], 2),
        (["--help"], 0),
    ],
)
def test_commands_have_their_exit_statuses(project, process, arguments, status):
    started = process(*arguments)
    out, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == status
    assert (status == 2) == bool(err)
    assert (status == 0) == bool(out)


@pytest.mark.slow
def test_check_with_errors_has_status_1(project, process):
    project.edit("templates/web.yaml.j2", "{{ metadata.name }}", "{{ metadta.name }}")
    started = process("check")
    started.communicate(timeout=PATIENCE)
    assert started.returncode == 1


@pytest.mark.parametrize(
    "arguments", [["render", "-f", "site.yaml"], ["plan", "-f", "site.yaml", "-o", "json"], ["check"]]
)
def test_a_closed_pipe_is_not_an_error(project, process, arguments):
    reading, writing = os.pipe()
    started = process(*arguments, stdout=writing)
    os.close(writing)
    os.close(reading)
    _, err = started.communicate(timeout=PATIENCE)
    assert (started.returncode, err) == (0, "")


@pytest.mark.slow
def test_a_closed_pipe_keeps_the_exit_status(project, process):
    project.edit("templates/web.yaml.j2", "{{ metadata.name }}", "{{ metadta.name }}")
    reading, writing = os.pipe()
    started = process("check", stdout=writing)
    os.close(writing)
    os.close(reading)
    _, err = started.communicate(timeout=PATIENCE)
    assert (started.returncode, err) == (1, "")


def test_a_full_disk_is_reported(project, process):
    with Path("/dev/full").open("w") as full:
        started = process("render", "-f", "site.yaml", stdout=full)
        _, err = started.communicate(timeout=PATIENCE)
    assert (started.returncode, err) == (2, "ruleop: the output cannot be written: No space left on device\n")


ANSWERS = [
    ["--help"],
    pytest.param(["check", "--help"], marks=pytest.mark.slow),
    ["version"],
    ["version", "-o", "json"],
    ["check"],
    pytest.param(["check", "-o", "sarif"], marks=pytest.mark.slow),
    pytest.param(["plan", "-f", "site.yaml"], marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ANSWERS)
def test_output_that_cannot_be_written_is_reported(project, process, arguments):
    reading, writing = os.pipe()
    os.close(reading)
    unread = process(*arguments, stdout=writing)
    os.close(writing)
    with Path("/dev/full").open("w") as disk:
        full = process(*arguments, stdout=disk)
    closed = process(*arguments, preexec_fn=partial(os.close, 1))
    assert (unread.communicate(timeout=PATIENCE)[1], unread.returncode) == ("", 0)
    assert full.communicate(timeout=PATIENCE)[1] == "ruleop: the output cannot be written: No space left on device\n"
    assert full.returncode == 2
    assert closed.communicate(timeout=PATIENCE)[1] == "ruleop: the output cannot be written: Bad file descriptor\n"
    assert closed.returncode == 2


@pytest.mark.slow
def test_a_closed_stdin_is_reported_by_commands_that_read_it(project, new_process):
    started = new_process("render", "-f", "-", preexec_fn=partial(os.close, 0))
    assert started.communicate(timeout=PATIENCE)[1] == "ruleop: stdin: cannot be read: Bad file descriptor\n"
    assert started.returncode == 2
    started = new_process("check", preexec_fn=partial(os.close, 0))
    assert (started.communicate(timeout=PATIENCE)[1], started.returncode) == ("", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status"), [(["check"], 0), (["--what"], 2), (["render", "-f", "none.yaml"], 2), ([], 2)]
)
def test_a_closed_or_full_stderr_keeps_status_and_output(project, process, arguments, status):
    closed = process(*arguments, preexec_fn=partial(os.close, 2))
    with Path("/dev/full").open("w") as disk:
        full = process(*arguments, stderr=disk)
    out, _ = closed.communicate(timeout=PATIENCE)
    assert (closed.returncode, bool(out)) == (status, status == 0)
    assert (full.communicate(timeout=PATIENCE)[0], full.returncode) == (out, status)


@pytest.mark.slow
def test_an_interrupt_ends_quietly_with_130(project, new_process):
    started = new_process("render", "-f", "-", stdin=subprocess.PIPE)
    # It reads stdin only after everything is loaded, so what it waits for then is the rest of this.
    started.stdin.write("apiVersion: example.com/v1\n")
    started.stdin.flush()
    wait_until_read(started.stdin)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=PATIENCE)
    assert (started.returncode, out, err) == (130, "", "\n")  # a fresh line after the terminal's ^C


@pytest.mark.slow
def test_a_signal_during_loading_stops_the_operator_cleanly(project, new_process):
    """As the first process of a container it would not even end: the kernel ignores an unhandled signal there."""
    variables = project.root / "variables"
    os.mkfifo(variables)
    started = new_process("run", "--env-file", "variables")
    writing = with_a_reader(variables)
    assert (asked_to_end(started), started.returncode) == ("", 0)
    os.close(writing)


def test_a_signal_before_loading_stops_the_operator():
    """What a container's first process does not handle is lost, and loading takes half a second."""
    script = (
        "import os, signal, sys\n"
        "class Asking:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.startswith('ruleop.cli.'):\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "from ruleop.cli import main\n"
        "sys.meta_path.insert(0, Asking())\n"
        "main()\n"
    )
    for arguments, status in ((["run"], 0), (["check"], -signal.SIGTERM)):
        ran = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=python_path(), check=False
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (status, "", "")


def asked_to_end(process):
    """What it complains of. Python looks for signals before it waits for data, and one that comes just in between is
    seen with the next.

    One that comes while the interpreter ends would kill it, so the next is late.
    """
    while True:
        process.send_signal(signal.SIGTERM)
        try:
            _, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            continue
        return err


def with_a_reader(fifo):
    """Returns what keeps it open for writing, when somebody reads it."""
    while True:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)


OFFLINE = (["render", "-f", "site.yaml"], ["plan", "-f", "site.yaml"], ["check"], ["version"], ["--help"])


@pytest.mark.slow
@pytest.mark.parametrize("command", others_slow(OFFLINE, ["plan", "-f", "site.yaml"]), ids=" ".join)
def test_offline_commands_import_no_client_and_no_server(project, command):
    script = (
        "import sys, json\n"
        "from ruleop.cli.program import program\n"
        "try:\n    program.main(sys.argv[1:], 'ruleop')\n"
        "except SystemExit as end:\n    assert end.code == 0, end.code\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *command],
        capture_output=True,
        text=True,
        env=python_path(),
        check=True,
        timeout=PATIENCE,
    )
    modules = set(json.loads(ran.stderr.splitlines()[-1]))
    assert "ruleop" in modules
    assert not modules & (HEAVY | {"ruleop.localcluster"})


@pytest.mark.slow
def test_tests_of_rules_load_what_is_behind_the_api_of_a_cluster_but_no_server():
    script = "import json, sys, ruleop.authoring.ruletests.runner\nprint(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=python_path(), check=True, timeout=PATIENCE
    )
    modules = set(json.loads(ran.stdout))
    assert "ruleop.localcluster.object_store" in modules
    assert not modules & (HEAVY | {"asyncio", "ruleop.localcluster.local_cluster", "ruleop.localcluster.http"})


def test_help_and_version_load_no_rules(project):
    script = (
        "import sys\nfrom ruleop.cli.program import program\n"
        "try:\n    program.main(sys.argv[1:], 'ruleop')\nexcept SystemExit:\n    pass\n"
        "sys.exit('jinja2' in sys.modules)"
    )
    for arguments in (["--help"], ["version"], ["chek"]):
        assert (
            subprocess.run(
                [sys.executable, "-c", script, *arguments], capture_output=True, env=python_path(), check=False
            ).returncode
            == 0
        )


def test_output_is_coloured_on_a_terminal_only(project, process, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    plain = process("plan", "-f", "site.yaml").communicate(timeout=PATIENCE)[0]
    assert "\x1b" not in plain
    coloured = on_a_terminal(process, "plan", "-f", "site.yaml")
    assert "\x1b[32m+ create \x1b[0m\x1b[1mConfigMap/blog-config\x1b[0m\r\n" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert on_a_terminal(process, "plan", "-f", "site.yaml").replace("\r\n", "\n") == plain


@pytest.mark.slow
def test_an_ascii_locale_gets_escaped_output(project, new_process, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    out, err = new_process("plan", "-f", "site.yaml").communicate(timeout=PATIENCE)
    assert err == ""
    assert "\\u2514\\u2500 web" in out


def on_a_terminal(process, *arguments: str) -> str:
    master, slave = pty.openpty()
    started = process(*arguments, stdout=slave)
    os.close(slave)
    read = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        read += data
    os.close(master)
    started.communicate(timeout=PATIENCE)
    return read.decode()


def wait_until_read(pipe) -> None:
    """Until nothing that was written is left in the pipe."""
    for _ in range(6000):
        if int.from_bytes(fcntl.ioctl(pipe.fileno(), termios.FIONREAD, bytes(4)), sys.byteorder) == 0:
            return
        time.sleep(0.01)
    raise AssertionError("it never read its stdin")


def python_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
