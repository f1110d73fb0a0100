"""What ruleop's own writes change is planned again, though no event announces it: the stores have the answers before
the watch does."""

from __future__ import annotations

import itertools

import pytest

from ruleop.planning.history import AGAIN_AT_ONCE, AGAIN_CAP
from tests.operator.passes.reconciler_harness import ReconcilerHarness
from tests.operator.server import Answer

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"
M, K = CONFIG.replace("NAME", "m"), CONFIG.replace("NAME", "k")
ITEMS = CONFIG.replace("NAME", "'m-{{ item }}'")
SECRET = M.replace("ConfigMap", "Secret")
U = CONFIG.replace("NAME", "u") + "data: {x: %s}\n"

READERS = {
    "ready": ("m: {template: m.yaml}, u: {template: u.yaml}", "", M, "'{{ ready.m | string }}'", "true"),
    "live": (
        "m: {template: m.yaml}, u: {template: u.yaml}",
        "",
        M,
        "{{ live.m.metadata.name | default('none') }}",
        "m",
    ),
    "its own id": (
        "m: {template: m.yaml}, u: {template: u.yaml}",
        "",
        M,
        "{{ live.u.metadata.name | default('none') }}",
        "u",
    ),
    "a Secret": ("m: {template: m.yaml}, u: {template: u.yaml}", "", SECRET, "'{{ ready.m | string }}'", "true"),
    "readyWhen": (
        "m: {template: m.yaml, readyWhen: this.metadata.uid is defined}, u: {template: u.yaml}",
        "",
        M,
        "'{{ ready.m | string }}'",
        "true",
    ),
    "forEach": (
        "m: {template: m.yaml, forEach: spec.items}, u: {template: u.yaml}",
        "",
        ITEMS,
        "'{{ live.m | length }} {{ ready.m | string }}'",
        "2 true",
    ),
    "a condition in the body": (
        "m: {template: m.yaml}, u: {template: u.yaml}",
        "",
        M,
        "'{% if ready.m %}yes{% else %}no{% endif %}'",
        "yes",
    ),
    "an observed child": (
        "m: {template: m.yaml}, u: {template: u.yaml}",
        "observe: {o: {version: v1, kind: ConfigMap, name: m}}",
        M,
        "{{ o.metadata.name | default('none') }}",
        "m",
    ),
    "the status": (
        "m: {template: m.yaml}, u: {template: u.yaml}",
        "status: {seen: '{{ m.metadata.name }}'}",
        M,
        "{{ status.seen | default('none') }}",
        "m",
    ),
    "the whole CR": (
        "m: {template: m.yaml}, u: {template: u.yaml}",
        "status: {seen: '{{ m.metadata.name }}'}",
        M,
        "{{ cr.status.seen | default('none') }}",
        "m",
    ),
}


async def due(harness: ReconcilerHarness) -> int:
    """All passes that are due at once; returns their number. No event happens in between."""
    for number in range(1, 20):
        found = await harness.reconcile(catch_up=False)
        if found.requeue_after is None or found.requeue_after > 1:
            return number
    raise AssertionError(f"it does not come to rest: {harness.server.log[-20:]}")


def operator(children: str, more: str = "", **files: str) -> ReconcilerHarness:
    return ReconcilerHarness(f"reconcilePeriod: 0s\nchildren: {{{children}}}\n{more}", {"items": ["a", "b"]}, **files)


@pytest.mark.parametrize("name", READERS)
async def test_a_child_that_reads_an_object_of_the_same_pass_is_planned_again_at_once(name: str) -> None:
    children, more, m, read, expected = READERS[name]
    harness = operator(children, more, m=m, u=U % read)
    assert await due(harness) == 2, "one more pass"
    assert harness.live("u")["data"]["x"] == expected
    assert harness.condition()["status"] == "True"
    writes = len(harness.writes())
    harness.restart()
    await harness.until_settled()
    assert len(harness.writes()) == writes, "a restart finds nothing left to do"


async def test_a_pass_whose_writes_change_nothing_that_is_read_is_the_last_one() -> None:
    harness = operator("m: {template: m.yaml}, k: {template: k.yaml}", m=M, k=K)
    assert await due(harness) == 1
    assert len(harness.writes()) == 3, "two children and the status"
    assert await due(harness) == 1
    assert len(harness.writes()) == 3


async def test_each_link_of_a_chain_of_readers_costs_one_pass() -> None:
    names = "mabcdef"
    texts = {
        each: (U % f"'{{{{ live.{before}.data.x | default('', true) }}}}{each}'").replace("name: u", f"name: {each}")
        for before, each in itertools.pairwise(names)
    }
    harness = operator(", ".join(f"{each}: {{template: {each}.yaml}}" for each in names), m=M, **texts)
    assert await due(harness) == 6
    assert harness.live("f")["data"]["x"] == "abcdef"


async def test_a_child_that_fails_does_not_delay_what_the_writes_changed() -> None:
    harness = operator(
        "m: {template: m.yaml}, u: {template: u.yaml}, k: {template: k.yaml}",
        m=M,
        k=K,
        u=U % "'{{ ready.m | string }}'",
    )
    harness.server.answer_with("create", "k", *[Answer.BROKEN] * 5)
    found = await harness.reconcile(catch_up=False)
    assert (found.failed, found.requeue_after) == (True, 0.001)
    assert (await harness.reconcile(catch_up=False)).failed
    assert harness.live("u")["data"]["x"] == "true"
    assert (await harness.reconcile(catch_up=False)).requeue_after is None, "then only its backoff counts"


@pytest.mark.slow
@pytest.mark.parametrize("read", ["live.u.data.x", "status.seen"])
async def test_rules_that_never_come_to_rest_are_slowed_down(read: str) -> None:
    more = "status: {seen: '{{ u.data.x | int + 1 }}'}"
    harness = operator("u: {template: u.yaml}", more, u=U % f"'{{{{ {read} | default(0) | int + 1 }}}}'")
    pauses = [(await harness.reconcile(catch_up=False)).requeue_after for _ in range(AGAIN_AT_ONCE + 12)]
    assert pauses[:AGAIN_AT_ONCE] == [0.001] * AGAIN_AT_ONCE
    assert pauses[-4:] == [AGAIN_CAP] * 4
    assert sorted(pauses) == pauses
