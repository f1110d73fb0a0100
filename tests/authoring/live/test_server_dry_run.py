"""`ruleop plan --live --server-dry-run`: the answer of the API server to each write, of which none happens."""

from __future__ import annotations

import json
import re

import pytest

from ruleop.authoring.report.documents import as_document
from ruleop.authoring.report.views import Answer, StoredField, Verdict
from ruleop.localcluster.api.faulty import Effect, Fault
from ruleop.localcluster.api.object_writer import ObjectWriter
from ruleop.operator.wire.client import requests, server_errors
from ruleop.operator.wire.http.connection import PreparedRequest
from ruleop.planning.changes.differences import NOTHING, Difference
from tests.authoring.live.projects import site

IMAGE = "templates/web.yaml.j2", "nginx:1.28", "nginx:1.29"
CONFIG = "templates/config.yaml.j2"
TEAMS = {
    "watches.yaml": """\
- group: example.com
  version: v1
  kind: Site
  reach: cluster
  children:
    ns: {template: ns.yaml.j2}
    inside: {template: inside.yaml.j2}
    early: {template: early.yaml.j2}
""",
    "templates/ns.yaml.j2": 'apiVersion: v1\nkind: Namespace\nmetadata: {name: "{{ metadata.name }}-team"}\n',
    "templates/inside.yaml.j2": (
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: "{{ metadata.name }}-team"}\n'
    ),
    "templates/early.yaml.j2": (
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "early-{{ metadata.name }}", namespace: "a-team"}\n'
    ),
}


def asked(live, *arguments: str) -> tuple[int, str, str]:
    """The result of the command, after it is certain that nothing was written."""
    version = live.version()
    result = live.run("plan", "--live", "--server-dry-run", *arguments)
    assert live.version() == version
    writes = [each for each in live.requests if each.method != "GET"]
    assert all(each.query.get("dryRun") == "All" for each in writes)
    assert all(json.loads(each.body)["dryRun"] == ["All"] for each in writes if each.method == "DELETE")
    assert all(each.query["fieldManager"] == "ruleop" for each in writes if each.method != "DELETE")
    return result


def with_another_selector(live) -> None:
    live.edit("templates/web.yaml.j2", 'matchLabels: {app: "{{ metadata.name }}"}', "matchLabels: {app: new}")
    live.edit("templates/web.yaml.j2", 'labels: {app: "{{ metadata.name }}"}', "labels: {app: new}")


@pytest.mark.slow
def test_a_change_that_the_server_accepts_is_shown_with_its_answer(ready_sites):
    ready_sites.edit(*IMAGE)
    status, out, err = asked(ready_sites, "Site/a")
    assert (status, err) == (0, "")
    assert (
        "~ patch Deployment/a\n"
        "      spec.template.spec.containers[name=web].image: nginx:1.28 -> nginx:1.29\n"
        "      accepted by the server\n"
    ) in out
    assert [each.method for each in ready_sites.requests if each.method != "GET"] == ["PATCH"]


def test_fields_that_the_server_adds_to_a_new_object_are_named(sites):
    sites.write("a.yaml", site("a"))
    status, out, _ = asked(sites, "-f", "a.yaml")
    assert status == 0
    assert "+ create ConfigMap/a-config\n      accepted by the server\n" in out
    assert "accepted by the server; the server adds spec.progressDeadlineSeconds, spec.revisionHistoryLimit, " in out


@pytest.mark.slow
def test_the_servers_own_words_are_reported_for_a_refused_write(ready_sites):
    with_another_selector(ready_sites)
    status, out, _ = asked(ready_sites, "Site/a")
    assert status == 1
    assert "! web: templates/web.yaml.j2:6: patch deployments.apps default/a: Deployment.apps " in out
    assert "field is immutable (422 Invalid); rejected change: spec.selector.matchLabels.app: a → new; " in " ".join(
        out.split()
    )
    assert "! patch Deployment/a\n      refused by the server\n" in out
    assert "Ready        True -> False  ApplyFailed" in out
    assert out.endswith("\n1 error.\n")


@pytest.mark.slow
def test_a_write_that_only_the_server_can_refuse_is_found(ready_sites):
    ready_sites.edit(*IMAGE)
    ready_sites.cluster.faults.add(Fault(Effect.ERROR, verbs=("patch",), resources=("deployments",), status=422))
    assert ready_sites.run("plan", "--live", "Site/a")[0] == 0
    status, out, _ = asked(ready_sites, "Site/a")
    assert (status, "refused by the server" in out) == (1, True)


