"""Children are deleted in the order of the rules: when the CR is deleted in either way, and when children are no longer
desired."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import Served
from ruleop.planning.model.marks import SKIP_ORDER
from tests.planning.harness import FINALIZER, Harness, key
from tests.planning.settled import edit_and_settle, settled


def one(name: str, more: str = "") -> str:
    return f"  {name}: {{object: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}{more}}}\n"


CHAIN = "deletionOrder: reverse\nchildren:\n" + (
    one("db") + one("app", ", dependsOn: [db], when: spec.app") + one("web", ", dependsOn: [app], when: spec.web")
)
ALL = {"app": True, "web": True}


def deletions(harness: Harness) -> list[str]:
    return [each.removeprefix("Delete ConfigMap/") for each in harness.writes if each.startswith("Delete")]


def hold(harness: Harness, name: str) -> None:
    harness.change(key(name), {"metadata": {"finalizers": ["example.com/x"]}})


def let_go(harness: Harness, name: str) -> None:
    harness.change(key(name), {"metadata": {"finalizers": None}})


def foreground(harness: Harness) -> None:
    """The garbage collector deletes at once what refers to a CR that is deleted in the foreground."""
    for key_, obj in list(harness.objects.items()):
        if obj["metadata"].get("ownerReferences") and not obj["metadata"].get("deletionTimestamp"):
            harness.writes.append(f"Delete ConfigMap/{key_.name}")
            harness.delete(key_)


def test_the_finalizer_comes_before_the_first_child():
    harness = settled(CHAIN, ALL)
    assert harness.writes[0] == "add finalizer"
    assert harness.finalizers == [FINALIZER]
    assert harness.plan().quiet


def test_a_deleted_cr_takes_its_children_in_reverse_order():
    harness = settled(CHAIN, ALL)
    hold(harness, "app")
    harness.end()
    harness.settle()
    assert deletions(harness) == ["web", "app"]
    message = (
        "ConfigMap/shop/app is still there, held by its finalizer example.com/x; "
        "ConfigMap/shop/db is to be deleted: ConfigMap/shop/app is still there, held by its finalizer example.com/x"
    )
    assert harness.ready() == ("False", "Deleting", message)
    assert harness.plan().quiet
    let_go(harness, "app")
    harness.settle()
    assert (harness.resource, harness.objects) == (None, {})
    assert deletions(harness) == ["web", "app", "db"]


def test_children_that_are_no_longer_desired_go_in_the_same_order():
    harness = settled(CHAIN.replace("db: {object", "db: {when: spec.app, object"), ALL)
    hold(harness, "web")
    edit_and_settle(harness, {"app": False, "web": False})
    assert deletions(harness) == ["web"]
    of_app = (
        "app waits for ConfigMap/shop/app to be deleted: ConfigMap/shop/web is still there, held by its finalizer "
        "example.com/x"
    )
    of_db = "db waits for ConfigMap/shop/db to be deleted: ConfigMap/shop/app is still there"
    assert harness.ready()[1:] == ("Waiting", f"{of_app}; {of_db}")
    let_go(harness, "web")
    harness.settle()
    assert deletions(harness) == ["web", "app", "db"]
    assert harness.ready()[1] == "Ready"


def test_a_child_that_stays_keeps_none_alive():
    harness = settled("children:\n" + one("db", ", when: spec.db, deleteAfter: [web]") + one("web"), {"db": True})
    edit_and_settle(harness, {"db": False})
    assert harness.names() == ["ConfigMap/web"]


def test_an_object_that_waits_has_no_owner_reference_and_others_do():
    harness = settled(CHAIN, ALL)
    found = {key_.name: bool(obj["metadata"].get("ownerReferences")) for key_, obj in harness.objects.items()}
    assert found == {"db": False, "app": False, "web": True}


def test_only_children_with_an_order_are_deleted_by_ruleop():
    harness = settled("children:\n" + one("db", ", deleteAfter: [web]") + one("web") + one("other"), {})
    harness.end()
    harness.settle()
    assert deletions(harness) == ["web", "db"]
    assert harness.objects == {}


def test_a_child_waits_also_by_way_of_one_that_is_gone():
    """A Job between two children may be finished and removed."""
    harness = settled(CHAIN, ALL)
    hold(harness, "web")
    del harness.objects[key("app")]
    harness.end()
    harness.settle()
    assert deletions(harness) == ["web"]
    assert key("db") in harness.objects


def test_a_namespace_waits_for_the_objects_in_it():
    body = (
        "reach: cluster\ndeletionOrder: reverse\nchildren:\n"
        "  space: {object: {apiVersion: v1, kind: Namespace, metadata: {name: far}}}\n"
        "  inside: {namespace: far, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: inside}}}\n"
    )
    harness = settled(body, {})
    harness.change(ObjectKey("", "ConfigMap", "far", "inside"), {"metadata": {"finalizers": ["example.com/x"]}})
    harness.end()
    harness.settle()
    assert harness.names() == ["ConfigMap/inside", "Namespace/far"]
    assert "Delete Namespace/far" not in harness.writes
    harness.change(ObjectKey("", "ConfigMap", "far", "inside"), {"metadata": {"finalizers": None}})
    harness.settle()
    assert harness.objects == {}


@pytest.mark.parametrize("by", ["annotation", "namespace"])
def test_the_order_can_be_given_up(by: str):
    harness = settled(CHAIN, ALL)
    hold(harness, "web")
    harness.end()
    harness.settle()
    if by == "annotation":
        harness.patch_resource({"annotations": {SKIP_ORDER: "true"}})
    else:
        harness.namespace_terminating = True
    planned = harness.step()
    assert [action.why for action in planned.actions] == ["unordered", "unordered"]  # type: ignore[union-attr]
    assert deletions(harness) == ["web", "app", "db"]
    assert harness.resource is not None, "it still waits for the object that is held"
    let_go(harness, "web")
    harness.settle()
    assert harness.resource is None


def test_an_object_that_cannot_be_read_is_waited_for():
    harness = settled(
        CHAIN.replace("kind: ConfigMap, metadata: {name: web}", "kind: Secret, metadata: {name: web}"), ALL
    )
    harness.served["Secret"] = Served.FORBIDDEN
    held = harness.objects.pop(key("web", "Secret"))
    harness.end()
    harness.settle()
    assert deletions(harness) == []
    assert "list" in harness.ready()[2]
    assert "secrets" in harness.ready()[2]
    harness.served.clear()
    harness.put(held)
    harness.settle()
    assert harness.resource is None


def test_orphans_and_cascade_orphan_release_without_an_order():
    harness = settled(CHAIN.replace("db: {object", "db: {deletion: orphan, object"), ALL)
    harness.end()
    harness.settle()
    assert harness.names() == ["ConfigMap/db"]


@st.composite
def orders(draw: st.DrawFn) -> tuple[str, list[str], dict[str, set[str]]]:
    """Rules of up to six children with random dependencies, and who has to be gone before whom."""
    names = [f"c{number}" for number in range(draw(st.integers(2, 6)))]
    reverse = draw(st.booleans())
    before: dict[str, set[str]] = {name: set() for name in names}
    lines = []
    for number, name in enumerate(names):
        depends = draw(st.sets(st.sampled_from(names[:number]))) if number else set()
        after = draw(st.sets(st.sampled_from(names[number + 1 :]))) if number + 1 < len(names) else set()
        more = (
            f", dependsOn: [{', '.join(sorted(depends))}], deleteAfter: [{', '.join(sorted(after))}], when: spec.{name}"
        )
        lines.append(one(name, more))
        before[name] |= after
        for each in depends if reverse else ():
            before[each].add(name)
    head = "deletionOrder: reverse\n" if reverse else ""
    return f"{head}children:\n{''.join(lines)}", names, before


@pytest.mark.slow
@given(orders(), st.randoms(use_true_random=False))
def test_no_object_is_deleted_before_those_that_it_waits_for(
    found: tuple[str, list[str], dict[str, set[str]]], chance
) -> None:
    """Whatever is held, edited, lost or collected in between; and in the end all are gone."""
    body, names, before = found
    harness = settled(body, dict.fromkeys(names, True))
    delete = harness.delete

    def checked(key_: ObjectKey) -> None:
        ends = harness.resource is None or "deletionTimestamp" in harness.resource["metadata"]
        leaving = {each for each in before[key_.name] if ends or not harness.resource["spec"][each]}
        assert not {each for each in leaving if key(each) in harness.objects}, key_.name
        delete(key_)

    harness.delete = checked  # type: ignore[method-assign]
    for each in names:
        if chance.random() < 0.5:
            hold(harness, each)
    edits, is_foreground = chance.randrange(4), chance.random() < 0.5
    for turn in itertools.count():
        assert turn < 60, "still there"
        if turn < edits:
            harness.edit({**harness.resource["spec"], chance.choice(names): False})
        elif turn == edits:
            harness.end()
        if harness.resource is None:
            break
        held = [key_ for key_, obj in harness.objects.items() if obj["metadata"].get("finalizers")]
        is_calm = turn > 20  # nobody is held, and nothing crashes for ever
        if held and (is_calm or chance.random() < 0.6):
            let_go(harness, chance.choice(sorted(held)).name)
        if turn >= edits and is_foreground:
            foreground(harness)
        crashes = not is_calm and chance.random() < 0.2
        harness.step(crash_after=chance.randrange(3) if crashes else None)
    for each in [key_ for key_, obj in harness.objects.items() if obj["metadata"].get("finalizers")]:
        let_go(harness, each.name)
    assert harness.objects == {}
