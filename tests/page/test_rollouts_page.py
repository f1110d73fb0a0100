"""Rollouts and the operator on the page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ruleop.operator.wire.watch.store import StoreState
from tests.page.html import links
from tests.page.projects import NOTES, ROLLED_OUT, note
from tests.page.session import running

NAMES = ("a", "b", "c", "d")


@pytest.mark.slow
def test_a_stopped_rollout_shows_what_failed_and_what_is_held_back_by_wave(tmp_path: Path) -> None:
    async def look() -> None:
        samples = [note(name) for name in NAMES]
        async with running(tmp_path, samples, files=ROLLED_OUT, rollouts=True) as shown:
            await shown.shows("/resources?state=ready", "4 of 4")
            found = await shown.shows("/rollouts", "Note.example.com", "Complete", "Current: have this revision 4")
            broken = ROLLED_OUT["templates/config.yaml.j2"].replace("spec.text", "spec.missing")
            await asyncio.to_thread((tmp_path / "templates/config.yaml.j2").write_text, broken)
            found = await shown.shows("/rollouts", "Stopped", "Failed 1")
            assert "Held back, wave 3 from now 1" in found.words
            assert "ruleop rollout undo" in found.words
            assert "spec.missing" in found.words
            tiles = {each.rpartition("name=")[2] for each in links(found.text) if "name=" in each}
            assert tiles == set(NAMES)

    asyncio.run(look())


@pytest.mark.slow
def test_rules_without_rollouts_are_reported(tmp_path: Path) -> None:
    async def look() -> None:
        async with running(tmp_path, [note("a")], files=NOTES) as shown:
            assert "No watch has rollout" in (await shown.get("/rollouts")).words

    asyncio.run(look())


@pytest.mark.slow
def test_the_operator_names_its_checks_and_the_permissions_that_it_lacks(tmp_path: Path) -> None:
    async def look() -> None:
        async with running(tmp_path, [note("a")], files=NOTES) as shown:
            await shown.shows("/operator", "Operator ready", "controller Note.example.com", "None: every kind")
            (store,) = [
                store
                for need, informer in shown.manager.known.informers.informers.items()
                if need.kind.kind == "Secret" and not need.children
                for store in informer.stores()
            ]
            store.set_state(StoreState.FORBIDDEN, "cannot list secrets: permission denied")
            await shown.shows("/operator", "v1 Secret", "cannot list secrets: permission denied")

    asyncio.run(look())


@pytest.mark.slow
def test_custom_resources_whose_plans_are_slow_are_named(tmp_path: Path) -> None:
    async def look() -> None:
        async with running(tmp_path, [note("a")], files=NOTES) as shown:
            await shown.shows("/resources", "1 of 1", "Waiting")
            (controller,) = shown.manager.work.controllers
            (request,) = controller.reconciler.histories
            controller.reconciler.large.add(request)
            found = await shown.get("/operator")
            assert [each for each in links(found.text) if each.endswith("name=a")]

    asyncio.run(look())
