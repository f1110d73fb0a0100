"""How a desired object is written: the four strategies, ignored paths, immutable fields, and failed writes."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

import pytest

from ruleop.errors import Cause
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.merge import Learned, decode
from ruleop.language.rules import ProjectErrors
from ruleop.planning import Create, Delete, Failed, Failure, History, Patch, ServerSideApply, State
from ruleop.planning.model.marks import APPLIED, MANAGED_BY, OWNER
from tests.planning.harness import Harness, config, key
from tests.planning.settled import edit_and_settle, settled

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  replicas: {{ spec.v | int }}
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: "app:{{ spec.v }}"}]}}
"""
A_KEY = key("a")
DEPLOYMENT = key("a", "Deployment", group="apps")


def one(apply: str = "{}", text: str = A, v: str = "1", **more: object) -> Harness:
    extra = "".join(f", {name}: {value}" for name, value in more.items())
    return Harness.of(f"children: {{a: {{template: a.yaml, apply: {apply}{extra}}}}}", {"v": v}, a=text)


def record(harness: Harness, where=A_KEY):
    return decode(harness.objects[where]["metadata"]["annotations"][APPLIED])


# -- merge -------------------------------------------------------------------------------------------------------------


def test_a_patch_has_uid_version_and_the_whole_desired_object():
    harness = one()
    harness.settle()
    live = harness.objects[key("a")]
    harness.edit({"v": "2"})
    (patch,) = harness.plan().actions
    assert isinstance(patch, Patch)
    assert patch.patch["data"] == {"v": "2"}
    assert patch.patch["metadata"] == {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    assert patch.sent["data"] == {"v": "2"}
    assert patch.why == "changed"


def test_the_record_is_written_only_with_other_fields_than_before():
    harness = one()
    harness.settle()
    notes = harness.objects[A_KEY]["metadata"]["annotations"]
    notes[APPLIED] = spaced = notes[APPLIED].replace(":", ": ")  # the same record in another spelling
    assert decode(spaced) is not None
    assert not harness.plan().actions
    harness.edit({"v": "2"})
    (patch,) = harness.plan().actions
    assert isinstance(patch, Patch)
    assert "annotations" not in patch.patch["metadata"]
    assert patch.object["metadata"]["annotations"][APPLIED] == spaced


def test_fields_no_longer_desired_are_removed_and_fields_of_others_stay():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {{ spec.data }}\n"
    harness = settled("children: {a: {template: a.yaml}}", {"data": {"x": "1", "z": "2"}}, a=text)
    harness.change(key("a"), {"data": {"theirs": "3"}})
    edit_and_settle(harness, {"data": {"x": "1"}})
    assert harness.objects[key("a")]["data"] == {"x": "1", "theirs": "3"}


def test_a_value_normalised_by_the_server_is_learned_and_not_written_again():
    harness = one()
    harness.settle()
    harness.change(key("a"), {"data": {"v": "one"}})
    live = harness.objects[key("a")]
    sent = {**live, "data": {"v": "1"}}
    learned = Learned.NOTHING.learn(
        sent, live, harness.info(harness.plan().rendered[0][2] and next(iter(harness.rule.children["a"].kinds))).shape
    )
    assert harness.plan().actions
    assert harness.plan(History(learned={key("a"): learned})).actions == ()


def test_string_data_equals_its_base64_data():
    harness = one(text="apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {p: '{{ spec.v }}'}\n")
    (create,) = harness.plan().actions
    assert create.object["data"] == {"p": "MQ=="}
    harness.settle()
    assert harness.plan().quiet


@pytest.mark.slow
def test_a_record_that_is_too_large_fails_with_a_remedy_that_works():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {{ spec.data }}\n"
    data = {hashlib.sha256(str(number).encode()).hexdigest(): "1" for number in range(5000)}  # incompressible
    harness = Harness.of("children: {a: {template: a.yaml}}", {"data": data}, a=text)
    (problem,) = harness.plan().problems
    assert "apply.strategy: server-side" in problem.message
    assert harness.plan().actions == ()
    other = settled("children: {a: {template: a.yaml, apply: {strategy: server-side}}}", {"data": data}, a=text)
    assert other.ready()[0] == "True"
    assert other.plan().quiet
    less = dict(list(data.items())[:4900])
    edit_and_settle(other, {"data": less})
    assert other.objects[key("a")]["data"] == less
    assert other.plan().quiet


def test_rules_of_an_aggregated_cluster_role_are_left_to_its_controller():
    text = """
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata: {name: a}
    aggregationRule: {clusterRoleSelectors: [{matchLabels: {for: '{{ spec.v }}'}}]}
    rules: []
    """
    where = ObjectKey("rbac.authorization.k8s.io", "ClusterRole", "", "a")
    harness = settled("reach: cluster\nchildren: {a: {template: a.yaml}}", {"v": "1"}, a=text)
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    harness.change(where, {"rules": rules})
    assert harness.plan().actions == ()
    edit_and_settle(harness, {"v": "2"})
    assert harness.objects[where]["rules"] == rules


# -- create-only -------------------------------------------------------------------------------------------------------

DRAWN = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: '{{ random_password(20) | b64encode }}', at: '{{ now() | b64encode }}'}\n"


