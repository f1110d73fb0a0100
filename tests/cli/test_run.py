"""`ruleop run`: each flag, its variable and its default; and errors that prevent a start, as full sentences."""

import json
import os
import signal
import socket
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from ruleop.cli import run
from ruleop.kubernetes.buckets import Pod
from ruleop.operator.manager.parts import Options
from ruleop.operator.wire.leader.lease import Timing
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.fixture
def options(project, ruleop, monkeypatch, no_log):
    """What the operator would be started with."""
    for name in [
        name for name in os.environ if name.startswith("RULEOP_") or name in {"WATCH_NAMESPACE", "KUBECONFIG"}
    ]:
        monkeypatch.delenv(name)

    def started(*arguments, **environment):
        found = []

        async def keep(_files, options):
            found.append(options)
            return 0

        monkeypatch.setattr(run, "_run", keep)
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            ran = ruleop("run", *arguments)
        assert ran.status == 0, ran.err
        return found[0], no_log[-1]

    return started


FLAGS = [
    ("--kubeconfig", "/k", "kubeconfig", "/k", ""),
    ("--context", "prod", "context", "prod", ""),
    ("--record", "passes", "record", Path("passes"), None),
    ("--namespaces", "a, b,,a", "namespaces", ("a", "b"), ()),
    ("--name", "shop", "name", "shop", "ruleop"),
    ("--operator-namespace", "ops", "operator_namespace", "ops", ""),
    ("--leader-elect", "true", "leader_elect", True, False),
    ("--selector", "team=a,!test", "selector", "team=a,!test", ""),
    ("--shards", "auto", "pod", Pod("ops", "ruleop-3"), None),
    ("--leader-elect-lease-duration", "1m", "lease", Timing(60, 10, 2), Timing(15, 10, 2)),
    ("--leader-elect-renew-deadline", "12s", "lease", Timing(15, 12, 2), Timing(15, 10, 2)),
    ("--leader-elect-retry-period", "500ms", "lease", Timing(15, 10, 0.5), Timing(15, 10, 2)),
    ("--metrics-bind-address", "0", "metrics_address", "0", ":8080"),
    ("--health-probe-bind-address", ":9", "health_address", ":9", ":8081"),
    ("--page-bind-address", "127.0.0.1:1", "page_address", "127.0.0.1:1", ""),
    ("--metrics-cert", "c", "metrics_certificate", (Path("c"), Path("k")), None),
    ("--metrics-key", "k", "metrics_certificate", (Path("c"), Path("k")), None),
    ("--metrics-auth", "true", "metrics_auth", True, False),
    ("--max-concurrent-reconciles", "3", "max_concurrent", 3, None),
    ("--reload", "false", "reload", False, True),
    ("--dry-run", "true", "dry_run", True, False),
    ("--kube-api-qps", "2.5", "qps", 2.5, None),
    ("--graceful-shutdown-timeout", "1m30s", "grace", 90.0, 30.0),
]
SWITCHES = {
    "--leader-elect": "--leader-elect",
    "--reload": "--no-reload",
    "--dry-run": "--dry-run",
    "--metrics-auth": "--metrics-auth",
}
NEEDED = {
    "--metrics-cert": ["--metrics-key=k"],
    "--metrics-key": ["--metrics-cert=c"],
    "--metrics-auth": ["--metrics-cert=c", "--metrics-key=k"],
}
IDS = [flag for flag, *_ in FLAGS]


@pytest.mark.parametrize(("flag", "text", "name", "value", "default"), FLAGS, ids=IDS)
def test_each_flag_has_a_variable_and_a_default(options, flag, text, name, value, default):
    given = [SWITCHES[flag]] if flag in SWITCHES else [f"{flag}={text}"]
    variable = "RULEOP_" + flag.removeprefix("--").replace("-", "_").upper()
    assert getattr(options()[0], name) == default
    needed, pod = NEEDED.get(flag, []), {"POD_NAME": "ruleop-3", "POD_NAMESPACE": "ops"}
    assert getattr(options(*given, *needed, **pod)[0], name) == value
    assert getattr(options(*needed, **{variable: text}, **pod)[0], name) == value


