"""The log of a pass: one line for each write with its reason, and one for the result."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ruleop.operator.passes.pass_log import MAX_WAIT, MAX_WAITS
from ruleop.planning.changes.writes import MAX_FIELDS, MAX_PATH
from ruleop.planning.model.marks import PART_OF
from tests.exploration import examples
from tests.operator.passes.reconciler_harness import FINALIZER, ReconcilerHarness
from tests.operator.server import Answer
from tests.planning.harness import project

A = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: '{{ spec.v }}'\n"
B = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\ndata:\n  v: '{{ live.a.data.v | default(0) }}'\n"
ONE = "children: {a: {template: a.yaml}}\n"
LATE = "children: {a: {template: a.yaml, waitFor: spec.go | default(false)}}\n"
POD = "spec:\n  selector: {matchLabels: {app: d}}\n  template:\n    metadata: {labels: {app: d}}\n    spec:\n      containers:\n      - {name: web, image: 'nginx:{{ spec.v }}', env: [{name: A, value: x}]}\n"
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n" + POD
CREDENTIALS = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: 'hunter-{{ spec.v }}'}\n"


class Life:
    """A CR's life, and the lines of the log about it."""

    def __init__(self, body=ONE, spec=None, **files):
        self.harness = ReconcilerHarness(body, {"v": "1", **(spec or {})}, **({"a": A} | files))

    async def rest(self):
        """The lines of one pass, and of what follows from it."""
        with capture_logs() as lines:
            await self.harness.until_settled()
        return [line for line in lines if line["log_level"] != "debug"]

    async def writes(self):
        """Each write: its name in the log, the object and the fields."""
        lines = [line for line in await self.rest() if line["event"] not in {"reconciled", "problem", "field conflict"}]
        return [(line["event"], line.get("object") or line.get("finalizer"), *line.get("fields", ())) for line in lines]

    async def reconciled(self):
        lines = [line for line in await self.rest() if line["event"] == "reconciled"]
        return [(line["reason"], line["written"], *line.get("waits", ())) for line in lines]

    def delete(self, name, kind="ConfigMap"):
        self.harness.server.remove(self.harness.key(name, kind))
        self.harness.stores.catch_up()

    @property
    def drift(self):
        metrics = self.harness.metrics.registry
        return metrics.get_sample_value("ruleop_drift_reverted_total", {"controller": "App.example.com"})


# -- what a write is called --------------------------------------------------------------------------------------------


async def test_a_child_created_after_a_wait_is_logged_as_created():
    life = Life(LATE)
    assert await life.writes() == []
    life.harness.edit_app(spec={"v": "1", "go": True})
    assert await life.writes() == [("created", "ConfigMap/shop/a")]
    assert life.drift == 0


async def test_an_edit_of_the_cr_is_a_patch():
    life = Life()
    await life.rest()
    life.harness.edit_app(spec={"v": "2"})
    assert await life.writes() == [("patched", "ConfigMap/shop/a", "data.v")]
    assert life.drift == 0


async def test_a_change_of_the_rules_is_a_patch():
    life = Life()
    await life.rest()
    life.harness.reconciler.rules = project(ONE, a=A + "  w: new\n").rules
    assert await life.writes() == [("patched", "ConfigMap/shop/a", "data.w")]
    assert life.drift == 0


async def test_rules_that_set_one_field_more_do_not_take_its_value_for_drift():
    """The rendered value is the same, but the field is no longer ignored."""
    life = Life("children: {a: {template: a.yaml, apply: {ignore: [data.v]}}}\n")
    await life.rest()
    life.harness.edit("a", data={"v": "theirs"})
    assert await life.writes() == []
    life.harness.reconciler.rules = project(ONE, a=A).rules
    assert await life.writes() == [("patched", "ConfigMap/shop/a", "data.v")]
    assert life.drift == 0


async def test_a_change_of_an_object_that_a_child_reads_is_a_patch():
    """Somebody edits one child, another one is rendered from it: the first has drifted, the second has not."""
    life = Life("children: {a: {template: a.yaml, apply: {ignore: [data.v]}}, b: {template: b.yaml}}\n", b=B)
    await life.rest()
    life.harness.edit("a", data={"v": "theirs"})
    assert await life.writes() == [("patched", "ConfigMap/shop/b", "data.v")]
    assert life.drift == 0


