"""Whatever happens between its steps, a rollout breaks at most `failureThreshold` plus `maxUnavailable` CRs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.language.rules import Rollout, Share
from ruleop.planning.rollout.rollout_record import (
    RolloutRecord,
    RolloutRevision,
    begun,
    decode,
    encode,
    member_of,
    resumed,
    reverted,
)
from ruleop.planning.rollout.waves import WaveView, advance

REVISIONS = [RolloutRevision(digit * 64, digit * 64) for digit in "abcd"]
STEPS = st.sampled_from(["step", "crash", "reconcile", "settle", "delete", "create"])


@dataclass
class World:
    """CRs that are reconciled with the revision of the stored record, and become ready or broken later."""

    rollout: Rollout
    record: RolloutRecord
    breaks: dict[str, frozenset[int]]  # digest of a revision -> the CRs that it breaks
    has: dict[int, str] = field(default_factory=dict)  # the revision with which each was reconciled last
    health: dict[int, str] = field(default_factory=dict)
    time: float = 1000.0
    ever_broken: set[int] = field(default_factory=set)

    def view(self, number: int) -> WaveView:
        return WaveView(
            title=f"ns/cr-{number}",
            member=member_of(str(number)),
            created=f"2026-01-01T00:00:{number:02}Z",
            order="",
            has_order=False,
            reported=self.has[number][:12],
            health=self.health[number],  # type: ignore[arg-type]
            since=0.0,
            message="broken",
            exempt=False,
        )

    def advanced(self) -> RolloutRecord:
        return advance(self.rollout, self.record, [self.view(number) for number in self.has], self.time)

    def reconcile(self, number: int) -> None:
        """A pass, with the rules that the stored record gives. One that changes nothing leaves the CR as it is."""
        revision = self.record.revision_of(member_of(str(number))).rule
        if self.has[number] != revision:
            self.has[number], self.health[number] = revision, "progressing"

    def settle(self, number: int) -> None:
        if number in self.breaks.get(self.has[number], ()):
            self.health[number] = "stalled"
            self.ever_broken.add(number)
        else:
            self.health[number] = "ready"

    def do(self, step: str, number: int) -> None:
        self.time += 1
        if step == "step":
            self.record = decode(encode(self.advanced()))  # stored before anything is reconciled with it
        elif step == "crash":
            self.advanced()  # not stored
        elif step == "create":
            new = max(self.has, default=0) + 1
            self.has[new], self.health[new] = self.record.base.rule, "ready"
        elif number in self.has:
            if step == "delete" and len(self.has) > 1:
                del self.has[number], self.health[number]
            elif step == "reconcile":
                self.reconcile(number)
            elif step == "settle":
                self.settle(number)

    def run_to_end(self) -> None:
        for _ in range(8 * len(self.has) + 20):
            for number in list(self.has):
                self.reconcile(number)
                self.settle(number)
            self.do("step", 0)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(1, 20))
    shares = st.builds(Share, st.integers(1, 5)) | st.builds(Share, st.integers(1, 40), st.just(True))
    rollout = Rollout(
        max_unavailable=draw(shares),
        pause_after=draw(st.none() | st.integers(1, 5)),
        failure_threshold=draw(st.just(Share(0)) | st.builds(Share, st.integers(0, 3))),
        order=draw(st.sampled_from(["oldest", "newest"])),
    )
    bad = {each.rule: draw(st.frozensets(st.integers(0, count))) for each in REVISIONS[1:]}
    first = REVISIONS[0]
    world = World(rollout, RolloutRecord.complete(first), bad)
    world.has = dict.fromkeys(range(count), first.rule)
    world.health = dict.fromkeys(range(count), "ready")
    return world


@pytest.mark.slow
@given(worlds(), st.lists(st.tuples(STEPS, st.integers(0, 25)), max_size=80))
def test_an_edit_breaks_at_most_the_threshold_and_one_wave(world: World, steps: list[tuple[str, int]]) -> None:
    world.record = begun(world.record, REVISIONS[1])
    known = set(world.has)
    for step, number in steps:
        world.do(step, number)
        known |= world.has.keys()
        room = max(1, world.rollout.max_unavailable.of(len(known), round_up=True))
        unready = [each for each, health in world.health.items() if health != "ready"]
        assert len(unready) <= room + world.rollout.failure_threshold.of(len(known))
    world.run_to_end()
    room = max(1, world.rollout.max_unavailable.of(len(known), round_up=True))
    assert len(world.ever_broken) <= room + world.rollout.failure_threshold.of(len(known))


def test_a_failure_of_the_last_cr_stops_the_rollout() -> None:
    """Somebody has to see it, although nothing is held back."""
    world = World(Rollout(), RolloutRecord.complete(REVISIONS[0]), {REVISIONS[1].rule: frozenset({0})})
    world.has, world.health = {0: REVISIONS[0].rule}, {0: "ready"}
    world.record = begun(world.record, REVISIONS[1])
    world.run_to_end()
    assert (world.record.phase, world.record.held_back) == ("Stopped", 0)


@pytest.mark.slow
@given(worlds())
def test_a_rollout_ends_or_stops_or_pauses(world: World) -> None:
    world.record = begun(world.record, REVISIONS[1])
    world.run_to_end()
    assert world.record.phase in {"Complete", "Stopped", "Paused"}
    if world.record.phase == "Complete":
        assert set(world.has.values()) == {REVISIONS[1].rule}
    while world.record.phase != "Complete":
        world.record = resumed(world.record)
        world.run_to_end()
    assert set(world.has.values()) == {REVISIONS[1].rule}


@pytest.mark.slow
@given(world=worlds(), steps=st.lists(st.tuples(STEPS, st.integers(0, 25)), max_size=60), is_edited=st.booleans())
def test_an_undo_leads_back_from_everywhere(world: World, steps: list[tuple[str, int]], *, is_edited: bool) -> None:
    world.record = begun(world.record, REVISIONS[1])
    for step, number in steps:
        world.do(step, number)
    if is_edited and not world.record.is_complete:
        world.record = begun(world.record, REVISIONS[2])
        for step, number in steps:
            world.do(step, number)
    goal = world.record.previous if world.record.is_complete else world.record.base
    assert goal is not None
    rejected = world.record.target
    world.record = reverted(world.record)
    world.run_to_end()
    assert world.record.phase == "Complete"
    assert set(world.has.values()) == {goal.rule}
    assert begun(world.record, rejected) == world.record


@pytest.mark.slow
@given(worlds(), st.lists(st.tuples(STEPS, st.integers(0, 25)), max_size=60), st.sampled_from(REVISIONS))
def test_an_edit_in_the_middle_changes_no_revision(
    world: World, steps: list[tuple[str, int]], revision: RolloutRevision
) -> None:
    for edit in (REVISIONS[1], REVISIONS[2]):
        world.record = begun(world.record, edit)
        for step, number in steps:
            world.do(step, number)
    before = {number: world.record.revision_of(member_of(str(number))) for number in world.has}
    world.record = begun(world.record, revision)
    assert {number: world.record.revision_of(member_of(str(number))).rule for number in world.has} == {
        number: each.rule for number, each in before.items()
    }
    world.rollout = replace(world.rollout, failure_threshold=Share(1000), pause_after=None)
    world.run_to_end()
    assert set(world.has.values()) == {revision.rule}
