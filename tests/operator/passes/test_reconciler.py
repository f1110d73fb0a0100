"""Passes of a reconciler while others change its objects: consistency, drift and reports."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.operator.cache.own_writes import PATIENCE, Expectations
from ruleop.planning.changes.drift import ENOUGH, FIRST, QUIET
from ruleop.planning.history import STATUS_REFUSED_FOR
from ruleop.planning.model.marks import PART_OF
from tests.operator.passes.reconciler_harness import FINALIZER, WEB, ReconcilerHarness
from tests.operator.server import Answer
from tests.planning.harness import project

A = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: '{{ spec.v }}'\n"
B = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\ndata:\n  v: '{{ spec.v }}'\n"
ONE = "children: {a: {template: a.yaml}}\n"
TWO = "children: {a: {template: a.yaml}, b: {template: b.yaml}}\n"
ELSEWHERE = "reach: cluster\nchildren: {a: {template: a.yaml, deletion: orphan}}\n"


def one(body=ONE, **files):
    return ReconcilerHarness(body, {"v": "1"}, **({"a": A} | files))


# -- reading one's own writes ------------------------------------------------------------------------------------------


async def test_a_created_child_is_not_created_again_while_the_watch_is_silent():
    harness = one(TWO, b=B)
    for _ in range(4):
        await harness.reconcile(catch_up=False)
    assert harness.writes() == [("create", "a"), ("create", "b"), ("status", "web")]
    harness.server.edit(harness.key("web", "App"), spec={"v": "2"})
    harness.stores.put(copy.deepcopy(harness.app))
    for _ in range(4):
        await harness.reconcile(catch_up=False)
    assert harness.writes()[3:] == [("patch", "a"), ("patch", "b"), ("status", "web")], "one patch each"


async def test_a_relisted_store_older_than_the_last_write_is_waited_for():
    """No request, and no report of the old status."""
    harness = one("children: {a: {template: a.yaml}}\nstatus: {v: '{{ live.a.data.v }}'}\n")
    await harness.until_settled()
    old = copy.deepcopy(harness.stores.objects)
    harness.edit_app(spec={"v": "2"})
    await harness.until_settled()
    assert harness.app["status"]["v"] == "2"
    harness.stores.objects = old | {harness.key("web", "App"): copy.deepcopy(harness.app)}
    harness.stores.version = 0
    asked = len(harness.server.log)
    harness.reconciler.expectations.wrote(WEB, {harness.key("a"): harness.live("a")["metadata"]["resourceVersion"]})
    verdict = await harness.reconcile(catch_up=False)
    assert (verdict.failed, verdict.reason) == (False, "the cache is behind")
    assert verdict.requeue_after is not None
    assert harness.server.log[asked:] == []
    harness.stores.catch_up()
    await harness.until_settled()
    assert harness.server.log[asked:] == []


@pytest.mark.parametrize("answer", [Answer.TIMEOUT_BEFORE, Answer.TIMEOUT_AFTER])
@pytest.mark.parametrize("verb", ["create", "patch"])
async def test_a_write_whose_answer_was_lost_happens_once(verb, answer):
    harness = one()
    if verb == "patch":
        await harness.until_settled()
        harness.edit_app(spec={"v": "2"})
    before = harness.server.log.count((verb, "a"))
    harness.server.answer_with(verb, "a", answer)
    for _ in range(3):
        await harness.reconcile(catch_up=False)
    assert harness.live("a")["data"]["v"] == ("2" if verb == "patch" else "1")
    assert harness.server.log.count((verb, "a")) - before == (1 if answer is Answer.TIMEOUT_AFTER else 2)
    assert harness.condition()["status"] == "True"


async def test_a_child_that_was_deleted_on_the_server_is_created_again_before_the_watch_reports_it():
    harness = one()
    await harness.until_settled()
    harness.server.remove(harness.key("a"))
    harness.server.edit(harness.key("web", "App"), spec={"v": "2"})
    harness.stores.put(copy.deepcopy(harness.app))
    await harness.reconcile(catch_up=False)
    assert harness.live("a")["data"] == {"v": "2"}


async def test_a_status_conflict_is_resolved_with_a_live_read_of_the_newer_cr():
    harness = one()
    harness.server.before[("status", "web")] = lambda: harness.server.edit(
        harness.key("web", "App"), metadata={**harness.app["metadata"], "labels": {"theirs": "too"}}
    )
    verdict = await harness.reconcile(catch_up=False)
    assert not verdict.failed, "a conflict does not count as a failure"
    asked = len(harness.server.log)
    await harness.reconcile(catch_up=False)
    assert harness.server.log[asked:] == [("status", "web")], "although the watch has not reported it"
    assert harness.condition()["status"] == "True"


async def test_a_conflict_without_a_newer_cr_is_retried_with_backoff():
    """A webhook may cause this response, too; waiting for that version would never end."""
    harness = one()
    harness.server.answer_with("status", "web", Answer.CONFLICT)
    assert (await harness.reconcile()).failed
    await harness.until_settled()
    assert harness.condition()["status"] == "True"


@pytest.mark.parametrize("waits_for", [("metadata", "shop"), ("delete", "a")])
async def test_a_store_that_is_relisted_during_a_pass_allows_no_conclusions(waits_for):
    """A child that is missing from it may exist, so ruleop's finalizer stays."""
    body = "reach: cluster\nchildren: {a: {template: a.yaml, namespace: far}}\nfinalize: {bye: {template: bye.yaml}}\n"
    harness = one(body, bye=A.replace("name: a", "name: bye"))
    harness.server.add_namespace("far")
    await harness.until_settled()
    harness.delete_app()
    while harness.condition()["reason"] != "Finalized":
        await harness.reconcile()

    def list_again():
        harness.stores.synced = False
        for key in [key for key in harness.stores.objects if key.kind == "ConfigMap"]:
            del harness.stores.objects[key]

    read_metadata, far = harness.stores.read_metadata, ObjectKey("", "ConfigMap", "far", "a")

    async def listed_meanwhile(kind, key):
        if waits_for == ("metadata", key.name):
            list_again()
        return await read_metadata(kind, key)

    harness.stores.read_metadata = listed_meanwhile
    if waits_for == ("delete", "a"):
        harness.server.before[waits_for] = list_again
        harness.server.answer_with("delete", "a", Answer.CONFLICT)
    before = harness.condition()
    verdict = await harness.reconcile(catch_up=False)
    assert (verdict.failed, verdict.reason) == (False, "a kind is listed again")
    assert verdict.requeue_after is not None
    assert harness.server.live(far) is not None
    assert FINALIZER in harness.app["metadata"]["finalizers"]
    assert harness.condition() == before, "and nothing reports it"
    harness.stores.synced, harness.stores.read_metadata = True, read_metadata
    harness.stores.catch_up()
    for _ in range(4):
        await harness.reconcile()
    assert harness.server.live(far) is None
    assert harness.app is None


