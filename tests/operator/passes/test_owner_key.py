"""The operator's key: made once, shared by all replicas, replaced without losing children, and read by no rule."""

from __future__ import annotations

import asyncio
import base64
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.manager import remarking
from ruleop.operator.manager.remarking import Remarking
from ruleop.operator.passes.owner_key import ACCEPT_UNPROVEN, KEY, MANAGERS_PROVEN, PREVIOUS_KEY, OwnerKey
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning import Owner
from ruleop.planning.model.managers import FieldsManager, managers_on
from ruleop.planning.model.marks import ITEM, OWNER, PART_OF, KeyedProofs
from tests.invariants.api_server import HOME, ApiServer
from tests.invariants.operator_harness import settled_operator
from tests.invariants.scenarios import run
from tests.operator.fake_config_map import FakeConfigMap
from tests.planning.harness import APP, HEAD, app, config, rule
from tests.projects.cluster import Cluster
from tests.waiting import a_moment, until

FAR = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far}}"
PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
SECRET = ObjectKey("", "Secret", HOME, "ruleop-owner-key")
REVISIONS = ObjectKey("", "ConfigMap", HOME, "ruleop-revisions")
CHILD = ObjectKey("", "ConfigMap", "far", "a")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# -- the Secret --------------------------------------------------------------------------------------------------------


def test_the_first_start_makes_the_key_and_the_next_reads_it():
    secret, lists = FakeConfigMap(), []
    first, second = OwnerKey(secret), OwnerKey(secret, changed=lambda: lists.append(1))
    run(first.load())
    run(second.load())
    assert first.proofs() == second.proofs()
    assert len(first.proofs().keys[0]) == 32
    assert (secret.writes, sorted(secret.data)) == (1, [KEY, MANAGERS_PROVEN])
    assert lists == [1], "what was listed before the key was known is listed again"
    run(second.load())
    assert lists == [1]


async def test_replicas_that_create_the_key_at_once_share_one_key():
    secret = FakeConfigMap()
    keys = [OwnerKey(secret) for _ in range(8)]
    await asyncio.gather(*(key.load() for key in keys))
    assert len({key.proofs() for key in keys}) == 1
    assert secret.writes == 1
    assert secret.refused == 7


class Refusing(FakeConfigMap):
    """Refuses some writes without carrying them out: as a conflict (None), or with an error."""

    def __init__(self, *answers: ApiError | None):
        super().__init__()
        self.answers = list(answers)

    async def write(self, data: dict[str, str], version: str) -> Any:
        if self.answers:
            answer = self.answers.pop(0)
            if answer is not None:
                raise answer
            return None
        return await super().write(data, version)


UNAUTHORIZED = ApiError(Problem.UNAUTHORIZED, verb="create", resource="secrets", text="Unauthorized", status=401)


