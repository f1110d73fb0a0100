"""`ruleop plan --live`: what the next reconcile would do in a cluster, by the rules of a folder."""

import asyncio
import json

import pytest
import yaml

from ruleop.authoring.live import live_planner, reader
from ruleop.authoring.live.reader import connected
from ruleop.errors import RuleopError
from ruleop.localcluster import Effect, Fault
from ruleop.operator.wire.client import requests
from ruleop.planning.model.marks import PART_OF
from tests.authoring.live.projects import site

IMAGE = ("templates/web.yaml.j2", "nginx:1.28", "nginx:1.29")


@pytest.mark.slow
def test_a_live_plan_of_reconciled_resources_has_no_changes(ready_sites):
    status, out, err = ready_sites.run("plan", "--live", "--all")
    assert (status, err) == (0, "")
    assert out == "0 of 3 would change.\n"


@pytest.mark.slow
def test_one_custom_resource_is_planned_like_an_offline_one(ready_sites):
    ready_sites.edit(*IMAGE)
    status, out, _ = ready_sites.run("plan", "--live", "Site/a")
    assert status == 0
    assert "~ patch Deployment/a\n      spec.template.spec.containers[name=web].image: nginx:1.28 -> nginx:1.29" in out
    assert "    pods: 2" in out, "the pods are observed, and were read"
    assert out.endswith("1 to change.\n")


@pytest.mark.slow
def test_a_change_of_the_rules_is_summarised_by_field(ready_sites):
    ready_sites.edit(*IMAGE)
    ready_sites.edit("templates/config.yaml.j2", "data: {page", "data: {colour: blue, page")
    status, out, _ = ready_sites.run("plan", "--live", "--all")
    assert status == 0
    assert out == (
        "Site.example.com\n"
        "~ patch ConfigMap  config\n"
        "    data.colour: blue  in 3: Site default/a, Site default/b, Site other/c\n"
        "~ patch Deployment  web\n"
        "    spec.template.spec.containers[name=web].image: nginx:1.28 -> nginx:1.29\n"
        "        in 3: Site default/a, Site default/b, Site other/c\n"
        "\n"
        "3 of 3 would change.\n"
    )


@pytest.mark.slow
def test_a_new_default_of_the_projects_crd_is_planned_before_the_cluster_has_it(ready_sites):
    crd = yaml.safe_load((ready_sites.root / "crds/sites.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"] = {"colour": {"type": "string", "default": "blue"}}
    ready_sites.write("crds/sites.yaml", yaml.safe_dump(crd))
    ready_sites.edit("templates/config.yaml.j2", "data: {page", 'data: {colour: "{{ spec.colour }}", page')
    status, out, err = ready_sites.run("plan", "--live", "--all")
    assert (status, err) == (0, "")
    assert "    data.colour: blue  in 3: Site default/a, Site default/b, Site other/c\n" in out


@pytest.mark.slow
def test_the_summary_of_a_live_plan_can_be_json(ready_sites):
    ready_sites.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ spec.page }} {{ metadata.name }}")
    status, out, _ = ready_sites.run("plan", "--live", "Site", "-n", "default", "-o", "json")
    document = json.loads(out)
    assert status == 0
    assert [document[name] for name in ("resources", "changed", "failed")] == [2, 2, 0]
    (change,) = document["changes"]
    assert change == {
        "rule": "Site.example.com",
        "child": "config",
        "action": "patch",
        "kind": "ConfigMap",
        "field": "data.page",
        "resources": 2,
        "objects": 2,
        "examples": ["Site default/a", "Site default/b"],
        "before": None,
        "after": None,
    }, "the values differ, so none is shown"


@pytest.mark.slow
def test_objects_that_would_be_created_and_deleted_are_counted(ready_sites):
    ready_sites.edit("watches.yaml", "config: {template: config.yaml.j2}", "other: {template: other.yaml.j2}")
    ready_sites.write(
        "templates/other.yaml.j2", 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ metadata.name }}-other"}\n'
    )
    status, out, _ = ready_sites.run("plan", "--live", "--all", "-n", "default")
    assert status == 0
    assert "+ create ConfigMap  other  in 2: Site default/a, Site default/b\n" in out
    assert "- delete ConfigMap  config  in 2: Site default/a, Site default/b\n" in out


