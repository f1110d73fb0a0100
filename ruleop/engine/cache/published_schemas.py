"""What the API server publishes of kinds whose definition cannot be read: those of an aggregated API, and, for an
operator without the right to read CustomResourceDefinitions, every kind that is not Kubernetes' own. Without it, a
write would name fields that the server refuses, and lists would be merged as if they had no keys."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ruleop.kube.client.errors import ApiError, Problem
from ruleop.schema.table import builtin_shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.engine.cache.cache import Cache
    from ruleop.kinds import Kind
    from ruleop.kube.client.discovery import Discovery

FIRST_PAUSE, LONGEST_PAUSE = (
    0.1,
    60.0,
)  # seconds between looks: the server is some seconds late with a new kind's schema
LONGEST_LOOK = 10.0  # seconds: a server behind the API server may not answer
PATIENCE = 5  # looks for which CRs wait, 3 s in all; an aggregated API may have no schemas at all


class PublishedSchemas:
    def __init__(self, discovery: Discovery, world: Cache) -> None:
        self.discovery = discovery
        self.world = world
        self.wanted = asyncio.Event()  # somebody waits for what was never looked for
        self._looked: dict[Kind, int] = {}  # how often, in vain

    def known_of(self, kinds: Iterable[Kind]) -> bool:
        """Whether all is known of these that there is, as far as it is worth waiting for. If not, it is looked for."""
        missing = self.missing(kinds)
        if any(kind not in self._looked for kind in missing):
            self.wanted.set()
        return all(self._looked.get(kind, 0) >= PATIENCE for kind in missing)

    def missing(self, kinds: Iterable[Kind]) -> list[Kind]:
        """Kinds that are served, and of which nothing is known yet."""
        return [kind for kind in dict.fromkeys(kinds) if self._foreign(kind) and kind not in self.world.published]

    def pause(self, kinds: Iterable[Kind]) -> float | None:
        """Seconds until the next look at what is missing of these; None if nothing is. What is not missing any more,
        because it is known, not served or not wanted, is looked for as if for the first time, should it be missing
        again."""
        missing = self.missing(kinds)
        self._looked = {kind: self._looked[kind] for kind in missing if kind in self._looked}
        looks = [self._looked.get(kind, 0) for kind in missing]
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(*looks, 20)) if looks else None

    async def look(self, kind: Kind) -> bool:
        """Asks for this one, after a refresh of discovery. True when something new is known."""
        if not self._foreign(kind):
            return False
        looked = self._looked[kind] = self._looked.get(kind, 0) + 1
        try:
            async with asyncio.timeout(LONGEST_LOOK):
                document = await self.discovery.openapi(kind.group, kind.version)
        except (ApiError, TimeoutError) as error:
            if not isinstance(error, ApiError) or error.problem is Problem.FORBIDDEN:
                looked = self._looked[kind] = max(PATIENCE, looked)
            log = structlog.get_logger()
            (log.warning if looked in {1, PATIENCE} else log.debug)(
                "no schema", kind=str(kind), error=str(error) or "no answer"
            )
            return False
        schema, shape = (document.schema(kind), document.shape(kind)) if document is not None else (None, None)
        if schema is None or shape is None or self.world.published.get(kind) is schema:
            return False
        self.world.published[kind], self.world.shapes[kind] = schema, shape
        self.world.forget()
        return True

    def known(self) -> list[Kind]:
        """What was learned in this way, to be looked at again now and then: nobody tells when it changes."""
        return [kind for kind in self.world.published if self._foreign(kind)]

    def _foreign(self, kind: Kind) -> bool:
        known = builtin_shape(kind) is not None or kind.versionless in self.world.definitions
        return not known and self.world.lookup(kind) is not None