@pytest.mark.parametrize("answers", [(None,), (UNAUTHORIZED,), (None, UNAUTHORIZED, None)])
def test_a_refused_creation_is_repeated(answers: tuple[ApiError | None, ...], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ruleop.operator.passes.owner_key.PAUSE", 0)
    secret = Refusing(*answers)
    key = OwnerKey(secret)
    run(key.load())
    assert len(key.proofs().keys) == 1
    assert secret.writes == 1


def test_credentials_that_are_never_accepted_are_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ruleop.operator.passes.owner_key.PAUSE", 0)
    with pytest.raises(ApiError, match="Unauthorized"):
        run(OwnerKey(Refusing(*[UNAUTHORIZED] * 20)).load())
    with pytest.raises(RuleopError, match="does not when it is read"):
        run(OwnerKey(Refusing(*[None] * 20)).load())


@pytest.mark.parametrize(
    "data", [{}, {KEY: ""}, {KEY: "?"}, {KEY: encoded("short")}, {KEY: encoded("k" * 32), PREVIOUS_KEY: ""}]
)
def test_an_invalid_key_is_an_error(data: dict[str, str]):
    secret = FakeConfigMap()
    secret.data = data
    with pytest.raises(
        RuleopError, match=r"has no valid `(previous-)?key` \(32 bytes\): restore the Secret, or delete"
    ):
        run(OwnerKey(secret).load())
    assert secret.writes == 0


@pytest.mark.parametrize(
    ("body", "needs"),
    [
        ("children: {a: {template: a.yaml}}", False),
        ("children: {a: {template: a.yaml, deletion: orphan}}", True),
        ("children: {a: {template: a.yaml}}\nfinalize: {b: {template: a.yaml}}", True),
        (FAR, True),
        ("children: {a: {patch: {version: v1, kind: ConfigMap, name: a, fields: {data: {x: y}}}}}", True),
    ],
)
def test_only_rules_with_proofs_in_annotations_or_managers_need_the_key(body: str, needs: bool):
    assert rule(body, a=PLAIN).needs_key == needs


def test_the_key_is_made_once():
    secret = FakeConfigMap()
    key = OwnerKey(secret)
    run(key.ensure())
    run(key.ensure())
    assert (secret.reads, secret.writes) == (1, 1)


class Forbidden(FakeConfigMap):
    async def read(self) -> Any:
        raise ApiError(Problem.FORBIDDEN, verb="get", resource="secrets", text="no")


def test_without_permission_for_the_key_no_proof_is_accepted():
    key = OwnerKey(Forbidden())
    with pytest.raises(ApiError):
        run(key.ensure())
    assert key.proofs() == KeyedProofs()


def test_a_dry_run_creates_no_key_and_accepts_annotations_like_offline_commands():
    for secret in (FakeConfigMap(), Forbidden()):
        key = OwnerKey(secret, dry_run=True)
        run(key.load())
        assert key.proofs() is None
        assert secret.writes == 0


# -- the operator ------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Callable[..., ApiServer]:
    """A cluster with one App, and rules for it."""

    def make(body: str = FAR) -> ApiServer:
        files = {"watches.yaml": HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "  "), "crds/app.yaml": APP}
        for name, text in {**files, "templates/a.yaml": PLAIN}.items():
            file = tmp_path / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        found = Cluster(tmp_path, home="shop", namespaces=("far", HOME))
        found.add(app())
        return ApiServer(found)

    return make


def forget_proofs(server: ApiServer, key: ObjectKey = CHILD) -> None:
    """The child as an earlier version wrote it."""
    note = Owner.of(server.cluster.objects[ObjectKey("example.com", "App", "shop", "web")]).annotation(
        key, orphan=False
    )
    server.cluster.edit(server.cluster.name(key), {"metadata": {"annotations": {OWNER: note}}})


async def remark(harness: Any) -> bool:
    manager = harness.manager
    sweep = Remarking(manager.work.controller_set, manager.known.owner_key, manager.server.api)
    return await sweep.remark_all() and await manager.known.owner_key.settle()


def note_of(server: ApiServer) -> str:
    return server.cluster.objects[CHILD]["metadata"]["annotations"][OWNER]


async def scenario_of_upgrade(server: ApiServer, *, paused: bool, delete_key: bool) -> None:
    async with settled_operator(server):
        pass
    if delete_key:
        server.cluster.vanish(server.cluster.name(SECRET))
    forget_proofs(server)
    if paused:
        server.cluster.edit("App/web", {"metadata": {"annotations": {"ruleop.dev/paused": "true"}}})


@pytest.mark.parametrize("paused", [False, True])
async def test_children_of_earlier_versions_are_written_again_once(cluster: Callable[..., ApiServer], paused: bool):
    server = cluster()
    await scenario_of_upgrade(server, paused=paused, delete_key=True)
    server.forget()
    async with settled_operator(server) as harness:
        assert ACCEPT_UNPROVEN in server.cluster.objects[SECRET]["data"]
        assert ("proof" in note_of(server)) != paused
        assert await remark(harness)
        assert "proof" in note_of(server)
        assert sorted(server.cluster.objects[SECRET]["data"]) == [KEY, MANAGERS_PROVEN]
        assert harness.manager.known.owner_key.proofs().accept_unproven is False
        await harness.until_settled()
    assert [each for each in server.writes() if "configmaps" in each] == ["patch configmaps a"]