def test_a_flag_overrides_its_variable_which_overrides_watch_namespace(options):
    assert options(WATCH_NAMESPACE="c")[0].namespaces == ("c",)
    assert options(WATCH_NAMESPACE="c", RULEOP_NAMESPACES="b")[0].namespaces == ("b",)
    assert options("--namespaces=a", WATCH_NAMESPACE="c", RULEOP_NAMESPACES="b")[0].namespaces == ("a",)


def test_log_level_and_format_are_set(options):
    assert options()[1] == ("info", None)
    assert options("--log-level=debug", "--log-format=json")[1] == ("debug", "json")
    assert options(RULEOP_LOG_LEVEL="warning", RULEOP_LOG_FORMAT="text")[1] == ("warning", "text")


def test_each_setting_has_a_flag():
    settings = {field.name for field in fields(Options)} - {"environ", "variables", "prune_after_reload", "rollouts"}
    assert settings == {name for _, _, name, _, _ in FLAGS}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--leader-elect-lease-duration=10s"],
            "--leader-elect-renew-deadline: must be shorter than --leader-elect-lease-duration",
        ),
        (
            [
                "--leader-elect-lease-duration=1500ms",
                "--leader-elect-renew-deadline=1s",
                "--leader-elect-retry-period=100ms",
            ],
            "--leader-elect-lease-duration: must be a whole number of seconds",
        ),
        (["--leader-elect-retry-period=9s"], "longer than 1.2 times --leader-elect-retry-period"),
        (
            ["--graceful-shutdown-timeout=30"],
            '--graceful-shutdown-timeout: the duration "30" needs a unit: "30s", "30m" or "30h"',
        ),
        (["--name=My Operator"], '--name: "My Operator" is not a valid name'),
        (
            ["--namespaces=a b"],
            '--namespaces: "a b" is not a valid namespace: up to 63 lowercase letters, digits and "-"',
        ),
        (["--namespaces=a,-b"], '--namespaces: "-b" is not a valid namespace'),
        (["--operator-namespace=Ops"], '--operator-namespace: "Ops" is not a valid namespace'),
        (["--max-concurrent-reconciles=0"], "--max-concurrent-reconciles: 0 is not in the range"),
        (["--kube-api-qps=-1"], "--kube-api-qps: -1.0 is not in the range"),
        (["--log-format=xml"], "--log-format: 'xml' is not one of 'text', 'json'"),
        (["--metrics-cert=c"], "--metrics-key: a certificate and its key are both needed"),
        (["--page-bind-address=:8082"], "--page-bind-address: needs --metrics-cert, --metrics-key and --metrics-auth"),
        (["--page-bind-address=10.0.0.1:8082"], "--page-bind-address: needs --metrics-cert"),
        (["--metrics-key=k"], "--metrics-cert: a certificate and its key are both needed"),
        (
            ["--metrics-auth"],
            "--metrics-auth: needs --metrics-cert and --metrics-key: without TLS, anybody on the way could read the",
        ),
        (["-C", "none"], "none: no such folder"),
        (["-C", "templates"], "not a ruleop project: no watches.yaml in templates"),
    ],
)
def test_invalid_values_of_flags_are_reported(project, ruleop, arguments, message):
    ran = ruleop("run", *arguments)
    assert ran.status == 2
    assert message in ran.err


def test_an_invalid_namespace_in_the_environment_is_reported_with_its_variable(project, ruleop, monkeypatch):
    monkeypatch.setenv("WATCH_NAMESPACE", "a b")
    ran = ruleop("run")
    assert (ran.status, 'WATCH_NAMESPACE: "a b" is not a valid namespace' in ran.err) == (2, True)


# -- surroundings ------------------------------------------------------------------------------------------------------


def config(project, *, server="http://127.0.0.1:1", user=None):
    text = yaml.safe_dump(
        {
            "current-context": "one",
            "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": user or {}}],
        }
    )
    return str(project.write("kubeconfig", text))


ADDRESSES = ["--metrics-bind-address=0", "--health-probe-bind-address=0"]


@pytest.fixture
def ended(project, ruleop):
    """The status and stderr of an operator that cannot start. It logs nothing: stdout is where it would, as logs are
    not set up."""

    def started(*arguments):
        ran = ruleop("run", *ADDRESSES, *arguments)
        assert ran.out == ""
        assert "Traceback" not in ran.err
        return ran.status, ran.err

    return started


