"""The deletion of a CR: which objects the garbage collector deletes and which ruleop deletes, and nothing is left
behind or done twice."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from ruleop.kubernetes.kinds import Kind
from ruleop.planning import Delete, History, RemoveFinalizer, Served, State
from ruleop.planning.model.marks import PAUSED, SKIP_FINALIZE
from tests.planning.harness import CR, FINALIZER, RESYNCED, Harness, config, key
from tests.planning.settled import edit_and_settle, settled

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: '{{ metadata.name }}-last'}\nspec: {note: '{{ a.data.v }}'}\n"
FINALIZE = "children: {a: {template: a.yaml}}\nfinalize: {last: {template: last.yaml}}\nstatus: {name: '{{ a.metadata.name }}'}"
FAR = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far%s}}"


def finalizing(body: str = FINALIZE) -> Harness:
    return settled(body, {"v": "1"}, a=A, last=JOB)


def test_finalize_children_are_not_created_before_the_deletion():
    harness = finalizing()
    assert harness.names() == ["ConfigMap/a"]
    assert harness.finalizers == [FINALIZER]
    assert harness.writes[0] == "add finalizer"
    assert harness.plan().quiet


def test_finalize_children_run_and_are_removed_before_the_finalizer():
    harness = finalizing()
    harness.end()
    harness.settle(controllers=False)
    assert harness.names() == ["ConfigMap/a", "Job/web-last"]
    job = harness.objects[key("web-last", "Job", group="batch")]
    assert "ownerReferences" not in job["metadata"]
    assert job["spec"] == {"note": "1"}
    assert harness.ready() == ("False", "Finalizing", "Job/web-last: running")
    assert harness.condition("Reconciling")["status"] == "True"
    harness.settle()
    assert harness.resource is None
    assert harness.objects == {}
    assert harness.writes.count("Create Job/web-last") == 1
    assert harness.writes[-1] == "remove finalizer"


@pytest.mark.parametrize("crash", range(6))
@pytest.mark.parametrize("remembers", [True, False])
def test_a_crash_after_any_step_of_a_deletion_has_the_same_result_and_runs_nothing_twice(crash: int, remembers: bool):
    harness = finalizing("children: {a: {template: a.yaml, deletion: orphan}}\nfinalize: {last: {template: last.yaml}}")
    harness.remembers = remembers
    harness.end()
    for number in range(12):
        harness.controllers()
        planned = harness.plan()
        if number == crash:
            harness.step(crash_after=1)
        if harness.resource is not None:
            harness.step()
        if harness.resource is None:
            break
        assert planned.actions is not None
    assert harness.resource is None
    assert harness.names() == ["ConfigMap/a"]
    assert harness.writes.count("Create Job/web-last") == 1


def test_finalize_is_not_repeated_although_there_is_no_status():
    harness = finalizing(FINALIZE.replace("status: {name: '{{ a.metadata.name }}'}", "manageStatus: false"))
    harness.end()
    harness.settle()
    assert harness.resource is None
    assert harness.objects == {}
    assert harness.writes.count("Create Job/web-last") == 1


def test_completed_finalization_is_remembered_through_a_pause():
    harness = finalizing()
    harness.end()
    while harness.condition()["reason"] != "Finalized":
        harness.controllers()
        harness.step()
    harness.remembers, harness.history = False, History.NONE
    harness.patch_resource({"annotations": {PAUSED: "true"}})
    harness.step()
    assert harness.condition("Paused")["status"] == "True"
    assert harness.plan().actions == ()
    harness.patch_resource({"annotations": {PAUSED: None}})
    harness.settle()
    assert harness.resource is None
    assert harness.writes.count("Create Job/web-last") == 1


def test_a_paused_cr_is_not_finalized():
    harness = finalizing()
    harness.patch_resource({"annotations": {PAUSED: "true"}})
    harness.end()
    harness.settle()
    assert harness.names() == ["ConfigMap/a"]
    assert harness.condition("Paused")["status"] == "True"
    assert harness.plan().requeue_after == RESYNCED


def test_a_failed_finalize_child_stalls_and_is_reported_once():
    harness = finalizing()
    harness.end()
    harness.step()
    harness.change(
        key("web-last", "Job", group="batch"), {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    )
    harness.events.clear()
    harness.settle(controllers=False)
    assert harness.ready() == ("False", "Finalizing", "last: Job/web-last: failed")
    assert harness.condition("Stalled")["status"] == "True"
    assert [(event.type, event.reason) for event in harness.events] == [("Warning", "ChildFailed")]


def test_skip_finalize_is_reported_once_and_cleans_up():
    harness = finalizing()
    harness.end()
    harness.step()
    harness.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    harness.events.clear()
    harness.settle(controllers=False)
    assert harness.resource is None
    assert harness.objects == {}
    assert [event.reason for event in harness.events] == ["FinalizeSkipped"]


def test_finalize_is_skipped_in_a_terminating_namespace():
    harness = finalizing()
    harness.end()
    harness.namespace_terminating = True
    planned = harness.plan()
    assert planned.actions == (RemoveFinalizer(CR, FINALIZER),)
    assert [event.reason for event in planned.events] == ["FinalizeSkipped"]
    harness.step()
    assert harness.resource is None


def test_undesired_finalize_children_do_not_delay_the_deletion():
    harness = finalizing("children: {a: {template: a.yaml}}\nfinalize: {last: {template: last.yaml, when: 'false'}}")
    harness.end()
    harness.settle()
    assert harness.resource is None


def test_an_orphaned_finalize_child_is_released():
    harness = finalizing("children: {a: {template: a.yaml}}\nfinalize: {last: {template: last.yaml, deletion: orphan}}")
    harness.end()
    harness.settle()
    assert harness.names() == ["Job/web-last"]


def test_finalize_children_depend_on_one_another():
    body = "children: {a: {template: a.yaml}}\nfinalize: {second: {template: second.yaml, dependsOn: [last]}, last: {template: last.yaml}}"
    harness = settled(body, {"v": "1"}, a=A, last=JOB, second=JOB.replace("-last", "-second"))
    harness.end()
    harness.step()
    assert "Job/web-second" not in harness.names()
    harness.settle()
    assert harness.resource is None
    assert [write for write in harness.writes if write.startswith("Create Job")] == [
        "Create Job/web-last",
        "Create Job/web-second",
    ]


def test_children_are_not_rendered_while_the_cr_is_being_deleted():
    body = FINALIZE + "\nvalidate: [{rule: spec.v == '1', message: 'no'}]"
    harness = finalizing(body)
    harness.end()
    harness.resource["spec"] = {}
    harness.delete(key("a"))
    harness.step()
    assert "ConfigMap/a" not in harness.names()
    assert harness.condition()["reason"] == "Finalizing"


def test_status_and_conditions_are_updated_during_finalization():
    body = FINALIZE + "\nconditions: [{type: Here, status: ready.a and ready.last is defined}]"
    harness = finalizing(body)
    harness.end()
    harness.step()
    assert harness.status["name"] == "a"
    assert harness.condition("Here")["status"] == "True"


# -- without finalize --------------------------------------------------------------------------------------------------


def test_children_in_other_namespaces_are_deleted_before_the_finalizer_is_removed():
    harness = settled(FAR % "", {"v": "1"}, a=A)
    harness.change(key("a", namespace="far"), {"metadata": {"finalizers": ["x/y"]}})
    harness.end()
    (delete,) = harness.plan().actions
    assert isinstance(delete, Delete)
    assert (delete.why, delete.after_writes) == ("elsewhere", False)
    harness.settle()
    assert harness.ready() == ("False", "Deleting", "ConfigMap/far/a is still there, held by its finalizer x/y")
    assert harness.condition("Reconciling")["status"] == "True"
    assert harness.condition("Stalled")["status"] == "False"
    assert harness.plan().actions == ()
    harness.change(key("a", namespace="far"), {"metadata": {"finalizers": None}})
    harness.settle()
    assert harness.resource is None


def test_a_removed_child_in_another_namespace_is_still_deleted():
    harness = settled(FAR % "", {"v": "1"}, a=A)
    harness.project = Harness.of("children: {}", a=A).project
    harness.end()
    harness.settle()
    assert harness.objects == {}
    assert harness.resource is None


def test_orphans_stay_without_ruleops_own_metadata():
    harness = settled("children: {a: {template: a.yaml, deletion: orphan}}", {"v": "1"}, a=A)
    harness.end()
    harness.settle()
    assert harness.resource is None
    assert harness.objects[key("a")]["metadata"].keys() == {"name", "namespace", "uid", "resourceVersion", "generation"}


def test_a_cr_with_the_orphan_finalizer_releases_every_child():
    harness = finalizing()
    harness.change(key("a"), {"metadata": {"finalizers": ["x/y"]}})
    harness.delete(key("a"))
    harness.patch_resource({"finalizers": [FINALIZER, "orphan"]})
    harness.end()
    harness.settle()
    assert harness.finalizers == ["orphan"]
    assert harness.names() == ["ConfigMap/a"]
    assert "ownerReferences" not in harness.objects[key("a")]["metadata"]


BOTH = (
    "reach: cluster\nchildren: {a: {template: a.yaml%s}, far: {template: far.yaml, namespace: far, deletion: delete}}"
)
BOTH += "\nfinalize: {last: {template: last.yaml}}"


def gone_to_the_garbage_collector(harness: Harness) -> None:
    """The garbage collector has orphaned the children and removed the finalizer `orphan`."""
    for obj in harness.objects.values():
        obj["metadata"].pop("ownerReferences", None)
    harness.patch_resource({"finalizers": [each for each in harness.finalizers if each != "orphan"]})


def test_the_orphan_finalizer_keeps_every_child_although_finalize_takes_longer():
    harness = settled(BOTH % "", {"v": "1"}, a=A, far=A.replace("name: a", "name: far"), last=JOB)
    harness.patch_resource({"finalizers": [FINALIZER, "orphan"]})
    harness.end()
    harness.step()
    assert [write for write in harness.writes if write.startswith("Create Job")] == [], "first they are kept"
    gone_to_the_garbage_collector(harness)
    harness.settle()
    assert harness.resource is None
    assert harness.names() == ["ConfigMap/a", "ConfigMap/far"]
    assert harness.writes.count("Create Job/web-last") == 1
    for obj in harness.objects.values():
        assert obj["metadata"].keys() == {"name", "namespace", "uid", "resourceVersion", "generation"}


@pytest.mark.parametrize("finalize", [True, False])
def test_a_child_whose_policy_just_became_orphan_is_kept(finalize: bool):
    """The CR was edited and deleted before the child's annotation was written."""
    body = BOTH % ", deletion: \"{{ 'orphan' if spec.keep | default(false) else 'delete' }}\""
    body = body if finalize else body.partition("\nfinalize")[0]
    harness = settled(body, {"v": "1"}, a=A, far=A.replace("name: a", "name: far"), last=JOB)
    assert harness.objects[key("a")]["metadata"]["ownerReferences"]
    harness.edit({"v": "1", "keep": True})
    harness.end()
    harness.step()
    assert "ownerReferences" not in harness.objects[key("a")]["metadata"], (
        "before a garbage collector in the foreground comes to it"
    )
    harness.settle()
    assert harness.resource is None
    assert harness.names() == ["ConfigMap/a"]