@pytest.mark.parametrize(
    "name", [["Site/a"], ["sites/a"], ["st/a"], ["site.example.com/a"], ["sites.v1.example.com/a"], ["site", "a"]]
)
def test_a_kind_is_named_as_with_kubectl(sites, name):
    sites.apply(site("a"))
    status, out, _ = sites.run("plan", "--live", *name)
    assert (status, out.splitlines()[0]) == (0, "Site default/a  by the rule Site.example.com")


@pytest.mark.slow
def test_a_file_is_planned_as_it_would_be_once_applied(ready_sites):
    ready_sites.write("a.yaml", site("a", page="bye"))
    status, out, _ = ready_sites.run("plan", "--live", "-f", str(ready_sites.root / "a.yaml"))
    assert status == 0
    assert "~ patch ConfigMap/a-config\n      data.page: hello -> bye\n" in out


def test_a_conflicting_object_is_found_although_it_has_no_label(sites):
    sites.apply(site("a") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-config}\n")
    status, out, _ = sites.run("plan", "--live", "Site/a")
    assert status == 1
    assert "ConfigMap a-config in namespace default already exists and is not managed by Site" in out
    status, out, _ = sites.run("plan", "--live", "--all")
    assert status == 1
    assert out.endswith("1 of 1 would change, 1 with errors.\n")


def test_nothing_is_written(ready_sites):
    ready_sites.edit(*IMAGE)
    ready_sites.write("d.yaml", site("d"))
    version = ready_sites.version()
    for arguments in (["--all"], ["Site/a"], ["-f", str(ready_sites.root / "d.yaml")]):
        assert ready_sites.run("plan", "--live", *arguments)[0] == 0
        assert {each.method for each in ready_sites.requests} == {"GET"}
        assert not any("watch=" in each.query for each in ready_sites.requests)
    assert ready_sites.version() == version


def test_the_client_refuses_to_write(sites):
    async def write():
        async with connected(str(sites.kubeconfig), "") as connection:
            (info,) = [each for each in connection.resources() if each.plural == "configmaps"]
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
            await connection.client.send(requests.create(info, obj))

    with pytest.raises(RuleopError, match="this command only reads"):
        asyncio.run(write())
    assert not [each for each in sites.requests if each.method != "GET"]


@pytest.mark.slow
def test_the_requests_do_not_grow_with_the_custom_resources(sites):
    def count():
        status, out, _ = sites.run("plan", "--live", "--all")
        assert status == 0, out
        return len(sites.requests)

    for number in range(20):
        sites.apply(site(f"few-{number}"))
    few = count()
    for number in range(20):
        sites.apply(site(f"more-{number}"))
    assert count() == few
    for number in range(40):
        sites.apply(site(f"many-{number}"))
    assert count() == few + 1, "the selectors of their pods are too long for one request"


@pytest.mark.slow
def test_custom_resources_are_read_in_pages_and_planned_in_batches(sites, monkeypatch):
    assert live_planner.BATCH == 100
    monkeypatch.setattr("ruleop.authoring.live.live_planner.BATCH", 4)
    monkeypatch.setattr(reader, "PAGE", 3)
    for number in range(10):
        sites.apply(site(f"s{number}"))
    status, out, _ = sites.run("plan", "--live", "--all")
    assert status == 0
    assert out.endswith("10 of 10 would change.\n")


@pytest.mark.slow
def test_an_expired_list_is_restarted_and_nothing_is_counted_twice(sites, monkeypatch):
    monkeypatch.setattr("ruleop.authoring.live.live_planner.BATCH", 4)
    for number in range(10):
        sites.apply(site(f"s{number}"))
    sites.cluster.faults.add(Fault(Effect.ERROR, verbs=("list",), resources=("sites",), status=410, after=1, times=1))
    status, out, _ = sites.run("plan", "--live", "--all")
    assert status == 0
    assert out.endswith("10 of 10 would change.\n")


@pytest.mark.slow
def test_files_are_planned_in_batches(sites, monkeypatch):
    monkeypatch.setattr("ruleop.authoring.live.live_planner.BATCH", 4)
    sites.write("sites.yaml", "---\n".join(site(f"s{number}") for number in range(10)))
    status, out, _ = sites.run("plan", "--live", "-f", "sites.yaml")
    assert (status, out.count("+ create ConfigMap/")) == (0, 10)
    owners = [each.query["labelSelector"] for each in sites.requests if PART_OF in each.query.get("labelSelector", "")]
    assert {each.count(",") + 1 for each in owners} == {4, 2}