def test_a_password_is_generated_once_and_readable_after_it_exists():
    body = "children: {a: {template: a.yaml, apply: {strategy: create-only}}, b: {template: b.yaml}}"
    reader = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {sum: '{{ a.data.p | sha256(8) }}'}\n"
    harness = Harness.of(body, a=DRAWN, b=reader)
    first = harness.plan()
    assert [action.key.name for action in first.actions] == ["a"]
    assert [(wait.child, wait.for_what) for wait in first.waits] == [("b", "a.data.p")]
    harness.settle()
    drawn = harness.objects[key("a", "Secret")]["data"]
    harness.seed = b"another"
    harness.now = "2027-01-01T00:00:00Z"
    harness.settle()
    assert harness.objects[key("a", "Secret")]["data"] == drawn
    assert harness.plan().quiet
    assert "ConfigMap/b" in harness.names()


NAMED = """
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
data: {volume: "{{ a.metadata.name }}", where: "{{ a['metadata'].namespace }}", kind: "{{ a.apiVersion }} {{ a.kind }}"}
"""
DRAWN_AND_READ = "children: {a: {template: a.yaml, apply: {strategy: create-only}}, b: {template: b.yaml}}"


def test_a_child_that_reads_only_the_name_of_a_generated_secret_does_not_wait():
    harness = Harness.of(DRAWN_AND_READ, a=DRAWN, b=NAMED)
    planned = harness.plan()
    assert [action.key.name for action in planned.actions] == ["a", "b"]
    assert planned.waits == ()
    harness.settle()
    assert harness.objects[key("b")]["data"] == {"volume": "a", "where": "shop", "kind": "v1 Secret"}
    assert harness.writes.count("Create ConfigMap/b") == 1
    assert "Patch ConfigMap/b" not in harness.writes


@pytest.mark.parametrize(
    "value",
    [
        "a.data.p", "a | sha256(8)", "a | to_json", "a.metadata | to_json", "a.metadata.uid", "a.metadata.labels", "a.type", "a[spec.which].p",
        "a.items() | list | length", "(a.metadata.name ~ a.metadata.uid)",
    ],
)  # fmt: skip
def test_other_values_of_a_child_that_was_not_created_yet_are_waited_for(value: str):
    reader = f'apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: b}}\ndata: {{v: "{{{{ {value} }}}}"}}\n'
    harness = Harness.of(DRAWN_AND_READ, {"which": "data"}, a=DRAWN, b=reader)
    planned = harness.plan()
    assert [action.key.name for action in planned.actions] == ["a"]
    (wait,) = planned.waits
    assert wait.child == "b"
    assert wait.for_what.startswith("a")


def test_a_create_only_child_is_undefined_before_it_exists():
    body = (
        DRAWN_AND_READ
        + "\nstatus: {there: '{{ a is defined }}', named: '{{ a.metadata.name is defined }}', data: '{{ a.data is defined }}'}"
    )
    harness = Harness.of(body, a=DRAWN, b=NAMED)
    fields = harness.plan().status.projected
    assert fields == {"there": False, "named": True, "data": False}