class Reached:
    """A store that has reached this version."""

    def __init__(self, seen, known=0):
        self.seen, self.known = seen, known

    def has_seen(self, _key, version):
        return self.seen >= int(version)

    def is_at_least(self, _key, version):
        return max(self.seen, self.known) >= int(version)


def test_an_expectation_ends_when_the_watch_has_passed_the_written_version():
    awaited = Expectations()
    awaited.versions.update({"a": "7", "b": "9"})
    assert awaited.wait(Reached(7, known=9), 0.0) is None
    assert awaited.versions, "until its watch has seen it, the store may be listed again"
    assert awaited.wait(Reached(8), 0.0) is not None
    assert awaited.wait(Reached(9), 0.0) is None
    assert not awaited.versions


def test_an_expectation_that_is_never_met_expires():
    """A backup was restored, without the written object."""
    awaited, now, checks = Expectations(), 0.0, 0
    awaited.versions.update({"a": "7"})
    while (wait := awaited.wait(Reached(1), now)) is not None:
        now, checks = now + wait, checks + 1
    assert PATIENCE <= now < PATIENCE * 1.2
    assert checks < 30
    assert awaited.wait(Reached(1), now) is None


# -- field conflicts ---------------------------------------------------------------------------------------------------


async def field_conflict(harness, rounds, undo=None):
    """Somebody reverts each correction at once. Returns the number of corrections."""
    before = harness.server.log.count(("patch", "a"))
    for _ in range(rounds):
        (undo or (lambda: harness.edit("a", data={"v": "theirs"})))()
        await harness.until_settled()
        harness.time += 0.5
    return harness.server.log.count(("patch", "a")) - before