async def test_records_of_items_get_a_proof_by_the_new_key(cluster: Callable[..., ApiServer]):
    looped = FAR.replace("a: {", "a: {forEach: '[1]', ")
    server = cluster(f"{looped}\nfinalize: {{b: {{forEachOf: a, template: a.yaml}}}}")
    await scenario_of_upgrade(server, paused=True, delete_key=True)
    before = orjson.loads(server.cluster.objects[CHILD]["metadata"]["annotations"][ITEM])
    async with settled_operator(server) as harness:
        assert await remark(harness)
        after = orjson.loads(server.cluster.objects[CHILD]["metadata"]["annotations"][ITEM])
    assert after.pop("proof") != before.pop("proof")
    assert after == before


async def test_a_proof_removed_after_the_migration_is_not_renewed(cluster: Callable[..., ApiServer]):
    server = cluster()
    await scenario_of_upgrade(server, paused=False, delete_key=False)
    async with settled_operator(server):
        assert "proof" not in note_of(server)
    resource = server.cluster.objects[ObjectKey("example.com", "App", "shop", "web")]
    assert "has no valid proof" in resource["status"]["conditions"][0]["message"]


async def test_a_forged_annotation_outside_of_the_reach_of_the_rule_gets_no_proof(cluster: Callable[..., ApiServer]):
    server = cluster("children: {a: {template: a.yaml, deletion: orphan}}")
    resource = server.cluster.objects[ObjectKey("example.com", "App", "shop", "web")]
    async with settled_operator(server):
        pass
    server.cluster.vanish(server.cluster.name(SECRET))
    owner = Owner.of(resource)
    server.cluster.add(
        config(
            "a",
            {},
            namespace="far",
            labels={PART_OF: owner.part_of},
            annotations={OWNER: owner.annotation(CHILD, orphan=False)},
        )
    )
    async with settled_operator(server) as harness:
        assert await remark(harness)
        assert "proof" not in note_of(server)


async def test_the_task_waits_for_the_initial_pause_and_retries(cluster: Callable[..., ApiServer], monkeypatch):
    monkeypatch.setattr(remarking, "CHECK_INTERVAL", 0.001)
    monkeypatch.setattr(remarking, "RETRY_INTERVAL", 0.001)
    server = cluster()
    await scenario_of_upgrade(server, paused=True, delete_key=True)
    async with settled_operator(server) as harness:
        manager = harness.manager
        results = iter([False, True])
        sweep = Remarking(manager.work.controller_set, manager.known.owner_key, manager.server.api)
        inner = sweep.remark_all

        async def remark_all() -> bool:
            return await inner() and next(results)

        sweep.remark_all = remark_all
        with capture_logs() as lines:
            task = asyncio.create_task(sweep.run())
            await a_moment()
            assert not [line for line in lines if "owner annotations" in line["event"]], "the pause is not over"
            manager.work.controller_set._pause_end.cancel()
            manager.work.controller_set._resume()
            await until("the sweep", lambda: not manager.known.owner_key.unsettled.is_set())
            task.cancel()
        found = [line["event"] for line in lines if "owner annotations" in line["event"]]
    assert found == [
        "owner annotations re-signed",
        "all owner annotations are signed with the current key",
    ]


async def test_a_kind_that_cannot_be_listed_keeps_unproven_annotations_accepted(cluster: Callable[..., ApiServer]):
    server = cluster()
    await scenario_of_upgrade(server, paused=False, delete_key=True)
    async with settled_operator(server) as harness:
        harness.watcher("ConfigMap").refused(403)
        with capture_logs() as lines:
            assert not await remark(harness)
    (line,) = [line for line in lines if line["log_level"] == "warning" and "believed" in line["event"]]
    assert line["kinds"] == ["ConfigMap"]