def test_children_that_read_the_name_of_a_conflicting_object_wait():
    harness = Harness.of(DRAWN_AND_READ, a=DRAWN, b=NAMED)
    harness.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "shop"}})
    assert [(wait.child, wait.for_what) for wait in harness.plan().waits] == [("b", "a.metadata.name")]


def test_passwords_differ_and_depend_on_the_seed():
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {p: '{{ random_password() }}', q: '{{ random_password() }}'}\n"
    harness = one("{strategy: create-only}", text)
    (create,) = harness.plan().actions
    assert create.object["data"]["p"] != create.object["data"]["q"]
    assert harness.plan().actions == (create,)
    assert harness.plan(seed=b"x").actions != (create,)


def drawn(metadata: str, before: str = "", after: str = "") -> str:
    return f"{before}apiVersion: v1\nkind: Secret\nmetadata:\n  {metadata}\n{after}"


RANDOM_IDENTITIES = {
    "by set": drawn("name: x-{{ s }}", "{% set s = random_password(4) | lower %}\n"),
    "by a macro": drawn("name: x-{{ m() }}", "{% macro m() %}{{ random_password(4) | lower }}{% endmacro %}\n"),
    "on the next line": drawn("name: >-\n    x-{{ random_password(4) | lower }}"),
    "whole": drawn("labels: {}\n  {{ {'name': random_password(4) | lower} }}"),
    "by a year": drawn("name: >-\n    x-{{ now()[:4] }}"),
    "by a month": drawn("name: >-\n    x-{{ now()[5:7] }}"),
    "by a day": drawn("name: >-\n    x-{{ now()[8:10] }}"),
    "by a second": drawn("name: >-\n    x-{{ now()[17:19] }}"),
    "the namespace": drawn("name: x\n  namespace: '{{ random_password(4) | lower }}'"),
    "how many": drawn("name: x", after="{% if now() < '2027' %}\n---\n" + drawn("name: other") + "{% endif %}\n"),
    "the kind": "apiVersion: v1\n{% if now() < '2027' %}\nkind: Secret\n{% else %}\nkind: ConfigMap\n{% endif %}\nmetadata: {name: x}\n",
}


FOUND_BY_PASSES = ("whole", "how many", "the kind")


@pytest.mark.parametrize("way", [way for way in RANDOM_IDENTITIES if way not in FOUND_BY_PASSES])
def test_a_random_name_is_an_error_when_rules_are_loaded(way: str):
    with pytest.raises(ProjectErrors, match=r"in metadata\.name(space)? would create another object each time"):
        one("{strategy: create-only}", RANDOM_IDENTITIES[way])


@pytest.mark.parametrize("way", FOUND_BY_PASSES)
def test_a_random_name_is_rejected(way: str):
    harness = Harness.of(
        "reach: cluster\nchildren: {a: {template: a.yaml, apply: {strategy: create-only}}}", a=RANDOM_IDENTITIES[way]
    )
    for second in range(3):
        harness.seed, harness.now = b"%d" % second, f"2026-01-01T00:00:0{second}Z"
        harness.step()
        assert harness.objects == {}
    function = "random_password" if "random_password" in RANDOM_IDENTITIES[way] else "now"
    message = f"`{function}` gives the object another kind, namespace or name each time: derive them from the CR"
    assert harness.ready() == ("False", "RenderFailed", f"a: templates/a.yaml:1: {message}")


def test_random_values_outside_of_the_identity_are_allowed():
    text = drawn(
        "name: now-{{ metadata.name }}\n  labels: {at: '{{ now() | sha256(8) }}'}", "{% set s = random_password() %}\n"
    )
    harness = one("{strategy: create-only}", text + "stringData: {p: {{ s }}}\n")
    harness.settle()
    assert harness.names() == ["Secret/now-web"]


@pytest.mark.parametrize("length", [0, -1, 257, "'a'", "true"])
def test_the_length_of_a_password_is_checked(length: object):
    text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{p: '{{{{ random_password({length}) }}}}'}}\n".replace(
        "''a''", '"a"'
    )
    (problem,) = (
        one("{strategy: create-only}", text.replace("('a')", '("a")').replace("p: '", "p: ").replace("'}", "}"))
        .plan()
        .problems
    )
    assert "random_password takes a length from 1 to 256" in problem.message