async def test_a_change_by_another_client_is_drift():
    life = Life()
    await life.rest()
    for count in (1, 2):
        life.harness.edit("a", data={"v": "theirs"})
        assert await life.writes() == [("drift reverted", "ConfigMap/shop/a", "data.v")]
        assert life.drift == count


async def test_a_child_deleted_by_others_is_recreated():
    life = Life()
    await life.rest()
    life.delete("a")
    assert await life.writes() == [("recreated: it was deleted", "ConfigMap/shop/a")]
    assert life.drift == 1


async def test_a_child_that_ruleop_deleted_is_created_the_next_time():
    life = Life("children: {a: {template: a.yaml, when: spec.on}}\n", {"on": True})
    await life.rest()
    life.harness.edit_app(spec={"v": "1", "on": False})
    with capture_logs() as lines:
        await life.harness.until_settled()
    (deleted,) = [line for line in lines if line["event"] == "deleted"]
    assert (deleted["object"], deleted["child"], deleted["reason"]) == (
        "ConfigMap/shop/a", "a", "no longer part of the desired state",
    )  # fmt: skip
    life.harness.edit_app(spec={"v": "1", "on": True})
    assert await life.writes() == [("created", "ConfigMap/shop/a")]
    assert life.drift == 0


async def test_a_child_that_is_recreated_is_logged_as_deleted_for_recreation_and_recreated():
    life = Life("children: {a: {template: a.yaml, apply: {onImmutable: recreate}}}\n")
    await life.rest()
    life.harness.server.answer_with("patch", "a", Answer.IMMUTABLE)
    life.harness.edit_app(spec={"v": "2"})
    lines = [*await life.rest(), *await life.rest()]
    deleted, created = [line for line in lines if line["event"] in {"deleted", "created"}]
    assert (deleted["event"], deleted["reason"]) == ("deleted", "an immutable field changed; will be recreated")
    assert created["event"] == "created"
    assert life.drift == 0


async def test_adoption_is_called_adoption_whatever_the_strategy():
    for strategy in ("merge", "server-side"):
        life = Life(f"children: {{a: {{template: a.yaml, adopt: orphans, apply: {{strategy: {strategy}}}}}}}\n")
        orphan = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "shop"},
            "data": {"v": "0"},
        }
        life.harness.server.make(orphan)
        assert await life.writes() == [("adopted", "ConfigMap/shop/a", "data.v")], strategy
        assert any(reason == "Adopted" for _, reason, _ in life.harness.events), strategy
        assert life.drift == 0


async def test_a_child_that_is_left_to_others_is_released():
    life = Life("children: {a: {template: a.yaml, when: spec.on, deletion: orphan}}\n", {"on": True})
    await life.rest()
    life.harness.edit_app(spec={"v": "1", "on": False})
    event, name, *_ = (await life.writes())[0]
    assert (event, name) == ("released", "ConfigMap/shop/a")
    assert PART_OF not in life.harness.live("a")["metadata"].get("labels", {})


async def test_server_side_apply_has_its_own_word_for_an_edit_and_the_same_for_drift():
    life = Life("children: {a: {template: a.yaml, apply: {strategy: server-side}}}\n")
    await life.rest()
    life.harness.edit_app(spec={"v": "2"})
    assert await life.writes() == [("applied", "ConfigMap/shop/a", "data.v")]
    life.harness.edit("a", data={"v": "theirs"})
    assert await life.writes() == [("drift reverted", "ConfigMap/shop/a", "data.v")]


async def test_the_finalizer_has_its_lines():
    life = Life("reach: cluster\nchildren: {a: {template: a.yaml, deletion: orphan}}\n")
    assert ("finalizer added", FINALIZER) in await life.writes()
    life.harness.delete_app()
    assert [each[0] for each in await life.writes()] == ["released", "finalizer removed"]


# -- what is not known is not claimed ----------------------------------------------------------------------------------


