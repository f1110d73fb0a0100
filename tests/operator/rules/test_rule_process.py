"""A process of their own loads and checks rules before they are put in force. Without a verdict they are used."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ruleop.authoring import rules_process
from ruleop.cli import run
from ruleop.cli.program import DONE
from ruleop.errors import Site
from ruleop.language.rules import Finding, ProjectErrors, RuleFiles
from ruleop.language.rules.checking import load_project
from ruleop.language.rules.loading import build_unchecked
from ruleop.localcluster import LocalCluster
from ruleop.operator.manager.manager import Manager
from ruleop.operator.manager.parts import Options
from ruleop.operator.rules.process import NoVerdict, RuleChecks, read_by_process
from ruleop.operator.telemetry.metrics import Metrics
from tests.authoring.live.harness import new_live
from tests.folders import write_files
from tests.processes.fork_server import is_alive
from tests.waiting import until

WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  schema: {spec: {image: string | required=true}}
  vars: {tier: "${TIER}"}
  children:
    web: {template: web.yaml.j2}
"""
WEB = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}"}
data: {image: "{{ spec.IMAGE }}", tier: "{{ vars.tier }}"}
"""
CHECKING = "checking the rules"
VARIABLES = {"TIER": "gold"}
WRONG = Finding(Site("templates/web.yaml.j2", 4, 19), "spec.imge is not in the schema", "error", "unknown-field")


def sound(root: Path, field: str = "image") -> Path:
    write_files(root, {"watches.yaml": WATCHES, "templates/web.yaml.j2": WEB.replace("IMAGE", field)})
    return root


@pytest.fixture
def files(tmp_path):
    return RuleFiles.read(sound(tmp_path))


@pytest.mark.slow
async def test_a_field_that_no_custom_resource_has_is_an_error_of_the_rules(tmp_path, monkeypatch):
    """Nothing is imported from the folder of the rules, which is the operator's current folder."""
    files = RuleFiles.read(sound(tmp_path, "imge"))
    (tmp_path / "json.py").write_text("raise SystemExit(0)\n")
    monkeypatch.chdir(tmp_path)
    reading = await read_by_process(files, variables=VARIABLES)
    assert reading.project.digest == build_unchecked(files, environ=VARIABLES).digest
    (error,) = await reading.errors
    assert (error.code, error.site.path, error.site.line) == ("unknown-field", "templates/web.yaml.j2", 4)
    assert "spec.imge" in error.message


@pytest.mark.slow
async def test_mistakes_that_only_checks_find_are_errors_with_those_of_files_that_cannot_be_read(tmp_path):
    write_files(sound(tmp_path), {"templates/web.yaml.j2": WEB.replace("spec.IMAGE", "imge")})
    (tmp_path / "templates/gone.yaml.j2").symlink_to("nowhere")
    files = RuleFiles.read(tmp_path)
    with pytest.raises(ProjectErrors) as found:
        await read_by_process(files, variables=VARIABLES)
    assert [each.code for each in found.value.errors] == ["unreadable", "unknown-name"]


@pytest.mark.slow
async def test_sound_rules_pass_whatever_is_in_files_that_the_operator_does_not_read(files, tmp_path):
    write_files(tmp_path, {"examples/a.yaml": "not: {a: resource", "ruleop.yaml": "nonsense: true\n"})
    assert await (await read_by_process(files, variables=VARIABLES)).errors == []


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("kill -9 $$", "ended by SIGKILL"),
        ("echo 'Traceback' >&2; echo 'MemoryError: a secret' >&2; exit 1", "exit status 1: MemoryError"),
        ("exit 3", "exit status 3"),
        ("kill -40 $$", "ended by signal 40"),
        ("echo 'a line of a plugin'", "exit status 0"),
        ("head -c 8 /dev/zero; echo 'a line of a plugin'", "exit status 0"),
        (r"head -c 15 /dev/zero; printf '\005hello'", "its answer cannot be read"),
        (r"head -c 15 /dev/zero; printf '\004null'", "its answer cannot be read"),
        (r"head -c 7 /dev/zero; printf '\005hello[]'", "its answer cannot be read"),
        ("head -c 20000000 /dev/zero >&2; exit 1", "exit status 1"),
        (None, "cannot be started: No such file or directory"),
    ],
)
async def test_a_process_that_fails_gives_no_verdict(files, tmp_path, monkeypatch, program, reason):
    file = tmp_path / "python"
    if program is not None:
        file.write_text(f"#!/bin/sh\ncat > /dev/null\n{program}\n")
        file.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(file))
    reading = await read_by_process(files, variables=VARIABLES)
    assert reading.project.digest == build_unchecked(files, environ=VARIABLES).digest, "the operator loads them itself"
    with pytest.raises(NoVerdict) as failure:
        await reading.errors
    assert str(failure.value) == reason