@pytest.mark.slow
def test_the_custom_resources_of_one_namespace_may_have_objects_in_others(sites):
    sites.write(
        "watches.yaml",
        """\
- group: example.com
  version: v1
  kind: Site
  reach: cluster
  observe:
    own: {version: v1, kind: ConfigMap, name: "{{ metadata.name }}-own"}
  children:
    copy:
      namespace: other
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ own.data.name }}"}}
""",
    )
    for number in range(10):
        sites.apply(site(f"s{number}"))
        sites.apply(
            f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: s{number}-own}}\ndata: {{name: of-{number}}}\n"
        )
        sites.apply(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: of-{number}, namespace: other}}\n")
    status, out, err = sites.run("plan", "--live", "--all", "-n", "default")
    assert status == 1, err
    assert "ConfigMap of-0 in namespace other already exists" in " ".join(out.split())


def test_a_kind_that_cannot_be_listed_names_the_permission(sites):
    sites.apply(site("a"))
    sites.cluster.faults.add(Fault(Effect.ERROR, resources=("deployments",), status=403))
    status, out, _ = sites.run("plan", "--live", "Site/a")
    assert status == 1
    assert "cannot list deployments.apps in all namespaces: needs get, list, watch, create, patch, delete" in " ".join(
        out.split()
    )


def test_values_of_secrets_are_masked(sites):
    sites.write(
        "templates/config.yaml.j2",
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ metadata.name }}-config"}\n'
        'data: {page: "{{ login.data.password | b64decode }}"}\n',
    )
    sites.edit("watches.yaml", "observe:", "observe:\n    login: {version: v1, kind: Secret, name: login}")
    sites.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: swordfish-77}\n")
    sites.apply(site("a"))
    sites.converge(lambda: set(sites.reasons("Site")) == {"Ready"})
    sites.edit("templates/config.yaml.j2", "b64decode }}", "b64decode }}!")
    for arguments in (["Site/a"], ["Site/a", "-o", "json"], ["--all"], ["--all", "-o", "json"]):
        status, out, err = sites.run("plan", "--live", *arguments)
        assert status == 0
        assert "data.page" in out or "/data/page" in out
        assert "swordfish" not in out + err
        assert "c3dvcmRmaXNo" not in out + err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--live", "Site/zebra"], 1, "ruleop: sites.example.com default/zebra does not exist"),
        (["--live", "Sitte/a"], 2, "the cluster serves no kind 'Sitte' (did you mean Site?)"),
        (["--live", "ConfigMap/a"], 2, "no rule watches v1 ConfigMap; this project watches example.com/v1 Site"),
        (["--live"], 2, "with --live, name one of: KIND/NAME, KIND, -f FILE, --all"),
        (["--live", "Site/a", "--all"], 2, "with --live, name one of: KIND/NAME, KIND, -f FILE, --all"),
        (["--live", "Site/"], 2, "expected KIND/NAME, not Site/"),
        (["--all"], 2, "to plan custom resources of a cluster, add --live"),
        (["--live", "--all", "--replay", "x"], 2, "--live reads the cluster"),
        (["--live", "--all", "--context", "elsewhere"], 2, "no context 'elsewhere'"),
    ],
)
def test_an_object_that_cannot_be_planned_is_reported_in_one_sentence(sites, arguments, status, message):
    found, out, err = sites.run("plan", *arguments)
    assert (found, out) == (status, "")
    assert message in err


def test_a_cluster_that_does_not_answer_is_an_error(sites):
    sites.cluster.stop()
    status, _, err = sites.run("plan", "--live", "--all")
    assert status == 2
    assert "127.0.0.1" in err
    sites.cluster.start()


