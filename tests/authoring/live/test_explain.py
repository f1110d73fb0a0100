"""`ruleop explain`: the tree, what blocks, what failed, who changed what, and what the next reconcile would do."""

import json
import re

import pytest
from click.testing import CliRunner

from ruleop.authoring.report.spans import text_of
from ruleop.authoring.report.view_text import explanation_lines
from ruleop.authoring.report.views import ResourceView, pod_reason
from ruleop.cli.program import program
from ruleop.kubernetes.buckets import bucket_of
from ruleop.localcluster import Effect, Fault
from ruleop.localcluster.api.requests import WriteOptions
from ruleop.localcluster.object_store import Resource
from tests.authoring.live.projects import shop, site


def section(out, title):
    """The lines below a title, up to the next empty line."""
    lines = out.splitlines()
    start = lines.index(title) + 1
    return lines[start : [*lines, ""].index("", start)]


def tree_states(out):
    """The states of the children in a tree, by their ids."""
    return dict(re.findall(r"^[├└]─ (\w+) +(\w+(?: \w+)*)  ", out, re.MULTILINE))


def without_names(lines):
    """Without ages, generated names and the width of columns, which depends on the names."""
    text = re.sub(r"\d+ (s|min) ago", "now", "\n".join(lines))
    text = re.sub(r"-[0-9a-z]{5,10}-[0-9a-z]{5}", "-POD", text)
    return [re.sub(r"(?<=\S) {2,}", "  ", line) for line in text.splitlines()]


@pytest.mark.slow
def test_the_tree_shows_the_state_of_each_child_and_who_changed_it_last(ready_sites):
    status, out, err = ready_sites.run("explain", "Site/a")
    assert (status, err) == (0, "")
    assert without_names(out.splitlines()[:3]) == [
        "Site default/a  ready",
        "├─ config  ready  ConfigMap/a-config  (ruleop, now)",
        "└─ web  ready  Deployment/a: 2 of 2 pods  (ruleop, now)",
    ]
    assert "Why it is not ready" not in out
    assert section(out, "Fields") == ["  all 6 fields that ruleop sets are as it wrote them"]
    assert section(out, "Next reconcile") == ["  Nothing to do."]


def test_a_resource_that_a_rollout_holds_back_is_shown_with_its_revision():
    held = {"type": "Rollout", "status": "False", "reason": "HeldBack", "message": "revision 0123456789ab; stopped"}
    resource = {
        "apiVersion": "example.com/v1",
        "kind": "Site",
        "metadata": {"name": "a", "namespace": "default", "generation": 1},
        "status": {"observedGeneration": 1, "conditions": [held]},
    }
    view = ResourceView(resource, now="2026-01-01T00:00:00Z")
    text = " ".join(text_of(explanation_lines(view)).split())
    assert "It is held back: it has revision 0123456789ab; stopped. What follows is by the rules of the project" in text


@pytest.mark.slow
def test_the_environment_variables_of_run_name_the_cluster_too(ready_sites, monkeypatch):
    monkeypatch.setenv("RULEOP_KUBECONFIG", str(ready_sites.kubeconfig))
    monkeypatch.chdir(ready_sites.root)
    result = CliRunner().invoke(program, ["explain", "Site/a"], prog_name="ruleop")
    assert (result.exit_code, result.stdout.split()[:3]) == (0, ["Site", "default/a", "ready"])