def test_nothing_is_deleted_shortly_after_a_reload():
    """If only half of an edit is loaded, `finalize` may be missing."""
    harness = settled(FAR % "", {"v": "1"}, a=A)
    harness.end()
    harness.held_until = "2026-01-01T12:00:30Z"
    harness.settle()
    assert (harness.names(), harness.finalizers) == (["ConfigMap/a"], [FINALIZER])
    assert harness.ready()[1] == "Deleting"
    assert "the rules have just changed" in harness.ready()[2]
    harness.held_until = ""
    harness.settle()
    assert (harness.resource, harness.objects) == (None, {})


def test_a_cr_without_ruleops_finalizer_is_left_to_the_garbage_collector():
    harness = settled("children: {a: {template: a.yaml}}", {"v": "1"}, a=A)
    harness.patch_resource({"finalizers": ["foregroundDeletion"]})
    harness.end()
    before = copy.deepcopy(harness.objects)
    harness.settle()
    assert harness.objects == before
    assert harness.ready()[:2] == ("False", "Deleting")
    harness.delete(key("a"))
    harness.settle()
    assert harness.objects == {}


def test_forbidden_kinds_keep_the_finalizer_until_finalization_is_skipped():
    harness = settled(FAR % "", {"v": "1"}, a=A)
    harness.served["ConfigMap"] = Served.FORBIDDEN
    harness.end()
    harness.settle()
    assert harness.finalizers == [FINALIZER]
    assert harness.condition("Stalled")["status"] == "True"
    assert (
        "cannot list configmaps in all namespaces: needs get, list, watch, create, patch, delete; owned objects"
        in harness.ready()[2]
    )
    harness.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    assert harness.plan().actions == (RemoveFinalizer(CR, FINALIZER),)


