"""CRs have the rules of the stored record: before it is stored nothing changes, and afterwards every process agrees."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import orjson
import pytest
from structlog.testing import capture_logs

from ruleop.kubernetes.kinds import GroupKind, ObjectKey
from ruleop.language.rules.checking import build_project
from ruleop.operator.cache.cache import WatchedShare
from ruleop.operator.rollouts.rollout_driver import RolloutDriver
from ruleop.operator.rollouts.rollouts import Rollouts, RolloutStore
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.watch.store import StoreEntry, StoreState
from ruleop.planning.rollout.rollout_record import RecordError, Refused, decode, encode, paused, resumed, reverted
from tests.operator.fake_config_map import FakeConfigMap

APP = GroupKind("example.com", "App")
ROLLOUT = "rollout: {maxUnavailable: 2}"


def project_with(text: str, *, rollout: str = ROLLOUT, more: str = "", name: str = "") -> object:
    """A project whose Secret has this text."""
    body = f"{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, stringData: {{text: {text}}}}}"
    watch = f"- {{group: example.com, version: v1, kind: App, {name} children: {{a: {{object: {body}}}}}, {rollout}}}\n"
    return build_project({"watches.yaml": watch + more}, root="rules", environ={})


class Play:
    """One process after another, with the same ConfigMap and six CRs."""

    def __init__(self) -> None:
        self.config_map = FakeConfigMap()
        self.config_map.key = ObjectKey("", "ConfigMap", "home", "ruleop-rollouts")
        self.kept: dict[str, object] = {}  # the stored revisions
        self.statuses: dict[str, dict] = {}
        self.version = 1
        self.state = StoreState.SYNCED
        self.queued: list[tuple[list[str] | None, str]] = []
        for number in range(6):
            self.statuses[f"app-{number}"] = {"conditions": [{"type": "Ready", "status": "True"}]}

    def start(self, project: object) -> None:
        self.rollouts = Rollouts(SimpleNamespace(find=self._find))
        informer = SimpleNamespace(entries=lambda: list(self._entries()), state=self.state)
        cache = SimpleNamespace(primary={APP: informer}, share=WatchedShare())
        self.informer = informer
        queues = SimpleNamespace(enqueue=self._enqueue, rules_changed=lambda: None)
        self.driver = RolloutDriver(self.rollouts, RolloutStore(self.config_map), SimpleNamespace(), cache, queues)
        self.edit(project)
        asyncio.run(self.driver.load())

    def edit(self, project: object, *, is_kept: bool = True) -> None:
        self.project = project
        if is_kept:
            self.kept[project.revision] = project
        self.rollouts.put_in_force(project)

    async def _find(self, digest: str) -> object | None:
        return self.kept.get(digest)

    def _enqueue(self, kind: GroupKind, keys: list[ObjectKey] | None, cause: str) -> None:
        assert kind == APP
        self.queued.append((None if keys is None else [key.name for key in keys], cause))

    def _entries(self):
        for name, status in self.statuses.items():
            created = f"2026-01-01T00:00:0{name[-1]}Z"
            metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": created}
            body = orjson.dumps({"metadata": metadata})
            key = ObjectKey("example.com", "App", "ns", name)
            yield key, StoreEntry(f"uid-{name}", self.version, 0, "", body, orjson.dumps(status))

    def step(self) -> None:
        async def both() -> None:
            await self.rollouts.load_earlier()
            await self.driver.step()

        asyncio.run(both())

    def choice(self, name: str, **metadata: str):
        resource = {
            "apiVersion": "example.com/v1",
            "kind": "App",
            "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", **metadata},
        }
        return self.rollouts.choose(self.project.rules, resource)

    def having(self, project: object) -> list[str]:
        (digest,) = {rule.revision for rule in project.rules if not rule.name or rule.name == "one"}
        return [
            name for name in self.statuses if (rule := self.choice(name).rule) is not None and rule.revision == digest
        ]

    def reconcile(self) -> None:
        """All CRs report the revision that they have, and are ready."""
        self.version += 1
        for name in self.statuses:
            condition = self.choice(name).condition
            conditions = [{"type": "Ready", "status": "True"}, *([condition.as_json()] if condition else [])]
            self.statuses[name] = {"conditions": conditions}

    def record(self):
        return decode(self.config_map.data["App.example.com"])

    def command(self, change, *, is_seen: bool = True) -> None:
        """`is_seen`: the watch has reported it before the next step."""
        self.config_map.version += 1
        self.config_map.data = {**self.config_map.data, "App.example.com": encode(change(self.record()))}
        if is_seen:
            self.driver.record_changed(self.config_map.as_object())


ONE, TWO, THREE = project_with("one"), project_with("two"), project_with("three")
ALL = [f"app-{number}" for number in range(6)]


@pytest.fixture
def play() -> Play:
    found = Play()
    found.start(ONE)
    found.step()
    return found


def test_the_first_record_is_complete_and_written_once(play: Play) -> None:
    assert play.record().is_complete
    assert play.having(ONE) == ALL
    play.step()
    play.start(ONE)
    play.step()
    assert play.config_map.writes == 1


def test_no_cr_gets_new_rules_before_the_record_is_stored(play: Play) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise ApiError(Problem.FORBIDDEN, verb="update", resource="configmaps", text="no")

    play.edit(TWO)
    write, play.config_map.write = play.config_map.write, fails
    with pytest.raises(ApiError):
        play.step()
    assert play.having(ONE) == ALL
    play.config_map.write = write
    play.step()
    assert play.having(TWO) == ALL[:2]
    assert play.queued[-1][0] == ALL[:2]


def test_a_lost_response_releases_no_more_than_was_stored(play: Play) -> None:
    async def loses(data: dict, version: str) -> None:
        await write(data, version)
        raise ApiError(Problem.UNREACHABLE, verb="update", resource="configmaps", text="no response")

    play.edit(TWO)
    write, play.config_map.write = play.config_map.write, loses
    with pytest.raises(ApiError):
        play.step()
    play.config_map.write = write
    play.step()  # its version is outdated: it reads the record
    assert play.having(TWO) == ALL[:2]
    play.step()
    assert play.having(TWO) == ALL[:2]


def test_the_waves_end_when_all_are_ready(play: Play) -> None:
    play.edit(TWO)
    for _ in range(3):
        play.step()
        play.reconcile()
    assert play.having(TWO) == ALL
    assert not play.record().is_complete
    play.step()
    assert play.record().is_complete
    writes = play.config_map.writes
    play.step()
    assert play.config_map.writes == writes


def test_another_process_chooses_the_same_rules(play: Play) -> None:
    play.edit(TWO)
    play.step()
    play.start(TWO)
    asyncio.run(play.rollouts.load_earlier())
    assert (play.having(TWO), play.having(ONE)) == (ALL[:2], ALL[2:])
    assert play.choice("app-5").condition.message.startswith("revision ")


def test_a_cr_whose_rules_cannot_be_loaded_is_frozen_until_its_wave(play: Play) -> None:
    play.edit(TWO)
    play.step()
    del play.kept[ONE.revision]
    play.start(TWO)
    with capture_logs() as logs:
        play.step()
        play.step()
    assert [each["event"] for each in logs].count(
        "earlier rules cannot be loaded; the CRs that have them are not reconciled until their wave"
    ) == 1
    assert [name for name in ALL if play.choice(name).is_frozen] == ALL[2:]
    assert not play.choice("app-5", deletionTimestamp="2026-01-01T00:00:00Z").is_frozen
    play.reconcile()
    play.step()
    assert [name for name in ALL if play.choice(name).is_frozen] == ALL[4:]


def read_by_another_version(project: object) -> object:
    """The same files, whose watches have other digests."""
    rules = tuple(replace(rule, revision=rule.revision[::-1]) for rule in project.rules)
    return replace(project, rules=rules)


def test_another_version_of_ruleop_with_the_same_files_begins_no_rollout(play: Play) -> None:
    play.start(read_by_another_version(ONE))
    assert play.having(play.project) == ALL
    play.step()
    assert play.record().is_complete


def test_another_version_of_ruleop_continues_a_rollout(play: Play) -> None:
    play.edit(TWO)
    play.step()
    play.reconcile()
    play.start(read_by_another_version(TWO))
    assert play.having(play.project) == ALL[:2]
    for _ in range(4):
        play.step()
        play.reconcile()
    play.step()
    assert play.record().is_complete
    assert play.having(play.project) == ALL


def test_another_version_of_ruleop_does_not_roll_out_reverted_rules(play: Play) -> None:
    play.edit(TWO)
    play.step()
    play.command(reverted)
    play.start(read_by_another_version(TWO))
    for _ in range(3):
        play.step()
        play.reconcile()
    assert play.having(ONE) == ALL


def test_a_command_between_two_steps_is_obeyed(play: Play) -> None:
    play.edit(TWO)
    play.step()
    play.reconcile()
    play.command(paused, is_seen=False)
    play.step()
    play.step()
    assert play.record().phase == "Paused"
    assert play.having(TWO) == ALL[:2]
    assert play.choice("app-5").condition.reason == "HeldBack"
    play.command(reverted)
    for _ in range(4):
        play.step()
        play.reconcile()
    assert play.record().is_complete
    assert play.having(ONE) == ALL
    play.step()
    assert play.having(ONE) == ALL, "the rules on disk are not rolled out again"
    play.command(resumed)
    play.step()
    play.step()
    assert play.having(TWO) == ALL[:2]


def test_events_of_the_record_reach_every_process(play: Play) -> None:
    play.edit(TWO)
    play.step()
    follower = Play()
    follower.config_map, follower.kept = play.config_map, play.kept
    follower.start(ONE)  # its files are behind
    follower.driver.record_changed(play.config_map.as_object())
    asyncio.run(follower.rollouts.load_earlier())
    assert (follower.having(TWO), follower.having(ONE)) == (ALL[:2], ALL[2:])


def test_a_deleted_record_is_written_again(play: Play) -> None:
    play.edit(TWO)
    play.step()
    play.config_map.data = None
    play.driver.record_changed(None)
    assert play.having(TWO) == ALL[:2]
    play.step()
    assert set(play.record().released.values()) == {"ready"}
    assert play.having(TWO) == ALL[:2]


def test_a_rollout_is_not_complete_while_crs_are_being_listed(play: Play) -> None:
    play.edit(TWO)
    play.informer.state = StoreState.PENDING
    play.statuses.clear()
    play.step()
    assert play.record().phase == "Progressing"


def test_an_edit_that_adds_rollout_begins_with_the_rules_before() -> None:
    play = Play()
    play.start(project_with("one", rollout="maxConcurrentReconciles: 3"))
    play.edit(TWO)
    assert play.having(TWO) == []
    play.step()
    play.step()
    assert play.having(TWO) == ALL[:2]


def test_an_edit_of_rollout_alone_begins_none(play: Play) -> None:
    play.edit(project_with("one", rollout="rollout: {maxUnavailable: 5}"))
    play.step()
    assert play.record().is_complete


def test_a_watch_without_rollout_gets_new_rules_at_once(play: Play) -> None:
    play.edit(project_with("two", rollout="maxConcurrentReconciles: 3"))
    assert play.having(play.project) == ALL
    play.step()
    assert play.config_map.data == {}


def test_an_invalid_record_is_ignored_with_a_warning(play: Play) -> None:
    play.config_map.version += 1
    play.config_map.data = {"App.example.com": "{}"}
    with capture_logs() as logs:
        play.driver.record_changed(play.config_map.as_object())
    assert [each["event"] for each in logs] == ["invalid record of a rollout ignored"]
    play.step()
    assert play.record().is_complete


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"target": 1, "base": 2, "phase": "Complete"}'])
def test_records_that_are_not_valid_are_refused(text: str) -> None:
    with pytest.raises(RecordError):
        decode(text)


def test_commands_without_a_meaning_are_refused(play: Play) -> None:
    for change in (paused, resumed, reverted):
        with pytest.raises(Refused):
            change(play.record())