@pytest.mark.slow
def test_a_refused_change_of_an_immutable_field_becomes_a_recreation_if_the_child_asks_for_it(ready_sites):
    with_another_selector(ready_sites)
    ready_sites.edit(
        "watches.yaml", "{template: web.yaml.j2}", "{template: web.yaml.j2, apply: {onImmutable: recreate}}"
    )
    status, out, _ = asked(ready_sites, "Site/a")
    assert status == 0
    assert "- delete Deployment/a  an immutable field changed; will be recreated\n      accepted by the server\n" in out
    assert "! patch Deployment/a\n      refused by the server: patch deployments.apps default/a: " in out
    assert [each.method for each in ready_sites.requests if each.method != "GET"] == ["PATCH", "DELETE"]


@pytest.mark.slow
def test_a_recreation_is_shown_beside_a_write_that_is_refused_for_good(ready_sites):
    with_another_selector(ready_sites)
    ready_sites.edit(CONFIG, "data: {page", "data: {colour: blue, page")
    ready_sites.edit("watches.yaml", "web.yaml.j2}", "web.yaml.j2, apply: {onImmutable: recreate}}")
    ready_sites.cluster.faults.add(Fault(Effect.ERROR, verbs=("patch",), resources=("configmaps",), status=422))
    status, out, _ = asked(ready_sites, "Site/a")
    assert status == 1
    assert "- delete Deployment/a  an immutable field changed; will be recreated\n      accepted by the server\n" in out
    assert "! patch ConfigMap/a-config\n      refused by the server\n" in out
    assert "Ready        True -> False  ApplyFailed" in out