async def fighting(**files):
    harness = one(TWO, **({"b": B} | files))
    await harness.until_settled()
    assert await field_conflict(harness, ENOUGH + 3) == ENOUGH
    return harness


async def test_a_change_by_hand_is_reverted_at_once_without_an_event():
    harness = one()
    await harness.until_settled()
    harness.events.clear()
    assert await field_conflict(harness, ENOUGH) == ENOUGH
    assert harness.live("a")["data"] == {"v": "1"}
    assert harness.events == []
    assert harness.condition()["reason"] == "Ready"


async def test_a_field_conflict_is_reported_with_its_fields_and_the_other_manager():
    harness = await fighting()
    message = "a: ConfigMap/a: data.v is repeatedly changed by somebody; backing off before reverting it"
    assert [each for each in harness.events if each[1] == "FieldConflict"] == [("Warning", "FieldConflict", message)]
    condition = harness.condition()
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "FieldConflict", message)
    assert harness.condition("Stalled")["status"] == "True"
    assert harness.server.log.count(("metadata", "a")) == 1, "read once, to name it"
    assert (
        harness.metrics.registry.get_sample_value("ruleop_field_conflicts_total", {"controller": "App.example.com"})
        == 1
    )


async def test_a_field_conflict_delays_that_child_and_nothing_else():
    harness = await fighting()
    harness.edit("b", data={"v": "theirs"})
    verdict = await harness.until_settled()
    assert harness.live("b")["data"] == {"v": "1"}
    assert harness.live("a")["data"] == {"v": "theirs"}
    assert 0 < verdict.requeue_after <= FIRST
    harness.time += FIRST
    await harness.until_settled()
    assert harness.live("a")["data"] == {"v": "1"}
    assert await field_conflict(harness, 5) == 0, "the next pause is longer"


async def test_a_field_conflict_is_noticed_although_another_child_fails():
    harness = one(TWO, b=B)
    harness.server.answer_with("create", "b", *[Answer.INVALID] * 100)
    await harness.until_settled()
    assert harness.condition()["reason"] == "ApplyFailed"
    assert await field_conflict(harness, ENOUGH + 3) == ENOUGH
    assert "data.v is repeatedly changed by somebody" in harness.condition()["message"]


async def test_the_end_of_a_field_conflict_is_reported():
    harness = await fighting()
    harness.time += FIRST
    await harness.until_settled()
    harness.events.clear()
    harness.time += QUIET
    await harness.until_settled()
    assert harness.condition()["reason"] == "Ready"
    assert harness.events == [("Normal", "Synced", "App synced successfully")]
    assert await field_conflict(harness, 1) == 1, "and the next change is reverted at once"


async def test_a_child_deleted_repeatedly_is_a_field_conflict():
    harness = one()
    await harness.until_settled()

    def undo():
        if harness.live("a") is not None:
            harness.remove("a")

    before = harness.server.log.count(("create", "a"))
    await field_conflict(harness, ENOUGH + 3, undo)
    assert harness.server.log.count(("create", "a")) - before == ENOUGH
    assert harness.condition()["reason"] == "FieldConflict"
    assert "is repeatedly deleted" in harness.condition()["message"]
    harness.time += FIRST
    await harness.until_settled()
    assert harness.live("a") is not None