async def test_the_first_pass_of_a_new_process_claims_no_drift():
    life = Life()
    await life.rest()
    life.harness.restart()
    life.harness.edit("a", data={"v": "theirs"})
    assert await life.writes() == [("patched", "ConfigMap/shop/a", "data.v")]
    life.harness.restart()
    life.delete("a")
    assert await life.writes() == [("created", "ConfigMap/shop/a")]
    assert life.drift == 0


async def test_a_new_process_that_found_all_in_step_knows_drift_from_then_on():
    life = Life()
    await life.rest()
    life.harness.restart()
    assert await life.writes() == []
    life.harness.edit("a", data={"v": "theirs"})
    assert await life.writes() == [("drift reverted", "ConfigMap/shop/a", "data.v")]


async def test_a_child_that_an_edit_does_not_affect_drifts_as_before():
    life = Life(
        "children: {a: {template: a.yaml}, b: {template: b.yaml}}\n",
        b=B.replace("live.a.data.v | default(0)", "spec.w"),
        spec={"w": "1"},
    )
    await life.rest()
    life.harness.edit_app(spec={"v": "2", "w": "1"})
    assert await life.writes() == [("patched", "ConfigMap/shop/a", "data.v")]
    life.harness.edit("b", data={"v": "theirs"})
    assert await life.writes() == [("drift reverted", "ConfigMap/shop/b", "data.v")]


async def test_a_rejected_change_that_succeeds_later_is_not_drift():
    life = Life()
    await life.rest()
    life.harness.edit_app(spec={"v": "2"})
    life.harness.server.answer_with("patch", "a", Answer.BROKEN, Answer.FORBIDDEN)
    writes = []
    for _ in range(4):
        writes += await life.writes()
    assert writes == [("patched", "ConfigMap/shop/a", "data.v")]
    assert life.drift == 0


async def test_a_new_cr_of_the_same_name_creates_its_own_children():
    life = Life()
    await life.rest()
    life.delete("a")
    life.harness.recreate_app()
    assert await life.writes() == [("created", "ConfigMap/shop/a")]
    assert life.drift == 0


async def test_a_deletion_by_others_before_that_of_ruleop_is_not_logged():
    life = Life("children: {a: {template: a.yaml, when: spec.on}}\n", {"on": True})
    await life.rest()
    life.harness.edit_app(spec={"v": "1", "on": False})
    key = life.harness.key("a")
    life.harness.server.before[("get", "a")] = lambda: life.harness.server.remove(key)
    assert await life.writes() == []
    assert life.harness.live("a") is None


# -- which fields ------------------------------------------------------------------------------------------------------


async def test_fields_are_paths_with_items_by_their_keys():
    life = Life("children: {d: {template: d.yaml}}\n", d=DEPLOYMENT)
    await life.rest()
    life.harness.edit_app(spec={"v": "2"})
    assert await life.writes() == [("patched", "Deployment/shop/d", "spec.template.spec.containers[name=web].image")]


async def test_the_log_of_a_changed_secret_has_field_names_and_no_values():
    life = Life("children: {s: {template: s.yaml}}\n", s=CREDENTIALS)
    with capture_logs() as lines:
        await life.harness.until_settled()
        life.harness.edit_app(spec={"v": "2"})
        await life.harness.until_settled()
        life.harness.server.edit(life.harness.key("s", "Secret"), data={}, stringData={"password": "theirs"})
        life.harness.stores.catch_up()
        await life.harness.until_settled()
    logged = repr(lines)
    assert "password" in logged
    assert [word for word in ("hunter", "theirs") if word in logged] == []


async def test_fields_are_bounded_in_number_and_length():
    many = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {{ spec.data }}\n"
    names = [f"{number:03}" + "x" * 250 for number in range(100)]
    life = Life(spec={"data": dict.fromkeys(names, "1")}, a=many)
    await life.rest()
    life.harness.edit_app(spec={"data": dict.fromkeys(names, "2")})
    ((event, _, *fields),) = await life.writes()
    assert event == "patched"
    assert len(fields) == MAX_FIELDS + 1
    assert fields[-1] == f"and {100 - MAX_FIELDS} more"
    assert max(map(len, fields)) <= MAX_PATH


# -- what a pass came to -----------------------------------------------------------------------------------------------