def test_a_create_only_child_is_never_changed_and_has_an_empty_record():
    harness = one("{strategy: create-only}")
    harness.settle()
    assert record(harness).fields.to_json() == {}
    harness.edit({"v": "2"})
    assert harness.plan().actions == ()
    assert harness.objects[key("a")]["data"] == {"v": "1"}


def test_jobs_are_create_only_by_default():
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {parallelism: {{ spec.v | int }}}\n"
    for apply, changed in (("{}", ()), ("{strategy: merge}", (Patch,))):
        harness = one(apply, job)
        harness.settle()
        harness.edit({"v": "2"})
        assert tuple(map(type, harness.plan().actions)) == changed


def test_adopting_a_create_only_child_writes_only_ruleops_own_metadata():
    harness = one("{strategy: create-only}", adopt="orphans")
    harness.add(config("a", {"v": "theirs"}, labels={"x": "y"}, annotations={"n": "1"}))
    (patch,) = harness.plan().actions
    assert patch.why == "adopted"
    assert set(patch.patch) == {"metadata"}
    assert set(patch.patch["metadata"]) == {"uid", "resourceVersion", "labels", "annotations", "ownerReferences"}
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "theirs"}
    assert harness.objects[key("a")]["metadata"]["labels"]["x"] == "y"
    assert harness.plan().quiet


def test_a_create_only_child_follows_its_deletion_policy():
    harness = one("{strategy: create-only}", deletion='"{{ spec.keep }}"')
    edit_and_settle(harness, {"v": "1", "keep": "delete"})
    edit_and_settle(harness, {"v": "1", "keep": "orphan"})
    metadata = harness.objects[key("a")]["metadata"]
    assert "ownerReferences" not in metadata
    assert OWNER in metadata["annotations"]
    assert harness.plan().quiet
    edit_and_settle(harness, {"v": "1", "keep": "delete"})
    assert harness.objects[key("a")]["metadata"]["ownerReferences"]
    assert OWNER not in harness.objects[key("a")]["metadata"]["annotations"]


def test_lost_metadata_of_a_create_only_child_is_restored():
    harness = one("{strategy: create-only}")
    harness.settle()
    references = [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "x"},
        *harness.objects[key("a")]["metadata"]["ownerReferences"],
    ]
    harness.change(
        key("a"),
        {"metadata": {"labels": {MANAGED_BY: "Helm", "ruleop.dev/part-of": None}, "ownerReferences": references}},
    )
    harness.settle()
    metadata = harness.objects[key("a")]["metadata"]
    assert metadata["labels"][MANAGED_BY] == "Helm"
    assert "ruleop.dev/part-of" in metadata["labels"]
    assert sorted(each["uid"] for each in metadata["ownerReferences"]) == ["cr-1", "x"]


# -- server-side -------------------------------------------------------------------------------------------------------


def test_a_server_side_child_is_created_by_a_create():
    (create,) = one("{strategy: server-side}").plan().actions
    assert isinstance(create, Create)


def test_a_server_side_apply_has_the_whole_desired_object():
    harness = one("{strategy: server-side}")
    harness.settle()
    harness.edit({"v": "2"})
    (apply,) = harness.plan().actions
    assert isinstance(apply, ServerSideApply)
    assert apply.recorded == record(harness).fields
    assert apply.object["metadata"]["uid"] == harness.objects[key("a")]["metadata"]["uid"]
    assert "resourceVersion" not in apply.object["metadata"]
    assert apply.object["data"] == {"v": "2"}
    assert APPLIED in apply.object["metadata"]["annotations"]
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "2"}
    assert harness.plan().quiet


