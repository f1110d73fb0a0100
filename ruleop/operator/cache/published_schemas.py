"""Fetches the OpenAPI schemas of kinds whose CRD cannot be read.

These are the kinds of aggregated APIs and, if the operator must not read CRDs, all kinds that are not built in. Without
a schema, writes would contain fields that the API server rejects, and lists would be merged as if they had no keys.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.operator.wire.client.server_errors import ApiError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.kinds import Kind
    from ruleop.operator.cache.cache import Cache
    from ruleop.operator.wire.client.discovery import Discovery

# Seconds between attempts. The API server publishes the schema of a new kind with a delay of some seconds.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 60.0
TIMEOUT = 10.0  # seconds: the server of an aggregated API may not respond
ATTEMPTS_AWAITED = 5  # CRs wait for these, 3 s in total; an aggregated API may publish no schemas at all


class PublishedSchemas:
    def __init__(self, discovery: Discovery, cache: Cache) -> None:
        self.discovery = discovery
        self.cache = cache
        self.fetch_needed = asyncio.Event()  # set when a schema is needed that was never requested
        self._attempts: dict[Kind, int] = {}  # failed attempts since the kind has been missing

    def is_known(self, kinds: Iterable[Kind]) -> bool:
        """Whether the CRs need not wait for schemas of these kinds: each is known, or was requested without success.
        Requests those that never were."""
        missing = self.missing(kinds)
        if any(kind not in self._attempts for kind in missing):
            self.fetch_needed.set()
        return all(self._attempts.get(kind, 0) >= ATTEMPTS_AWAITED for kind in missing)

    def missing(self, kinds: Iterable[Kind]) -> list[Kind]:
        """The kinds among these that are served and whose schema is not known."""
        return [kind for kind in dict.fromkeys(kinds) if self._needs_fetch(kind) and kind not in self.cache.published]

    def pause(self, kinds: Iterable[Kind]) -> float | None:
        """Seconds until the next attempt for those of these kinds that are missing; None if none is. The attempts for
        other kinds are reset, so that a kind which is missing again later is requested often at first."""
        missing = self.missing(kinds)
        self._attempts = {kind: self._attempts[kind] for kind in missing if kind in self._attempts}
        attempts = [self._attempts.get(kind, 0) for kind in missing]
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(*attempts, 20)) if attempts else None

    async def fetch(self, kind: Kind) -> bool:
        """Fetches the schema of one kind, after a refresh of discovery. Whether it is new or has changed."""
        if not self._needs_fetch(kind):
            return False
        attempts = self._attempts[kind] = self._attempts.get(kind, 0) + 1
        try:
            async with asyncio.timeout(TIMEOUT):
                document = await self.discovery.openapi(kind.group, kind.version)
        except (ApiError, TimeoutError) as error:
            if not isinstance(error, ApiError) or error.problem is Problem.FORBIDDEN:
                attempts = self._attempts[kind] = max(ATTEMPTS_AWAITED, attempts)
            log = structlog.get_logger()
            (log.warning if attempts in {1, ATTEMPTS_AWAITED} else log.debug)(
                "no schema", kind=str(kind), error=str(error) or "no answer"
            )
            return False
        schema, shape = (document.schema(kind), document.shape(kind)) if document is not None else (None, None)
        if schema is None or shape is None or self.cache.published.get(kind) is schema:
            return False
        self.cache.published[kind], self.cache.shapes[kind] = schema, shape
        self.cache.invalidate()
        return True

    def fetched(self) -> list[Kind]:
        """The kinds whose schemas were fetched. They are fetched again periodically: no watch reports changes."""
        return [kind for kind in self.cache.published if self._needs_fetch(kind)]

    def _needs_fetch(self, kind: Kind) -> bool:
        known = builtin_shape(kind) is not None or kind.versionless in self.cache.definitions
        return not known and self.cache.lookup(kind) is not None