@pytest.mark.slow
def test_a_deletion_is_asked_about_and_not_done(ready_sites):
    ready_sites.edit("watches.yaml", "    config: {template: config.yaml.j2}\n", "")
    status, out, _ = asked(ready_sites, "Site/a")
    assert status == 0
    assert "- delete ConfigMap/a-config  no longer part of the desired state\n      accepted by the server\n" in out
    assert len([each for each in ready_sites.objects("ConfigMap") if each["metadata"]["name"] == "a-config"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["merge", "server-side"])
def test_every_strategy_is_asked_by_the_operators_own_requests(ready_sites, strategy):
    ready_sites.edit(*IMAGE)
    ready_sites.edit(
        "watches.yaml", "{template: web.yaml.j2}", f"{{template: web.yaml.j2, apply: {{strategy: {strategy}}}}}"
    )
    status, out, _ = asked(ready_sites, "Site/a")
    assert (status, "\n      accepted by the server\n" in out) == (0, True)
    assert "the server changes" not in out


@pytest.mark.slow
def test_a_summary_counts_the_answers_of_the_server(ready_sites):
    with_another_selector(ready_sites)
    ready_sites.edit(CONFIG, "data: {page", "data: {colour: blue, page")
    status, out, _ = asked(ready_sites, "--all")
    assert status == 1
    assert "        in 3: Site default/a, Site default/b, Site other/c\n" in out
    assert out.endswith("\n6 writes by dry run: 3 accepted, 3 refused.\n3 of 3 would change, 3 with errors.\n")
    status, out, _ = asked(ready_sites, "Site", "-o", "json")
    assert json.loads(out)["server"] == {"accepted": 3, "refused": 3, "unasked": 0, "remarks": []}


@pytest.mark.slow
def test_the_json_of_a_plan_has_the_answers(ready_sites):
    ready_sites.edit(*IMAGE)
    _, out, _ = asked(ready_sites, "Site/a", "-o", "json")
    assert json.loads(out)["plans"][0]["serverAnswers"] == [
        {
            "action": "patch",
            "group": "apps",
            "kind": "Deployment",
            "namespace": "default",
            "name": "a",
            "verdict": "accepted",
            "child": "web",
            "message": "",
            "added": [],
            "changed": [],
            "warnings": [],
        }
    ]


def warning_of_creations(monkeypatch, text: str) -> None:
    """Lets the server warn of each object that is created."""
    create = ObjectWriter.create

    def warned(writer, *arguments, **more):
        writer.warnings.append(text)
        return create(writer, *arguments, **more)

    monkeypatch.setattr(ObjectWriter, "create", warned)


@pytest.mark.slow
def test_warnings_of_the_server_are_shown(sites, monkeypatch):
    warning_of_creations(monkeypatch, "spec.old: deprecated since v1.9")
    sites.apply(site("a"))
    status, out, _ = asked(sites, "Site/a")
    assert status == 0
    assert "      the server warns: spec.old: deprecated since v1.9" in out
    status, out, _ = asked(sites, "--all")
    assert "? config: the server warns: spec.old: depr" in out


@pytest.mark.slow
def test_a_write_that_needs_an_object_of_the_same_plan_cannot_be_asked(sites):
    for path, text in TEAMS.items():
        sites.write(path, text)
    sites.apply(site("a"))
    sites.apply(site("b"))
    status, out, _ = asked(sites, "Site/a")
    assert status == 0
    assert "+ create Namespace/a-team\n      accepted by the server; the server adds " in out
    assert "? inside: cannot be asked: Namespace/a-team would be created first\n" in out
    status, out, _ = asked(sites, "--all")
    assert status == 0
    assert "? early: cannot be asked: Namespace/a-team would be created first  in 2: Site default/a, Site " in out


def test_the_finalizer_of_a_custom_resource_that_does_not_exist_cannot_be_asked(sites):
    for path, text in TEAMS.items():
        sites.write(path, text)
    sites.write("a.yaml", site("a"))
    status, out, _ = asked(sites, "-f", "a.yaml")
    assert status == 0
    assert "      cannot be asked: Site/default/a would be created first\n" in out


def test_a_write_into_a_namespace_that_nothing_creates_is_an_error(sites):
    for path, text in TEAMS.items():
        sites.write(path, text)
    sites.edit("watches.yaml", "    ns: {template: ns.yaml.j2}\n", "")
    sites.apply(site("a"))
    status, out, _ = asked(sites, "Site/a")
    assert status == 1
    assert 'namespaces "a-team" not found (404 NotFound)' in " ".join(out.split())


@pytest.mark.slow
def test_a_missing_permission_names_the_verb_to_grant(ready_sites, monkeypatch):
    ready_sites.edit(*IMAGE)
    monkeypatch.setattr(server_errors, "_BY_AUTHORIZER", re.compile("a fault that was asked for"))
    ready_sites.cluster.faults.add(Fault(Effect.ERROR, verbs=("patch",), resources=("deployments",), status=403))
    status, out, _ = asked(ready_sites, "Site/a")
    assert status == 1
    needs = (
        "a dry run needs the permissions of the write: grant this user patch on deployments.apps in namespace default"
    )
    assert f"! web: Deployment/default/a cannot be asked about: {needs} " in " ".join(out.split())
    assert "      cannot be asked\n" in out
    assert out.endswith("\n1 to change, 1 error.\n")


def test_values_of_secrets_are_in_no_answer(ready_sites, monkeypatch):
    warning_of_creations(monkeypatch, 'data[tls.crt]: Invalid value: "swordfish"')
    ready_sites.write(
        CONFIG,
        'apiVersion: v1\nkind: Secret\nmetadata: {name: "{{ metadata.name }}-config"}\ntype: kubernetes.io/tls\n'
        "stringData: {tls.crt: swordfish, tls.key: swordfish}\n",
    )
    for form in ("text", "json"):
        _, out, err = asked(ready_sites, "Site/a", "-o", form)
        assert "swordfish" not in out + err
        assert "c3dvcmRmaXNo" not in out + err
        assert "(not shown, because it may quote a Secret)" in out


@pytest.mark.slow
def test_the_option_needs_a_cluster(ready_sites):
    ready_sites.write("a.yaml", site("a"))
    status, _, err = ready_sites.run("plan", "-f", "a.yaml", "--server-dry-run")
    assert status == 2
    assert "--server-dry-run asks the API server of a cluster: add --live" in err


def test_a_dry_run_of_a_deletion_has_the_option_in_its_body():
    asked = requests.as_dry_run(
        PreparedRequest("DELETE", "/x", "delete", "x", query="a=b", body=b'{"kind": "DeleteOptions"}')
    )
    assert asked.query == "a=b&dryRun=All"
    assert json.loads(asked.body or b"") == {"kind": "DeleteOptions", "dryRun": ["All"]}
    assert json.loads(requests.as_dry_run(PreparedRequest("DELETE", "/x", "delete", "x")).body or b"") == {
        "dryRun": ["All"]
    }
    read = PreparedRequest("GET", "/x", "get", "x", query="a=b")
    assert requests.as_dry_run(read) is read


def test_an_answer_names_the_fields_that_the_server_changes():
    changed = tuple(map(StoredField.of, (Difference("spec.replicas", 3, 5), Difference("spec.paused", True, NOTHING))))
    answer = Answer(Verdict.ACCEPTED, "web", changed=changed, added=tuple("abcdef"))
    assert list(answer.lines()) == [
        "accepted by the server; the server adds a, b, c, d and 2 more",
        "the server changes spec.replicas: 3 -> 5",
        "the server changes spec.paused: true -> (removed)",
    ]
    assert as_document(answer)["changed"] == [
        {"field": "spec.replicas", "sent": 3, "stored": 5},
        {"field": "spec.paused", "sent": True, "stored": None},
    ]
