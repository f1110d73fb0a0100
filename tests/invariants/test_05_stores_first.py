"""No reconcile before every store that its rule needs is synced, unserved or forbidden; the last two make the children
that need them wait, are retried with backoff, and stop nothing else."""

from __future__ import annotations

import itertools

import pytest

from ruleop.operator.wire.watch.reflector import LONGEST_UNSERVED_WAIT, LONGEST_WAIT, Reflector, Rest
from ruleop.operator.wire.watch.store import Store
from tests.exploration import others_slow
from tests.invariants.operator_harness import started_operator
from tests.invariants.scenarios import apps, cluster_with_sample, run
from tests.operator.wire.model_server import SOURCE, refusal
from tests.projects.samples import READY

BEYOND_RIGHTS, NOT_SERVED = 403, 404


@pytest.mark.parametrize("life", others_slow(["kafka", "shop", "backup"], "shop"))
def test_no_cr_is_reconciled_while_one_store_is_not_listed(life: str) -> None:
    each_store_is_waited_for(life)


def each_store_is_waited_for(life: str) -> None:
    """For each store that the rule needs."""

    async def test(missing: int) -> int:
        server, resource = cluster_with_sample(life)
        async with started_operator(server) as harness:
            last = harness.watchers[missing]
            harness.list_all(but=[last])
            harness.resync()
            await harness.until_quiet()
            assert server.writes() == [], f"{last.store.source} is not known yet"
            last.list()
            await harness.until_settled()
            assert server.cluster.ready(resource) == READY
            return len(harness.watchers)

    count, number = 1, 0
    while number < count:
        count, number = run(test(number)), number + 1
    assert count > 3


@pytest.mark.parametrize("status", [BEYOND_RIGHTS, NOT_SERVED])
async def test_only_the_child_of_an_unavailable_kind_waits_until_it_is_available(status: int) -> None:
    await one_child_waits(status)


async def one_child_waits(status: int) -> None:
    server = apps("web")
    async with started_operator(server) as harness:
        harness.watcher("Service").refused(status)
        harness.list_all()
        await harness.until_quiet()
        assert "Deployment/web-d" in server.cluster, "it needs no Service"
        assert "Service/web-s" not in server.cluster
        assert not any("services" in write for write in server.writes())
        assert server.cluster.ready("App/web")[0] == "False"
        harness.watcher("Service").list()
        await harness.until_settled()
        assert "Service/web-s" in server.cluster
        assert server.cluster.ready("App/web") == READY


async def test_other_watched_kinds_are_reconciled_whatever_one_lacks() -> None:
    """A project with rules for two kinds; the CRs of one of them cannot be read."""
    server = apps("web")
    async with started_operator(server) as harness:
        harness.watcher("Memcached").refused(BEYOND_RIGHTS)
        harness.watcher("Pod").refused(BEYOND_RIGHTS)
        harness.list_all()
        await harness.until_settled()
        assert server.cluster.ready("App/web") == READY


@pytest.mark.parametrize(("status", "longest"), [(BEYOND_RIGHTS, LONGEST_WAIT), (NOT_SERVED, LONGEST_UNSERVED_WAIT)])
def test_the_watch_of_an_unavailable_kind_is_retried_with_backoff_for_ever(status: int, longest: float) -> None:
    the_watch_backs_off(status, longest)


def the_watch_backs_off(status: int, longest: float) -> None:
    reflector, now, waits = Reflector(SOURCE, Store(SOURCE), chance=lambda: 0.0), 0.0, []
    for _ in range(100):
        assert not isinstance(reflector.next(now), Rest)
        reflector.failed(refusal(status), now)
        step = reflector.next(now)
        assert isinstance(step, Rest)
        waits.append(round(step.until - now, 6))
        now = step.until
    assert all(before <= after <= longest for before, after in itertools.pairwise(waits))
    assert waits[0] <= 1.0
    assert waits[-1] == longest
