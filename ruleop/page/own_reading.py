"""Reads the cluster for the page of one custom resource: with the permissions of the operator, which has no `get` for
objects that it observes, and by what the operator knows already.

Kinds and observed objects come from its caches, as in its passes. Children are listed, because the caches leave out
whose fields are whose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.authoring.live.reading.reader import Reader
from ruleop.authoring.live.reading.served_kinds import LiveKinds
from ruleop.errors import RuleopError
from ruleop.operator.wire.watch.store import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.authoring.live.reading.read_only_connection import Connection
    from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
    from ruleop.language.rules import Observe
    from ruleop.operator.cache.cache import Cache
    from ruleop.operator.cache.informers import Informer
    from ruleop.planning import KindInfo, Served


class OwnReader(Reader):
    def __init__(self, connection: Connection, cache: Cache) -> None:
        super().__init__(connection)
        self._cache = cache

    async def get(self, kind: Kind, key: ObjectKey) -> Object | None:
        if any(_has(informer, kind, key) for informer in self._cache.observed.get(key.group_kind, ())):
            return self._cache.get(key, version=kind.version, partial=True)
        return await super().get(kind, key)


def _has(informer: Informer, kind: Kind, key: ObjectKey) -> bool:
    """Whether the cache has the object if it exists."""
    need = informer.need
    return (
        need.kind == kind
        and not need.labels
        and need.fields in {"", f"metadata.name={key.name}"}
        and need.namespace in {"", key.namespace}
        and informer.state_in(key.namespace) is State.SYNCED
    )


class OwnKinds(LiveKinds):
    """The kinds as the passes of one custom resource see them."""

    def __init__(self, cache: Cache, namespace: str) -> None:
        self._seen = cache.seen_from(namespace)
        self.forbidden, self.unread = set(), set()

    def info(self, kind: Kind) -> KindInfo:
        return self._seen.info(kind)

    def state_of(self, observe: Observe) -> Served:
        return self._seen.state_of(observe)

    def forbid(self, kind: Kind) -> None:
        raise RuleopError(f"not permitted to read {kind.kind}")

    async def learn(self, kinds: Iterable[Kind]) -> None:
        """The caches know them."""
