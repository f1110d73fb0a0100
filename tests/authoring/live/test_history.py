"""`ruleop history`: what changed on a custom resource and its children, when, and by whom."""

import json
from dataclasses import replace

import pytest

from ruleop.authoring.report.spans import text_of
from ruleop.authoring.report.view_text import history_lines
from ruleop.authoring.report.views import EventView, LastWrite, PastChange, ResourceView, What
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.localcluster import Effect, Fault
from ruleop.localcluster.api.requests import WriteOptions
from ruleop.localcluster.object_store import Resource
from ruleop.operator.revisions.revision_store import Revision, Revisions, encode
from ruleop.planning.rollout.rollout_record import RolloutRecord, member_of
from ruleop.planning.rollout.rollout_record import RolloutRevision as Rollout
from ruleop.planning.rollout.rollout_record import encode as encode_record
from ruleop.planning.rollout.waves import condition_of
from tests.authoring.live.projects import site

ONE, TWO = "1" * 64, "2" * 64
NOW = "2026-01-05T12:00:00Z"


def edit_as(live, manager, plural, name, spec):
    def edit():
        cluster = live.cluster
        group, _, resource = plural.rpartition("/")
        old = cluster.machinery.get(Resource(group, resource), "default", name)
        served = next(
            each for each in cluster.registry.in_group_version(group, "v1") if each.resource.plural == resource
        )
        new = {**old.obj, "spec": {**old.obj["spec"], **spec}}
        cluster.writer.update(served, old, new, "", WriteOptions(manager))

    live.cluster.call(edit)


def report(live, plural, name, status):
    group, _, resource = plural.rpartition("/")
    machinery, resource = live.cluster.machinery, Resource(group, resource)
    live.cluster.call(lambda: machinery.update_status(resource, machinery.get(resource, "default", name), status))


def revisions(*entries):
    """The ConfigMap of an operator with these revisions, without their files."""
    index = encode(Revisions(tuple(Revision(digest, since) for digest, since in entries)))
    metadata = {"name": "ruleop-revisions", "namespace": "default"}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"index": index}})


def changes(live, *arguments):
    status, out, err = live.run("history", *arguments, "-o", "json")
    assert (status, err) == (0, "")
    return json.loads(out)["changes"]


def told(change):
    """One change without its time."""
    about = f"{change['kind']}/{change['name']} " if "kind" in change else ""
    fields = " ".join(change.get("fields", ()))
    return f"{about}{change['what']} {change.get('manager', '')} {fields}".strip()


# -- the text ----------------------------------------------------------------------------------------------------------

APP = ObjectKey("example.com", "App", "shop", "web")
DEPLOYMENT = ObjectKey("apps", "Deployment", "shop", "web")
ELSEWHERE = ObjectKey("", "Secret", "vault", "a-name-that-is-longer-than-the-column-of-names")
KUBECTL, RULEOP = (LastWrite(name, "Update", "") for name in ("kubectl-edit", "ruleop"))
PATHS = tuple(f"spec.template.spec.containers[name=app].{name}" for name in ("image", "name", "ports", "resources"))


def test_the_text_is_a_line_for_each_change_with_the_time_and_the_age():
    history = ResourceView(
        {
            "apiVersion": "example.com/v1",
            "kind": "App",
            "metadata": {"name": "web", "namespace": "shop", "generation": 3},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]},
        },
        now="2026-01-05T12:00:00Z",
        changes=(
            PastChange("2026-01-01T08:00:00Z", What.RULES, revision=ONE, environment=True),
            PastChange("2026-01-02T08:00:00Z", What.CREATED, APP),
            PastChange(
                "2026-01-02T08:00:01Z",
                What.WRITTEN,
                DEPLOYMENT,
                RULEOP,
                ("metadata.labels.app", "spec.replicas", *PATHS),
            ),
            PastChange("2026-01-02T08:00:02Z", What.STATUS, APP, RULEOP, ("status.conditions",)),
            PastChange("2026-01-05T11:00:00Z", What.WRITTEN, APP, KUBECTL, ("spec.image", "spec.size"), generation=3),
            PastChange(
                "2026-01-05T11:00:01Z",
                What.EVENT,
                APP,
                event=EventView(APP, "Normal", "Synced", "Patched Deployment/web", "2026-01-05T11:00:01Z", 4),
            ),
            PastChange("2026-01-05T11:59:00Z", What.WRITTEN, DEPLOYMENT, KUBECTL, ("spec.replicas",)),
            PastChange("2026-01-05T11:59:30Z", What.RULES, revision=ONE, again=True),
            PastChange("2026-01-05T11:59:58Z", What.DELETION, ELSEWHERE),
        ),
        notes=("not permitted to list: events",),
    )
    assert "".join(f"{''.join(span.text for span in line)}\n" for line in history_lines(history)) == GOLDEN