@pytest.mark.slow
async def test_a_process_that_takes_too_long_is_ended(files, tmp_path, monkeypatch):
    file = tmp_path / "python"
    file.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 1000\n")
    file.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(file))
    monkeypatch.setattr("ruleop.operator.rules.process.TIMEOUT", 0.5)
    reading = await read_by_process(files, variables=VARIABLES)
    with pytest.raises(NoVerdict, match="not finished after"):
        await reading.errors
    started = (tmp_path / "pid").read_text().strip() if (tmp_path / "pid").exists() else ""
    assert not started or not is_alive(int(started))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("exit 3", "exit status 3"),
        ("echo 'MemoryError: a secret' >&2; exit 1", "exit status 1: MemoryError"),
        (r"head -c 15 /dev/zero; printf '\002[]'", ""),
    ],
)
async def test_a_process_that_it_started_may_keep_its_pipes(files, tmp_path, monkeypatch, program, reason):
    file = tmp_path / "python"
    file.write_text(f"#!/bin/sh\ncat > /dev/null\nsleep 1000 &\necho $! > {tmp_path}/pid\n{program}\n")
    file.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(file))
    monkeypatch.setattr("ruleop.operator.rules.process.TIMEOUT", 20)
    try:
        if reason:
            with pytest.raises(NoVerdict) as failure:
                await (await read_by_process(files, variables=VARIABLES)).errors
            assert str(failure.value) == reason
        else:
            with pytest.raises(ProjectErrors):  # the rules cannot be used
                await read_by_process(files, variables=VARIABLES)
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


