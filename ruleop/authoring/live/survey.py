"""Plans all custom resources of some kinds, batch by batch: at no time are more in memory than one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.authoring.live.live_planner import BATCH
from ruleop.core.kinds import ObjectKey
from ruleop.operator.kube.client.server_errors import ApiError, Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from ruleop.authoring.live.live_planner import LivePass, LivePlanner
    from ruleop.core.kinds import Kind, Object

ATTEMPTS: Final = 5
"""The number of attempts to read a list. Its pages expire after some minutes, and planning takes its time."""


async def all_passes(planner: LivePlanner, kinds: Iterable[Kind], namespace: str = "") -> AsyncIterator[LivePass]:
    """The passes of all custom resources of these kinds, in one namespace or in all. Raises ApiError."""
    planner.namespace = namespace
    for kind in kinds:
        async for batch in _batches(planner, kind, namespace):
            for each in await planner.plan(batch):
                yield each


async def _batches(planner: LivePlanner, kind: Kind, namespace: str) -> AsyncIterator[Sequence[Object]]:
    seen: set[ObjectKey] = set()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            async for page in planner.reader.pages(kind, namespace, size=BATCH):
                if new := [each for each in page if ObjectKey.of(each) not in seen]:
                    seen.update(map(ObjectKey.of, new))
                    yield new
        except ApiError as error:
            if error.problem is not Problem.GONE or attempt == ATTEMPTS:
                raise
        else:
            return