@pytest.mark.slow
def test_a_waiting_child_is_shown_with_the_expression_and_the_current_values(troubled):
    status, out, _ = troubled.run("explain", "Shop/a")
    assert status == 0
    assert without_names(out.splitlines()[:8]) == [
        "Shop default/a  Waiting: Deployment/a-db: 0 of 2 pods available; ConfigMap/a-cert: readyWhen is false; web waits for wa…",
        "├─ config  ready  ConfigMap/a-config  (ruleop, now)",
        "├─ db  not ready  Deployment/a-db: 0 of 2 pods available  (ruleop, now)",
        "│  ├─  not ready  Pod/a-db-POD: CrashLoopBackOff",
        "│  └─  not ready  Pod/a-db-POD: CrashLoopBackOff",
        "├─ web  waiting  Deployment: waitFor is not true",
        "├─ cert  not ready  ConfigMap/a-cert: readyWhen is false  (ruleop, now)",
        "└─ late  waiting  ConfigMap/a-late: waits for db to be ready",
    ]
    assert without_names(section(out, "Why it is not ready")) == [
        "  Deployment/a-db is not ready: 0 of 2 pods available",
        "      Available is False: MinimumReplicasUnavailable: Deployment does not have minimum availability.",
        "      Pod/a-db-POD is not ready: CrashLoopBackOff (and 1 more)",
        "          container db: CrashLoopBackOff: back-off restarting failed container",
        "  web waits: its waitFor is not true",
        "      waitFor: db.status.readyReplicas | default(0) >= 1 and login.data.password",
        "      watches.yaml:11:16",
        "      now db.status.readyReplicas: not available yet",
        "      now login.data.password: not available yet",
        "  late waits for db to be ready",
        "      now db: not ready; Deployment/a-db: 0 of 2 pods available",
        "  cert is not ready: its readyWhen is not true",
        "      readyWhen: this.data.issued == 'yes' and this.data.serial is defined",
        "      watches.yaml:14:18",
        '      now this.data.issued: "no"',
        "      now this.data.serial: not available yet",
    ]
    assert section(out, "Next reconcile") == ["  2 waiting."]


def test_the_word_for_a_pod_is_that_of_kubectl():
    evicted = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    assert pod_reason({"kind": "Pod", "status": evicted}) == "Evicted"
    assert pod_reason({"kind": "Pod", "status": {"phase": "Pending"}}) == "Pending"


def test_plan_has_the_same_words_for_the_states_of_children(troubled):
    troubled.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
    troubled.edit("templates/config.yaml.j2", '"{{ metadata.name }}-config"', "other")
    shown = [tree_states(troubled.run(*command, "Shop/a")[1]) for command in (("explain",), ("plan", "--live"))]
    assert shown[0] == {
        "config": "name conflict",
        "db": "not ready",
        "web": "waiting",
        "cert": "not ready",
        "late": "waiting",
    }
    assert shown[1] == shown[0]


def test_a_value_that_is_missing_is_shown_with_its_line(shops):
    shops.edit("templates/late.yaml.j2", "config.metadata.uid", "login.data.user")
    shops.edit("watches.yaml", ", dependsOn: [db]", "")
    shops.apply(shop("a"))
    _, out, _ = shops.run("explain", "Shop/a")
    lines = section(out, "Why it is not ready")
    start = lines.index("  late waits for login (Secret/default/login)")
    assert lines[start : start + 3] == [
        "  late waits for login (Secret/default/login)",
        '      templates/late.yaml.j2:4  data: {uid: "{{ login.data.user }}"}',
        "      now Secret/default/login: does not exist",
    ]


def test_values_of_secrets_are_masked(troubled):
    troubled.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: swordfish-77}\n")
    for output in ("text", "json", "dot"):
        status, out, err = troubled.run("explain", "Shop/a", "-o", output)
        assert status == 0
        assert "swordfish" not in out + err
        assert "c3dvcmRmaXNo" not in out + err
    _, out, _ = troubled.run("explain", "Shop/a")
    assert "      now login.data.password: (hidden)" in out.splitlines()


@pytest.mark.slow
def test_a_field_that_another_client_changed_is_shown_with_the_change_to_come(ready_sites):
    def edit():
        cluster = ready_sites.cluster
        old = cluster.machinery.get(Resource("apps", "deployments"), "default", "a")
        served = next(
            each for each in cluster.registry.in_group_version("apps", "v1") if each.kind.kind == "Deployment"
        )
        cluster.writer.update(
            served,
            old,
            {**old.obj, "spec": {**old.obj["spec"], "replicas": 5}},
            "",
            WriteOptions(manager="kubectl-edit"),
        )

    ready_sites.cluster.call(edit)
    status, out, _ = ready_sites.run("explain", "Site/a")
    assert status == 0
    assert without_names(section(out, "Fields")) == [
        "  Deployment/a  4 by ruleop, 1 by kubectl-edit",
        "      spec.replicas  kubectl-edit (Update), now",
    ]
    assert section(out, "Next reconcile") == [
        "  ~ patch Deployment/a",
        "        spec.replicas: 5 -> 2",
        "  1 to change.",
    ]
    document = json.loads(ready_sites.run("explain", "Site/a", "-o", "json")[1])
    deployment = next(each for each in document["objects"] if each["kind"] == "Deployment")
    assert deployment["lastChange"]["manager"] == "kubectl-edit"
    assert [each["path"] for each in deployment["fields"] if each["changed"]] == ["spec.replicas"]
    assert document["next"]["actions"][0]["patch"] == [{"op": "replace", "path": "/spec/replicas", "value": 2}]