def test_forbidden_kinds_do_not_delay_a_deletion_by_the_garbage_collector():
    harness = finalizing("children: {a: {template: a.yaml}}\nfinalize: {last: {template: last.yaml, when: 'false'}}")
    harness.served["ConfigMap"] = Served.FORBIDDEN
    harness.end()
    harness.settle()
    assert harness.resource is None


def set_watched_namespaces(harness: Harness, **places: Served) -> None:
    harness.infos["ConfigMap"] = replace(harness.info(Kind("", "v1", "ConfigMap")), places=places)


def test_possible_children_in_forbidden_namespaces_keep_the_finalizer():
    """The kind can be read in the CR's own namespace only."""
    harness = settled(FAR % "", {"v": "1"}, a=A)
    hidden = harness.objects.pop(key("a", namespace="far"))
    set_watched_namespaces(harness, shop=Served.SYNCED, far=Served.FORBIDDEN)
    harness.end()
    harness.settle()
    assert harness.finalizers == [FINALIZER]
    assert "cannot list configmaps in namespace far: needs" in harness.ready()[2]
    harness.objects[key("a", namespace="far")] = hidden
    set_watched_namespaces(harness, shop=Served.SYNCED, far=Served.SYNCED)
    harness.settle()
    assert (harness.resource, harness.objects) == (None, {})


