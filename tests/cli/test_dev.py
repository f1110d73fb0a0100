"""`ruleop dev` and `ruleop cluster` as their users run them: real processes, over real HTTP."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.waiting import PATIENCE, eventually

SITES = "/apis/example.com/v1/namespaces/default/sites/"
CONFIG = "/api/v1/namespaces/default/configmaps/front-config"
MERGE = "application/merge-patch+json"


def call(server, method, path, body=None, media="application/json"):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(server + path, data, {"Content-Type": media}, method=method)  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)


def serves(server, plural):
    return any(each["name"] == plural for each in call(server, "GET", "/apis/example.com/v1")["resources"])


def exported(process):
    """The server in the kubeconfig that a command has printed."""
    for line in process.stdout if process.stdout is not None else ():
        if "export KUBECONFIG=" in line:
            path = Path(line.partition("=")[2].strip())
            return path, yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"]
    raise AssertionError("it ended without a kubeconfig")


def stop(process):
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err


@pytest.fixture
def sample(project):
    """The project of these tests, without pods, so that it becomes ready by itself."""
    project.write("front.yaml", SITE)
    return project


SITE = "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: front}\nspec: {page: hello}\n"


def test_dev_once_prints_the_tree_and_exits_with_0_when_all_is_ready(sample, process):
    started = process("dev", "--apply", "front.yaml", "--once")
    out, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 0, err
    assert [line.split(":")[0].split() for line in out.splitlines()] == [
        ["Site", "default/front", "ready"],
        ["├─", "config", "ready", "ConfigMap/front-config"],
        ["└─", "web", "ready", "Deployment/front"],
    ]


@pytest.mark.slow
def test_dev_once_exits_with_1_when_something_is_not_ready_in_time(sample, process):
    sample.edit("front.yaml", "{name: front}", "{name: front, namespace: missing-so-far}")
    pending = "metadata: {annotations: {local.ruleop.dev/pod: pending}, labels: {app: web}}"
    sample.edit("templates/web.yaml.j2", "metadata: {labels: {app: web}}", pending)
    started = process("dev", "--apply", "front.yaml", "--once", "--timeout", "1s")
    out, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 1, err
    assert "Site missing-so-far/front" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("container", "problem"),
    [
        (
            "- envFrom: [{secretRef: {name: keys}}]\n          name: web\n",
            'Pod/front-XXX: container web: CreateContainerConfigError: secret "keys" not found',
        ),
        (
            "- volumeMounts: [{name: v, mountPath: /v}]\n          name: web\n",
            'Pod/front-XXX: FailedMount: MountVolume.SetUp failed for volume "v" : configmap "keys" not found',
        ),
    ],
    ids=["CreateContainerConfigError", "FailedMount"],
)
def test_dev_once_explains_what_is_not_ready(sample, process, container, problem):
    sample.edit("templates/web.yaml.j2", "- name: web\n", container)
    if "FailedMount" in problem:
        volumes = "volumes: [{name: v, configMap: {name: keys}}]\n      containers:"
        sample.edit("templates/web.yaml.j2", "containers:", volumes)
    started = process("dev", "--apply", "front.yaml", "--once", "--timeout", "6s")
    _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 1
    head, *problems = err.partition("not ready within 6 s:\n")[2].splitlines()
    assert head == "  Site default/front is Progressing: Deployment/front: 0 of 1 pods available"
    assert [re.sub(r"front-\w+-\w+", "front-XXX", each) for each in problems] == [f"    {problem}"]


@pytest.mark.slow
def test_dev_once_ends_when_only_an_edit_can_mend_what_is_not_ready(sample, process):
    sample.edit(
        "watches.yaml", "children:", "validate: [{rule: spec.page == 'other', message: write other}]\n  children:"
    )
    started = process("dev", "--apply", "front.yaml", "--once", "--timeout", "1h")
    _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 1
    assert "not ready, and only an edit can change that:\n  Site default/front is Invalid: write other" in err


def test_dev_once_without_custom_resources_is_wrong_usage(sample, process):
    started = process("dev", "--once")
    out, err = started.communicate(timeout=PATIENCE)
    assert (started.returncode, out) == (2, "")
    assert err.endswith("ruleop: no custom resources: use --apply FILE\n")


@pytest.mark.parametrize("command", [["cluster"], ["dev", "--apply", "front.yaml"]], ids=["cluster", "dev"])
def test_a_port_in_use_is_reported(sample, process, command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        started = process(*command, "--port", port)
        _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 2
    assert err == f"ruleop: cannot listen on 127.0.0.1:{port}: Address already in use; use another port\n"


def test_dev_prints_an_error_of_the_project_and_does_not_start(sample, ruleop):
    sample.edit("templates/web.yaml.j2", "{{ metadata.name }}", "{{ metadta.name }}")
    found = ruleop("dev", "--apply", "front.yaml", "--once")
    assert (found.status, found.out) == (1, "")
    assert "metadta" in found.err


def test_dev_does_not_start_with_rules_that_check_refuses(sample, ruleop):
    sample.edit("templates/web.yaml.j2", "{{ spec.replicas }}", "{{ spec.replcas }}")
    found = ruleop("dev", "--apply", "front.yaml", "--once")
    assert (found.status, found.out) == (1, "")
    assert "error[RO403]: spec.replcas" in found.err


@pytest.mark.slow
def test_dev_prints_what_check_finds_and_starts(sample, process):
    rules = Path(sample.root, "watches.yaml").read_text()
    sample.write("watches.yaml", rules.replace("  children:", "  let: {unread: a}\n  children:", 1))
    started = process("dev", "--apply", "front.yaml", "--once")
    _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 0
    assert "warning[RO306]" in err


@pytest.mark.slow
def test_dev_warns_of_cel_rules_that_are_not_evaluated(sample, process):
    crd = yaml.safe_load(Path(sample.root, "crds/sites.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["x-kubernetes-validations"] = [{"rule": "cel.bind(x, self.page, x != '')"}]
    sample.write("crds/sites.yaml", yaml.safe_dump(crd))
    started = process("dev", "--apply", "front.yaml", "--once")
    _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 0
    assert (
        "Warning: CustomResourceDefinition sites.example.com  1 CEL rule is not evaluated by this local cluster (at "
        "spec.versions[0].schema.openAPIV3Schema.properties.spec.x-kubernetes-validations[0]: cel.bind() is not "
        "implemented)\n"
    ) in err


@pytest.mark.slow
def test_dev_with_a_sample_without_its_crd_is_an_error(sample, process):
    sample.edit("front.yaml", "kind: Site", "kind: Sight")
    started = process("dev", "--apply", "front.yaml", "--once")
    _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 2
    assert "does not serve example.com/v1 Sight" in err


@pytest.mark.slow
def test_dev_with_a_sample_that_the_server_rejects_is_an_error(sample, process):
    sample.edit("front.yaml", "page: hello", "page: 7")
    started = process("dev", "--apply", "front.yaml", "--once")
    _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 2
    assert "spec.page" in err


def test_dev_applies_an_edited_template_and_ends_cleanly_on_an_interrupt(sample, process):
    started = process("dev", "--apply", "front.yaml", stderr=subprocess.STDOUT)
    kubeconfig, server = exported(started)
    eventually("the session", lambda: (call(server, "GET", CONFIG).get("data") or {}).get("page") == "hello")
    sample.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ spec.page | upper }}")
    eventually("the session", lambda: call(server, "GET", CONFIG)["data"]["page"] == "HELLO")
    sample.edit("crds/sites.yaml", "page: {type: string}", "page: {type: string}, colour: {type: string}")
    coloured = {"spec": {"page": "hello", "colour": "blue"}}
    eventually(
        "the session", lambda: call(server, "PATCH", SITES + "front", coloured, MERGE)["spec"].get("colour") == "blue"
    )
    call(server, "PATCH", SITES + "front", {"spec": {"page": "bye"}}, MERGE)
    eventually("the session", lambda: call(server, "GET", CONFIG)["data"]["page"] == "BYE")
    started.stdout.close()
    started.stdout = None
    assert stop(started)[0] == 0
    assert not kubeconfig.exists()
    with pytest.raises(urllib.error.URLError):
        call(server, "GET", CONFIG)


NOTE = """
- group: example.com
  version: v1
  kind: Note
  let: {unread: a}
  children:
    config: {template: config.yaml.j2}
