"""The wire on a real API server: what the scripted servers of tests/operator/wire only pretend."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from ruleop.kubernetes.builtin.table import ResourceInfo, builtin_resource
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.operator.wire.auth.credentials import find_credentials
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import Client, Session
from ruleop.operator.wire.client.discovery import Discovery
from ruleop.operator.wire.client.event_recorder import EventRecorder, ObjectEvent
from ruleop.operator.wire.client.requests import ObjectSource
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.leader.election import Election
from ruleop.operator.wire.leader.lease import Timing
from ruleop.operator.wire.watch.reflector import Phase
from ruleop.operator.wire.watch.store import EntryOrigin, StoreState
from ruleop.operator.wire.watch.watcher import Watcher


def builtin(group: str, version: str, kind: str) -> ResourceInfo:
    found = builtin_resource(Kind(group, version, kind))
    assert found is not None
    return found


MAPS = builtin("", "v1", "ConfigMap")
DEPLOYMENTS = builtin("apps", "v1", "Deployment")
CRDS = builtin("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


@contextlib.asynccontextmanager
async def client_of(plane: ControlPlane, user: str = "admin", **options: Any) -> AsyncIterator[Client]:
    session = await Session.open(find_credentials(str(plane.kubeconfig(user))))
    try:
        yield Client(session, **options)
    finally:
        await session.close()


def config_map(namespace: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} | fields.pop("metadata", {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


def map_key(namespace: str, name: str) -> ObjectKey:
    return ObjectKey("", "ConfigMap", namespace, name)


async def until(condition: Callable[[], Any], wake: Watcher | None = None) -> Any:
    while not (found := condition()):
        if wake is not None:
            wake.wake()
        await asyncio.sleep(0.02)
    return found


async def refusal(client: Client, request: requests.PreparedRequest) -> Problem | None:
    """The error of the server; None if it carries out the request."""
    try:
        await client.send(request)
    except ApiError as error:
        return error.problem
    return None


class Watching:
    """A watcher for the length of a block, synced when the block begins."""

    def __init__(self, client: Client, source: ObjectSource) -> None:
        self.watcher = Watcher(client, source)

    async def __aenter__(self) -> Watcher:
        self.watcher.start()
        await until(lambda: self.watcher.store.state is StoreState.SYNCED)
        return self.watcher

    async def __aexit__(self, *_: object) -> None:
        await self.watcher.stop()
        assert self.watcher.crashes == 0


async def test_a_store_follows_the_server(control_plane: ControlPlane, namespace: str) -> None:
    async with client_of(control_plane) as client:
        await client.send(requests.create(MAPS, config_map(namespace, "before", data={"a": "1"})))
        async with Watching(client, ObjectSource(MAPS, namespace)) as watcher:
            store = watcher.store
            assert watcher.reflector.phase is Phase.WATCHING, "the list came as a stream"
            assert store.get(map_key(namespace, "before"))["data"] == {"a": "1"}
            changes: list[Any] = []
            store.subscribe(changes.append)
            made = await client.send(requests.create(MAPS, config_map(namespace, "x", data={"a": "1"})))
            store.put(made)
            key = map_key(namespace, "x")
            assert store.is_at_least(made["metadata"]["resourceVersion"], key)
            read = await client.send(requests.get(MAPS, key))
            del read["metadata"]["managedFields"]
            assert store.get(key) == read
            patched = await client.send(requests.merge_patch(MAPS, key, {"data": {"a": "2"}}))
            await until(lambda: store.is_at_least(patched["metadata"]["resourceVersion"]))
            await client.send(requests.delete(MAPS, key, uid=made["metadata"]["uid"]))
            await until(lambda: key not in store)
            mine = [change for change in changes if change.key == key]
            assert [change.new is None for change in mine] == [False, False, True]
            assert all(change.origin in {EntryOrigin.WATCH, EntryOrigin.WRITE} for change in mine)


async def test_a_watch_with_a_selector_and_metadata_only_stores_only_these(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with client_of(control_plane) as client:
        for name, labels in (("ours", {"ruleop.dev/part-of": "abc"}), ("theirs", {})):
            await client.send(
                requests.create(
                    MAPS, config_map(namespace, name, data={"big": "x" * 5000}, metadata={"labels": labels})
                )
            )
        source = ObjectSource(MAPS, namespace, labels="ruleop.dev/part-of", metadata_only=True)
        async with Watching(client, source) as watcher:
            store = watcher.store
            assert [key.name for key in store.select_keys()] == ["ours"]
            assert store.statistics().bytes < 1000
            (child,) = store.children("abc")
            assert (child["kind"], child["apiVersion"]) == ("ConfigMap", "v1")
            assert "data" not in child
            await client.send(
                requests.merge_patch(
                    MAPS, map_key(namespace, "ours"), {"metadata": {"labels": {"ruleop.dev/part-of": None}}}
                )
            )
            await until(lambda: not store.select_keys())
        one = await client.send(requests.get(MAPS, map_key(namespace, "ours"), metadata_only=True))
        assert one["kind"] == "PartialObjectMetadata"


async def test_lists_are_paged_without_streaming_lists(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ruleop.operator.wire.watch.reflector.PAGE", 2)
    async with client_of(control_plane) as client:
        for number in range(5):
            await client.send(requests.create(MAPS, config_map(namespace, f"m{number}")))
        watcher = Watcher(client, ObjectSource(MAPS, namespace))
        watcher.reflector._can_stream = False
        watcher.reflector._page_size = 2
        seen: list[Any] = []
        watcher.store.subscribe(seen.append)
        watcher.start()
        await until(lambda: watcher.store.state is StoreState.SYNCED)
        assert {key.name for key in watcher.store.select_keys()} >= {f"m{number}" for number in range(5)}
        ours = [change for change in seen if change.key.name.startswith("m")]  # a controller makes kube-root-ca.crt
        assert {change.origin for change in ours} == {EntryOrigin.LIST}
        made = await client.send(requests.create(MAPS, config_map(namespace, "later")))
        await until(lambda: watcher.store.is_at_least(made["metadata"]["resourceVersion"]))
        await watcher.stop()


@pytest.mark.newest("lists are streams")
async def test_an_expired_version_causes_a_relist_without_losing_deletions(
    control_plane: ControlPlane, namespace: str
) -> None:
    """An API server says 410 for versions from before its start."""
    async with client_of(control_plane) as client:
        gone = await client.send(requests.create(MAPS, config_map(namespace, "gone")))
        async with Watching(client, ObjectSource(MAPS, namespace)) as watcher:
            await watcher.stop()
            await client.send(requests.delete(MAPS, map_key(namespace, "gone"), uid=gone["metadata"]["uid"]))
            await client.send(requests.create(MAPS, config_map(namespace, "new")))
            await asyncio.to_thread(control_plane.restart_apiserver)
            again = Watcher(client, watcher.store.source)
            again.store, again.reflector = watcher.store, watcher.reflector  # as if it had been cut off in between
            again.start()
            await until(lambda: map_key(namespace, "gone") not in watcher.store, wake=again)
            assert map_key(namespace, "new") in watcher.store
            assert again.reflector.lists == 2
            await again.stop()


async def test_a_bookmark_updates_the_version_of_the_kind(control_plane: ControlPlane, namespace: str) -> None:
    """So a store in which nothing happens knows that nothing happened. (The regular ones come once a minute: no test
    waits for that.)"""
    async with client_of(control_plane) as client:
        elsewhere = await client.send(requests.create(MAPS, config_map("default", f"e-{namespace}"[:60].strip("-"))))
        async with Watching(client, ObjectSource(MAPS, namespace, labels="none=such")) as watcher:
            assert len(watcher.store) == 0
            assert watcher.store.is_at_least(elsewhere["metadata"]["resourceVersion"])


async def test_watches_resume_after_a_restart_of_the_api_server(control_plane: ControlPlane, namespace: str) -> None:
    async with client_of(control_plane) as client, Watching(client, ObjectSource(MAPS, namespace)) as watcher:
        await asyncio.to_thread(control_plane.stop_apiserver)
        await until(lambda: watcher.store.problem)
        assert watcher.store.state is StoreState.SYNCED, "what it knows is still the best there is"
        with pytest.raises(ApiError) as caught:
            await client.send(requests.get(MAPS, map_key(namespace, "x")))
        assert caught.value.problem in {Problem.UNREACHABLE, Problem.TIMEOUT}
        await asyncio.to_thread(control_plane.start_apiserver)
        made = await client.send(requests.create(MAPS, config_map(namespace, "after")))
        await until(lambda: watcher.store.is_at_least(made["metadata"]["resourceVersion"]), wake=watcher)
        await until(lambda: watcher.store.problem == "")


async def test_watches_resume_after_a_hanging_api_server(control_plane: ControlPlane, namespace: str) -> None:
    async with client_of(control_plane) as client, Watching(client, ObjectSource(MAPS, namespace)) as watcher:
        await refusal(
            client, requests.get(MAPS, map_key(namespace, "maybe"))
        )  # so that there is a connection to send on
        control_plane.pause_apiserver()
        try:
            with pytest.raises(ApiError) as caught:
                await client.send(replace(requests.create(MAPS, config_map(namespace, "maybe")), timeout=0.5))
        finally:
            control_plane.resume_apiserver()
        assert caught.value.outcome_unknown
        # Only a live read tells: it may have been done, or not, or be done just now.
        assert await refusal(client, requests.create(MAPS, config_map(namespace, "maybe"))) in {
            None,
            Problem.EXISTS,
        }
        await until(lambda: map_key(namespace, "maybe") in watcher.store)


async def test_writes_with_outdated_preconditions_are_refused(control_plane: ControlPlane, namespace: str) -> None:
    async with client_of(control_plane) as client:
        key = map_key(namespace, "x")
        made = await client.send(requests.create(MAPS, config_map(namespace, "x", data={"a": "1"})))
        version, uid = made["metadata"]["resourceVersion"], made["metadata"]["uid"]
        with pytest.raises(ApiError) as exists:
            await client.send(requests.create(MAPS, config_map(namespace, "x")))
        assert exists.value.problem is Problem.EXISTS
        await client.send(
            requests.merge_patch(MAPS, key, {"data": {"b": "2"}, "metadata": {"resourceVersion": version}})
        )
        for stale in (
            requests.merge_patch(MAPS, key, {"data": {"b": "3"}, "metadata": {"resourceVersion": version}}),
            requests.replace(MAPS, key, made),
            requests.delete(MAPS, key, uid=uid, version=version),
            requests.delete(MAPS, key, uid=str(uuid.uuid4())),
        ):
            with pytest.raises(ApiError) as conflict:
                await client.send(stale)
            assert conflict.value.problem is Problem.CONFLICT
        with pytest.raises(ApiError) as failed_test:
            await client.send(
                requests.json_patch(MAPS, key, [{"op": "test", "path": "/metadata/resourceVersion", "value": version}])
            )
        assert failed_test.value.problem is Problem.INVALID
        with pytest.raises(ApiError, match='unknown field "dada"') as strict:
            await client.send(requests.create(MAPS, config_map(namespace, "y", dada={})))
        assert strict.value.problem is Problem.INVALID
        await client.send(requests.delete(MAPS, key, uid=uid))
        with pytest.raises(ApiError) as missing:
            await client.send(requests.get(MAPS, key))
        assert missing.value.problem is Problem.NOT_FOUND


async def test_server_side_apply_has_conflicts_unless_forced(control_plane: ControlPlane, namespace: str) -> None:
    async with client_of(control_plane) as client:
        key = map_key(namespace, "x")
        wanted = config_map(namespace, "x", data={"a": "1"})
        await client.send(requests.apply(MAPS, key, wanted))
        await client.send(requests.merge_patch(MAPS, key, {"data": {"a": "theirs"}}, manager="somebody"))
        with pytest.raises(ApiError) as conflict:
            await client.send(requests.apply(MAPS, key, wanted))
        assert conflict.value.problem is Problem.CONFLICT
        assert [cause.field for cause in conflict.value.causes] == [".data.a"]
        assert (await client.send(requests.apply(MAPS, key, wanted, force=True)))["data"] == {"a": "1"}


async def test_immutable_fields_are_recognised(control_plane: ControlPlane, namespace: str) -> None:
    async with client_of(control_plane) as client:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        metadata = {"name": "web", "namespace": namespace}
        stateful = builtin("apps", "v1", "StatefulSet")
        for resource in (DEPLOYMENTS, stateful):
            body = {"apiVersion": "apps/v1", "kind": resource.kind.kind, "metadata": metadata, "spec": spec}
            await client.send(requests.create(resource, body))
            key = ObjectKey.of(body)
            selector, labels = {"matchLabels": {"a": "c"}}, {"metadata": {"labels": {"a": "c"}}}
            with pytest.raises(ApiError) as caught:
                await client.send(
                    requests.merge_patch(resource, key, {"spec": {"selector": selector, "template": labels}})
                )
            assert caught.value.problem is Problem.INVALID
            assert caught.value.immutable
            with pytest.raises(ApiError) as caught:
                await client.send(requests.merge_patch(resource, key, {"spec": {"selector": selector}}))
            assert caught.value.problem is Problem.INVALID
            assert not caught.value.immutable, (
                "the template's labels do not match the selector either: a new object would be refused too"
            )
        with pytest.raises(ApiError) as negative:
            await client.send(
                requests.merge_patch(
                    DEPLOYMENTS, ObjectKey("apps", "Deployment", namespace, "web"), {"spec": {"replicas": -1}}
                )
            )
        assert not negative.value.immutable
        assert [cause.field for cause in negative.value.causes] == ["spec.replicas"]


@pytest.mark.real_server("RBAC refuses")
async def test_a_missing_permission_is_logged_and_the_watch_starts_when_it_is_granted(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with client_of(control_plane, user="tenant") as client:
        watcher = Watcher(client, ObjectSource(MAPS, namespace))
        watcher.start()
        await until(lambda: watcher.store.state is StoreState.FORBIDDEN)
        assert 'cannot watch resource "configmaps"' in watcher.store.problem
        with pytest.raises(ApiError, match=r'create configmaps .*/x: .*cannot create resource "configmaps"') as caught:
            await client.send(requests.create(MAPS, config_map(namespace, "x")))
        assert caught.value.problem is Problem.FORBIDDEN
        control_plane.kubectl(
            "create", "rolebinding", "tenant", "--clusterrole=edit", "--user=tenant", f"--namespace={namespace}"
        )
        await until(lambda: watcher.store.state is StoreState.SYNCED, wake=watcher)
        await watcher.stop()


async def test_a_kind_is_added_changes_its_scope_and_is_removed(control_plane: ControlPlane, namespace: str) -> None:
    plural = f"gadgets{uuid.uuid4().hex[:8]}"
    kind = Kind("wire.example.com", "v1", plural.capitalize())
    name = ObjectKey(CRDS.kind.group, CRDS.kind.kind, "", f"{plural}.{kind.group}")

    def definition(scope: str) -> dict[str, Any]:
        spec_schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec_schema, "status": spec_schema}}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
        names = {"plural": plural, "kind": kind.kind}
        return {
            "apiVersion": CRDS.kind.api_version,
            "kind": CRDS.kind.kind,
            "metadata": {"name": name.name},
            "spec": {"group": kind.group, "scope": scope, "names": names, "versions": [version]},
        }

    async def create_when_gone(client: Client, body: dict[str, Any]) -> None:
        while (problem := await refusal(client, requests.create(CRDS, body))) is not None:
            assert problem is Problem.EXISTS
            await asyncio.sleep(0.05)

    async with client_of(control_plane) as client:
        discovery = Discovery(client)

        async def noticed(how: str) -> None:
            while kind not in getattr(await discovery.refresh(), how):  # noqa: ASYNC110 - the same
                await asyncio.sleep(0.05)

        await discovery.refresh()
        assert discovery.get(kind) is None
        assert discovery.get(DEPLOYMENTS.kind).info == DEPLOYMENTS
        assert not await discovery.refresh(), "nothing changed, and nothing was sent again"
        crd = await client.send(requests.create(CRDS, definition("Namespaced")))
        await noticed("appeared")
        served = discovery.get(kind)
        assert served.info == ResourceInfo(plural, True, True, kind)
        assert {"list", "watch"} <= served.verbs
        assert discovery.get(kind.versionless) == served
        while (documents := await discovery.openapi(kind.group, kind.version)) is None or documents.shape(kind) is None:
            await asyncio.sleep(0.2)
            await discovery.refresh()
        assert documents.shape(kind).fields["spec"].fields["size"].scalar == "integer"
        assert await discovery.openapi(kind.group, kind.version) is documents
        async with Watching(client, ObjectSource(served.info)) as watcher:
            body = {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "metadata": {"name": "g", "namespace": namespace},
                "spec": {"size": 1},
            }
            made = await client.send(requests.create(served.info, body))
            key = ObjectKey.of(body)
            await client.send(requests.merge_patch(served.info, key, {"status": {"size": 1}}, subresource="status"))
            await until(lambda: key in watcher.store)
            with pytest.raises(ApiError, match="unknown field"):
                await client.send(requests.merge_patch(served.info, key, {"spec": {"sise": 1}}))
            await client.send(requests.delete(CRDS, name, uid=crd["metadata"]["uid"]))
            await until(lambda: watcher.store.state is StoreState.UNSERVED, wake=watcher)
            assert made["metadata"]["uid"]
            assert len(watcher.store) == 0
            await noticed("gone")
            await create_when_gone(client, definition("Cluster"))
            await noticed("appeared")
            assert not discovery.get(kind).info.namespaced
            await until(lambda: watcher.store.state is StoreState.SYNCED, wake=watcher)
        crd = await client.send(requests.get(CRDS, name))
        await client.send(requests.delete(CRDS, name, uid=crd["metadata"]["uid"]))


@pytest.mark.real_server("tokens that expire")
async def test_rejected_and_rotated_tokens_are_replaced(
    control_plane: ControlPlane, namespace: str, tmp_path: Any
) -> None:
    """A bound token of a service account, in a file that is replaced."""
    config = tmp_path / "config"
    token = tmp_path / "token"
    control_plane.kubectl(
        "create",
        "rolebinding",
        "default",
        "--clusterrole=edit",
        f"--serviceaccount={namespace}:default",
        f"--namespace={namespace}",
    )
    text = control_plane.kubeconfig("admin").read_text()
    admin = control_plane.users["admin"].token
    config.write_text(text.replace(f"token: {admin}", f"tokenFile: {token}"))
    token.write_text("of-nobody")
    session = await Session.open(find_credentials(str(config)))
    client = Client(session)
    with pytest.raises(ApiError) as caught:
        await client.send(requests.get(MAPS, map_key(namespace, "x")))
    assert caught.value.problem is Problem.UNAUTHORIZED
    token.write_text(control_plane.kubectl("create", "token", "default", f"--namespace={namespace}"))
    while (problem := await refusal(client, requests.create(MAPS, config_map(namespace, "x")))) is not None:
        assert problem is Problem.FORBIDDEN  # until the binding is known
        await asyncio.sleep(0.05)
    await session.close()


@pytest.mark.real_server("kubectl describe")
async def test_events_are_recorded_and_counted(control_plane: ControlPlane, namespace: str) -> None:
    async with client_of(control_plane) as client:
        made = await client.send(requests.create(MAPS, config_map(namespace, "x")))
        recorder = EventRecorder(client, reporter="ruleop.dev/ruleop", instance="test", clock=time.monotonic)
        recorder.start()
        for _ in range(3):
            recorder.record(
                ObjectEvent(map_key(namespace, "x"), "v1", made["metadata"]["uid"], "Synced", "App synced successfully")
            )
        await recorder.stop(grace=20)
        assert recorder.dropped == 0
        (event,) = control_plane.api().get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
        assert (event["reason"], event["note"], event["series"]["count"]) == ("Synced", "App synced successfully", 3)
        assert "App synced successfully" in control_plane.kubectl(
            "describe", "configmap", "x", f"--namespace={namespace}"
        )


async def test_a_standby_leads_after_the_leader_stops(control_plane: ControlPlane, namespace: str) -> None:
    """A clean stop hands over within the retry period; an API server that is away for longer than the deadline ends the
    leader."""
    credentials = find_credentials(str(control_plane.kubeconfig("admin")))
    key = ObjectKey("coordination.k8s.io", "Lease", namespace, "ruleop")
    timing = Timing(duration=6.0, renew_deadline=4.0, retry_period=0.5)
    lost = threading.Event()
    first = Election(credentials, key, "first", timing=timing, lost=lost.set)
    second = Election(credentials, key, "second", timing=timing, lost=lost.set)
    first.start()
    await first.leading()
    second.start()
    await until(lambda: second.holder == "first")
    assert first.leads()
    assert not second.leads()
    await first.release()
    assert not first.leads()
    await second.leading()
    lease = control_plane.api().get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/ruleop")["spec"]
    assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("second", 1)
    assert not lost.is_set()
    control_plane.pause_apiserver()
    try:
        assert await asyncio.to_thread(lost.wait, 30)
    finally:
        control_plane.resume_apiserver()
    assert not second.leads()
