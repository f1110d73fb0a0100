"""Each event is mapped to all CRs that it concerns, and to few others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import GroupKind, ObjectKey
from ruleop.operator.cache.cache import Index
from ruleop.operator.queue.work_queue import Request
from ruleop.planning.model.targets import Target

POD, NODE = GroupKind("", "Pod"), GroupKind("", "Node")
WEB, DB = Request("shop", "web"), Request("shop", "db")


def obj(name="p", namespace="shop", kind="Pod", **labels):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace, "labels": labels}}


def test_a_child_is_mapped_to_its_cr_by_its_label():
    index = Index()
    index.update(WEB, "abc")
    assert index.owner("abc") == WEB
    assert index.owner("other") is None
    assert index.owner("") is None
    index.remove(WEB)
    assert index.owner("abc") is None


def test_an_observed_name_is_one_object():
    index = Index()
    index.update(WEB, "abc", [Target(POD, "shop", "p")])
    assert index.observers_of(obj()) == {WEB}
    assert index.observers_of(obj(name="q")) == set()
    assert index.observers_of(obj(namespace="other")) == set()
    assert index.observers_of(obj(kind="Node")) == set()


def test_targets_without_a_name_match_by_label_or_match_all_objects():
    index = Index()
    index.update(WEB, "abc", [Target(POD, None)])
    index.update(DB, "def", [Target(POD, "shop", labels=(("app", "db"),))])
    assert index.observers_of(obj()) == {WEB}
    assert index.observers_of(obj(namespace="other", app="db")) == {WEB}
    assert index.observers_of(obj(app="db")) == {WEB, DB}


def test_a_target_by_owner_is_each_object_that_names_its_uid():
    index = Index()
    index.update(WEB, "abc", [Target(POD, "shop", owner="uid-1")])
    index.update(DB, "def", [Target(POD, None, owner="uid-2")])
    owned = obj(app="uid-1")
    assert index.observers_of(owned) == set()
    owned["metadata"]["ownerReferences"] = [{"uid": "uid-2"}, {"uid": "uid-1"}]
    assert index.observers_of(owned) == {WEB, DB}
    owned["metadata"]["namespace"] = "other"
    assert index.observers_of(owned) == {DB}
    index.remove(DB)
    assert index.observers_of(owned) == set()


def test_a_cluster_scoped_target_has_no_namespace():
    index = Index()
    index.update(WEB, "abc", [Target(NODE, "", "n")])
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert index.observers_of(node) == {WEB}


def test_targets_change_with_the_cr():
    index = Index()
    index.update(WEB, "abc", [Target(POD, "shop", "p")])
    index.update(WEB, "def", [Target(POD, "shop", "q")])
    assert index.observers_of(obj("p")) == set()
    assert index.observers_of(obj("q")) == {WEB}
    assert index.owner("abc") is None
    assert index.owner("def") == WEB


def test_a_label_that_belongs_to_another_cr_by_now_is_not_removed():
    index = Index()
    index.update(WEB, "abc")
    index.update(DB, "abc")
    index.remove(WEB)
    assert index.owner("abc") == DB


def test_a_removed_cr_leaves_nothing_in_the_index():
    index = Index()
    for number in range(100):
        request = Request("shop", f"cr{number}")
        index.update(
            request,
            f"p{number}",
            [Target(POD, "shop", f"n{number}"), Target(POD, None, labels=(("app", f"{number}"),))],
        )
        index.update(request, f"p{number}", [Target(POD, None, labels=(("app", f"{number}"), ("x", "y")))])
        index.remove(request)
        index.remove(request)
    assert not any(vars(index).values())


def test_a_repeated_update_changes_nothing():
    index = Index()
    for _ in range(2):
        index.update(WEB, "abc", iter([Target(POD, "shop", "p"), Target(POD, "shop", "p")]))
    assert index.observers_of(obj()) == {WEB}


# -- against a model that compares everything with everything ----------------------------------------------------------

_REQUESTS = st.builds(Request, st.sampled_from(["shop", "other"]), st.sampled_from("abc"))
_LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]))
_TARGETS = st.builds(
    Target,
    st.sampled_from([POD, NODE]),
    st.sampled_from(["shop", "other", "", None]),
    st.sampled_from([None, None, "p", "q"]),
    _LABELS.map(lambda labels: tuple(labels.items())),
)
_STEPS = st.lists(st.tuples(_REQUESTS, st.none() | st.lists(_TARGETS, max_size=4)), max_size=20)
_OBJECTS = st.builds(
    lambda kind, namespace, name, labels: {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
    },
    st.sampled_from(["Pod", "Node"]),
    st.sampled_from(["shop", "other", ""]),
    st.sampled_from("pq"),
    st.none() | _LABELS,
)


def concerns(target, obj, *, wide):
    """`wide`: any one label is enough."""
    key, labels = ObjectKey.of(obj), obj["metadata"]["labels"] or {}
    if target.kind != key.group_kind or target.namespace not in {None, key.namespace}:
        return False
    if target.name is not None:
        return target.name == key.name
    found = [labels.get(name) == value for name, value in target.labels]
    return not found or (any(found) if wide else all(found))


@given(steps=_STEPS, objects=st.lists(_OBJECTS, min_size=1))
def test_every_cr_that_an_object_concerns_is_found(steps, objects):
    index, model = Index(), {}
    for request, targets in steps:
        if targets is None:
            index.remove(request)
            model.pop(request, None)
        else:
            index.update(request, f"{request}", targets)
            model[request] = targets
    for each in objects:
        found = index.observers_of(each)
        assert found >= {
            request for request, targets in model.items() if any(concerns(one, each, wide=False) for one in targets)
        }
        assert found <= {
            request for request, targets in model.items() if any(concerns(one, each, wide=True) for one in targets)
        }
    for request in {request for request, _ in steps}:
        assert index.owner(f"{request}") == (request if request in model else None)