@pytest.mark.slow
def test_every_field_is_listed_on_request(ready_sites):
    _, out, _ = ready_sites.run("explain", "Site/a", "--fields")
    assert without_names(section(out, "Fields"))[:3] == [
        "  ConfigMap/a-config  1 by ruleop",
        "      data.page  ruleop (Update), now",
        "  Deployment/a  5 by ruleop",
    ]
    assert "      spec.template.spec.containers[name=web].image  ruleop (Update), now" in without_names(
        out.splitlines()
    )


def test_a_name_conflict_is_an_error_and_its_fields_are_not_ruleops(sites):
    sites.apply(site("a") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-config}\ndata: {x: y}\n")
    sites.converge(lambda: sites.reasons("Site") == ["ErrResourceExists"])
    status, out, _ = sites.run("explain", "Site/a")
    assert status == 0
    conflict = (
        "ConfigMap a-config in namespace default already exists and is not managed by Site (it has no owner): rename"
    )
    assert without_names(out.splitlines())[1] == "├─ config  name conflict  ConfigMap/a-config  (ruleop-dev, now)"
    assert section(out, "Why it is not ready")[:2] == [
        f"  ! config: {conflict}",
        "    the child, delete the object, or use `adopt: orphans`",
    ]
    events = section(out, "Events")
    (event,) = [number for number, line in enumerate(events) if "ErrResourceExists" in line]
    assert events[event + 1].strip().startswith("ConfigMap a-config in namespace default already exists")


@pytest.mark.slow
def test_explain_without_rules_reports_what_the_cluster_contains(troubled, tmp_path, monkeypatch):
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    monkeypatch.chdir(empty)
    status, out, err = troubled.run("explain", "Shop/a", rules=False)
    assert (status, err) == (0, "")
    assert "├─ cert  ready  ConfigMap/a-cert  (ruleop, now)" in without_names(out.splitlines())
    assert section(out, "Why it is not ready")[:2] == [
        "  ConfigMap/a-cert: readyWhen is false; web waits for waitFor: db.status.readyReplicas | default(0) >= 1 and",
        "  login.data.password; late waits for db to be ready",
    ]
    assert "CrashLoopBackOff" in out
    assert "Next reconcile" not in out
    assert "no watches.yaml in this folder (use -C DIR for the rules); not shown: which expression" in out


@pytest.mark.slow
def test_errors_in_the_rules_are_reported_and_the_rest_is_explained(troubled):
    troubled.edit("watches.yaml", "children:", "childen:")
    status, out, err = troubled.run("explain", "Shop/a")
    assert status == 0
    assert "childen" in err
    assert "CrashLoopBackOff" in out
    assert "have mistakes; not shown: which expression" in " ".join(out.split())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["configmap/a-config", "deploy/a", "pod"])
def test_the_custom_resource_of_a_child_or_a_pod_is_explained(ready_sites, name):
    if name == "pod":
        name = next(
            f"pod/{each['metadata']['name']}"
            for each in ready_sites.objects("Pod")
            if each["metadata"]["name"][0] == "a"
        )
    status, out, _ = ready_sites.run("explain", name)
    assert status == 0
    assert out.startswith("Site default/a ")
    assert "belongs to Site/a, which is shown here" in out


@pytest.mark.slow
def test_the_graph_has_a_node_for_each_object_and_an_edge_for_each_wait(troubled):
    status, out, _ = troubled.run("explain", "Shop/a", "-o", "dot")
    assert status == 0
    assert out.startswith("digraph explanation {\n")
    assert 'label="Deployment/a-db\\nnot ready: 0 of 2 pods available"' in out
    assert 'n4 -> n1 [style=dashed, label="waits for"];' in out
    assert out.endswith("}\n")


@pytest.mark.slow
def test_nothing_is_written(troubled):
    version = troubled.version()
    for output in ("text", "json", "dot"):
        assert troubled.run("explain", "Shop/a", "-o", output)[0] == 0
        assert {each.method for each in troubled.requests} == {"GET"}
    assert troubled.version() == version


