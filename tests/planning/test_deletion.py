"""A CR that goes: what the garbage collector does, what is ours to do, and that nothing is left behind or done twice."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from ruleop.kinds import Kind
from ruleop.planning import Delete, History, RemoveFinalizer, Served, State
from ruleop.planning.marks import PAUSED, SKIP_FINALIZE
from tests.planning.world import CR, FINALIZER, RESYNCED, World, config, key

A = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}'}\n"
JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: '{{ metadata.name }}-last'}\nspec: {note: '{{ a.data.v }}'}\n"
FINALIZE = "children: {a: {template: a.yaml}}\nfinalize: {last: {template: last.yaml}}\nstatus: {name: '{{ a.metadata.name }}'}"
FAR = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far%s}}"


def finalizing(body: str = FINALIZE) -> World:
    world = World.of(body, {"v": "1"}, a=A, last=JOB)
    world.settle()
    return world


def test_finalize_children_are_not_created_before_the_deletion():
    world = finalizing()
    assert world.names() == ["ConfigMap/a"]
    assert world.finalizers == [FINALIZER]
    assert world.writes[0] == "add finalizer"
    assert world.plan().quiet


def test_finalize_children_run_and_are_removed_before_the_finalizer():
    world = finalizing()
    world.end()
    world.settle(controllers=False)
    assert world.names() == ["ConfigMap/a", "Job/web-last"]
    job = world.objects[key("web-last", "Job", group="batch")]
    assert "ownerReferences" not in job["metadata"]
    assert job["spec"] == {"note": "1"}
    assert world.ready() == ("False", "Finalizing", "Job/web-last is not ready")
    assert world.condition("Reconciling")["status"] == "True"
    world.settle()
    assert world.resource is None
    assert world.objects == {}
    assert world.writes.count("Create Job/web-last") == 1
    assert world.writes[-1] == "remove finalizer"


@pytest.mark.parametrize("crash", range(6))
@pytest.mark.parametrize("remembers", [True, False])
def test_a_crash_after_any_step_of_a_deletion_ends_the_same_and_runs_nothing_twice(crash: int, remembers: bool):
    world = finalizing("children: {a: {template: a.yaml, deletion: orphan}}\nfinalize: {last: {template: last.yaml}}")
    world.remembers = remembers
    world.end()
    for number in range(12):
        world.controllers()
        planned = world.plan()
        if number == crash:
            world.step(crash_after=1)
        if world.resource is not None:
            world.step()
        if world.resource is None:
            break
        assert planned.actions is not None
    assert world.resource is None
    assert world.names() == ["ConfigMap/a"]
    assert world.writes.count("Create Job/web-last") == 1


def test_without_a_status_the_engine_remembers_that_finalize_is_done():
    world = finalizing(FINALIZE.replace("status: {name: '{{ a.metadata.name }}'}", "manageStatus: false"))
    world.end()
    world.settle()
    assert world.resource is None
    assert world.objects == {}
    assert world.writes.count("Create Job/web-last") == 1


def test_the_memory_outlives_a_pause():
    world = finalizing()
    world.end()
    while world.condition()["reason"] != "Finalized":
        world.controllers()
        world.step()
    world.remembers, world.history = False, History.NONE
    world.patch_resource({"annotations": {PAUSED: "true"}})
    world.step()
    assert world.condition("Paused")["status"] == "True"
    assert world.plan().actions == ()
    world.patch_resource({"annotations": {PAUSED: None}})
    world.settle()
    assert world.resource is None
    assert world.writes.count("Create Job/web-last") == 1


def test_a_pause_before_stops_the_deletion():
    world = finalizing()
    world.patch_resource({"annotations": {PAUSED: "true"}})
    world.end()
    world.settle()
    assert world.names() == ["ConfigMap/a"]
    assert world.condition("Paused")["status"] == "True"
    assert world.plan().requeue_after == RESYNCED


def test_a_failed_finalize_child_stalls_and_is_reported_once():
    world = finalizing()
    world.end()
    world.step()
    world.change(
        key("web-last", "Job", group="batch"), {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    )
    world.events.clear()
    world.settle(controllers=False)
    assert world.ready() == ("False", "Finalizing", "last: Job/web-last has failed")
    assert world.condition("Stalled")["status"] == "True"
    assert [(event.type, event.reason) for event in world.events] == [("Warning", "ChildFailed")]


def test_skip_finalize_is_reported_once_and_cleans_up():
    world = finalizing()
    world.end()
    world.step()
    world.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    world.events.clear()
    world.settle(controllers=False)
    assert world.resource is None
    assert world.objects == {}
    assert [event.reason for event in world.events] == ["FinalizeSkipped"]


def test_in_a_terminating_namespace_finalize_is_skipped():
    world = finalizing()
    world.end()
    world.namespace_terminating = True
    planned = world.plan()
    assert planned.actions == (RemoveFinalizer(CR, FINALIZER),)
    assert [event.reason for event in planned.events] == ["FinalizeSkipped"]
    world.step()
    assert world.resource is None


def test_undesired_finalize_children_do_not_delay_the_deletion():
    world = finalizing("children: {a: {template: a.yaml}}\nfinalize: {last: {template: last.yaml, when: 'false'}}")
    world.end()
    world.settle()
    assert world.resource is None


def test_an_orphaned_finalize_child_is_released():
    world = finalizing("children: {a: {template: a.yaml}}\nfinalize: {last: {template: last.yaml, deletion: orphan}}")
    world.end()
    world.settle()
    assert world.names() == ["Job/web-last"]


def test_finalize_children_depend_on_one_another():
    body = "children: {a: {template: a.yaml}}\nfinalize: {second: {template: second.yaml, dependsOn: [last]}, last: {template: last.yaml}}"
    world = World.of(body, {"v": "1"}, a=A, last=JOB, second=JOB.replace("-last", "-second"))
    world.settle()
    world.end()
    world.step()
    assert "Job/web-second" not in world.names()
    world.settle()
    assert world.resource is None
    assert [write for write in world.writes if write.startswith("Create Job")] == [
        "Create Job/web-last",
        "Create Job/web-second",
    ]


def test_children_are_not_rendered_while_the_cr_is_being_deleted():
    body = FINALIZE + "\nvalidate: [{rule: spec.v == '1', message: 'no'}]"
    world = finalizing(body)
    world.end()
    world.resource["spec"] = {}
    world.delete(key("a"))
    world.step()
    assert "ConfigMap/a" not in world.names()
    assert world.condition()["reason"] == "Finalizing"


def test_status_and_conditions_still_show_what_exists():
    body = FINALIZE + "\nconditions: [{type: Here, status: ready.a and ready.last is defined}]"
    world = finalizing(body)
    world.end()
    world.step()
    assert world.status["name"] == "a"
    assert world.condition("Here")["status"] == "True"


# -- without finalize ------------------------------------------------------------------------------------------------------------------------


def test_children_in_other_namespaces_are_deleted_before_the_finalizer_is_removed():
    world = World.of(FAR % ", propagation: foreground", {"v": "1"}, a=A)
    world.settle()
    world.change(key("a", namespace="far"), {"metadata": {"finalizers": ["x/y"]}})
    world.end()
    (delete,) = world.plan().actions
    assert isinstance(delete, Delete)
    assert (delete.why, delete.after_writes, delete.propagation) == ("elsewhere", False, "foreground")
    world.settle()
    assert world.ready() == ("False", "Deleting", "ConfigMap/far/a is to be gone")
    assert world.condition("Reconciling")["status"] == "True"
    assert world.condition("Stalled")["status"] == "False"
    assert world.plan().actions == ()
    world.change(key("a", namespace="far"), {"metadata": {"finalizers": None}})
    world.settle()
    assert world.resource is None


def test_a_removed_child_in_another_namespace_is_still_deleted():
    world = World.of(FAR % "", {"v": "1"}, a=A)
    world.settle()
    world.project = World.of("children: {}", a=A).project
    world.end()
    world.settle()
    assert world.objects == {}
    assert world.resource is None


def test_orphans_stay_without_ruleops_own_metadata():
    world = World.of("children: {a: {template: a.yaml, deletion: orphan}}", {"v": "1"}, a=A)
    world.settle()
    world.end()
    world.settle()
    assert world.resource is None
    assert world.objects[key("a")]["metadata"].keys() == {"name", "namespace", "uid", "resourceVersion", "generation"}


def test_a_cr_with_the_orphan_finalizer_releases_every_child():
    world = finalizing()
    world.change(key("a"), {"metadata": {"finalizers": ["x/y"]}})
    world.delete(key("a"))
    world.patch_resource({"finalizers": [FINALIZER, "orphan"]})
    world.end()
    world.settle()
    assert world.finalizers == ["orphan"]
    assert world.names() == ["ConfigMap/a"]
    assert "ownerReferences" not in world.objects[key("a")]["metadata"]


BOTH = (
    "reach: cluster\nchildren: {a: {template: a.yaml%s}, far: {template: far.yaml, namespace: far, deletion: delete}}"
)
BOTH += "\nfinalize: {last: {template: last.yaml}}"


def gone_to_the_garbage_collector(world: World) -> None:
    """It has done what the finalizer `orphan` asks for, and taken it off."""
    for obj in world.objects.values():
        obj["metadata"].pop("ownerReferences", None)
    world.patch_resource({"finalizers": [each for each in world.finalizers if each != "orphan"]})


def test_with_the_orphan_finalizer_every_child_stays_also_when_finalize_outlasts_it():
    world = World.of(BOTH % "", {"v": "1"}, a=A, far=A.replace("name: a", "name: far"), last=JOB)
    world.settle()
    world.patch_resource({"finalizers": [FINALIZER, "orphan"]})
    world.end()
    world.step()
    assert [write for write in world.writes if write.startswith("Create Job")] == [], "first they are kept"
    gone_to_the_garbage_collector(world)
    world.settle()
    assert world.resource is None
    assert world.names() == ["ConfigMap/a", "ConfigMap/far"]
    assert world.writes.count("Create Job/web-last") == 1
    for obj in world.objects.values():
        assert obj["metadata"].keys() == {"name", "namespace", "uid", "resourceVersion", "generation"}


@pytest.mark.parametrize("finalize", [True, False])
def test_a_child_that_has_just_become_an_orphan_stays(finalize: bool):
    """The CR was edited and deleted before the child could be marked."""
    body = BOTH % ", deletion: \"{{ 'orphan' if spec.keep | default(false) else 'delete' }}\""
    body = body if finalize else body.partition("\nfinalize")[0]
    world = World.of(body, {"v": "1"}, a=A, far=A.replace("name: a", "name: far"), last=JOB)
    world.settle()
    assert world.objects[key("a")]["metadata"]["ownerReferences"]
    world.edit({"v": "1", "keep": True})
    world.end()
    world.step()
    assert "ownerReferences" not in world.objects[key("a")]["metadata"], (
        "before a garbage collector in the foreground comes to it"
    )
    world.settle()
    assert world.resource is None
    assert world.names() == ["ConfigMap/a"]


def test_shortly_after_a_reload_nothing_is_removed():
    """The half of an edit that has arrived may lack what `finalize` said."""
    world = World.of(FAR % "", {"v": "1"}, a=A)
    world.settle()
    world.end()
    world.held_until = "2026-01-01T12:00:30Z"
    world.settle()
    assert (world.names(), world.finalizers) == (["ConfigMap/a"], [FINALIZER])
    assert world.ready()[1] == "Deleting"
    assert "the rules have just changed" in world.ready()[2]
    world.held_until = ""
    world.settle()
    assert (world.resource, world.objects) == (None, {})


def test_a_cr_without_our_finalizer_is_left_to_the_garbage_collector():
    world = World.of("children: {a: {template: a.yaml}}", {"v": "1"}, a=A)
    world.settle()
    world.patch_resource({"finalizers": ["foregroundDeletion"]})
    world.end()
    before = copy.deepcopy(world.objects)
    world.settle()
    assert world.objects == before
    assert world.ready()[:2] == ("False", "Deleting")
    world.delete(key("a"))
    world.settle()
    assert world.objects == {}


def test_forbidden_kinds_keep_the_finalizer_until_a_person_skips_them():
    world = World.of(FAR % "", {"v": "1"}, a=A)
    world.settle()
    world.served["ConfigMap"] = Served.FORBIDDEN
    world.end()
    world.settle()
    assert world.finalizers == [FINALIZER]
    assert world.condition("Stalled")["status"] == "True"
    assert (
        "cannot list configmaps in all namespaces: needs get, list, watch, create, patch, delete; owned objects"
        in world.ready()[2]
    )
    world.patch_resource({"annotations": {SKIP_FINALIZE: "true"}})
    assert world.plan().actions == (RemoveFinalizer(CR, FINALIZER),)


def test_forbidden_kinds_do_not_delay_a_deletion_by_the_garbage_collector():
    world = finalizing("children: {a: {template: a.yaml}}\nfinalize: {last: {template: last.yaml, when: 'false'}}")
    world.served["ConfigMap"] = Served.FORBIDDEN
    world.end()
    world.settle()
    assert world.resource is None


def looked_at(world: World, **places: Served) -> None:
    world.infos["ConfigMap"] = replace(world.info(Kind("", "v1", "ConfigMap")), places=places)


def test_possible_children_in_forbidden_namespaces_keep_the_finalizer():
    """Though the kind can be read in the CR's own namespace."""
    world = World.of(FAR % "", {"v": "1"}, a=A)
    world.settle()
    hidden = world.objects.pop(key("a", namespace="far"))
    looked_at(world, shop=Served.SYNCED, far=Served.FORBIDDEN)
    world.end()
    world.settle()
    assert world.finalizers == [FINALIZER]
    assert "cannot list configmaps in namespace far: needs" in world.ready()[2]
    world.objects[key("a", namespace="far")] = hidden
    looked_at(world, shop=Served.SYNCED, far=Served.SYNCED)
    world.settle()
    assert (world.resource, world.objects) == (None, {})