@pytest.mark.slow
def test_a_value_that_the_api_server_would_refuse_is_an_error(ready_sites):
    ready_sites.edit("templates/web.yaml.j2", "replicas: 2", 'replicas: "{{ spec.page }}"')
    status, out, _ = ready_sites.run("plan", "--live", "--all")
    assert status == 1
    (problem,) = [line for line in out.splitlines() if line.startswith("!")]
    assert problem.startswith("! web: templates/web.yaml.j2:")
    assert "Deployment/a: spec.replicas: must be an integer" in problem
    assert "        in 3: Site default/a, Site default/b, Site other/c" in out.splitlines()
    assert out.endswith("3 of 3 would change, 3 with errors.\n")


def with_another_selector(live, *, recreate=False):
    """The rules with another selector, which the API server refuses to change."""
    live.edit("templates/web.yaml.j2", 'matchLabels: {app: "{{ metadata.name }}"}', "matchLabels: {app: new}")
    live.edit("templates/web.yaml.j2", 'labels: {app: "{{ metadata.name }}"}', "labels: {app: new}")
    if recreate:
        live.edit("watches.yaml", "{template: web.yaml.j2}", "{template: web.yaml.j2, apply: {onImmutable: recreate}}")


@pytest.mark.slow
def test_a_change_of_an_immutable_field_is_an_error(ready_sites):
    with_another_selector(ready_sites)
    status, out, _ = ready_sites.run("plan", "--live", "--all")
    assert status == 1
    assert out == (
        "Site.example.com\n"
        "! web: templates/web.yaml.j2:6: the API server would reject this change: spec.selector is immutable; rejected "
        "change: spec.selector.matchLabels.app: a → new; `apply.onImmutable: recreate` would recreate it\n"
        "        in 3: Site default/a, Site default/b, Site other/c\n"
        "\n"
        "0 of 3 would change, 3 would only get a new status, 3 with errors.\n"
    )


@pytest.mark.slow
def test_a_change_of_an_immutable_field_is_shown_as_a_recreation_if_the_child_asks_for_it(ready_sites):
    with_another_selector(ready_sites, recreate=True)
    status, out, _ = ready_sites.run("plan", "--live", "Site/a")
    assert (status, "- delete Deployment/a  an immutable field changed; will be recreated\n" in out) == (0, True)
    status, out, _ = ready_sites.run("plan", "--live", "--all")
    assert status == 0
    assert out.startswith("Site.example.com\n- delete and recreate Deployment  web  in 3: Site default/a, ")


@pytest.mark.slow
def test_the_finalizer_of_an_operator_with_another_name_is_kept(ready_sites):
    ready_sites.apply(site("a").replace("name: a,", "name: a, finalizers: [ruleop.dev/other],"))
    ready_sites.edit("watches.yaml", "  children:", "  reach: cluster\n  children:")
    ready_sites.edit("templates/config.yaml.j2", 'config"}', 'config", namespace: other}')
    status, out, _ = ready_sites.run("plan", "--live", "Site/a")
    assert status == 0
    assert "+ create ConfigMap/other/a-config" in out
    assert "finalizer" not in out
    _, out, _ = ready_sites.run("plan", "--live", "Site/b")
    assert "+ add the finalizer ruleop.dev/ruleop to Site/b" in out


@pytest.mark.slow
def test_a_resource_in_another_namespace_is_suggested(sites):
    sites.apply(site("a", namespace="shop"))
    sites.apply(site("a", namespace="blog"))
    for command in (["plan", "--live"], ["explain"]):
        status, _, err = sites.run(*command, "Site/a")
        assert status == 1
        assert err == (
            "ruleop: sites.example.com default/a does not exist (namespaces with one of this name: blog, shop; use -n)\n"
        )
        assert sites.run(*command, "Site/a", "-n", "shop")[0] == 0


@pytest.mark.slow
def test_a_kind_that_the_cluster_does_not_serve_is_skipped_with_a_warning(ready_sites):
    ready_sites.edit("watches.yaml", "version: v1\n  kind: Site", "version: v2\n  kind: Site")
    (ready_sites.root / "crds/sites.yaml").unlink()
    status, out, err = ready_sites.run("plan", "--live", "--all")
    assert (status, out) == (0, "0 of 0 would change.\n")
    assert err == "example.com/v2 Site: warning: is not served by the cluster: skipped\n"
    status, _, err = ready_sites.run("plan", "--live", "Site/a")
    assert (status, err) == (1, "ruleop: the cluster does not serve example.com/v2 Site\n")