@pytest.mark.slow
def test_kinds_that_cannot_be_listed_are_reported(troubled):
    troubled.cluster.faults.add(Fault(Effect.ERROR, resources=("events", "pods"), status=403))
    status, out, _ = troubled.run("explain", "Shop/a")
    assert status == 0
    assert "not permitted to list: pods\n" in out
    assert "not permitted to list: events\n" in out


def test_a_custom_resource_without_an_operator_is_explained(sites):
    sites.apply(site("a"))
    status, out, _ = sites.run("explain", "Site/a")
    assert status == 0
    assert section(out, "Why it is not ready")[0] == "  It has no conditions: no operator has reconciled it yet"
    assert section(out, "Next reconcile")[-1] == "  2 to create."


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "name the custom resource to explain: KIND/NAME"),
        (["Shop"], 2, "expected KIND/NAME, not Shop"),
        (["Shop/zebra"], 1, "shops.example.com default/zebra does not exist"),
        (["Shopp/a"], 2, "the cluster serves no kind 'Shopp' (did you mean Shop?)"),
        (
            ["configmap/kube-root-ca.crt"],
            1,
            "no rule watches configmaps, and default/kube-root-ca.crt is not a child of a custom resource",
        ),
    ],
)
def test_an_object_that_cannot_be_explained_is_reported_in_one_sentence(shops, arguments, status, message):
    found, out, err = shops.run("explain", *arguments)
    assert (found, out) == (status, "")
    assert message in err


def test_an_error_of_the_server_ends_the_explanation(sites):
    sites.apply(site("a"))
    sites.cluster.faults.add(Fault(Effect.ERROR, resources=("configmaps",), status=500))
    status, out, err = sites.run("explain", "Site/a")
    assert (status, out) == (1, "")
    assert "configmaps" in err


@pytest.mark.slow
def test_a_write_that_the_server_rejected_is_shown_by_what_the_operator_reported(ready_sites):
    ready_sites.edit("templates/web.yaml.j2", 'matchLabels: {app: "{{ metadata.name }}"}', "matchLabels: {app: b}")
    ready_sites.edit("templates/web.yaml.j2", 'labels: {app: "{{ metadata.name }}"}', "labels: {app: b}")
    ready_sites.converge(lambda: "ApplyFailed" in ready_sites.reasons("Site"))
    status, out, _ = ready_sites.run("explain", "Site/a")
    assert status == 0
    assert "Deployment/a: 2 of 2 pods; its last change failed" in out
    first, *others = section(out, "Why it is not ready")
    assert first.startswith("  ! web: templates/web.yaml.j2:6: ")
    assert all(line.startswith("    ") for line in others), "one paragraph"
    assert "immutable" in out


@pytest.mark.slow
def test_a_deletion_that_an_error_holds_back_is_shown_as_such(ready_sites):
    ready_sites.edit("templates/config.yaml.j2", "-config", "-new")
    ready_sites.edit("templates/web.yaml.j2", "replicas: 2", "replicas: {{ spec.nope }}")
    _, out, _ = ready_sites.run("explain", "Site/a")
    assert "not desired  ConfigMap/a-config: its deletion is held back until config is written" in out
    assert section(out, "Next reconcile")[0] == "  ! delete ConfigMap/a-config  held back until config is written"
    assert "to delete" not in out


@pytest.mark.slow
def test_a_paused_resource_waits_for_the_annotation(ready_sites):
    ready_sites.apply(site("a", page="bye").replace("name: a,", "name: a, annotations: {ruleop.dev/paused: 'true'},"))
    status, out, _ = ready_sites.run("explain", "Site/a")
    assert status == 0
    assert (
        "├─ config  ready  ConfigMap/a-config: will not be changed while the CR is paused  (ruleop, now)"
        in without_names(out.splitlines())
    )
    assert section(out, "Next reconcile") == ["  Nothing, while the annotation ruleop.dev/paused stops all changes."]


