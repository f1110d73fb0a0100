"""How a wanted object gets written: the four strategies, ignored paths, immutable fields, and writes that fail."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

import pytest

from ruleop.errors import Cause
from ruleop.kinds import ObjectKey
from ruleop.merge import Learned, decode
from ruleop.planning import Create, Delete, Failed, Failure, History, Patch, Replace, ServerSideApply, State
from ruleop.planning.marks import APPLIED, MANAGED_BY, OWNER
from tests.planning.world import World, config, key

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


def one(apply: str = "{}", text: str = A, v: str = "1", **more: object) -> World:
    extra = "".join(f", {name}: {value}" for name, value in more.items())
    return World.of(f"children: {{a: {{template: a.yaml, apply: {apply}{extra}}}}}", {"v": v}, a=text)


def record(world: World, where=A_KEY):
    return decode(world.objects[where]["metadata"]["annotations"][APPLIED])


# -- merge -------------------------------------------------------------------------------------------------------------------------------


def test_a_patch_has_uid_version_and_the_whole_desired_object():
    world = one()
    world.settle()
    live = world.objects[key("a")]
    world.edit({"v": "2"})
    (patch,) = world.plan().actions
    assert isinstance(patch, Patch)
    assert patch.patch["data"] == {"v": "2"}
    assert patch.patch["metadata"] == {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    assert patch.sent["data"] == {"v": "2"}
    assert patch.why == "changed"


def test_fields_no_longer_desired_are_removed_and_fields_of_others_stay():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {{ spec.data }}\n"
    world = World.of("children: {a: {template: a.yaml}}", {"data": {"x": "1", "z": "2"}}, a=text)
    world.settle()
    world.change(key("a"), {"data": {"theirs": "3"}})
    world.edit({"data": {"x": "1"}})
    world.settle()
    assert world.objects[key("a")]["data"] == {"x": "1", "theirs": "3"}


def test_a_normalised_value_is_learned_and_not_written_again():
    world = one()
    world.settle()
    world.change(key("a"), {"data": {"v": "one"}})
    live = world.objects[key("a")]
    sent = {**live, "data": {"v": "1"}}
    learned = Learned.NOTHING.learn(
        sent, live, world.info(world.plan().rendered[0][2] and next(iter(world.rule.children["a"].kinds))).shape
    )
    assert world.plan().actions
    assert world.plan(History(learned={key("a"): learned})).actions == ()


def test_string_data_equals_its_base64_data():
    world = one(text="apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {p: '{{ spec.v }}'}\n")
    (create,) = world.plan().actions
    assert create.object["data"] == {"p": "MQ=="}
    world.settle()
    assert world.plan().quiet


def test_a_record_that_is_too_large_fails_with_a_remedy_that_works():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {{ spec.data }}\n"
    data = {
        hashlib.sha256(str(number).encode()).hexdigest(): "1" for number in range(5000)
    }  # nothing that could be compressed
    world = World.of("children: {a: {template: a.yaml}}", {"data": data}, a=text)
    (problem,) = world.plan().problems
    assert "apply.strategy: server-side" in problem.message
    assert world.plan().actions == ()
    other = World.of("children: {a: {template: a.yaml, apply: {strategy: server-side}}}", {"data": data}, a=text)
    other.settle()
    assert other.ready()[0] == "True"
    assert other.plan().quiet
    less = dict(list(data.items())[:4900])
    other.edit({"data": less})
    other.settle()
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
    world = World.of("reach: cluster\nchildren: {a: {template: a.yaml}}", {"v": "1"}, a=text)
    world.settle()
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    world.change(where, {"rules": rules})
    assert world.plan().actions == ()
    world.edit({"v": "2"})
    world.settle()
    assert world.objects[where]["rules"] == rules


# -- create-only -------------------------------------------------------------------------------------------------------------------------

DRAWN = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: '{{ random_password(20) | b64encode }}', at: '{{ now() | b64encode }}'}\n"


def test_a_password_is_generated_once_and_readable_after_it_exists():
    body = "children: {a: {template: a.yaml, apply: {strategy: create-only}}, b: {template: b.yaml}}"
    reader = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {sum: '{{ a.data.p | sha256(8) }}'}\n"
    world = World.of(body, a=DRAWN, b=reader)
    first = world.plan()
    assert [action.key.name for action in first.actions] == ["a"]
    assert [(wait.child, wait.for_what) for wait in first.waits] == [("b", "a.data.p")]
    world.settle()
    drawn = world.objects[key("a", "Secret")]["data"]
    world.seed = b"another"
    world.now = "2027-01-01T00:00:00Z"
    world.settle()
    assert world.objects[key("a", "Secret")]["data"] == drawn
    assert world.plan().quiet
    assert "ConfigMap/b" in world.names()


NAMED = """
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
data: {volume: "{{ a.metadata.name }}", where: "{{ a['metadata'].namespace }}", kind: "{{ a.apiVersion }} {{ a.kind }}"}
"""
DRAWN_AND_READ = "children: {a: {template: a.yaml, apply: {strategy: create-only}}, b: {template: b.yaml}}"


def test_a_child_that_reads_only_the_name_of_a_generated_secret_does_not_wait():
    world = World.of(DRAWN_AND_READ, a=DRAWN, b=NAMED)
    planned = world.plan()
    assert [action.key.name for action in planned.actions] == ["a", "b"]
    assert planned.waits == ()
    world.settle()
    assert world.objects[key("b")]["data"] == {"volume": "a", "where": "shop", "kind": "v1 Secret"}
    assert world.writes.count("Create ConfigMap/b") == 1
    assert "Patch ConfigMap/b" not in world.writes


@pytest.mark.parametrize(
    "value",
    [
        "a.data.p", "a | sha256(8)", "a | to_json", "a.metadata | to_json", "a.metadata.uid", "a.metadata.labels", "a.type", "a[spec.which].p",
        "a.items() | list | length", "(a.metadata.name ~ a.metadata.uid)",
    ],
)  # fmt: skip
def test_other_fields_and_the_whole_of_it_are_not_there_yet(value: str):
    reader = f'apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: b}}\ndata: {{v: "{{{{ {value} }}}}"}}\n'
    world = World.of(DRAWN_AND_READ, {"which": "data"}, a=DRAWN, b=reader)
    planned = world.plan()
    assert [action.key.name for action in planned.actions] == ["a"]
    (wait,) = planned.waits
    assert wait.child == "b"
    assert wait.for_what.startswith("a")


def test_a_create_only_child_is_undefined_before_it_exists():
    body = (
        DRAWN_AND_READ
        + "\nstatus: {there: '{{ a is defined }}', named: '{{ a.metadata.name is defined }}', data: '{{ a.data is defined }}'}"
    )
    world = World.of(body, a=DRAWN, b=NAMED)
    fields = world.plan().status.projected
    assert fields == {"there": False, "named": True, "data": False}


def test_the_name_of_a_conflicting_object_is_not_used():
    world = World.of(DRAWN_AND_READ, a=DRAWN, b=NAMED)
    world.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "shop"}})
    assert [(wait.child, wait.for_what) for wait in world.plan().waits] == [("b", "a.metadata.name")]


def test_passwords_differ_and_depend_on_the_seed():
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {p: '{{ random_password() }}', q: '{{ random_password() }}'}\n"
    world = one("{strategy: create-only}", text)
    (create,) = world.plan().actions
    assert create.object["data"]["p"] != create.object["data"]["q"]
    assert world.plan().actions == (create,)
    assert world.plan(seed=b"x").actions != (create,)


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


@pytest.mark.parametrize("way", RANDOM_IDENTITIES)
def test_a_random_name_is_rejected(way: str):
    world = World.of(
        "reach: cluster\nchildren: {a: {template: a.yaml, apply: {strategy: create-only}}}", a=RANDOM_IDENTITIES[way]
    )
    for second in range(3):
        world.seed, world.now = b"%d" % second, f"2026-01-01T00:00:0{second}Z"
        world.step()
        assert world.objects == {}
    function = "random_password" if "random_password" in RANDOM_IDENTITIES[way] else "now"
    message = f"`{function}` gives the object another kind, namespace or name each time: derive them from the CR"
    assert world.ready() == ("False", "RenderFailed", f"a: templates/a.yaml:1: {message}")


def test_random_values_outside_of_the_identity_are_allowed():
    text = drawn(
        "name: now-{{ metadata.name }}\n  labels: {at: '{{ now() | sha256(8) }}'}", "{% set s = random_password() %}\n"
    )
    world = one("{strategy: create-only}", text + "stringData: {p: {{ s }}}\n")
    world.settle()
    assert world.names() == ["Secret/now-web"]


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
    world = one("{strategy: create-only}")
    world.settle()
    assert record(world).fields.to_json() == {}
    world.edit({"v": "2"})
    assert world.plan().actions == ()
    assert world.objects[key("a")]["data"] == {"v": "1"}


def test_jobs_are_create_only_by_default():
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {parallelism: {{ spec.v | int }}}\n"
    for apply, changed in (("{}", ()), ("{strategy: merge}", (Patch,))):
        world = one(apply, job)
        world.settle()
        world.edit({"v": "2"})
        assert tuple(map(type, world.plan().actions)) == changed


def test_adopting_a_create_only_child_writes_only_ruleops_own_metadata():
    world = one("{strategy: create-only}", adopt="orphans")
    world.add(config("a", {"v": "theirs"}, labels={"x": "y"}, annotations={"n": "1"}))
    (patch,) = world.plan().actions
    assert patch.why == "adopted"
    assert set(patch.patch) == {"metadata"}
    assert set(patch.patch["metadata"]) == {"uid", "resourceVersion", "labels", "annotations", "ownerReferences"}
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "theirs"}
    assert world.objects[key("a")]["metadata"]["labels"]["x"] == "y"
    assert world.plan().quiet


def test_a_create_only_child_follows_its_deletion_policy():
    world = one("{strategy: create-only}", deletion='"{{ spec.keep }}"')
    world.edit({"v": "1", "keep": "delete"})
    world.settle()
    world.edit({"v": "1", "keep": "orphan"})
    world.settle()
    metadata = world.objects[key("a")]["metadata"]
    assert "ownerReferences" not in metadata
    assert OWNER in metadata["annotations"]
    assert world.plan().quiet
    world.edit({"v": "1", "keep": "delete"})
    world.settle()
    assert world.objects[key("a")]["metadata"]["ownerReferences"]
    assert OWNER not in world.objects[key("a")]["metadata"]["annotations"]


def test_lost_metadata_of_a_create_only_child_is_restored():
    world = one("{strategy: create-only}")
    world.settle()
    references = [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "x"},
        *world.objects[key("a")]["metadata"]["ownerReferences"],
    ]
    world.change(
        key("a"),
        {"metadata": {"labels": {MANAGED_BY: "Helm", "ruleop.dev/part-of": None}, "ownerReferences": references}},
    )
    world.settle()
    metadata = world.objects[key("a")]["metadata"]
    assert metadata["labels"][MANAGED_BY] == "Helm"
    assert "ruleop.dev/part-of" in metadata["labels"]
    assert sorted(each["uid"] for each in metadata["ownerReferences"]) == ["cr-1", "x"]


# -- server-side ---------------------------------------------------------------------------------------------------------------------------


def test_a_server_side_child_is_created_by_a_create():
    (create,) = one("{strategy: server-side}").plan().actions
    assert isinstance(create, Create)


def test_a_server_side_apply_has_the_whole_desired_object():
    world = one("{strategy: server-side}")
    world.settle()
    world.edit({"v": "2"})
    (apply,) = world.plan().actions
    assert isinstance(apply, ServerSideApply)
    assert apply.recorded == record(world).fields
    assert apply.object["metadata"]["uid"] == world.objects[key("a")]["metadata"]["uid"]
    assert "resourceVersion" not in apply.object["metadata"]
    assert apply.object["data"] == {"v": "2"}
    assert APPLIED in apply.object["metadata"]["annotations"]
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "2"}
    assert world.plan().quiet


@pytest.mark.parametrize("strategy", ["server-side", "replace"])
def test_ignored_fields_are_applied_with_their_live_value(strategy: str):
    world = one(f"{{strategy: {strategy}, ignore: [spec.replicas]}}", WEB)
    world.settle()
    world.change(DEPLOYMENT, {"spec": {"replicas": 9}})
    assert world.plan().actions == ()
    world.edit({"v": "2"})
    (action,) = world.plan().actions
    assert action.object["spec"]["replicas"] == 9
    world.settle()
    assert world.objects[DEPLOYMENT]["spec"]["replicas"] == 9
    assert world.plan().quiet


# -- replace -------------------------------------------------------------------------------------------------------------------------------


def test_a_replacement_keeps_status_finalizers_and_owners_and_drops_other_fields():
    world = one("{strategy: replace}")
    world.settle()
    assert world.plan().quiet
    references = [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "x"},
        *world.objects[key("a")]["metadata"]["ownerReferences"],
    ]
    more = {
        "metadata": {"finalizers": ["x/y"], "ownerReferences": references},
        "status": {"s": 1},
        "data": {"theirs": "1"},
    }
    world.change(key("a"), more)
    world.edit({"v": "2"})
    (action,) = world.plan().actions
    assert isinstance(action, Replace)
    world.settle()
    live = world.objects[key("a")]
    assert live["data"] == {"v": "2"}
    assert live["status"] == {"s": 1}
    assert live["metadata"]["finalizers"] == ["x/y"]
    assert sorted(each["uid"] for each in live["metadata"]["ownerReferences"]) == ["cr-1", "x"]
    assert world.plan().quiet


STRATEGIES = ["merge", "server-side", "replace"]


@pytest.mark.parametrize("after", [*STRATEGIES, "create-only"])
@pytest.mark.parametrize("before", [*STRATEGIES, "create-only"])
def test_a_change_of_the_strategy_has_the_same_result_as_starting_with_it(before: str, after: str):
    world = one(f"{{strategy: {before}}}")
    world.settle()
    world.project = one(f"{{strategy: {after}}}").project
    world.settle()
    world.edit({"v": "2"})
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "1" if after == "create-only" else "2"}
    assert world.plan().quiet


# -- ignore --------------------------------------------------------------------------------------------------------------------------------


def test_an_ignored_path_is_set_on_creation_and_then_left_to_others():
    world = one("{ignore: ['spec.template.spec.containers[name=app].image']}", WEB)
    world.settle()
    world.change(DEPLOYMENT, {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "theirs"}]}}}})
    assert world.plan().actions == ()


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
    """The server keeps no `stringData`, and that is where the rule has the value."""
    where = key("a", "Secret")
    world = one(f"{{strategy: {strategy}, ignore: [{path}]}}", PLAIN)
    world.settle()
    assert world.objects[where]["data"] == dict.fromkeys(("cert", "password", "user"), "MQ==")
    world.change(where, {"data": {"password": "rotated"}})
    assert world.plan().actions == ()
    world.edit({"v": "2"})
    world.settle()
    assert world.objects[where]["data"] == {"password": "rotated", **ours}
    assert world.plan().quiet


def test_a_newly_ignored_field_keeps_its_live_value():
    world = one("{ignore: [{path: data.v, when: spec.free}]}")
    world.edit({"v": "1", "free": False})
    world.settle()
    world.edit({"v": "2", "free": True})
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "1"}
    assert "v" not in str(record(world).fields.to_json().get("data"))
    world.edit({"v": "3", "free": False})
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "3"}


def test_an_ignored_path_with_an_unknown_when_is_left_alone():
    body = """
    observe: {other: {version: v1, kind: ConfigMap, name: other}}
    children: {a: {template: a.yaml, apply: {ignore: [{path: data.v, when: other.data.x == "1"}]}}}
    """
    world = World.of(body, {"v": "1"}, a=A)
    world.settle()
    world.edit({"v": "2"})
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "1"}
    world.add(config("other", {"x": "2"}))
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "2"}
    (problem,) = one("{ignore: [{path: data.v, when: spec.nope}]}").plan().problems
    assert "spec.nope is not set" in problem.message


def test_a_list_that_violates_its_declared_type_fails_its_child():
    text = WEB.replace('[{name: app, image: "app:{{ spec.v }}"}]', "[{name: app}, {name: app}]")
    (problem,) = one(text=text).plan().problems
    assert "the Deployment 'a'" in problem.message
    world = one(text=WEB)
    world.settle()
    world.project = one(text=text).project
    assert [problem.child for problem in world.plan().problems] == ["a"]
    assert world.plan().actions == ()


# -- immutable fields ------------------------------------------------------------------------------------------------------------------------


def immutable(world: World, where=A_KEY) -> World:
    world.settle()
    world.edit({"v": "2"})
    world.refuse[where] = Failed(Failure.IMMUTABLE, "field is immutable")
    world.step()
    return world


def test_a_change_of_an_immutable_field_fails_with_a_remedy():
    world = immutable(one())
    way = "`apply.onImmutable: recreate` would recreate it"
    assert world.ready() == (
        "False",
        "ApplyFailed",
        f'a: templates/a.yaml:1: field is immutable; rejected change: data.v: "1" → "2"; {way}',
    )
    assert world.condition("Stalled")["status"] == "True"
    assert world.plan().actions == ()


def test_a_changed_desired_state_is_tried_again():
    world = immutable(one())
    world.step()
    world.refuse.clear()
    world.edit({"v": "3"})
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "3"}
    assert world.ready()[0] == "True"


def test_recreate_happens_once_for_each_desired_state():
    world = immutable(one("{onImmutable: recreate}"))
    (delete,) = world.plan().actions
    assert isinstance(delete, Delete)
    assert (delete.why, delete.after_writes) == ("recreate", False)
    assert world.condition("Stalled")["status"] == "False"
    assert {event.reason for event in world.events} == {"Synced"}
    assert world.plan().children[0].objects[0].message == "will be recreated"
    world.refuse.clear()
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "2"}
    assert world.ready()[0] == "True"
    world.refused_before({key("a"): Failed(Failure.IMMUTABLE, "field is immutable", world_digest(world))})
    world.change(key("a"), {"data": {"v": "9"}})
    assert world.plan().actions == ()
    assert world.plan().problems[0].message == 'field is immutable; rejected change: data.v: "9" → "2"'


def world_digest(world: World) -> str:
    world.refuse = {}
    before = dict(world.objects)
    world.objects = {}
    (create,) = world.plan(History.NONE).actions
    world.objects = before
    return create.desired_digest


def test_a_crash_between_the_delete_and_the_create_loses_nothing():
    world = immutable(one("{onImmutable: recreate}"))
    world.refuse.clear()
    world.step(crash_after=1)
    assert world.objects == {}
    world.settle()
    assert world.objects[key("a")]["data"] == {"v": "2"}


def test_kinds_with_data_are_recreated_only_if_the_child_itself_allows_it():
    claim = (
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {storageClassName: 'c{{ spec.v }}'}\n"
    )
    where = key("a", "PersistentVolumeClaim")
    shared = World.of("apply: {onImmutable: recreate}\nchildren: {a: {template: a.yaml}}", {"v": "1"}, a=claim)
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
    """A claim template with what the API server fills in."""
    spec = {**claim["spec"], "volumeMode": "Filesystem"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim, "spec": spec, "status": {"phase": "Pending"}}


def grown(apply: str = "{}", **more: object) -> World:
    world = World.of(f"children: {{a: {{template: a.yaml, apply: {apply}}}}}", {"v": "1Gi"}, a=DB)
    world.step()
    claims = world.objects[DB_KEY]["spec"]["volumeClaimTemplates"]
    world.change(DB_KEY, {"spec": {"volumeClaimTemplates": list(map(as_the_server_keeps, claims))}})
    world.settle()
    world.edit({"v": "2Gi", **more})
    mutable = frozenset(re.findall(r"'(\w+)'", DB_SAYS))
    world.refuse[DB_KEY] = Failed(
        Failure.IMMUTABLE, DB_SAYS, causes=(Cause("spec", "FieldValueForbidden", DB_SAYS, mutable),)
    )
    world.step()
    return world


@pytest.mark.parametrize("strategy", ["merge", "server-side", "replace"])
def test_a_rejected_change_names_the_immutable_field_and_both_values(strategy: str):
    world = grown(f"{{strategy: {strategy}}}", replicas=3, image=2)
    refused = "rejected change: spec.volumeClaimTemplates[data].spec.resources.requests.storage: 1Gi → 2Gi;"
    assert world.ready()[2].startswith(f"a: templates/a.yaml:1: {DB_SAYS}; {refused} `apply.onImmutable")


def test_a_rejected_change_of_a_secret_names_fields_without_values():
    world = immutable(
        one(text="apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: '{{ spec.v | b64encode }}'}\n"),
        key("a", "Secret"),
    )
    assert "; rejected change: data.p; `apply.onImmutable" in world.ready()[2]


def test_a_rejected_change_of_a_child_that_reads_a_secret_has_no_values():
    body = """
    observe: {s: {version: v1, kind: Secret, name: s}}
    children: {a: {template: a.yaml}}
    """
    world = World.of(
        body,
        {"v": "1"},
        a="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}', p: '{{ s.data.p }}'}\n",
    )
    world.add(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s", "namespace": "shop"},
            "data": {"p": "aHVudGVyMg=="},
        }
    )
    world.settle()
    world.change(key("s", "Secret"), {"data": {"p": "c2VjcmV0"}})
    world.refuse[A_KEY] = Failed(
        Failure.IMMUTABLE,
        'ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set',
        causes=(Cause("data", "FieldValueForbidden"),),
    )
    world.step()
    assert "; rejected change: data.p; `apply.onImmutable" in world.ready()[2]
    assert not any(word in world.ready()[2] for word in ("aHVudGVyMg", "c2VjcmV0"))


def test_rejected_changes_are_listed_up_to_a_limit():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {% raw %}{{% endraw %}{% for n in range(9) %}k{{ n }}: '{{ spec.v * 60 }}', {% endfor %}{% raw %}}{% endraw %}\n"
    message = immutable(one(text=text)).ready()[2]
    assert "data.k3: " in message
    assert "data.k4" not in message
    assert " and 5 more; `apply" in message
    assert "1" * 60 not in message


# -- writes that fail ------------------------------------------------------------------------------------------------------------------------


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
    world = one()
    world.refuse[key("a")] = Failed(failure, "no such luck")
    world.step()
    assert world.condition()["reason"] == reason
    assert world.condition("Stalled")["status"] == stalled
    assert ("no such luck" in world.ready()[2]) == (failure is not Failure.CONFLICT)
    assert [type(action) for action in world.plan().actions] == [Create]
    world.refuse.clear()
    world.settle()
    assert world.ready()[0] == "True"


def test_a_child_with_a_pending_write_is_not_ready():
    world = one()
    assert world.plan().children[0].objects[0].message == "is about to be created"
    world.settle()
    world.edit({"v": "2"})
    assert world.plan().children[0].objects[0].message == "is about to be changed"
    assert world.plan().children[0].state is State.PROGRESSING


def test_a_settled_plan_has_no_actions_and_an_earlier_failure_is_not_its_own():
    world = one()
    assert world.plan_status().actions == ()
    assert world.plan().problems == ()
    assert world.plan_status({key("a"): Failed(Failure.FORBIDDEN, "no", "")}).problems[0].reason == "Forbidden"


def test_the_digest_covers_the_desired_state_without_ruleops_own_metadata():
    world = one()
    (create,) = world.plan().actions
    world.settle()
    world.change(key("a"), {"data": {"v": "x"}})
    (patch,) = world.plan().actions
    assert create.desired_digest == patch.desired_digest
    assert replace(create, desired_digest="") != create