async def test_all_rounds_of_a_pass_are_counted():
    """Some names have conflicting objects, so the pass is planned again; the writes of the first round count."""
    children = ", ".join(f"{name}: {{template: {name}.yaml, adopt: orphans}}" for name in "abc")
    files = {name: A.replace("name: a", f"name: {name}") for name in "abc"}
    life = Life(f"children: {{{children}}}\n", **files)
    life.harness.server.make({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}})
    assert await life.reconciled() == [("Ready", 3)]


async def test_waits_are_logged_once():
    life = Life(
        "children: {a: {template: a.yaml, waitFor: spec.one == 1}, b: {template: b.yaml, dependsOn: [a]}}\n",
        {"one": 0},
        b=A,
    )
    assert await life.reconciled() == [("Waiting", 0, "a: waitFor: spec.one == 1", "b: a to be ready")]
    life.harness.edit_app(spec={"v": "2", "one": 0})
    assert await life.reconciled() == []


async def test_a_changed_wait_is_logged_although_the_reason_is_the_same():
    children = "a: {template: a.yaml, waitFor: spec.one}, b: {template: b.yaml, waitFor: spec.two}"
    life = Life(f"children: {{{children}}}\n", {"one": False, "two": False}, b=A.replace("name: a", "name: b"))
    assert await life.reconciled() == [("Waiting", 0, "a: waitFor: spec.one", "b: waitFor: spec.two")]
    life.harness.edit_app(spec={"v": "1", "one": True, "two": False})
    assert [each[2:] for each in await life.reconciled()] == [("b: waitFor: spec.two",)]


async def test_waits_are_bounded_in_number_and_length():
    condition = " and ".join(f"spec.v == '{'y' * 40}{number}'" for number in range(9))
    children = ", ".join(f'c{number}: {{template: c{number}.yaml, waitFor: "{condition}"}}' for number in range(20))
    files = {f"c{number}": A.replace("name: a", f"name: c{number}") for number in range(20)}
    life = Life(f"children: {{{children}}}\n", **files)
    ((_, _, *waits),) = await life.reconciled()
    assert len(waits) == MAX_WAITS + 1
    assert waits[-1] == f"and {20 - MAX_WAITS} more"
    assert max(map(len, waits)) <= MAX_WAIT


async def test_a_repeated_rejection_is_logged_once():
    life = Life()
    life.harness.server.answer_with("create", "a", *[Answer.INVALID] * 3)
    lines = []
    for _ in range(3):
        with capture_logs() as found:
            await life.harness.reconcile()
        lines += [line["event"] for line in found if line["log_level"] != "debug"]
    assert lines == ["reconciled", "problem"]


# -- whatever happens, in whatever order -------------------------------------------------------------------------------

HAPPENINGS = st.lists(
    st.lists(st.sampled_from(["edit", "rules", "theirs", "deleted", "restart"]), max_size=3, unique=True),
    min_size=1,
    max_size=4,
)


@given(steps=HAPPENINGS)
@settings(max_examples=examples(30), deadline=None)
def test_drift_is_logged_for_changes_by_others_only(steps):
    """Between two rests: an edit of the CR, one of the rules, a change or a deletion by somebody else, a new process.
    What the next pass writes is drift if others alone account for it and ruleop can know that."""

    async def scenario():
        life, number, drift = Life(), 1, 0
        await life.rest()
        for happened in steps:
            number += 1
            if "restart" in happened:
                life.harness.restart(life.harness.reconciler.rules)
            if "edit" in happened:
                life.harness.edit_app(spec={"v": str(number)})
            if "rules" in happened:
                life.harness.reconciler.rules = project(ONE, a=A + f"  w: '{number}'\n").rules
            if "theirs" in happened:
                life.harness.edit("a", data={"v": "theirs"})
            if "deleted" in happened:
                life.delete("a")
            known = "restart" not in happened
            ours = bool({"edit", "rules"} & set(happened))
            expected = []
            if "deleted" in happened:
                expected = ["recreated: it was deleted" if known else "created"]
            elif ours or "theirs" in happened:
                expected = ["drift reverted" if known and not ours else "patched"]
            assert [event for event, *_ in await life.writes()] == expected, happened
            drift += expected in (["drift reverted"], ["recreated: it was deleted"])
            assert life.drift == drift

    asyncio.run(scenario())