@pytest.mark.slow
def test_a_resource_that_is_being_deleted_names_its_finalizers(ready_sites):
    ready_sites.apply(site("a").replace("name: a,", "name: a, finalizers: [example.com/held],"))
    ready_sites.delete("sites", "a")
    status, out, _ = ready_sites.run("explain", "Site/a")
    assert status == 0
    assert out.splitlines()[0].split(maxsplit=2)[2].startswith("is being deleted")
    reason = without_names(section(out, "Why it is not ready"))[0]
    assert reason == "  It is being deleted, since now; finalizers: example.com/held"


@pytest.mark.slow
def test_an_older_status_is_named(ready_sites):
    ready_sites.apply(site("a", page="bye"))
    _, out, _ = ready_sites.run("explain", "Site/a")
    assert section(out, "Why it is not ready") == [
        "  The status is of generation 1, the spec of 2: the operator has not reconciled it"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("", "no operator holds the Lease default/ruleop: is it running?"),
        (
            "holderIdentity: pod-1, renewTime: '2026-01-01T00:00:00.000000Z'",
            "pod-1 holds the Lease default/ruleop, renewed at 2026-01-01T00:00:00Z: is it running?",
        ),
    ],
)
def test_the_lease_shows_whether_an_operator_runs(ready_sites, spec, sentence):
    ready_sites.apply(
        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: ruleop}\nspec: {" + spec + "}\n"
    )
    _, out, _ = ready_sites.run("explain", "Site/a")
    assert sentence in out.splitlines()


def lease(name: str, notes: str, holder: str = "pod-1") -> str:
    metadata = f"{{name: {name}, labels: {{ruleop.dev/operator: ruleop}}, annotations: {{{notes}}}}}"
    return f"""\
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {metadata}
spec: {{holderIdentity: "{holder}", renewTime: '2026-01-01T00:00:00.000000Z'}}
"""


@pytest.mark.slow
def test_with_shards_it_names_the_one_with_its_bucket(ready_sites):
    epoch = "ruleop.dev/epoch: 7/2"
    ready_sites.apply(lease("ruleop.0", epoch, "pod-0") + lease("ruleop.1", epoch, "pod-1"))
    bucket = bucket_of(ready_sites.objects("Site")[0]["metadata"]["uid"])
    mine, other = bucket // 32, 1 - bucket // 32
    _, out, _ = ready_sites.run("explain", "Site/a")
    assert (
        f"pod-{mine} holds the Lease default/ruleop.{mine}, renewed at 2026-01-01T00:00:00Z: is it running?; it is shard "
        f"{mine} of 2, which has its bucket {bucket}"
    ) in " ".join(out.split())
    ready_sites.apply(lease(f"ruleop.{mine}", epoch, "") + lease(f"ruleop.{other}", epoch))
    _, out, _ = ready_sites.run("explain", "Site/a")
    assert f"no process is shard {mine} of 2, which has its bucket {bucket}: is its pod running?" in " ".join(
        out.split()
    )


@pytest.mark.slow
def test_with_selectors_it_names_the_first_that_matches(ready_sites):
    one, two = "ruleop.dev/selector: team=a", "ruleop.dev/selector: '!team'"
    ready_sites.apply(lease("ruleop-a", one, "pod-a"))
    _, out, _ = ready_sites.run("explain", "Site/a")
    assert 'no process reconciles it: its labels match none of the selectors "team=a"' in out.splitlines()
    ready_sites.apply(lease("ruleop-b", two, "pod-b"))
    _, out, _ = ready_sites.run("explain", "Site/a")
    assert "pod-b holds the Lease default/ruleop-b" in out


@pytest.mark.slow
def test_an_object_of_a_child_that_waits_stays_as_it_is(shops):
    login = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: swordfish-77}\n"
    shops.edit("templates/cert.yaml.j2", 'issued: "no"', 'issued: "yes", serial: "1"')
    shops.apply(shop("a") + "---\n" + login)
    shops.converge(lambda: shops.reasons("Shop") == ["Ready"])
    shops.edit("templates/late.yaml.j2", "config.metadata.uid", "login.data.user")
    shops.edit("watches.yaml", ", dependsOn: [db]", "")
    shops.edit(
        "watches.yaml", "    cert:\n      template: cert.yaml.j2\n", "    cert:\n      template: other.yaml.j2\n"
    )
    shops.write("templates/other.yaml.j2", (shops.root / "templates/cert.yaml.j2").read_text().replace("-cert", "-new"))
    status, out, _ = shops.run("explain", "Shop/a")
    assert status == 0
    tree = without_names(out.splitlines()[:8])
    assert "└─ late  ready  ConfigMap/a-late: its update waits for login.data.user  (ruleop, now)" in tree
    assert "│  ├─  missing  ConfigMap/a-new: about to be created" in tree
    assert "│  └─  not desired  ConfigMap/a-cert: will be deleted  (ruleop, now)" in tree
    assert not any("a-cert" in line for line in section(out, "Why it is not ready"))


