"""An executor between an API server and stores, both with an App and its children."""

from __future__ import annotations

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.merge import merge_patch
from ruleop.operator.cache.own_writes import OwnWrites
from ruleop.operator.passes.executor import Executor
from ruleop.planning import AddFinalizer, Create, Delete, Outcome, Patch, RemoveFinalizer, ServerSideApply
from tests.operator.children import APP, child
from tests.operator.fake_stores import FakeStores, as_kept
from tests.operator.server import Server

OURS = "ruleop.dev/ruleop"
OWNER = ObjectKey.of(APP)
WRITES = ("create", "patch", "update", "apply", "delete")


class ExecutorHarness:
    def __init__(self, *children):
        self.server = Server(APP, *children)
        self.stores = FakeStores(map(self.server.live, self.server.object_keys()))
        self.executor = Executor(self.server.api, self.stores, OwnWrites())
        self.app = self.stored("web", "App")

    def key(self, name, kind="ConfigMap"):
        return ObjectKey("example.com" if kind == "App" else "", kind, "shop", name)

    def stored(self, name, kind="ConfigMap"):
        return self.stores.objects.get(self.key(name, kind))

    def live(self, name, kind="ConfigMap"):
        return self.server.live(self.key(name, kind))

    def knows_what_is(self, name, kind="ConfigMap"):
        live = self.live(name, kind)
        assert self.stored(name, kind) == (None if live is None else as_kept(live))

    async def execute(self, *actions) -> Outcome:
        return await self.executor.execute(actions, self.app)

    # One action of each kind, on the object "a".

    def create(self, name="a", **more):
        return Create(self.key(name), name, child(name, data={"x": "new"}), "digest", **more)

    def patch(self, name="a", **more):
        live = self.stored(name)
        desired = {**live, "data": {"x": "new"}}
        return Patch(
            self.key(name),
            name,
            patch_of(live, desired),
            live,
            desired,
            "digest",
            sent=child(name, data={"x": "new"}),
            **more,
        )

    def release(self, name="a", id_=None, **more):
        live = self.stored(name)
        metadata = {key: value for key, value in live["metadata"].items() if key not in {"labels", "ownerReferences"}}
        desired = {**live, "metadata": metadata}
        return Patch(
            self.key(name), name if id_ is None else id_, patch_of(live, desired), live, desired, "", "released", **more
        )

    def apply(self, name="a", **more):
        live = self.stored(name)
        body = child(name, data={"x": "new"})
        body["metadata"]["uid"] = live["metadata"]["uid"]
        return ServerSideApply(self.key(name), name, body, live, "digest", **more)

    def delete(self, name="a", id_=None, **more):
        return Delete(
            self.key(name), name if id_ is None else id_, self.stored(name), more.pop("why", "pruned"), **more
        )


def patch_of(live, desired):
    """The guarded patch from one object to the other."""
    patch = merge_patch(live, desired) or {}
    guards = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **guards}}


def harness_with_action(kind):
    """A harness and one action of the kind, with the verb and the name of its request."""
    harness = ExecutorHarness() if kind == "create" else ExecutorHarness(child("a", data={"x": "old"}))
    if kind == "add":
        return harness, AddFinalizer(OWNER, OURS), ("patch", "web")
    if kind == "remove":
        metadata = {**harness.app["metadata"], "finalizers": ["somebody.else/has-one", OURS]}
        harness.stores.put(harness.server.edit(OWNER, metadata=metadata))
        harness.app = harness.stored("web", "App")
        return harness, RemoveFinalizer(OWNER, OURS), ("patch", "web")
    return harness, getattr(harness, kind)(), (kind, "a")