def test_ignored_fields_are_applied_with_their_live_value():
    harness = one("{strategy: server-side, ignore: [spec.replicas]}", WEB)
    harness.settle()
    harness.change(DEPLOYMENT, {"spec": {"replicas": 9}})
    assert harness.plan().actions == ()
    harness.edit({"v": "2"})
    (action,) = harness.plan().actions
    assert action.object["spec"]["replicas"] == 9
    harness.settle()
    assert harness.objects[DEPLOYMENT]["spec"]["replicas"] == 9
    assert harness.plan().quiet


STRATEGIES = ["merge", "server-side"]


@pytest.mark.parametrize("after", [*STRATEGIES, "create-only"])
@pytest.mark.parametrize("before", [*STRATEGIES, "create-only"])
def test_a_change_of_the_strategy_has_the_same_result_as_starting_with_it(before: str, after: str):
    harness = one(f"{{strategy: {before}}}")
    harness.settle()
    harness.project = one(f"{{strategy: {after}}}").project
    harness.settle()
    edit_and_settle(harness, {"v": "2"})
    assert harness.objects[key("a")]["data"] == {"v": "1" if after == "create-only" else "2"}
    assert harness.plan().quiet


# -- ignore ------------------------------------------------------------------------------------------------------------


def test_an_ignored_path_is_set_on_creation_and_then_left_to_others():
    harness = one("{ignore: ['spec.template.spec.containers[name=app].image']}", WEB)
    harness.settle()
    harness.change(DEPLOYMENT, {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "theirs"}]}}}})
    assert harness.plan().actions == ()