GOLDEN = """\
App shop/web  ready  (generation 3)

  2026-01-01T08:00:00Z  4 d ago     rules           revision 111111111111, with environment variables
  2026-01-02T08:00:00Z  3 d ago     App/web         created
  2026-01-02T08:00:01Z  3 d ago     Deployment/web  written by ruleop, which owns 6 fields in metadata.labels,
                                                    spec.replicas and spec.template
  2026-01-02T08:00:02Z  3 d ago     App/web         status written by ruleop
  2026-01-05T11:00:00Z  1 h ago     App/web         written by kubectl-edit, which owns spec.image and spec.size
                                                    (generation 3)
  2026-01-05T11:00:01Z  59 min ago  App/web         Synced (x4): Patched Deployment/web
  2026-01-05T11:59:00Z  1 min ago   Deployment/web  written by kubectl-edit, which owns spec.replicas
  2026-01-05T11:59:30Z  30 s ago    rules           revision 111111111111 again
  2026-01-05T11:59:58Z  2 s ago     Secret/vault/a-name-that-is-longer-than-the-column-of-names
                                                    deletion requested

The API server keeps one time for each field manager of an object: that of its last write, with all fields that the
manager owns.
not permitted to list: events
"""


def test_the_groups_of_many_fields_are_named_in_one_way_whatever_their_names_have_in_them():
    fields = (
        "data.page",
        "data['app.conf']",
        "data['a.b'].c",
        "metadata.annotations['x/y']",
        "spec.ports[port=80].name",
    )
    change = PastChange("2026-01-02T08:00:01Z", What.WRITTEN, DEPLOYMENT, RULEOP, fields)
    resource = {"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "web", "namespace": "shop"}}
    text = text_of(history_lines(ResourceView(resource, now=NOW, changes=(change,))))
    groups = "data.page, data['app.conf'], data['a.b'], metadata.annotations and spec.ports"
    assert f"written by ruleop, which owns 5 fields in {groups}" in " ".join(text.split())


def test_the_latest_of_very_many_changes_are_listed():
    created = tuple(
        PastChange(f"2026-01-01T00:{each // 60:02}:{each % 60:02}Z", What.CREATED, APP) for each in range(300)
    )
    resource = {"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "web", "namespace": "shop"}}
    lines = [
        "".join(span.text for span in line) for line in history_lines(ResourceView(resource, now=NOW, changes=created))
    ]
    assert lines[2] == "  100 earlier changes are not shown (-o json has them)"
    assert (lines[3].split()[0], lines[202].split()[0]) == ("2026-01-01T00:01:40Z", "2026-01-01T00:04:59Z")
    assert lines[203] == ""


# -- what is found -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_edits_of_the_resource_and_its_children_are_found_with_their_managers(ready_sites):
    edit_as(ready_sites, "kubectl-scale", "apps/deployments", "a", {"replicas": 5})
    ready_sites.apply(site("a", page="changed"))
    found = changes(ready_sites, "Site/a")
    assert [each["time"] for each in found] == sorted(each["time"] for each in found)
    lines = [told(each) for each in found]
    for line in (
        "Site/a created",
        "Site/a written ruleop-dev spec.page",
        "Site/a status ruleop status.",
        "ConfigMap/a-config created",
        "ConfigMap/a-config written ruleop data.page",
        "Deployment/a created",
        "Deployment/a written kubectl-scale spec.replicas",
    ):
        assert sum(each.startswith(line) for each in lines) == 1, line
    (edit,) = (each for each in found if told(each).startswith("Site/a written"))
    assert edit["generation"] == 2
    assert [line for line in lines if "/b" in line] == []


@pytest.mark.slow
def test_revisions_since_the_creation_and_the_one_before_are_listed(ready_sites):
    late = "2999-01-01T00:00:00Z"
    ready_sites.apply(revisions((ONE, "2025-01-01T00:00:00Z"), (TWO, "2025-01-02T00:00:00Z"), (ONE, late), (TWO, late)))
    found = [each for each in changes(ready_sites, "Site/a") if each["what"] == "rules"]
    assert [each["revision"][0] for each in found] == ["2", "1", "2"]
    _, out, _ = ready_sites.run("history", "Site/a")
    lines = [line.split("  rules")[1].strip() for line in out.splitlines() if "  rules" in line]
    assert lines == ["revision 222222222222", "revision 111111111111 again", "revision 222222222222 again"]


@pytest.mark.slow
@pytest.mark.parametrize("others", [{}, {"Site.example.com_other": RolloutRecord.complete(Rollout("x", TWO))}])
def test_a_revision_that_a_rollout_has_not_brought_to_it_is_held_back(ready_sites, others):
    """Also if the kind has several watches: its status names the revision that the right one gives it."""
    (uid,) = [each["metadata"]["uid"] for each in ready_sites.objects("Site") if each["metadata"]["name"] == "a"]
    old, new = Rollout("a" * 64, ONE), Rollout("b" * 64, TWO)
    ready_sites.apply(revisions((ONE, "2025-01-01T00:00:00Z"), (TWO, "2999-01-01T00:00:00Z")))

    def found(record):
        condition = condition_of(record, uid)
        conditions = [{"type": condition.type, "status": condition.status, "message": condition.message}]
        report(ready_sites, "example.com/sites", "a", {"conditions": conditions} if others else {})
        data = {name: encode_record(each) for name, each in {"Site.example.com": record, **others}.items()}
        metadata = {"name": "ruleop-rollouts", "namespace": "default"}
        ready_sites.apply(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
        rules = [each["heldBack"] for each in changes(ready_sites, "Site/a") if each["what"] == "rules"]
        _, out, _ = ready_sites.run("history", "Site/a")
        assert out.count("revision 222222222222; held back here by its rollout") == int(rules[1])
        return rules, [each["time"] for each in changes(ready_sites, "Site/a") if each["what"] == "released"]

    waiting = RolloutRecord(new, old, "Stopped")
    time = 1767225600.0
    reached = replace(waiting, phase="Progressing", released={member_of(uid): "ready"}, pending={member_of(uid): time})
    assert found(waiting) == ([False, True], [])
    assert found(reached) == ([False, False], ["2026-01-01T00:00:00Z"])
    assert found(RolloutRecord.complete(new)) == ([False, False], [])
    assert found(replace(RolloutRecord.complete(old), undo=True, rejected=new)) == ([False, True], [])


@pytest.mark.slow
def test_a_child_leads_to_the_history_of_its_resource(ready_sites):
    status, out, _ = ready_sites.run("history", "configmap/a-config")
    assert status == 0
    assert out.startswith("Site default/a")
    assert "ConfigMap/a-config belongs to Site/a, which is shown here" in out


@pytest.mark.slow
def test_values_of_secrets_are_not_in_the_history(ready_sites):
    ready_sites.write("templates/config.yaml.j2", CREDENTIAL)
    ready_sites.converge(lambda: bool(ready_sites.objects("Secret")))
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "told", "namespace": "default"},
        "involvedObject": {"apiVersion": "example.com/v1", "kind": "Site", "namespace": "default", "name": "a"},
        "type": "Warning",
        "reason": "Told",
        "message": "the password is swordfish-77",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    ready_sites.apply(json.dumps(event))
    for output in ("text", "json"):
        status, out, err = ready_sites.run("history", "Site/a", "-o", output)
        assert status == 0
        assert "swordfish" not in out + err
        assert "c3dvcmRmaXNo" not in out + err
    lines = [told(each) for each in changes(ready_sites, "Site/a")]
    assert any(line.startswith("Secret/a-config written ruleop data.password") for line in lines)


CREDENTIAL = """\
apiVersion: v1
kind: Secret
metadata: {name: "{{ metadata.name }}-config"}
stringData: {password: swordfish-77}
"""


@pytest.mark.slow
def test_missing_permissions_and_revisions_are_notes(ready_sites):
    ready_sites.cluster.faults.add(Fault(Effect.ERROR, resources=("events",), status=403))
    status, out, err = ready_sites.run("history", "Site/a", "--name", "other")
    assert (status, err) == (0, "")
    assert "not permitted to list: events" in out
    found = 'found; found: "ruleop" in namespace default: use --name ruleop'
    assert f'revisions of the rules: no operator "other" {found}' in out
    _, out, _ = ready_sites.run("history", "Site/a", "--name", "other", "--operator-namespace", "default")
    assert 'revisions of the rules: no operator "other" found in namespace default; found: "ruleop" in' in out


# -- whatever the operator's name is -----------------------------------------------------------------------------------

AWAY = """\
- group: example.com
  version: v1
  kind: Site
  reach: cluster
  children:
    config: {template: config.yaml.j2}
    space: {object: {apiVersion: v1, kind: Namespace, metadata: {name: "of-{{ metadata.name }}"}}}
    away:
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "{{ metadata.name }}-away", namespace: "of-{{ metadata.name }}"}
"""


@pytest.fixture
def far(sites):
    """A site with a child in another namespace, of an operator named `far`."""
    sites.write("watches.yaml", AWAY)
    sites.operator = "far"
    sites.apply(site("a"))
    sites.converge(lambda: set(sites.reasons("Site")) == {"Ready"})
    return sites


@pytest.mark.slow
@pytest.mark.parametrize("name", [(), ("--name", "far")])
def test_children_in_other_namespaces_are_shown_also_without_the_operator(far, name):
    lines = [told(each) for each in changes(far, "Site/a", *name)]
    assert {"ConfigMap/a-config created", "ConfigMap/a-away created", "Namespace/of-a created"} <= set(lines)


def test_kinds_of_children_that_cannot_be_listed_are_in_a_note(far):
    named = {"resources": ("configmaps",), "verbs": ("list",), "status": 403}
    far.cluster.faults.add(Fault(Effect.ERROR, after=1, times=1, **named))  # the first list finds the operator
    _, out, _ = far.run("history", "Site/a", "--name", "far")
    assert "a-config" in out
    assert "a-away" not in out
    assert "not permitted to list in other namespaces: ConfigMap" in out


@pytest.mark.slow
@pytest.mark.parametrize("child", ["configmap/a-config", "Namespace/of-a"])
def test_a_child_leads_to_its_resource_also_without_the_operator(far, child):
    status, out, _ = far.run("history", child)
    assert status == 0
    assert out.startswith("Site default/a")
    assert "belongs to Site/a, which is shown here" in out
    assert 'no operator "ruleop" found; found: "far" in namespace default: use --name far' in out


@pytest.mark.slow
def test_an_object_of_nobody_is_shown_itself_without_the_operator(far):
    far.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: default}\n")
    assert far.run("history", "configmap/mine")[1].startswith("ConfigMap default/mine")


@pytest.mark.slow
def test_wrong_usage_is_reported(ready_sites):
    assert ready_sites.run("history") == (2, "", "ruleop: name the custom resource: KIND/NAME\n")
    assert ready_sites.run("history", "Site") == (2, "", "ruleop: expected KIND/NAME, not Site\n")
    status, _, err = ready_sites.run("history", "Site/none")
    assert (status, "does not exist" in err) == (1, True)