@pytest.mark.slow
def test_events_and_statuses_do_not_show_a_value_of_a_secret(troubled):
    troubled.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: swordfish-77}\n")
    about = "{apiVersion: example.com/v1, kind: Shop, namespace: default, name: a}"
    troubled.apply(
        "apiVersion: v1\nkind: Event\nmetadata: {name: a.1, namespace: default}\ntype: Warning\nreason: Leak\n"
        f"message: the password is swordfish-77\ninvolvedObject: {about}\n"
    )
    for output in ("text", "json"):
        status, out, _ = troubled.run("explain", "Shop/a", "-o", output)
        assert status == 0
        assert "the password is (hidden)" in out
        assert "swordfish" not in out


@pytest.mark.slow
def test_very_many_objects_of_one_child_are_counted(shops):
    shops.edit(
        "watches.yaml",
        "    config: {template: config.yaml.j2}",
        "    config: {template: many.yaml.j2, forEach: spec.sites}",
    )
    shops.write(
        "templates/many.yaml.j2", shops.root.joinpath("templates/db.yaml.j2").read_text().replace("-db", "-{{ item }}")
    )
    shops.edit("watches.yaml", "    late: {template: late.yaml.j2, dependsOn: [db]}\n", "")
    (shops.root / "templates/late.yaml.j2").unlink()
    sites = ", ".join(f"s{number}" for number in range(20))
    shops.apply(shop("a").replace("page: hello", f"page: hello, sites: [{sites}]").replace("pod: ok", "pod: not-ready"))
    status, out, _ = shops.run("explain", "Shop/a")
    assert status == 0
    assert "│  └─ and 12 more" in out
    shops.converge(lambda: len(shops.objects("Pod")) == 42)
    _, out, _ = shops.run("explain", "Shop/a")
    assert "  and 9 more objects are not ready" in section(out, "Why it is not ready")


@pytest.mark.slow
def test_a_value_of_a_child_is_shown_with_the_state_of_that_child(troubled):
    troubled.edit("templates/late.yaml.j2", "config.metadata.uid", "db.status.readyReplicas")
    troubled.edit("watches.yaml", ", dependsOn: [db]", "")
    _, out, _ = troubled.run("explain", "Shop/a")
    lines = section(out, "Why it is not ready")
    start = lines.index("  late waits for db.status.readyReplicas")
    assert lines[start + 1 : start + 3] == [
        '      templates/late.yaml.j2:4  data: {uid: "{{ db.status.readyReplicas }}"}',
        "      now db: not ready; Deployment/a-db: 0 of 2 pods available",
    ]


@pytest.mark.slow
def test_a_rule_that_writes_no_status_is_explained_by_its_plan(sites):
    sites.edit("watches.yaml", "  observe:", "  manageStatus: false\n  observe:")
    sites.edit("watches.yaml", '  status:\n    pods: "{{ pods | length }}"\n', "")
    sites.apply(site("a"))
    sites.converge(
        lambda: len(sites.objects("Pod")) == 2 and all("Ready" in str(each["status"]) for each in sites.objects("Pod"))
    )
    status, out, _ = sites.run("explain", "Site/a")
    assert status == 0
    assert out.splitlines()[0].split() == ["Site", "default/a", "ready"]
    assert "no operator has reconciled it" not in out
    assert json.loads(sites.run("explain", "Site/a", "-o", "json")[1])["ready"] is True


@pytest.mark.parametrize(("arguments", "name"), [((), "pages"), (("--name", "other"), "other")])
def test_ruleop_yaml_or_the_option_names_the_operator(sites, arguments, name):
    sites.write("ruleop.yaml", "name: pages\n")
    sites.apply(site("a"))
    sites.run("explain", "Site/a", *arguments)
    asked = [request.query.get("fieldSelector") for request in sites.requests if request.path.endswith("/configmaps")]
    assert f"metadata.name={name}-inventory" in asked