def test_a_moved_child_keeps_the_finalizer_while_its_old_namespace_is_forbidden():
    world = World.of("reach: cluster\nchildren: {a: {template: a.yaml, namespace: '{{ spec.v }}'}}", {"v": "far"}, a=A)
    world.settle()
    hidden = world.objects.pop(key("a", namespace="far"))
    looked_at(world, shop=Served.SYNCED, far=Served.FORBIDDEN)
    world.edit({"v": "shop"})
    world.settle()
    assert world.finalizers == [FINALIZER]
    world.objects[key("a", namespace="far")] = hidden
    looked_at(world, shop=Served.SYNCED, far=Served.SYNCED)
    world.settle()
    assert (world.names(), world.finalizers) == (["ConfigMap/a"], [])


def test_the_message_about_many_remaining_objects_is_bounded():
    body = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far, forEach: range(12)}}"
    world = World.of(body, {"v": "1"}, a=A.replace("name: a", "name: 'a{{ item }}'"))
    world.settle()
    world.end()
    message = world.plan().conditions.ready.message
    assert message.count("is to be gone") == 8
    assert message.endswith("; and more")


def test_a_finalize_child_is_undefined_before_it_is_desired():
    world = finalizing(FINALIZE.replace("{{ a.metadata.name }}", "{{ last is defined }}"))
    assert world.status["name"] is False
    assert all(child.state is State.READY for child in world.plan().children)
    world.add(config("x"))
