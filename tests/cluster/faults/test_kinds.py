"""Kinds and namespaces are deleted while they have resources and children, and the connection to the server is slow."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import yaml

from tests.cluster.faults.lab import PROJECT, Lab, is_quiet
from tests.cluster.faults.proxy import Call
from tests.cluster.server import CRDS


def definition(plural: str) -> dict[str, Any]:
    return yaml.safe_load((PROJECT / f"crds/{plural}.yaml").read_text())  # type: ignore[no-any-return]


def undefine(lab: Lab, plural: str) -> None:
    name = f"{plural}.faults.example.com"
    lab.admin.delete(f"{CRDS}/{name}")
    lab.eventually("the definition to go", lambda: not lab.admin.exists(f"{CRDS}/{name}"))


def define(lab: Lab, plural: str) -> None:
    lab.admin.post(CRDS, definition(plural))
    lab.eventually(
        "the kind to be served",
        lambda: lab.admin.get(
            lab.path("configmaps").replace("/api/v1", "/apis/faults.example.com/v1").replace("configmaps", plural)
        ),
    )


@contextlib.contextmanager
def slowly(lab: Lab) -> Iterator[None]:
    async def wait(_call: Call) -> None:
        await asyncio.sleep(0.3)

    lab.proxy.before = wait
    yield


def test_a_watched_kind_is_removed_and_added_again(lab: Lab) -> None:
    """Its resources are deleted with it. The operator reconciles those of the next definition, and does not give them
    the old children."""
    with slowly(lab):
        lab.make("ledgers", "old", "Ledger", spec={"text": "old", "pages": ["a"]})
        lab.eventually("the ledger", lambda: lab.is_observed("ledgers", "old", "Ready"))
        # ruleop's finalizer keeps the definition until the last resource is gone: before, the children of `finalize`
        # are made.
        lab.admin.delete(f"{CRDS}/ledgers.faults.example.com")
        lab.eventually("the closing", lambda: lab.get("configmaps", "old-closing"))
        lab.edit("configmaps", "old-closing", {"metadata": {"annotations": {"example.com/done": "yes"}}})
        lab.eventually("the definition to go", lambda: not lab.admin.exists(f"{CRDS}/ledgers.faults.example.com"))
        define(lab, "ledgers")
        lab.make("ledgers", "new", "Ledger", spec={"text": "new", "pages": ["a"]})
        lab.eventually("the ledger", lambda: lab.is_observed("ledgers", "new", "Ready"))
    lab.check()


def test_children_of_a_removed_kind_are_recreated_when_the_kind_returns(lab: Lab) -> None:
    with slowly(lab):
        lab.make("heaps", "all", "Heap", spec={"text": "one", "thing": True, "parts": [{"name": "a", "text": "one"}]})
        lab.eventually("the heap", lambda: lab.is_observed("heaps", "all", "Ready"))
        undefine(lab, "things")
        try:
            found = lab.eventually("its status", lambda: not_ready(lab))
            assert "Thing" in lab.condition(found)["message"]
            lab.edit("heaps", "all", {"spec": {"parts": [{"name": "a", "text": "two"}]}})
            lab.eventually("the other child", lambda: lab.get("configmaps", "all-a")["data"]["text"] == "two")
            while not is_quiet(lab.proxy):
                pass
        finally:
            define(lab, "things")
        lab.eventually("the heap", lambda: lab.is_observed("heaps", "all", "Ready"))
        thing = lab.admin.get(f"/apis/faults.example.com/v1/namespaces/{lab.namespace}/things/all")
        assert thing["spec"] == {"text": "oneoneone"}
    lab.check()


def not_ready(lab: Lab) -> Any:
    heap = lab.get("heaps", "all")
    return heap if lab.condition(heap)["status"] == "False" else None


def test_a_namespace_deleted_while_children_are_created(lab: Lab) -> None:
    """Creations in it are not retried without end. The finalizer does not block the namespace, because nothing can be
    created in it."""
    with slowly(lab):
        lab.make("heaps", "all", "Heap", spec={"parts": [{"name": f"p{number}", "text": "x"} for number in range(40)]})
        lab.make("ledgers", "all", "Ledger", spec={"text": "one", "pages": ["a"]})
        lab.eventually("the ledger", lambda: lab.is_observed("ledgers", "all", "Ready"))
        lab.eventually("the first children", lambda: lab.get("configmaps", "all-p1"))
        lab.admin.delete(f"/api/v1/namespaces/{lab.namespace}")
        for resource, name in (
            ("ledgers", "all"),
            ("heaps", "all"),
        ):  # as its controller would, which does not run here
            lab.admin.delete(lab.path(resource, name))
        lab.eventually("the ledger to go", lambda: not lab.admin.exists(lab.path("ledgers", "all")))
        lab.eventually("the heap to go", lambda: not lab.admin.exists(lab.path("heaps", "all")))
        while not is_quiet(lab.proxy):
            pass
    refused = [str(call) for call in lab.proxy.calls if call.is_write and call.status == 403]
    assert len(refused) < 60, json.dumps(refused)
    lab.check()