"""


@pytest.mark.slow
def test_dev_checks_edited_rules_and_shows_the_resources_of_new_ones(sample, process):
    started = process("dev", "--apply", "front.yaml", stderr=subprocess.STDOUT)
    _, server = exported(started)
    eventually("the session", lambda: (call(server, "GET", CONFIG).get("data") or {}).get("page") == "hello")
    sites = Path(sample.root, "crds/sites.yaml").read_text()
    sample.write("crds/notes.yaml", sites.replace("Site", "Note").replace("site", "note"))
    sample.write("watches.yaml", Path(sample.root, "watches.yaml").read_text().rstrip() + NOTE)
    eventually("the session", lambda: "warning[RO306]" in started.stdout.readline())
    note = {"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "n"}, "spec": {"page": "noted"}}
    eventually("the session", lambda: serves(server, "notes"))
    assert call(server, "POST", SITES.replace("sites/", "notes"), note)["kind"] == "Note"
    eventually(
        "the session",
        lambda: (call(server, "GET", CONFIG.replace("front", "n")).get("data") or {}).get("page") == "noted",
    )
    started.send_signal(signal.SIGINT)
    out, _ = started.communicate(timeout=PATIENCE)
    assert any(line.startswith("Note default/n") for line in out.splitlines())


@pytest.mark.slow
def test_dev_draws_a_tree_on_a_terminal_and_cuts_no_finding(sample, fork_server):
    sample.edit("watches.yaml", "  children:", "  let: {unread: a}\n  children:")
    command = fork_server.command("dev", "--apply", "front.yaml")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(sample.root)
        os.environ.update(TERM="xterm", COLUMNS="60", LINES="30")
        os.execv(command[0], command)  # noqa: S606
    seen, end, interrupted = b"", time.monotonic() + PATIENCE, False
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
        if not interrupted and seen.count(b"ready") > 2 and b"1 of 1 pods" in seen:
            os.kill(pid, signal.SIGINT)
            interrupted = True
    assert os.waitpid(pid, 0)[1] == 0
    assert b"\x1b[?25l" not in seen, "the cursor stays"
    text = " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode()).split())
    assert 'warning[RO306]: nothing reads the value of let "unread": remove it' in text


# -- ruleop cluster ----------------------------------------------------------------------------------------------------


def test_the_cluster_command_serves_any_client_and_keeps_its_state(tmp_path, process):
    arguments = ["cluster", "--kubeconfig", str(tmp_path / "config"), "--state", str(tmp_path / "state")]
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "front-config"}}
    started = process(*arguments)
    _, server = exported(started)
    uid = call(server, "POST", CONFIG.rpartition("/")[0], body)["metadata"]["uid"]
    assert stop(started) == (0, "")
    again = process(*arguments)
    _, server = exported(again)
    assert call(server, "GET", CONFIG)["metadata"]["uid"] == uid
    assert stop(again) == (0, "")
    assert not (tmp_path / "config").exists()


@pytest.mark.slow
def test_the_cluster_command_reads_faults_from_a_file(tmp_path, process):
    (tmp_path / "faults.yaml").write_text(
        "\ufeff- &once {effect: error, verbs: [get], status: 503, times: 1}\n- *once\n", "utf-8"
    )
    started = process("cluster", "--kubeconfig", str(tmp_path / "config"), "--faults", str(tmp_path / "faults.yaml"))
    _, server = exported(started)
    assert [call(server, "GET", CONFIG)["code"] for _ in range(3)] == [503, 503, 404]
    assert stop(started) == (0, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("a: b", "must be a list"),
        ("", "must be a list"),
        ("- {effect: what}", "must be one of"),
        ("- {effect: error, 2001-01-01: a}", "is an unknown field"),
        ("- {effect: error, status: 2001-01-01}", 'must be an integer, not "2001-01-01"'),
        ("- {effect: error, null: a}", "the key null is not a string"),
        ("- {effect: delay, seconds: .nan}", "cannot be read"),
    ],
)
def test_an_invalid_file_of_faults_is_refused(tmp_path, ruleop, text, message):
    (tmp_path / "faults.yaml").write_text(text)
    found = ruleop("cluster", "--faults", str(tmp_path / "faults.yaml"))
    assert found.status == 2
    assert message in found.err


def test_a_state_that_cannot_be_written_is_refused_at_the_start(tmp_path, ruleop):
    found = ruleop("cluster", "--state", str(tmp_path / "nowhere" / "state"))
    assert found.status == 2
    assert "state cannot be written: No such file or directory" in found.err


@pytest.mark.parametrize("command", ["cluster", "dev"])
def test_an_existing_kubeconfig_is_not_overwritten(tmp_path, ruleop, command):
    (tmp_path / "config").write_text("mine")
    found = ruleop(command, "--kubeconfig", str(tmp_path / "config"))
    assert found.status == 2
    assert "exists" in found.err
    assert (tmp_path / "config").read_text() == "mine"


def page_of(process):
    """The URL of the page that `dev` has printed."""
    for line in process.stderr:
        if line.startswith("page: "):
            return line.split()[1]
    raise AssertionError("it ended without a page")


def test_dev_prints_the_url_of_the_page_with_its_token(sample, process):
    started = process("dev", "--apply", "front.yaml")
    try:
        url = page_of(started)
        bare = url.partition("?token=")[0]

        def shown():
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            return "Site" in opener.open(url, timeout=10).read().decode()

        eventually("the page", shown, missing=(urllib.error.URLError,))
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            urllib.request.urlopen(bare, timeout=10)  # noqa: S310 - loopback
        refused.value.close()
    finally:
        stop(started)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--no-page", "--once"])
def test_dev_has_no_page_without_a_reader(sample, process, option):
    started = process("dev", "--apply", "front.yaml", option)
    try:
        head = []
        for line in started.stderr:
            head.append(line)
            if not line.strip():
                break
        assert not [line for line in head if "page:" in line]
    finally:
        stop(started)