async def test_a_server_that_alters_each_write_is_named_in_the_field_conflict():
    """For example a webhook: the response always differs from the request, and each time in another way."""
    harness = one()
    await harness.until_settled()

    def webhook(obj):
        return {**obj, "data": {"v": "hooked"}} if obj["data"]["v"] == "1" else obj

    harness.server.alter(Kind("", "v1", "ConfigMap"), webhook)
    await field_conflict(harness, ENOUGH + 1)
    assert "data.v is changed by the API server or a webhook at each write" in harness.condition()["message"]
    assert ("metadata", "a") not in harness.server.log, "there is nobody to be named"


async def test_edits_of_the_cr_are_not_a_field_conflict():
    harness = one()
    await harness.until_settled()
    for number in range(3 * ENOUGH):
        harness.edit_app(spec={"v": str(number)})
        await harness.until_settled()
        assert harness.live("a")["data"] == {"v": str(number)}
    assert {each[1] for each in harness.events} == {"Synced"}


@pytest.mark.slow
@pytest.mark.parametrize("deletion", ["delete", "orphan"])
async def test_ruleops_own_deletions_are_not_a_field_conflict(deletion):
    """An annotation is switched on and off: the CR's generation and the desired state stay the same."""
    child = (
        f"{{template: a.yaml, when: metadata.annotations.on | default(false), deletion: {deletion}, adopt: orphans}}"
    )
    harness = one(f"children: {{a: {child}}}\n")

    async def switch(**annotations):
        harness.server.edit(harness.key("web", "App"), metadata={**harness.app["metadata"], "annotations": annotations})
        harness.stores.catch_up()
        harness.time += 10
        await harness.until_settled()
        return harness.live("a") is not None and PART_OF in harness.live("a")["metadata"].get("labels", {})

    for _ in range(2 * ENOUGH):
        assert await switch(on="yes")
        assert harness.condition()["reason"] == "Ready"
        assert not await switch()


# -- ignored fields ----------------------------------------------------------------------------------------------------


WITH_TWO = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: '{{ spec.v }}', other: '{{ spec.other }}'}\n"
)


@pytest.mark.parametrize("strategy", ["merge", "server-side"])
async def test_a_field_no_longer_ignored_is_reverted_although_the_child_was_written_in_the_meantime(strategy):
    body = f"children: {{a: {{template: a.yaml, apply: {{strategy: {strategy}, ignore: [{{path: data.v, when: spec.theirs}}]}}}}}}\n"
    harness = ReconcilerHarness(body, {"v": "3", "other": "1", "theirs": True}, a=WITH_TWO)
    await harness.until_settled()
    harness.edit("a", data={"v": "7", "other": "1"})
    await harness.until_settled()
    harness.edit_app(spec={"v": "3", "other": "2", "theirs": True})
    await harness.until_settled()
    assert harness.live("a")["data"] == {"v": "7", "other": "2"}
    harness.edit_app(spec={"v": "3", "other": "2", "theirs": False})
    await harness.until_settled()
    assert harness.live("a")["data"] == {"v": "3", "other": "2"}
    harness.edit("a", data={"v": "7", "other": "2"})
    await harness.until_settled()
    assert harness.live("a")["data"] == {"v": "3", "other": "2"}, "and stays ruleop's"


async def test_a_field_that_is_dropped_with_the_change_to_server_side_apply_is_removed():
    """The API server removes it only if managedFields have it as applied: ruleop owned it by Update before."""
    harness = one(a=A + "  w: 'old'\n")
    await harness.until_settled()
    body = "children: {a: {template: a.yaml, apply: {strategy: server-side}}}\n"
    harness.reconciler.rules = project(body, a=A).rules
    await harness.until_settled()
    assert harness.live("a")["data"] == {"v": "1"}


# -- reports      ------------------------------------------------------------------------------------------------------


async def test_synced_is_reported_when_the_cr_becomes_ready_and_not_for_each_edit():
    harness = one()
    await harness.until_settled()
    harness.edit_app(spec={"v": "2"})
    await harness.until_settled()
    assert harness.events == [("Normal", "Synced", "App synced successfully")]
    harness.edit_app(spec={})
    await harness.until_settled()
    harness.edit_app(spec={"v": "2"})
    await harness.until_settled()
    assert [each[1] for each in harness.events] == ["Synced", "RenderFailed", "Synced"]


