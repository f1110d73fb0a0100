"""A plan as text and as JSON. The plans here are written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonpatch
import orjson
import pytest

from ruleop.authoring.report.spans import Tone, text_of
from ruleop.authoring.report.view_json import plan_document
from ruleop.authoring.report.view_text import plan_lines
from ruleop.authoring.report.views import ResourceView
from ruleop.errors import Site
from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.kubernetes.schema.shape import UNKNOWN
from ruleop.planning import (
    Action,
    AddFinalizer,
    ChildReport,
    Condition,
    Conditions,
    Create,
    Delete,
    Event,
    KindInfo,
    ObjectReport,
    Patch,
    Plan,
    Problem,
    RemoveFinalizer,
    Requeue,
    ServerSideApply,
    State,
    StatusWrite,
    Wait,
)
from ruleop.planning.model.actions import HeldDeletion
from ruleop.planning.plan import Blocking

APP = {"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "web", "namespace": "shop", "uid": "u"}}
KEY = ObjectKey("example.com", "App", "shop", "web")
DEPLOYMENT = ObjectKey("apps", "Deployment", "shop", "web")
PLAN = Plan(KEY, "u", "App.example.com")


class BuiltIn:
    def info(self, kind: Kind) -> KindInfo:
        return KindInfo(kind, shape=builtin_shape(kind) or UNKNOWN)


def shown(plan: Plan, resource: Any = APP) -> str:
    text = text_of(plan_lines(ResourceView(resource, plan, kinds=BuiltIn())))
    head, _, rest = text.partition("\n")
    assert head == "App shop/web  by the rule App.example.com"
    return rest.strip("\n")


def deployment(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"},
        "spec": spec,
    }


def patch(live: Any, merged: Any, why: Any = "changed") -> Patch:
    return Patch(DEPLOYMENT, "web", {}, live, merged, "", why)


def doing(*actions: Action) -> Plan:
    return replace(PLAN, actions=actions)


def test_a_plan_without_changes_prints_nothing_to_do() -> None:
    assert shown(PLAN) == "Nothing to do."


def test_children_are_a_tree_with_states_and_messages() -> None:
    children = (
        ChildReport(
            "db",
            State.READY,
            "templates/db.yaml.j2",
            objects=(ObjectReport(ObjectKey("apps", "StatefulSet", "shop", "db"), State.READY),),
        ),
        ChildReport(
            "web",
            State.PROGRESSING,
            "templates/web.yaml.j2",
            objects=(ObjectReport(DEPLOYMENT, State.PROGRESSING, "1 of 2 replicas are updated"),),
        ),
        ChildReport("cache", State.UNWANTED, "templates/cache.yaml.j2"),
    )
    assert shown(replace(PLAN, children=children)) == (
        "├─ db     ready      StatefulSet/db\n"
        "├─ web    not ready  Deployment/web: 1 of 2 replicas are updated\n"
        "└─ cache  not desired  templates/cache.yaml.j2\n"
        "\n"
        "Nothing to do."
    )


def test_a_child_of_many_objects_lists_unready_objects_first() -> None:
    reports = [ObjectReport(ObjectKey("", "ConfigMap", "shop", f"c{number}"), State.READY) for number in range(20)]
    reports[17] = replace(reports[17], state=State.PROGRESSING, message="about to be changed")
    text = shown(replace(PLAN, children=(ChildReport("all", State.PROGRESSING, "t", objects=tuple(reports)),)))
    assert text.startswith(
        "└─ all  not ready  20 objects, 19 ready\n   ├─   not ready  ConfigMap/c17: about to be changed\n   ├─   ready      ConfigMap/c0\n"
    )
    assert "   └─ and 12 more\n" in text


def test_the_waits_of_a_plan_with_many_objects_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    waits = ResourceView.waits.fget
    assert waits is not None
    monkeypatch.setattr(ResourceView, "waits", property(lambda view: asked.append(view) or waits(view)))
    reports = tuple(ObjectReport(ObjectKey("", "ConfigMap", "shop", f"c{number}"), State.READY) for number in range(20))
    shown(replace(PLAN, children=(ChildReport("all", State.READY, "t", objects=reports),)))
    assert len(asked) == 1


def test_the_message_of_a_failed_child_is_separated_from_its_template() -> None:
    one, two = (ObjectReport(ObjectKey("", "ConfigMap", "shop", name), State.FAILED) for name in "ab")
    both = "2 objects\n   ├─   failed  ConfigMap/a  t\n   └─   failed  ConfigMap/b  t"
    for objects, expected in (((one, two), both), ((one,), "ConfigMap/a  t"), ((), "t")):
        text = shown(replace(PLAN, children=(ChildReport("all", State.FAILED, "t", objects=objects),)))
        assert text.startswith(f"└─ all  failed  {expected}\n")


def test_objects_in_other_namespaces_are_shown_with_their_namespace() -> None:
    actions = [
        Create(ObjectKey("", "ConfigMap", "other", "a"), "a", {}, ""),
        Create(ObjectKey("", "Namespace", "", "n"), "a", {}, ""),
    ]
    assert shown(doing(*actions)).startswith("+ create ConfigMap/other/a\n+ create Namespace/n\n")


def test_a_patch_is_followed_by_its_changes_field_by_field() -> None:
    before = deployment(
        replicas=2,
        template={"spec": {"containers": [{"name": "web", "image": "nginx:1", "env": [{"name": "A", "value": "1"}]}]}},
    )
    after = deployment(
        replicas=3,
        template={"spec": {"containers": [{"name": "web", "image": "nginx:2", "env": [{"name": "B", "value": "1"}]}]}},
    )
    assert shown(doing(patch(before, after))) == (
        "~ patch Deployment/web\n"
        "      spec.replicas: 2 -> 3\n"
        '    - spec.template.spec.containers[name=web].env[name=A]: {name: A, value: "1"}\n'
        '    + spec.template.spec.containers[name=web].env[name=B]: {name: B, value: "1"}\n'
        "      spec.template.spec.containers[name=web].image: nginx:1 -> nginx:2\n"
        "\n"
        "1 to change."
    )


def test_changes_of_multiline_text_are_shown_by_line() -> None:
    key = ObjectKey("", "ConfigMap", "shop", "c")
    lines = [f"line {number}" for number in range(40)]
    before = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a.conf": "\n".join(lines)}}
    lines[20] = "changed"
    after = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a.conf": "\n".join(lines)}}
    assert shown(doing(Patch(key, "c", {}, before, after, ""))) == (
        "~ patch ConfigMap/c\n"
        "      data['a.conf']:\n"
        "          line 19\n"
        "        - line 20\n"
        "        + changed\n"
        "          line 21\n"
        "\n"
        "1 to change."
    )
    everything = {**after, "data": {"a.conf": "\n".join("x" * 300 for _ in lines)}}
    text = shown(doing(Patch(key, "c", {}, before, everything, "")))
    assert "        and 64 more lines\n" in text
    assert max(map(len, text.splitlines())) < 120


def test_long_values_are_shortened_around_their_first_difference() -> None:
    text = shown(doing(patch(deployment(a="x" * 100 + "old"), deployment(a="x" * 100 + "new"))))
    assert f"      spec.a: …{'x' * 20}old -> …{'x' * 20}new\n" in text


def test_changes_of_ruleops_own_metadata_are_one_line() -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "App", "name": "web", "uid": "u", "controller": True}
    marks = {
        "annotations": {"ruleop.dev/applied": "{}"},
        "labels": {"ruleop.dev/part-of": "p", "app.kubernetes.io/managed-by": "ruleop"},
        "ownerReferences": [owner],
    }
    live = deployment(replicas=1)
    adopted = {**live, "metadata": {**live["metadata"], **marks}}
    assert shown(doing(patch(live, adopted, "adopted"))) == (
        "~ adopt Deployment/web  had no owner\n      only ruleop's own metadata\n\n1 to change."
    )
    assert shown(doing(patch(adopted, live, "released"))).startswith(
        "~ release Deployment/web  stays, without ruleop's own metadata\n      only ruleop's own metadata\n"
    )
    foreign = {**adopted, "metadata": {**adopted["metadata"], "ownerReferences": [{**owner, "uid": "other"}]}}
    assert "metadata.ownerReferences[uid=other]" in shown(doing(patch(adopted, foreign)))
    both = {**adopted, "spec": {"replicas": 2}}
    assert "      spec.replicas: 1 -> 2\n      and ruleop's own metadata\n" in shown(doing(patch(live, both)))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            ServerSideApply(DEPLOYMENT, "web", deployment(a=2), None, ""),
            "+ create Deployment/web  by server-side apply\n\n1 to create.",
        ),
        (
            ServerSideApply(DEPLOYMENT, "web", deployment(a=2), deployment(a=1, b=1), ""),
            "~ apply Deployment/web  server-side\n      spec.a: 1 -> 2\n\n1 to change.",
        ),
        (
            Delete(DEPLOYMENT, "web", {}, "pruned"),
            "- delete Deployment/web  no longer part of the desired state\n\n1 to delete.",
        ),
        (
            Delete(DEPLOYMENT, "web", {}, "recreate"),
            "- delete Deployment/web  an immutable field changed; will be recreated\n\n1 to delete.",
        ),
        (
            AddFinalizer(KEY, "ruleop.dev/x"),
            "+ add the finalizer ruleop.dev/x to App/web\n\nNothing to do except finalizers.",
        ),
        (
            RemoveFinalizer(KEY, "ruleop.dev/x"),
            "- remove the finalizer ruleop.dev/x from App/web\n\nNothing to do except finalizers.",
        ),
    ],
)
def test_each_action_is_shown_in_its_form(action: Any, expected: str) -> None:
    assert shown(doing(action)) == expected


def test_waits_and_problems_are_shown_with_their_position() -> None:
    plan = replace(
        PLAN,
        children=(
            ChildReport("web", State.WAITING, "templates/web.yaml.j2", "db.status.x"),
            ChildReport("job", State.FAILED, "templates/job.yaml.j2", "spec.size is not a number"),
        ),
        waits=(Wait("web", "db.status.x", Site("templates/web.yaml.j2", 12)),),
        problems=(Problem("job", "RenderFailed", "spec.size is not a number", Site("templates/job.yaml.j2", 3, 9)),),
    )
    text = text_of(plan_lines(ResourceView(APP, plan, kinds=BuiltIn()), source=lambda _: "x: {{ db.status.x }}"))
    assert text.partition("\n")[2].strip("\n") == (
        "├─ web  waiting  waits for db.status.x\n"
        "└─ job  failed   templates/job.yaml.j2\n"
        "\n"
        "Why it is not ready\n"
        "  ! job: templates/job.yaml.j2:3:9: spec.size is not a number\n"
        "  web waits for db.status.x\n"
        "      templates/web.yaml.j2:12  x: {{ db.status.x }}\n"
        "\n"
        "1 waiting, 1 error."
    )
    lines = [*plan_lines(ResourceView(APP, plan, kinds=BuiltIn()), place=lambda site: f"project/{site}")]
    assert "project/templates/web.yaml.j2:12" in text_of(lines)
    assert "! job: project/templates/job.yaml.j2:3:9: " in text_of(lines)


def test_an_expression_that_is_not_true_is_shown_with_the_values_that_it_reads() -> None:
    sites = Site("watches.yaml", 7, 16), Site("watches.yaml", 9, 18)
    plan = replace(
        PLAN,
        children=(ChildReport("web", State.WAITING, "t", "waits for waitFor: db.ready and spec.go"),),
        waits=(Wait("web", "waitFor: db.ready and spec.go", sites[0], "condition"),),
        blocking=(
            Blocking("web", "waitFor", "db.ready and spec.go", sites[0], (("db.ready", "false"), ("spec.go", "true"))),
            Blocking("job", "readyWhen", "this.data.done", sites[1], (("this.data.done", "not available yet"),)),
        ),
    )
    assert shown(plan) == (
        "└─ web  waiting  waitFor is not true\n"
        "\n"
        "Why it is not ready\n"
        "  web waits: its waitFor is not true\n"
        "      waitFor: db.ready and spec.go\n"
        "      watches.yaml:7:16\n"
        "      now db.ready: false\n"
        "      now spec.go: true\n"
        "  job is not ready: its readyWhen is not true\n"
        "      readyWhen: this.data.done\n"
        "      watches.yaml:9:18\n"
        "      now this.data.done: not available yet\n"
        "\n"
        "1 waiting."
    )


def test_status_conditions_and_events_are_shown() -> None:
    conditions = Conditions.of("Ready", ready=True)
    old = {
        "replicas": 1,
        "theirs": "x",
        "gone": 1,
        "conditions": [Condition("Ready", "False", "Progressing", "wait").as_json()],
        "observedGeneration": 1,
    }
    new = {
        "replicas": 2,
        "theirs": "x",
        "url": "https://a",
        "conditions": [each.as_json() for each in conditions],
        "observedGeneration": 2,
    }
    plan = replace(
        PLAN,
        status=StatusWrite(new, {"status": {}}),
        conditions=conditions,
        events=(Event("Normal", "Synced", "App synced successfully"), Event("Warning", "Odd", "")),
    )
    assert shown(plan, {**APP, "status": old}) == (
        "status\n"
        "  - gone: 1\n"
        "    replicas: 1 -> 2\n"
        "  + url: https://a\n"
        "    theirs: x\n"
        "    Ready        False -> True  Ready\n"
        "    Reconciling  False          Ready\n"
        "    Stalled      False          Ready\n"
        "\n"
        "event Synced  App synced successfully\n"
        "event Odd\n"
        "\n"
        "Nothing to do except writing the status."
    )


def test_spans_of_plan_text_have_tones() -> None:
    lines = plan_lines(ResourceView(APP, doing(patch(deployment(a=1), deployment(a=2))), kinds=BuiltIn()))
    tones = {span.text.strip(): span.tone for line in lines for span in line}
    assert tones["~ patch"] is Tone.CHANGE
    assert tones["Deployment/web"] is Tone.TITLE
    assert (tones["1"], tones["2"]) == (Tone.REMOVE, Tone.ADD)


# -- JSON --------------------------------------------------------------------------------------------------------------


def test_the_json_patch_turns_the_live_object_into_the_merged_one() -> None:
    before, after = (
        deployment(replicas=2, args=["a", "b"], gone={"x": 1}),
        deployment(args=["b", "c"], replicas=3, new={"z": 1, "a": 2}),
    )
    (action,) = plan_document(ResourceView(APP, doing(patch(before, after))))["actions"]
    assert jsonpatch.apply_patch(before, action["patch"]) == after


def test_json_patches_do_not_depend_on_the_order_of_fields() -> None:
    def shuffled(value: Any) -> Any:
        return {key: shuffled(value[key]) for key in reversed(value)} if isinstance(value, dict) else value

    before, after = deployment(a=1, b={"c": 1, "d": 2}), deployment(b={"d": 3, "c": 4}, e=5)
    one = plan_document(ResourceView(APP, doing(patch(before, after))))
    other = plan_document(ResourceView(APP, doing(patch(shuffled(before), shuffled(after)))))
    assert orjson.dumps(one) == orjson.dumps(other)


def test_the_json_of_a_plan_contains_every_action_and_only_json_types() -> None:
    plan = replace(
        PLAN,
        actions=(
            Create(DEPLOYMENT, "web", deployment(a=1), ""),
            ServerSideApply(DEPLOYMENT, "web", deployment(a=2), None, ""),
            Delete(DEPLOYMENT, "web", {}, "pruned"),
            AddFinalizer(KEY, "f"),
            RemoveFinalizer(KEY, "f"),
        ),
        status=StatusWrite({"a": 1}, {"status": {"a": 1}}),
        requeue_after=Requeue(60.0, "x"),
    )
    document = orjson.loads(orjson.dumps(plan_document(ResourceView({**APP, "status": {"a": 0}}, plan))))
    assert [action["action"] for action in document["actions"]] == [
        "create",
        "serverSideApply",
        "delete",
        "addFinalizer",
        "removeFinalizer",
    ]
    assert document["status"] == {
        "value": {"a": 1},
        "patch": [{"op": "replace", "path": "/status/a", "value": 1}],
        "subresource": True,
        "missing": [],
    }
    assert document["requeueAfter"] == {"seconds": 60.0, "reason": "x"}
    assert document["quiet"] is False


def test_a_status_without_required_fields_is_shown_as_not_written() -> None:
    plan = replace(PLAN, status=StatusWrite({}, None, missing=("a", "b")))
    assert "  ! the CRD of App requires status.a, status.b, and no status is written without" in shown(plan)
    assert plan_document(ResourceView(APP, plan))["status"]["missing"] == ["a", "b"]


def test_deletions_that_are_held_back_are_shown_with_their_reason() -> None:
    secret = ObjectKey("", "Secret", "shop", "s")
    held = (
        HeldDeletion(DEPLOYMENT, "web", "deletion", "by an error of web", True),
        HeldDeletion(secret, "login", "release", "until 12:00:30 UTC"),
    )
    plan = replace(PLAN, held=held)
    assert shown(plan).splitlines() == [
        "! delete Deployment/web  held back by an error of web",
        "! release Secret/s  held back until 12:00:30 UTC",
        "",
        "2 held back.",
    ]
    web, login = plan_document(ResourceView(APP, plan))["heldBack"]
    assert (web["kind"], web["name"], web["child"], web["action"]) == ("Deployment", "web", "web", "delete")
    assert (login["action"], login["reason"]) == ("release", "until 12:00:30 UTC")


def test_json_of_an_unchanged_status_has_an_empty_patch() -> None:
    plan = replace(PLAN, status=StatusWrite({"a": 1}, None))
    expected = {"value": {"a": 1}, "patch": [], "subresource": True, "missing": []}
    assert plan_document(ResourceView({**APP, "status": {"a": 1}}, plan))["status"] == expected
    assert plan_document(ResourceView(APP, PLAN))["status"] is None
    assert plan_document(ResourceView(APP, plan))["quiet"] is True


def test_values_of_secrets_are_masked_in_creates_and_patches() -> None:
    key = ObjectKey("", "Secret", "shop", "s")

    def secret(value: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": value}}

    plan = replace(
        PLAN, actions=(Create(key, "s", secret("b25l"), ""), Patch(key, "s", {}, secret("b25l"), secret("dHdv"), ""))
    )
    both = shown(plan) + orjson.dumps(plan_document(ResourceView(APP, plan))).decode()
    assert not any(value in both for value in ("b25l", "dHdv"))
    assert "      data.password: (hidden, before) -> (hidden, after)\n" in both