async def test_a_machine_without_further_threads_gives_no_verdict(files, monkeypatch):
    async def start(*_, **__):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio.get_running_loop(), "subprocess_exec", start)
    reading = await read_by_process(files, variables=VARIABLES)
    with pytest.raises(NoVerdict, match="cannot be started: can't start new thread"):
        await reading.errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_operator_that_is_stopped_while_its_rules_are_loaded_stops_in_order(
    files, tmp_path, monkeypatch, number
):
    """As PID 1 of a container it would never hear of a signal for which it has no handler."""
    file = tmp_path / "python"
    file.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 1000\n")
    file.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(file))
    running = asyncio.create_task(run._run(files, Options()))
    await until("the process", lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    assert signal.getsignal(number) not in (signal.SIG_DFL, signal.default_int_handler)
    os.kill(os.getpid(), number)
    assert await running == DONE
    assert not is_alive(int((tmp_path / "pid").read_text()))


async def test_rules_without_a_verdict_are_used_with_a_warning_and_counted():
    metrics = Metrics()
    checks = RuleChecks(metrics)
    with capture_logs() as log:
        await checks.require_none(checks.counted(failed("ended by SIGKILL")))
    assert [(line["event"], line["error"]) for line in log] == [("rules not checked; using them", "ended by SIGKILL")]
    assert counted(metrics) == {"passed": 0, "failed": 0, "unavailable": 1}


@pytest.mark.parametrize(("field", "refusal"), [("metadta.name", '"metadta" is not known'), ("spec.imge", "")])
async def test_without_a_process_rules_with_mistakes_are_refused_and_those_with_other_errors_used(
    tmp_path, monkeypatch, field, refusal
):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    write_files(sound(tmp_path), {"templates/web.yaml.j2": WEB.replace("spec.IMAGE", field)})
    files = RuleFiles.read(tmp_path)
    if refusal:
        with pytest.raises(ProjectErrors, match=refusal):
            await read_by_process(files, variables=VARIABLES)
    else:
        reading = await read_by_process(files, variables=VARIABLES)
        assert [str(each.kind) for each in reading.project.rules] == ["example.com/v1 Site"]
        assert isinstance(reading.errors.exception(), NoVerdict)


async def test_the_process_ends_with_the_reading_that_waits_for_it(files, tmp_path, monkeypatch):
    """A revision that was in force is read again: its errors are of no interest."""
    file = tmp_path / "python"
    file.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 1000\n")
    file.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(file))
    reading = asyncio.create_task(read_by_process(files, variables=VARIABLES))
    await until("the process", lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await until("its end", lambda: not is_alive(int((tmp_path / "pid").read_text())))


async def test_rules_with_errors_are_refused_and_counted():
    metrics = Metrics()
    checks = RuleChecks(metrics)
    with pytest.raises(ProjectErrors, match=r"web\.yaml\.j2:4:19: spec\.imge"):
        await checks.require_none(checks.counted(finds(WRONG)))
    assert counted(metrics) == {"passed": 0, "failed": 1, "unavailable": 0}


@pytest.mark.slow
def test_the_process_has_a_minute_of_cpu_and_what_memory_its_container_has_left(tmp_path):
    mebi = 1024 * 1024
    write_files(tmp_path, {
        "memory.max": f"{200 * mebi}\n",
        "memory.current": f"{120 * mebi}\n",
        "memory.stat": f"anon 1\ninactive_file {20 * mebi}\n",
    })  # fmt: skip
    said = (
        "import json, resource, sys; from pathlib import Path\n"
        "from ruleop.authoring.rules_process import limit\n"
        "limit(Path(sys.argv[1]))\n"
        "kinds = (resource.RLIMIT_DATA, resource.RLIMIT_CPU)\n"
        "print(json.dumps([resource.getrlimit(each)[0] for each in kinds]))\n"
    )
    for folder, most in ((tmp_path, 84), (tmp_path / "no-cgroup", 256)):
        ran = subprocess.run([sys.executable, "-c", said, str(folder)], capture_output=True, text=True, check=True)
        assert json.loads(ran.stdout) == [most * mebi, 60]


def test_the_process_gives_way_once_the_rules_are_sent(files, monkeypatch):
    order = []
    monkeypatch.setattr(rules_process, "_write", lambda data: order.append("a part" if data else "the end"))
    monkeypatch.setattr("os.nice", order.append)
    monkeypatch.setattr(gc, "freeze", lambda: None)  # this process has other objects
    assert rules_process._errors(files, VARIABLES) == ()
    assert [*dict.fromkeys(order)] == ["a part", "the end", 19]


# -- at the start ------------------------------------------------------------------------------------------------------


RUNNING = {"watches.yaml": WATCHES.replace('  vars: {tier: "${TIER}"}\n', ""), "templates/web.yaml.j2": WEB.replace(
    ', tier: "{{ vars.tier }}"', "").replace("IMAGE", "image")}  # fmt: skip


def finds(*errors):
    found = asyncio.get_running_loop().create_future()
    found.set_result(errors)
    return found


def failed(reason):
    found = asyncio.get_running_loop().create_future()
    found.set_exception(NoVerdict(reason))
    return found


def counted(metrics):
    return {each: metrics.rule_checks.labels(each)._value.get() for each in ("passed", "failed", "unavailable")}


@pytest.fixture
def live(tmp_path):
    with LocalCluster() as cluster:
        yield new_live(tmp_path, cluster, RUNNING)


def manager(live, errors):
    options = Options(
        kubeconfig=str(live.kubeconfig), metrics_address="0", health_address="0", operator_namespace="default"
    )
    return Manager(load_project(live.root, environ={}), live.root, options, errors=errors)


def revision(live):
    return [each for each in live.objects("ConfigMap") if each["metadata"]["name"] == "ruleop-revisions"]


def test_an_operator_does_not_start_with_rules_that_fail_their_checks(live):
    async def scenario():
        await manager(live, finds(WRONG)).run()

    with pytest.raises(ProjectErrors, match=r"spec\.imge"), capture_logs() as log:
        asyncio.run(scenario())
    assert revision(live) == []
    assert "started" not in [line["event"] for line in log]


def test_an_operator_whose_checks_give_no_verdict_starts_with_rules_without_mistakes(live):
    async def scenario():
        running = manager(live, failed("ended by SIGKILL"))
        task = asyncio.create_task(running.run())
        await until("the operator", lambda: task.done() or revision(live))
        running.stopping.set()
        return await task

    with capture_logs() as log:
        assert asyncio.run(scenario())
    assert "rules not checked; using them" in [line["event"] for line in log]


def test_a_restart_with_the_rules_in_force_is_not_stopped_by_their_checks(live):
    """A newer ruleop may have more checks."""

    async def run(done, *errors):
        running = manager(live, finds(*errors))
        task = asyncio.create_task(running.run())
        await until("the operator", lambda: task.done() or done(running))
        running.stopping.set()
        return await task

    with capture_logs() as log:
        assert asyncio.run(run(lambda _: revision(live)))
        assert "the rules fail their checks" not in str(log)
        assert asyncio.run(run(lambda _: "the rules fail their checks; using them" in str(log), WRONG))
    assert [line["event"] for line in log].count("started") == 2


def test_an_operator_is_not_ready_before_its_rules_are_checked(live):
    async def scenario():
        errors = asyncio.get_running_loop().create_future()
        running = manager(live, errors)
        task = asyncio.create_task(running.run())
        await until(
            "the checks",
            lambda: hasattr(running, "work") and any(each.message == CHECKING for each in running.checks()),
        )
        errors.set_result(())
        await until("the end of the checks", lambda: CHECKING not in [each.message for each in running.checks()])
        running.stopping.set()
        return await task

    with capture_logs():
        assert asyncio.run(scenario())