async def test_a_restart_repeats_no_event_although_there_is_no_managed_status():
    harness = one("manageStatus: false\n" + ONE)
    await harness.until_settled()
    assert [each[1] for each in harness.events] == ["Synced"]
    harness.restart()
    await harness.until_settled()
    assert [each[1] for each in harness.events] == ["Synced"]


async def test_a_deletion_is_reported():
    harness = one("children: {a: {template: a.yaml}, b: {template: b.yaml, when: spec.b | default(true)}}\n", b=B)
    await harness.until_settled()
    harness.edit_app(spec={"v": "1", "b": False})
    await harness.until_settled()
    assert harness.live("b") is None
    assert ("Normal", "Pruned", "Deleted ConfigMap/b: no longer part of the desired state") in harness.events


async def test_an_adoption_is_reported():
    harness = one("children: {a: {template: a.yaml, adopt: orphans}}\n")
    harness.server.make(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}, "data": {}}
    )
    await harness.until_settled()
    assert harness.live("a")["metadata"]["labels"][PART_OF]
    assert ("Normal", "Adopted", "Adopted ConfigMap/a: had no owner") in harness.events


async def test_condition_types_are_recorded_before_the_first_condition_is_written():
    harness = one("children: {}\nconditions: [{type: Mine, status: 'true'}]\n")
    asked = []

    async def ask(rule, _planned):
        asked.append([each.type for each in rule.status.conditions])
        assert harness.condition("Mine") == {}

    harness.before_writes.side_effect = ask
    await harness.reconcile()
    assert asked == [["Mine"]]
    assert harness.condition("Mine")["status"] == "True"


async def test_responses_set_the_versions_that_a_new_store_must_reach():
    """Actions on children, on the CR's finalizer, and on its status."""
    harness = one(ELSEWHERE)
    for _ in range(3):
        await harness.reconcile(catch_up=False)
    expected = harness.reconciler.expectations._by_request[WEB]
    versions = {key.name: version for key, version in expected.versions.items()}
    assert versions == {
        name: harness.live(name, kind)["metadata"]["resourceVersion"]
        for name, kind in (("a", "ConfigMap"), ("web", "App"))
    }


async def test_a_condition_dropped_from_the_rules_is_removed_and_others_stay():
    harness = one(ONE + "conditions: [{type: Kept, status: 'true'}, {type: Dropped, status: 'true'}]\n")
    await harness.until_settled()
    theirs = {"type": "Theirs", "status": "True", "reason": "x", "message": ""}
    status = harness.app["status"]
    harness.server.edit(harness.key("web", "App"), status={**status, "conditions": [theirs, *status["conditions"]]})
    harness.stores.catch_up()
    harness.known_conditions = frozenset({"Kept", "Dropped"})
    harness.restart(project(ONE + "conditions: [{type: Kept, status: 'true'}]\n", a=A).rules)
    await harness.until_settled()
    assert [each["type"] for each in harness.app["status"]["conditions"]] == [
        "Theirs",
        "Ready",
        "Reconciling",
        "Stalled",
        "Kept",
    ]


@pytest.mark.parametrize(
    ("answer", "reason", "why"),
    [
        (Answer.FORBIDDEN, "Forbidden", "patch apps.example.com shop/web: you may not"),
        (Answer.NO_ROLE, "Forbidden", "cannot patch apps.example.com in namespace shop: needs get, list, watch, patch"),
        (Answer.INVALID, "ApplyFailed", "patch apps.example.com shop/web: it is invalid"),
    ],
)
async def test_a_finalizer_that_cannot_be_written_is_reported(answer, reason, why):
    harness = one(ELSEWHERE)
    harness.server.answer_with("patch", "web", *[answer] * 20)
    for _ in range(3):
        verdict = await harness.reconcile()
    assert verdict.failed
    assert harness.live("a") is None, "nothing is made that the finalizer has to be there for"
    condition = harness.condition()
    assert condition["reason"] == reason
    assert f"the finalizer ruleop.dev/ruleop cannot be written: {why}" in condition["message"]
    assert harness.condition("Stalled")["status"] == "True"
    harness.server.answers.clear()
    await harness.until_settled()
    assert harness.condition()["reason"] == "Ready"