def test_a_moved_child_keeps_the_finalizer_while_its_old_namespace_is_forbidden():
    harness = settled("reach: cluster\nchildren: {a: {template: a.yaml, namespace: '{{ spec.v }}'}}", {"v": "far"}, a=A)
    hidden = harness.objects.pop(key("a", namespace="far"))
    set_watched_namespaces(harness, shop=Served.SYNCED, far=Served.FORBIDDEN)
    edit_and_settle(harness, {"v": "shop"})
    assert harness.finalizers == [FINALIZER]
    harness.objects[key("a", namespace="far")] = hidden
    set_watched_namespaces(harness, shop=Served.SYNCED, far=Served.SYNCED)
    harness.settle()
    assert (harness.names(), harness.finalizers) == (["ConfigMap/a"], [])


def test_the_message_about_many_remaining_objects_is_bounded():
    body = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far, forEach: range(12)}}"
    harness = settled(body, {"v": "1"}, a=A.replace("name: a", "name: 'a{{ item }}'"))
    harness.end()
    message = harness.plan().conditions.ready.message
    assert message.count("is to be gone") == 8
    assert message.endswith("; and more")


def test_a_finalize_child_is_undefined_before_it_is_desired():
    harness = finalizing(FINALIZE.replace("{{ a.metadata.name }}", "{{ last is defined }}"))
    assert harness.status["name"] is False
    assert all(child.state is State.READY for child in harness.plan().children)
    harness.add(config("x"))