PLAIN = """
apiVersion: v1
kind: Secret
metadata: {name: a}
data: {cert: '{{ spec.v | b64encode }}'}
stringData: {password: '{{ spec.v }}', user: '{{ spec.v }}'}
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("path", "ours"),
    [("stringData.password", {"cert": "Mg==", "user": "Mg=="}), ("stringData", {"cert": "Mg==", "user": "MQ=="})],
)
def test_ignored_string_data_of_a_secret_is_its_data(path: str, ours: dict[str, str], strategy: str):
    """The rule sets the value in `stringData`, which the server does not store."""
    where = key("a", "Secret")
    harness = one(f"{{strategy: {strategy}, ignore: [{path}]}}", PLAIN)
    harness.settle()
    assert harness.objects[where]["data"] == dict.fromkeys(("cert", "password", "user"), "MQ==")
    harness.change(where, {"data": {"password": "rotated"}})
    assert harness.plan().actions == ()
    edit_and_settle(harness, {"v": "2"})
    assert harness.objects[where]["data"] == {"password": "rotated", **ours}
    assert harness.plan().quiet


def test_a_newly_ignored_field_keeps_its_live_value():
    harness = one("{ignore: [{path: data.v, when: spec.free}]}")
    edit_and_settle(harness, {"v": "1", "free": False})
    edit_and_settle(harness, {"v": "2", "free": True})
    assert harness.objects[key("a")]["data"] == {"v": "1"}
    assert "v" not in str(record(harness).fields.to_json().get("data"))
    edit_and_settle(harness, {"v": "3", "free": False})
    assert harness.objects[key("a")]["data"] == {"v": "3"}


def test_an_ignored_path_with_an_unknown_when_is_left_alone():
    body = """
    observe: {other: {version: v1, kind: ConfigMap, name: other}}
    children: {a: {template: a.yaml, apply: {ignore: [{path: data.v, when: other.data.x == "1"}]}}}
    """
    harness = settled(body, {"v": "1"}, a=A)
    edit_and_settle(harness, {"v": "2"})
    assert harness.objects[key("a")]["data"] == {"v": "1"}
    harness.add(config("other", {"x": "2"}))
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "2"}
    (problem,) = one("{ignore: [{path: data.v, when: spec.nope}]}").plan().problems
    assert "spec.nope is not set" in problem.message


def test_a_list_that_violates_its_declared_type_fails_its_child():
    text = WEB.replace('[{name: app, image: "app:{{ spec.v }}"}]', "[{name: app}, {name: app}]")
    (problem,) = one(text=text).plan().problems
    assert "the Deployment 'a'" in problem.message
    harness = one(text=WEB)
    harness.settle()
    harness.project = one(text=text).project
    assert [problem.child for problem in harness.plan().problems] == ["a"]
    assert harness.plan().actions == ()


# -- immutable fields --------------------------------------------------------------------------------------------------


def immutable(harness: Harness, where=A_KEY) -> Harness:
    harness.settle()
    harness.edit({"v": "2"})
    harness.refuse[where] = Failed(Failure.IMMUTABLE, "field is immutable")
    harness.step()
    return harness


def test_a_change_of_an_immutable_field_fails_with_a_remedy():
    harness = immutable(one())
    way = "`apply.onImmutable: recreate` would recreate it"
    assert harness.ready() == (
        "False",
        "ApplyFailed",
        f'a: templates/a.yaml:4: field is immutable; rejected change: data.v: "1" → "2"; {way}',
    )
    assert harness.condition("Stalled")["status"] == "True"
    assert harness.plan().actions == ()


def test_a_changed_desired_state_is_retried_after_a_rejection():
    harness = immutable(one())
    harness.step()
    harness.refuse.clear()
    edit_and_settle(harness, {"v": "3"})
    assert harness.objects[key("a")]["data"] == {"v": "3"}
    assert harness.ready()[0] == "True"


def test_recreate_happens_once_for_each_desired_state():
    harness = immutable(one("{onImmutable: recreate}"))
    (delete,) = harness.plan().actions
    assert isinstance(delete, Delete)
    assert (delete.why, delete.after_writes) == ("recreate", False)
    assert harness.condition("Stalled")["status"] == "False"
    assert {event.reason for event in harness.events} == {"Synced"}
    assert harness.plan().children[0].objects[0].message == "will be recreated"
    harness.refuse.clear()
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "2"}
    assert harness.ready()[0] == "True"
    harness.refused_before({key("a"): Failed(Failure.IMMUTABLE, "field is immutable", world_digest(harness))})
    harness.change(key("a"), {"data": {"v": "9"}})
    assert harness.plan().actions == ()
    assert harness.plan().problems[0].message == 'field is immutable; rejected change: data.v: "9" → "2"'


def world_digest(harness: Harness) -> str:
    harness.refuse = {}
    before = dict(harness.objects)
    harness.objects = {}
    (create,) = harness.plan(History.NONE).actions
    harness.objects = before
    return create.desired_digest


BY_RESOURCE = "{onImmutable: \"{{ spec.how | default('') }}\"}"


def test_the_custom_resource_may_decide_whether_an_object_is_recreated():
    harness = immutable(one(BY_RESOURCE))
    assert harness.plan().actions == ()
    assert harness.ready()[1] == "ApplyFailed"
    harness.edit({"v": "2", "how": "recreate"})
    (delete,) = harness.plan().actions
    assert isinstance(delete, Delete)
    assert delete.why == "recreate"
    harness.edit({"v": "2", "how": "fail"})
    assert harness.plan().actions == ()


def test_another_word_is_an_error_before_anything_is_rejected_and_is_not_quoted():
    harness = one(BY_RESOURCE)
    harness.edit({"v": "1", "how": "whatever"})
    (problem,) = harness.plan().problems
    assert (problem.reason, problem.message) == ("RenderFailed", "onImmutable must be fail or recreate")
    assert str(problem.site).startswith("watches.yaml:4:")
    assert harness.plan().actions == ()


def test_the_items_of_a_child_decide_each_for_itself():
    body = """
    children:
      a:
        forEach: spec.items
        apply: {onImmutable: "{{ item.how }}"}
        object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ item.name }}"}, data: {v: "{{ spec.v }}"}}
    """
    items = [{"name": "a", "how": "recreate"}, {"name": "b", "how": "fail"}]
    harness = Harness.of(body, {"v": "1", "items": items})
    harness.settle()
    harness.edit({"v": "2", "items": items})
    harness.refuse |= {key(name): Failed(Failure.IMMUTABLE, "field is immutable") for name in "ab"}
    harness.step()
    assert [(type(each), each.key.name) for each in harness.plan().actions] == [(Delete, "a")]


def test_an_observed_object_that_is_missing_delays_the_child_that_it_decides_about():
    harness = Harness.of(
        "observe: {policy: {version: v1, kind: ConfigMap, name: policy}}\n"
        "children: {a: {template: a.yaml, apply: {onImmutable: '{{ policy.data.how }}'}}}",
        {"v": "1"},
        a=A,
    )
    assert [wait.for_what for wait in harness.plan().waits] == ["policy (ConfigMap/shop/policy)"]
    harness.add(config("policy", {"how": "recreate"}))
    immutable(harness)
    assert isinstance(harness.plan().actions[0], Delete)


def test_a_crash_between_the_deletion_and_the_recreation_loses_nothing():
    harness = immutable(one("{onImmutable: recreate}"))
    harness.refuse.clear()
    harness.step(crash_after=1)
    assert harness.objects == {}
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"v": "2"}


def test_kinds_with_data_are_recreated_only_if_the_child_itself_allows_it():
    claim = (
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {storageClassName: 'c{{ spec.v }}'}\n"
    )
    where = key("a", "PersistentVolumeClaim")
    shared = Harness.of("apply: {onImmutable: recreate}\nchildren: {a: {template: a.yaml}}", {"v": "1"}, a=claim)
    immutable(shared, where).step()
    assert shared.plan().actions == ()
    assert "only recreated if the child itself has" in shared.ready()[2]
    own = one("{onImmutable: recreate}", claim)
    assert isinstance(immutable(own, where).plan().actions[0], Delete)


DB = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: a}
spec:
  replicas: {{ spec.replicas | default(1) }}
  serviceName: a
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: "app:{{ spec.image | default(1) }}"}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "{{ spec.v }}"}}}
  - metadata: {name: wal}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
DB_KEY = key("a", "StatefulSet", group="apps")
DB_SAYS = (
    'patch statefulsets.apps shop/a: StatefulSet.apps "a" is invalid: spec: Forbidden: updates to statefulset spec for fields other than '
    "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden (422 Invalid)"
)


def as_the_server_keeps(claim):
    """A claim template with the defaults of the API server."""
    spec = {**claim["spec"], "volumeMode": "Filesystem"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim, "spec": spec, "status": {"phase": "Pending"}}


def grown(apply: str = "{}", **more: object) -> Harness:
    harness = Harness.of(f"children: {{a: {{template: a.yaml, apply: {apply}}}}}", {"v": "1Gi"}, a=DB)
    harness.step()
    claims = harness.objects[DB_KEY]["spec"]["volumeClaimTemplates"]
    harness.change(DB_KEY, {"spec": {"volumeClaimTemplates": list(map(as_the_server_keeps, claims))}})
    harness.settle()
    harness.edit({"v": "2Gi", **more})
    mutable = frozenset(re.findall(r"'(\w+)'", DB_SAYS))
    harness.refuse[DB_KEY] = Failed(
        Failure.IMMUTABLE, DB_SAYS, causes=(Cause("spec", "FieldValueForbidden", DB_SAYS, mutable),)
    )
    harness.step()
    return harness


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_rejected_change_names_the_immutable_field_and_both_values(strategy: str):
    harness = grown(f"{{strategy: {strategy}}}", replicas=3, image=2)
    refused = "rejected change: spec.volumeClaimTemplates[data].spec.resources.requests.storage: 1Gi → 2Gi;"
    assert harness.ready()[2].startswith(f"a: templates/a.yaml:11: {DB_SAYS}; {refused} `apply.onImmutable")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_change_of_an_immutable_field_is_foreseen_if_nobody_asks_the_server(strategy: str):
    harness = grown(f"{{strategy: {strategy}}}", replicas=3, image=2)
    assert harness.plan(expects_refusals=True).problems[0].message.startswith(DB_SAYS)  # the server was asked before
    (problem,) = harness.plan(History.NONE, expects_refusals=True).problems
    assert (problem.child, problem.reason) == ("a", "ApplyFailed")
    assert problem.message == (
        "the API server would reject this change: spec.volumeClaimTemplates is immutable; rejected change: "
        "spec.volumeClaimTemplates[data].spec.resources.requests.storage: 1Gi → 2Gi; "
        "`apply.onImmutable: recreate` would recreate it"
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_other_changes_are_not_foreseen_as_refused(strategy: str):
    harness = grown(f"{{strategy: {strategy}}}")
    harness.refuse.clear()
    harness.edit({"v": "1Gi", "replicas": 3, "image": 2})
    planned = harness.plan(History.NONE, expects_refusals=True)
    assert planned.problems == ()
    assert len(planned.actions) == 1


def test_a_foreseen_refusal_recreates_a_child_that_asks_for_it():
    harness = grown("{onImmutable: recreate}")
    (action,) = harness.plan(History.NONE, expects_refusals=True).actions
    assert isinstance(action, Delete)
    assert action.why == "recreate"


def test_a_rejected_change_of_a_secret_names_fields_without_values():
    harness = immutable(
        one(text="apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: '{{ spec.v | b64encode }}'}\n"),
        key("a", "Secret"),
    )
    assert "; rejected change: data.p; `apply.onImmutable" in harness.ready()[2]


def test_a_rejected_change_of_a_child_that_reads_a_secret_has_no_values():
    body = """
    observe: {s: {version: v1, kind: Secret, name: s}}
    children: {a: {template: a.yaml}}
    """
    harness = Harness.of(
        body,
        {"v": "1"},
        a="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}', p: '{{ s.data.p }}'}\n",
    )
    harness.add(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s", "namespace": "shop"},
            "data": {"p": "aHVudGVyMg=="},
        }
    )
    harness.settle()
    harness.change(key("s", "Secret"), {"data": {"p": "c2VjcmV0"}})
    harness.refuse[A_KEY] = Failed(
        Failure.IMMUTABLE,
        'ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set',
        causes=(Cause("data", "FieldValueForbidden"),),
    )
    harness.step()
    assert "; rejected change: data.p; `apply.onImmutable" in harness.ready()[2]
    assert not any(word in harness.ready()[2] for word in ("aHVudGVyMg", "c2VjcmV0"))


def test_rejected_changes_are_listed_up_to_a_limit():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n{% for n in range(9) %}\n  k{{ n }}: '{{ spec.v * 60 }}'\n{% endfor %}\n"
    message = immutable(one(text=text)).ready()[2]
    assert "data.k3: " in message
    assert "data.k4" not in message
    assert " and 5 more; `apply" in message
    assert "1" * 60 not in message


# -- writes that fail --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "reason", "stalled"),
    [
        (Failure.FORBIDDEN, "Forbidden", "True"),
        (Failure.INVALID, "ApplyFailed", "True"),
        (Failure.OTHER, "Waiting", "False"),
        (Failure.CONFLICT, "Waiting", "False"),
    ],
)
def test_a_failed_write_is_reported_and_retried(failure: Failure, reason: str, stalled: str):
    harness = one()
    harness.refuse[key("a")] = Failed(failure, "no such luck")
    harness.step()
    assert harness.condition()["reason"] == reason
    assert harness.condition("Stalled")["status"] == stalled
    assert ("no such luck" in harness.ready()[2]) == (failure is not Failure.CONFLICT)
    assert [type(action) for action in harness.plan().actions] == [Create]
    harness.refuse.clear()
    harness.settle()
    assert harness.ready()[0] == "True"


def test_a_child_with_a_pending_write_is_not_ready():
    harness = one()
    assert harness.plan().children[0].objects[0].message == "about to be created"
    harness.settle()
    harness.edit({"v": "2"})
    assert harness.plan().children[0].objects[0].message == "about to be changed"
    assert harness.plan().children[0].state is State.PROGRESSING


def test_a_settled_plan_has_no_actions_and_does_not_report_an_earlier_failure():
    harness = one()
    assert harness.plan_status().actions == ()
    assert harness.plan().problems == ()
    assert harness.plan_status({key("a"): Failed(Failure.FORBIDDEN, "no", "")}).problems[0].reason == "Forbidden"


def test_the_digest_covers_the_desired_state_without_ruleops_own_metadata():
    harness = one()
    (create,) = harness.plan().actions
    harness.settle()
    harness.change(key("a"), {"data": {"v": "x"}})
    (patch,) = harness.plan().actions
    assert create.desired_digest == patch.desired_digest
    assert replace(create, desired_digest="") != create