async def test_a_finalizer_that_cannot_be_removed_is_reported():
    harness = one(ELSEWHERE)
    await harness.until_settled()
    harness.delete_app()
    harness.server.answer_with("patch", "web", *[Answer.FORBIDDEN] * 20)
    for _ in range(4):
        await harness.reconcile()
    condition = harness.condition()
    assert condition["reason"] == "Deleting"
    assert "the finalizer ruleop.dev/ruleop cannot be written: patch " in condition["message"]
    assert harness.condition("Stalled")["status"] == "True"


async def test_a_result_that_the_status_cannot_report_is_reported_once_by_events():
    harness = one()
    harness.edit_app(spec={})
    harness.server.answer_with("status", "web", *[Answer.FORBIDDEN] * 3)
    for _ in range(3):
        assert (await harness.reconcile()).failed
    assert [each[1] for each in harness.events] == ["StatusNotWritten", "RenderFailed"]


PROJECTED = ONE + "status: {said: '{{ spec.v }}'}\n"


async def test_a_status_that_the_server_rejects_is_reported_in_the_condition_and_retried_later():
    harness = one(PROJECTED)
    harness.server.answer_with("status", "web", Answer.INVALID)
    await harness.until_settled()
    condition = harness.condition()
    assert condition["reason"] == "StatusRefused"
    assert "watches.yaml:5:" in condition["message"]
    assert "patch apps.example.com/status shop/web" in condition["message"]
    assert harness.condition("Stalled")["status"] == "True"
    assert "said" not in harness.app["status"]
    assert harness.live("a")["data"] == {"v": "1"}, "the children are still reconciled"
    assert ("Warning", "StatusRefused") in [each[:2] for each in harness.events]
    tries = harness.server.log.count(("status", "web"))
    verdict = await harness.reconcile()
    assert not verdict.failed
    assert 0 < verdict.requeue_after <= STATUS_REFUSED_FOR
    assert harness.server.log.count(("status", "web")) == tries, "nothing is asked in between"
    harness.time += STATUS_REFUSED_FOR
    await harness.until_settled()
    assert harness.condition()["reason"] == "Ready"
    assert harness.app["status"]["said"] == "1"


async def test_a_resync_earlier_than_the_retry_of_a_rejected_status_is_used():
    harness = one("reconcilePeriod: 5s\n" + PROJECTED)
    harness.server.answer_with("status", "web", Answer.INVALID)
    verdict = await harness.until_settled()
    assert harness.condition()["reason"] == "StatusRefused"
    assert (verdict.requeue_after, verdict.reason) == (5.0, "resync")


async def test_a_status_other_than_the_rejected_one_is_written_at_once():
    harness = one(PROJECTED)
    await harness.until_settled()
    harness.server.answer_with("status", "web", Answer.INVALID)
    harness.edit_app(spec={"v": "2"})
    await harness.until_settled()
    assert harness.condition()["reason"] == "StatusRefused"
    assert harness.app["status"]["said"] == "1"
    harness.edit_app(spec={"v": "3"})
    await harness.until_settled()
    assert harness.condition()["reason"] == "Ready"
    assert harness.app["status"]["said"] == "3"


async def test_if_even_the_conditions_are_rejected_the_log_and_events_report_it():
    harness = one(PROJECTED)
    harness.edit_app(spec={})
    harness.server.answer_with("status", "web", *[Answer.INVALID] * 4)
    for _ in range(4):
        verdict = await harness.reconcile()
    assert verdict.failed
    assert [each[1] for each in harness.events] == ["StatusNotWritten", "RenderFailed"]