def test_a_missing_kubeconfig_is_reported(project, process, monkeypatch):
    monkeypatch.setenv("HOME", str(project.root))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    started = process("run", *ADDRESSES)
    out, err = started.communicate(timeout=PATIENCE)
    assert (started.returncode, out) == (2, "")
    assert err.startswith("ruleop: no cluster configured: ")
    assert len(err.splitlines()) == 1


@pytest.mark.slow
def test_a_broken_kubeconfig_is_reported(project, ended):
    project.write("kubeconfig", "contexts: [")
    status, err = ended("--kubeconfig=kubeconfig")
    assert (status, err.startswith("ruleop: kubeconfig: not a kubeconfig (")) == (2, True)


@pytest.mark.slow
def test_an_unknown_context_is_reported(project, ended):
    status, err = ended("--kubeconfig", config(project), "--context=two")
    assert (status, "no context 'two'; there are: one" in err) == (2, True)


@pytest.mark.parametrize(
    ("command", "why"), [("no-such-plugin", "No such file"), (sys.executable, "exit status 3: log in first")]
)
@pytest.mark.slow
def test_a_missing_or_failing_exec_plugin_is_reported(project, ended, command, why):
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": command,
            "args": ["-c", "import sys; sys.stderr.write('log in first'); sys.exit(3)"],
        }
    }
    status, err = ended("--kubeconfig", config(project, user=user))
    assert status == 2
    assert f"exec plugin {command}: " in err
    assert why in err


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example"])
@pytest.mark.slow
def test_an_invalid_address_is_reported(project, ended, host):
    status, err = ended("--kubeconfig", config(project), f"--metrics-bind-address={host}:80")
    assert (status, err) == (
        2,
        f"ruleop: cannot listen on {host}:80: {host} is not a valid host name; choose another address, or 0 for none\n",
    )


@pytest.mark.slow
def test_an_unknown_host_is_reported(project, ended):
    status, err = ended("--kubeconfig", config(project), "--metrics-bind-address=nobody.invalid:80")
    assert status == 2
    assert err.startswith("ruleop: cannot listen on nobody.invalid:80: ")
    assert "Unknown error" not in err


def test_an_address_in_use_is_reported(project, ended):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for flag in ("--metrics-bind-address", "--health-probe-bind-address"):
            status, err = ended("--kubeconfig", config(project), f"{flag}={address}")
            assert status == 2
            assert (
                err
                == f"ruleop: cannot listen on {address}: Address already in use; choose another address, or 0 for none\n"
            )


@pytest.mark.slow
def test_a_project_with_errors_has_status_1_also_without_a_server(project, ruleop):
    project.edit("templates/web.yaml.j2", "{{ metadata.name }}", "{{ metadta.name }}")
    ran = ruleop("run", *ADDRESSES, "--kubeconfig", config(project))
    assert ran.status == 1
    assert ran.err.startswith('templates/web.yaml.j2:4:12: "metadta" is not known')


@pytest.mark.slow
def test_all_errors_of_a_project_that_cannot_be_loaded_are_printed(project, ended):
    project.edit("templates/web.yaml.j2", "{{ metadata.name }}", "{{ metadta.name }}")
    project.write("watches.yaml", (project.root / "watches.yaml").read_text("utf-8") + "  reach: clustr\n")
    status, err = ended("--kubeconfig", config(project))
    assert status == 1
    assert '"metadta" is not known' in err
    assert 'did you mean "cluster"?' in err


@pytest.mark.slow
def test_an_unreadable_project_has_status_2(project, ended):
    (project.root / "templates/web.yaml.j2").write_bytes(b"\xff")
    assert ended("--kubeconfig", config(project)) == (2, "templates/web.yaml.j2:1: is not valid UTF-8\n")


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_an_operator_without_a_server_retries_until_a_signal(project, process, asked):
    """With one line for each attempt."""
    started = process("run", *ADDRESSES, "--kubeconfig", config(project), "--log-format=json")
    lines = [json.loads(started.stderr.readline()) for _ in range(2)]
    assert {line["event"] for line in lines} == {"API server not reachable; will retry"}
    assert [line["retry_in"] for line in lines] == [0.5, 1.0]
    assert "http://127.0.0.1:1 cannot be reached" in lines[0]["error"]
    started.send_signal(asked)
    _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 0
    assert [json.loads(line)["event"] for line in err.splitlines()] == ["stopping"]
