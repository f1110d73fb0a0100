"""At most one process works on a bucket, in any interleaving of scaling, delays, crashes and pauses.

The model has a StatefulSet, a Lease per ordinal, and processes that do the steps of `Shard`. Each request takes effect
at one moment and is answered at a later one; each process sees old versions of the StatefulSet; processes are killed,
suspended for longer than their Lease, and started again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.kubernetes.buckets import BUCKETS, bucket_of, buckets_of, hash_range, owner_of
from ruleop.operator.shards.claims import Confirm, Drain, Epoch, ListLeases, ProcessLease, Shard
from tests.exploration import examples

DURATION, DEADLINE, SKEW = 15.0, 10.0, 2.0
ORDINALS = 4
SAMPLE = (0, 15, 16, 21, 22, 31, 32, 40, 43, 47, 48, 63)
"""Buckets on both sides of each border that one to four shards have."""


@dataclass
class Process:
    ordinal: int
    identity: str
    shard: Shard
    leads_until: float
    running: Counter[int] = field(default_factory=Counter)  # passes, by bucket
    answer: Callable[[], None] | None = None  # of the request that is under way
    suspended: bool = False

    def works_on(self, now: float) -> set[int]:
        """After its deadline it is over, whatever it was doing; what is suspended does nothing."""
        return set() if now >= self.leads_until else {*self.shard.held, *self.running}


class World:
    def __init__(self, make: Callable[[int], Shard]) -> None:
        self.make = make
        self.now = 0.0
        self.version = 1
        self.counts = [Epoch(1, 1)]
        self.leases: dict[int, ProcessLease] = {}
        self.changed: dict[int, float] = {}  # when a Lease was last written
        self.processes: dict[int, Process] = {}
        self.started = 0
        self.steps: Counter[str] = Counter()

    def do(self, choice: int) -> None:
        actions: list[Callable[[int], None]] = [
            self.scale,
            self.start,
            self.see,
            self.go,
            self.go,
            self.go,
            self.answer,
            self.answer,
            self.answer,
            self.work,
            self.finish,
            self.renew,
            self.pass_time,
            self.suspend,
            self.kill,
            self.release,
        ]
        number, detail = divmod(choice, 64)
        actions[number % len(actions)](detail)
        self.check()

    def check(self) -> None:
        owners = Counter(
            bucket for each in self.processes.values() for bucket in each.works_on(self.now) if not each.suspended
        )
        shared = sorted(bucket for bucket, count in owners.items() if count > 1)
        assert not shared, f"two shards work on {shared}"

    def alive(self, detail: int) -> Process | None:
        found = self.processes.get(detail % ORDINALS)
        return found if found is not None and not found.suspended else None

    def write(self, process: Process, epoch: Epoch | None, holder: str | None = None) -> None:
        self.version += 1
        held_by = process.identity if holder is None else holder
        name = f"ruleop.{process.ordinal}"
        self.leases[process.ordinal] = ProcessLease(name, process.ordinal, held_by, epoch, str(self.version), DURATION)
        self.changed[process.ordinal] = self.now

    def scale(self, detail: int) -> None:
        count = detail % (ORDINALS + 1)
        if detail >= 24:
            return
        self.version += 1
        self.counts.append(Epoch(self.version, count))

    def start(self, detail: int) -> None:
        """A process acquires its Lease when it is free, by a watch of its own that saw each change."""
        ordinal = detail % ORDINALS
        lease = self.leases.get(ordinal)
        free = lease is None or not lease.holder or self.now >= self.changed[ordinal] + DURATION
        if ordinal in self.processes or not free:
            return
        self.started += 1
        process = Process(ordinal, f"p{self.started}", self.make(ordinal), self.now + DEADLINE)
        self.processes[ordinal] = process
        self.write(process, None)

    def see(self, detail: int) -> None:
        if (process := self.alive(detail)) is not None:
            back = detail // ORDINALS % 3
            process.shard.aim(self.counts[max(0, len(self.counts) - 1 - back)])

    def go(self, detail: int) -> None:
        """A step begins; its request takes effect now."""
        process = self.alive(detail)
        if process is None or process.answer is not None:
            return
        step, shard = process.shard.next(), process.shard
        self.steps[type(step).__name__] += 1
        if isinstance(step, Drain):
            if not process.running.keys() - step.buckets:
                shard.drained(step.buckets)
        elif isinstance(step, Confirm):
            self.write(process, step.epoch)
            process.leads_until = max(process.leads_until, self.now + DEADLINE)
            process.answer = lambda: shard.confirmed(step.epoch)
        elif isinstance(step, ListLeases):
            listed = tuple(self.leases.values())
            process.answer = lambda: shard.listed(listed, self.now)

    def answer(self, detail: int) -> None:
        process = self.alive(detail)
        if process is not None and process.answer is not None:
            answer, process.answer = process.answer, None
            answer()

    def work(self, detail: int) -> None:
        process = self.alive(detail)
        if process is not None and process.shard.held:
            process.running[sorted(process.shard.held)[detail % len(process.shard.held)]] += 1

    def finish(self, detail: int) -> None:
        if (process := self.alive(detail)) is not None:
            process.running.clear()

    def renew(self, detail: int) -> None:
        if (process := self.alive(detail)) is not None:
            self.write(process, process.shard.epoch if process.answer is None else self.leases[process.ordinal].epoch)
            process.leads_until = self.now + DEADLINE

    def pass_time(self, detail: int) -> None:
        self.now += detail / 16
        for ordinal, process in list(self.processes.items()):
            if self.now >= process.leads_until and not process.suspended:
                del self.processes[ordinal]  # it has exited

    def suspend(self, detail: int) -> None:
        process = self.processes.get(detail % ORDINALS)
        if process is not None and (process.suspended or detail < 16):
            process.suspended = not process.suspended
            if not process.suspended and self.now >= process.leads_until:
                del self.processes[process.ordinal]

    def kill(self, detail: int) -> None:
        if detail < ORDINALS:
            self.processes.pop(detail, None)

    def release(self, detail: int) -> None:
        process = self.alive(detail)
        if detail < 16 and process is not None and not process.running:
            del self.processes[process.ordinal]
            self.write(process, process.shard.epoch, holder="")


def shard(ordinal: int) -> Shard:
    return Shard(ordinal, skew=SKEW)


def run(choices: Iterable[int], make: Callable[[int], Shard] = shard) -> World:
    world = World(make)
    for choice in choices:
        world.do(choice)
    return world


def settle(world: World, count: int) -> dict[int, frozenset[int]]:
    """From any state, with `count` processes that run: the buckets of each, once nothing is left to do."""
    world.scale(count)
    for process in list(world.processes.values()):
        process.suspended = False
        if world.now >= process.leads_until or process.ordinal >= count:
            del world.processes[process.ordinal]
    for _ in range(60):
        world.now += 1.0
        for ordinal in range(ORDINALS):
            if ordinal < count:
                world.start(ordinal)
            process = world.processes.get(ordinal)
            if process is None:
                continue
            process.running.clear()
            for _ in range(4):
                world.answer(ordinal)
                world.see(ordinal)
                world.go(ordinal)
                world.check()
            world.answer(ordinal)
            world.renew(ordinal)
    return {ordinal: process.shard.held for ordinal, process in world.processes.items()}


@pytest.mark.slow
@given(st.lists(st.integers(0, 1023), max_size=200))
@settings(max_examples=examples(2000), deadline=None)
def test_no_bucket_is_ever_worked_on_by_two(choices: list[int]) -> None:
    run(choices)


@pytest.mark.slow
def test_the_same_on_long_random_walks_that_come_to_rest() -> None:
    """Afterwards each bucket has the owner that the count gives it."""
    steps: Counter[str] = Counter()
    walks = examples(400)
    for seed in range(walks):
        chance = random.Random(seed)  # noqa: S311
        world = run(chance.randrange(1024) for _ in range(300))
        steps += world.steps
        count = 1 + seed % ORDINALS
        assert settle(world, count) == {each: buckets_of(each, count) for each in range(count)}, seed
    assert min(steps[each.__name__] for each in (Drain, Confirm, ListLeases)) > walks / 2


class ForgetsToWait(Shard):
    """Confirms while passes still run on what it loses."""

    def next(self) -> Any:
        step = super().next()
        if isinstance(step, Drain):
            self.drained(step.buckets)
            return super().next()
        return step


class KeepsWhatItLoses(Shard):
    def _move(self, epoch: Epoch) -> None:
        held = self.held
        super()._move(epoch)
        self.held = held


class ListsFirst(Shard):
    """Begins work before its epoch is in its Lease."""

    def next(self) -> Any:
        step = super().next()
        if isinstance(step, Confirm):
            self.epoch = step.epoch
            return super().next()
        return step


class IgnoresNewerEpochs(Shard):
    def listed(self, leases: Iterable[ProcessLease], now: float) -> None:
        target = self.target
        old = [each for each in leases if each.epoch is None or target is None or each.epoch <= target]
        super().listed(old, now)


class IgnoresOthers(Shard):
    def listed(self, leases: Iterable[ProcessLease], now: float) -> None:
        super().listed([], now)


class TakesOverTooEarly(Shard):
    """A second after it last saw a Lease change."""

    def __init__(self, ordinal: int) -> None:
        super().__init__(ordinal, skew=1.0 - DURATION)


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [ForgetsToWait, KeepsWhatItLoses, ListsFirst, IgnoresNewerEpochs, IgnoresOthers, TakesOverTooEarly],
    ids=lambda each: each.__name__,
)
def test_a_broken_protocol_is_found(broken: Callable[[int], Shard]) -> None:
    for seed in range(3000):
        chance = random.Random(seed)  # noqa: S311
        try:
            run((chance.randrange(1024) for _ in range(300)), broken)
        except AssertionError:
            return
    pytest.fail("no walk of 3000 found it")


def test_buckets_are_ranges_that_cover_all_and_the_hash_is_fnv() -> None:
    for count in range(1, BUCKETS + 3):
        parts = [buckets_of(ordinal, count) for ordinal in range(count)]
        assert sorted(bucket for part in parts for bucket in part) == list(range(BUCKETS))
        assert all(not part or len(part) == max(part) - min(part) + 1 for part in parts)
        assert all(owner_of(bucket, count) == ordinal for ordinal, part in enumerate(parts) for bucket in part)
    assert buckets_of(0, 0) == frozenset()
    assert hash_range(buckets_of(1, 2)) == (1 << 63, 1 << 64)
    # FNV-1a-64 of "a" is af63dc4c8601ec8c, of "foobar" 85944171f73967e8.
    assert (bucket_of("a"), bucket_of("foobar")) == (0xAF63DC4C8601EC8C >> 58, 0x85944171F73967E8 >> 58)


@pytest.mark.parametrize("text", [None, 3, "", "1", "1/", "/1", "a/1", "1/2/3", "-1/2", "9" * 50 + "/1"])
def test_rubbish_in_a_lease_is_not_an_epoch(text: Any) -> None:
    assert Epoch.parse(text) is None
    assert Epoch.parse(str(Epoch(7, 2))) == Epoch(7, 2)