async def test_a_status_without_a_required_field_is_reported_once_and_never_sent():
    """The API server would refuse it in each pass."""
    harness = one('children: {a: {template: a.yaml}}\nstatus: {said: "{{ spec.said | default(omit) }}"}\n')
    status = {"type": "object", "required": ["said", "more"], "properties": {"said": {}, "more": {"default": "d"}}}
    schema = {"type": "object", "properties": {"spec": {}, "status": status}}
    info = harness.stores.kinds.info
    harness.stores.kinds.info = lambda kind: replace(info(kind), **({"status_schema": schema} if kind.group else {}))
    with capture_logs() as lines:
        for value in ("2", "3"):
            await harness.until_settled()
            harness.edit_app(spec={"v": value})
    assert harness.writes() == [("create", "a"), ("patch", "a")]
    assert [line["error"] for line in lines if line["event"] == "status not written"] == [
        "the CRD of App requires status.said, and no status is written without: set each in `status` of the rule"
    ]
    assert [each[1] for each in harness.events].count("StatusNotWritten") == 1
    harness.edit_app(spec={"v": "3", "said": "yes"})
    await harness.until_settled()
    assert harness.app["status"] == {"said": "yes", "more": "d"}
    assert harness.writes()[-1] == ("status", "web")


async def test_a_missing_permission_is_reported_with_all_verbs_and_without_quoted_values():
    harness = one("children: {s: {template: s.yaml}}\n", s="apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
    harness.server.answer_with("create", "s", *[Answer.NO_ROLE] * 2)
    await harness.reconcile()
    message = "cannot create secrets in namespace shop: needs get, list, watch, create, patch, delete"
    assert (harness.condition()["reason"], harness.condition()["message"].partition(": ")[2]) == (
        "Forbidden",
        f"templates/s.yaml:1: {message}",
    )
    harness.server.answers.clear()
    await harness.until_settled()
    assert harness.condition()["status"] == "True"


async def test_a_status_that_no_role_grants_is_logged_with_the_permission_to_grant():
    harness = one()
    harness.server.answer_with("status", "web", Answer.NO_ROLE)
    with capture_logs() as lines:
        await harness.reconcile()
    (line,) = [line for line in lines if line["event"] == "status not written"]
    assert line["grant"] == "patch on apps.example.com/status in namespace shop"


# -- details of the status ---------------------------------------------------------------------------------------------


def rolled_out(harness, key, pods):
    generation = harness.server.live(key)["metadata"].get("generation", 0)
    counts = dict.fromkeys(("updatedReplicas", "replicas", "readyReplicas", "availableReplicas"), pods)
    return {"observedGeneration": generation, **counts}


async def test_a_status_that_differs_in_details_alone_is_written_every_five_seconds():
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"
        "spec:\n  replicas: 9\n  selector: {matchLabels: {a: b}}\n"
        "  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}\n"
    )
    harness = one(a=deployment)
    key = ObjectKey("apps", "Deployment", "shop", "a")
    await harness.until_settled()
    before = harness.server.log.count(("status", "web"))
    for ready in range(1, 9):
        harness.time += 1.0
        harness.server.edit(key, status=rolled_out(harness, key, ready))
        harness.stores.catch_up()
        verdict = await harness.reconcile()
    assert harness.server.log.count(("status", "web")) - before == 1, "after five of eight seconds"
    assert harness.condition()["message"] == "Deployment/a: 5 of 9 pods updated"
    assert verdict.requeue_after == 2.0
    harness.time += verdict.requeue_after
    await harness.reconcile()
    assert harness.condition()["message"] == "Deployment/a: 8 of 9 pods updated", "no event was needed"
    asked = len(harness.server.log)
    await harness.reconcile()
    assert harness.server.log[asked:] == []
    harness.server.edit(key, status=rolled_out(harness, key, 9))
    harness.stores.catch_up()
    await harness.reconcile()
    assert harness.condition()["status"] == "True", "the end is written at once"