FIELDS = """
children:
  mark: {patch: {version: v1, kind: ConfigMap, name: settings, fields: {data: {ours: "1"}}}}
"""
SETTINGS = ObjectKey("", "ConfigMap", "shop", "settings")


def managers_of(server: ApiServer) -> list[FieldsManager]:
    return list(managers_on(server.cluster.objects[SETTINGS]))


def forget_managers_proof(server: ApiServer) -> None:
    """The object and the Secret as an earlier version wrote them."""
    live = server.cluster.objects[SETTINGS]
    entries = [
        {**each, "manager": each["manager"].rpartition(":")[0] if each["operation"] == "Apply" else each["manager"]}
        for each in live["metadata"]["managedFields"]
    ]
    server.cluster.edit(server.cluster.name(SETTINGS), {"metadata": {"managedFields": entries}})
    server.cluster.edit(server.cluster.name(SECRET), {"data": {MANAGERS_PROVEN: None}})
    server.forget()


@pytest.mark.parametrize("paused", [False, True])
async def test_managers_of_earlier_versions_are_renamed_once_and_keep_their_fields(
    cluster: Callable[..., ApiServer], paused: bool
):
    server = cluster(FIELDS)
    server.cluster.add(config("settings", {"theirs": "x"}))
    async with settled_operator(server):
        pass
    (before,) = managers_of(server)
    forget_managers_proof(server)
    if paused:
        server.cluster.edit("App/web", {"metadata": {"annotations": {"ruleop.dev/paused": "true"}}})
        server.forget()
    assert managers_of(server)[0].proof == ""
    async with settled_operator(server) as harness:
        assert harness.manager.known.owner_key.unsettled.is_set()
        assert await remark(harness)
        await harness.until_settled()
        assert harness.manager.known.owner_key.proofs().accept_unproven_managers is False
    assert managers_of(server) == [before]
    assert server.cluster.objects[SETTINGS]["data"] == {"theirs": "x", "ours": "1"}
    assert sorted(server.cluster.objects[SECRET]["data"]) == [KEY, MANAGERS_PROVEN]
    assert [each for each in server.writes() if "configmaps" in each] == ["patch configmaps settings"]


async def test_a_manager_without_proof_that_appears_later_is_nobodys(cluster: Callable[..., ApiServer]):
    server = cluster(FIELDS)
    server.cluster.add(config("settings", {"theirs": "x"}))
    async with settled_operator(server):
        pass
    forget_managers_proof(server)
    server.cluster.edit(server.cluster.name(SECRET), {"data": {MANAGERS_PROVEN: encoded("true")}})
    async with settled_operator(server) as harness:
        assert not harness.manager.known.owner_key.unsettled.is_set()
    assert sorted(each.proof != "" for each in managers_of(server)) == [False, True]


async def test_no_rule_reads_or_writes_the_operators_objects(cluster: Callable[..., ApiServer]):
    body = """
    reach: cluster
    observe:
      key: {version: v1, kind: Secret, name: ruleop-owner-key, namespace: %s}
      rules: {version: v1, kind: ConfigMap, name: ruleop-revisions, namespace: %s}
    children:
      c: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: '{{ rules.data.index }}'}}}
      a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: '{{ key.data.key }}'}}}
      b: {adopt: orphans, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: ruleop-inventory, namespace: %s}}}
    """
    server = cluster(body % (HOME, HOME, HOME))
    async with settled_operator(server) as harness:
        harness.manager.known.revisions.put_in_force(server.cluster.project)
        assert await harness.manager.known.revisions.record()
    assert REVISIONS in server.cluster.objects
    async with settled_operator(server):
        pass
    assert not [key for key in server.cluster.objects if key.namespace == "shop" and key.name in {"a", "c"}]
    assert SECRET in server.cluster.objects
    inventory = server.cluster.objects.get(ObjectKey("", "ConfigMap", HOME, "ruleop-inventory"))
    assert inventory is None or PART_OF not in inventory["metadata"].get("labels", {})
