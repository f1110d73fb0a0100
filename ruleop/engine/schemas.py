"""What the API server publishes of kinds whose definition cannot be read: those of an aggregated API, and, for an operator without the
right to read CustomResourceDefinitions, every kind that is not Kubernetes' own. Without it, a write would name fields that the server
refuses, and lists would be merged as if they had no keys."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ruleop.kube.errors import ApiError, Problem
from ruleop.schema.table import builtin_shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.engine.world import World
    from ruleop.kinds import Kind
    from ruleop.kube.discovery import Discovery

TRIES = 20  # the server is some seconds late with a new kind's schema; after this many looks there is none


class Schemas:
    def __init__(self, discovery: Discovery, world: World) -> None:
        self.discovery = discovery
        self.world = world
        self.wanted = asyncio.Event()  # somebody waits for what is missing
        self._looked: dict[Kind, int] = {}  # how often, in vain

    def known_of(self, kinds: Iterable[Kind]) -> bool:
        """Whether all is known of these; if not, it is looked for."""
        if not self.missing(kinds):
            return True
        self.wanted.set()
        return False

    def missing(self, kinds: Iterable[Kind]) -> list[Kind]:
        """Kinds that are served, and of which nothing is known yet."""
        return [kind for kind in kinds if self._foreign(kind) and kind not in self.world.published and self._looked.get(kind, 0) < TRIES]

    async def look(self, kinds: Iterable[Kind]) -> bool:
        """Asks for these, after a refresh of discovery. True when something new is known; of a kind without a schema nothing ever is."""
        new = False
        for kind in kinds:
            if not self._foreign(kind):
                continue
            self._looked[kind] = self._looked.get(kind, 0) + 1
            try:
                document = await self.discovery.openapi(kind.group, kind.version)
            except ApiError as error:
                if error.problem is Problem.FORBIDDEN:
                    self._looked[kind] = TRIES
                structlog.get_logger().warning("no schema", kind=str(kind), error=str(error))
                continue
            schema, shape = (document.schema(kind), document.shape(kind)) if document is not None else (None, None)
            if schema is not None and shape is not None and self.world.published.get(kind) is not schema:
                self.world.published[kind], self.world.shapes[kind] = schema, shape
                new = True
        if new:
            self.world.forget()
        return new

    def known(self) -> list[Kind]:
        """What was learned in this way, to be looked at again now and then: nobody tells when it changes."""
        return [kind for kind in self.world.published if self._foreign(kind)]

    def _foreign(self, kind: Kind) -> bool:
        known = builtin_shape(kind) is not None or kind.versionless in self.world.definitions
        return not known and self.world.lookup(kind) is not None
