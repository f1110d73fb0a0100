"""A resource of the maximum size, a child that is too large for the server, and a resource with a thousand children."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.cluster.faults.lab import Lab, is_quiet

MANY = 1000


def parts(count: int) -> list[dict[str, Any]]:
    return [{"name": f"p{number}", "text": "x"} for number in range(count)]


def rest(lab: Lab) -> None:
    while not is_quiet(lab.proxy):
        pass


def test_a_cr_of_a_megabyte_is_reconciled(lab: Lab) -> None:
    text = "a line of the text\n" * 50_000
    lab.make("heaps", "large", "Heap", spec={"text": text, "parts": [{"name": "a", "text": "one"}]})
    lab.eventually("its child", lambda: lab.is_observed("heaps", "large", "Ready"))
    rest(lab)
    mark = lab.proxy.mark()
    lab.edit("heaps", "large", {"spec": {"parts": [{"name": "a", "text": "two"}]}})
    lab.eventually("the edit", lambda: lab.get("configmaps", "large-a")["data"]["text"] == "two")
    lab.make("heaps", "small", "Heap", spec={"text": "t", "parts": parts(1)})
    lab.eventually("the other one", lambda: lab.is_observed("heaps", "small", "Ready"))
    lab.eventually("the large one", lambda: lab.is_observed("heaps", "large", "Ready"))
    assert lab.proxy.written(mark).count("patch configmaps large-a") == 1
    assert lab.proxy.written(mark).count("patch heaps/status large") == 1


def test_a_child_that_is_too_large_is_reported_and_stops_no_other(lab: Lab) -> None:
    """A ConfigMap of more than one megabyte is invalid; an object of almost three exceeds the limit of etcd; one of
    four is not sent."""
    small, large = {"name": "small", "text": "x"}, {"name": "more", "text": "x" * 1000, "times": 2000}
    lab.make("heaps", "all", "Heap", spec={"parts": [small, large], "text": "x" * 900_000, "thing": True})
    found = lab.eventually("its status", lambda: lab.is_observed("heaps", "all", "ApplyFailed"))
    message = lab.condition(found)["message"]
    assert "all-more" in message
    assert "may not be more than 1048576 bytes" in message
    assert "things.faults.example.com" in message
    assert "too large" in message
    assert len(message) < 2000
    assert lab.condition(found, "Stalled")["status"] == "True"
    lab.eventually("the child that is not too large", lambda: lab.get("configmaps", "all-small"))
    lab.make("heaps", "other", "Heap", spec={"parts": parts(2)})
    lab.eventually("the other one", lambda: lab.is_observed("heaps", "other", "Ready"))
    rest(lab)
    tries = Counter(str(call) for call in lab.proxy.calls if call.is_write)
    assert all(times < 15 for times in tries.values()), tries
    lab.edit("heaps", "all", {"spec": {"parts": [small, {**large, "times": 4000}], "text": ""}})
    found = lab.eventually("its status", lambda: lab.is_observed("heaps", "all", "RenderFailed"))
    assert "4,000,000 characters" in lab.condition(found)["message"]
    lab.edit("heaps", "all", {"spec": {"parts": [small]}})
    lab.eventually("it to be well again", lambda: lab.is_observed("heaps", "all", "Ready"))


def test_a_rejected_status_is_reported_in_the_condition(lab: Lab) -> None:
    """A status that the schema rejects, and one with which the resource exceeds the limit of etcd."""
    lab.make("heaps", "web", "Heap", spec={"parts": parts(2), "said": "much"})
    found = lab.eventually("its status", lambda: lab.is_observed("heaps", "web", "StatusRefused"))
    assert "watches.yaml" in lab.condition(found)["message"]
    assert "status.said" in lab.condition(found)["message"]
    lab.eventually("the children", lambda: lab.get("configmaps", "web-p1"))
    lab.edit("heaps", "web", {"spec": {"parts": parts(1), "said": None}})
    assert lab.eventually("it to be well", lambda: lab.is_observed("heaps", "web", "Ready"))["status"]["parts"] == 1
    lab.edit("heaps", "web", {"spec": {"text": "x" * 900_000, "noted": True}})
    found = lab.eventually("its status", lambda: lab.is_observed("heaps", "web", "StatusRefused"))
    assert "too large" in lab.condition(found)["message"]
    assert found["status"]["parts"] == 1
    rest(lab)
    assert lab.proxy.written(0).count("patch heaps/status web") < 10


def test_a_cr_with_a_thousand_children_does_not_delay_others(lab: Lab) -> None:
    """Each is created once, another resource does not wait for them, an edit of one item costs one write, and all have
    the owner."""
    heap = lab.make("heaps", "many", "Heap", spec={"parts": parts(MANY)})
    lab.eventually("the first children", lambda: len(lab.proxy.writes()) > 20)
    lab.make("heaps", "other", "Heap", spec={"parts": parts(1)})
    lab.eventually("the other one", lambda: lab.get("configmaps", "other-p0"))
    made = [str(call) for call in lab.proxy.writes()]
    assert len(made) < MANY  # the thousand were not waited for
    found = lab.eventually("all of them", lambda: lab.is_observed("heaps", "many", "Ready"))
    assert found["status"]["parts"] == MANY
    rest(lab)
    assert set(lab.proxy.creates_and_deletes().values()) == {1}
    mark = lab.proxy.mark()
    lab.edit("heaps", "many", {"spec": {"parts": [*parts(MANY - 1), {"name": f"p{MANY - 1}", "text": "another"}]}})
    lab.eventually("the edit", lambda: lab.get("configmaps", f"many-p{MANY - 1}")["data"]["text"] == "another")
    lab.eventually("its status", lambda: lab.is_observed("heaps", "many", "Ready"))
    rest(lab)
    assert lab.proxy.written(mark) == [f"patch configmaps many-p{MANY - 1}", "patch heaps/status many"]
    uid = heap["metadata"]["uid"]
    children = [
        each for each in lab.admin.get(lab.path("configmaps"))["items"] if each["metadata"]["name"].startswith("many-")
    ]
    assert len(children) == MANY
    assert all([each["uid"] for each in child["metadata"]["ownerReferences"]] == [uid] for child in children)
    mark = lab.proxy.mark()
    lab.edit("heaps", "many", {"spec": {"parts": parts(2)}})
    lab.eventually("those that are not wanted to go", lambda: len(lab.admin.get(lab.path("configmaps"))["items"]) <= 5)
    assert len({each for each in lab.proxy.written(mark) if each.startswith("delete")}) == MANY - 2
