"""Keeps discovery and schemas up to date with the CRDs.

CRDs are watched, so that nothing is requested without a reason. Without the permission to watch them, discovery is
repeated once a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import structlog

from ruleop.errors import RuleopError
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.kubernetes.schema import SchemaError
from ruleop.operator.cache import Informer, Informers, WatchSpec
from ruleop.operator.controllers.controller_set import CRD, ControllerSet
from ruleop.operator.wire.watch.store import StoreChange, StoreState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.operator.cache import Cache, PublishedSchemas
    from ruleop.operator.wire.client.discovery import Discovery, DiscoveryDifference

DISCOVERY_LAG = 0.2  # seconds until discovery is repeated after a CRD changed; doubles each time
DISCOVERY_INTERVAL = 60.0  # seconds between discoveries where CRDs cannot be watched
RETRY_INTERVAL = 1.0  # seconds after a failure
# For a second after a CRD changed, its custom resources are read by the old schema. Then the server ends their watch,
# but the resumed one does not repeat what they missed: new defaults, and new fields of an edit within that second.
SCHEMA_LAG = 3.0


class DiscoverySync:
    def __init__(
        self,
        discovery: Discovery,
        schemas: PublishedSchemas,
        *,
        cache: Cache,
        informers: Informers,
        controller_set: ControllerSet,
    ) -> None:
        self.discovery = discovery
        self.schemas = schemas
        self.cache = cache
        self.informers = informers
        self.controller_set = controller_set
        self.log = structlog.get_logger()
        self._refreshing = asyncio.Event()
        self._deleted: set[GroupKind] = set()  # kinds whose CRD was deleted

    def definition_changed(self, informer: Informer, change: StoreChange) -> None:
        entry = change.new or change.old
        obj = self.cache.parse(informer, change.key, entry) if entry is not None else None
        if obj is None or (not change.outside_status and not _established_changed(change)):
            return
        with contextlib.suppress(SchemaError):
            definition = parse_crd(obj)
            kind = GroupKind(definition.group, definition.kind)
            if change.new is not None:
                self.cache.definitions[kind] = definition
                self._deleted.discard(kind)
                if change.old is not None and change.old.generation != change.new.generation:
                    self.informers.list_again(kind, SCHEMA_LAG)
            else:
                self.cache.definitions.pop(kind, None)
                self._deleted.add(kind)
            self.cache.invalidate()
            controllers = self.controller_set.controllers
            if (controller := controllers.get(kind)) is not None and change.outside_status:
                self.controller_set.status_schemas.report(controller.rules, self.cache)
                controllers.enqueue_all(controller, f"the CRD of {kind} changed")
        self._refreshing.set()

    async def refresh(self) -> None:
        """Repeats discovery, and updates the watches where it changed."""
        self._apply(await self.discovery.refresh())

    # -- discovery -----------------------------------------------------------------------------------------------------

    async def follow_discovery(self) -> None:
        """Repeats discovery after a CRD changed until it agrees with the CRDs, because the API server publishes a
        change a moment later. Where CRDs cannot be watched, at intervals."""
        pause, last_error = DISCOVERY_LAG, ""
        while True:
            crds = self.informers.informers[WatchSpec(CRD)]
            wait = None if crds.state is StoreState.SYNCED else DISCOVERY_INTERVAL
            outdated = self._is_outdated()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause if outdated else wait):
                    await self._refreshing.wait()
            if self._refreshing.is_set():
                pause = DISCOVERY_LAG
                # A kind that was deleted and created between two discoveries is seen by its watch only
                self.informers.wake()
            elif outdated:
                pause = min(DISCOVERY_INTERVAL, pause * 2)
            self._refreshing.clear()
            try:
                await self.refresh()
            except RuleopError as error:
                is_new, last_error = last_error != str(error), str(error)
                (self.log.warning if is_new else self.log.debug)("discovery failed; will retry", error=last_error)
                await asyncio.sleep(RETRY_INTERVAL)
                self._refreshing.set()
                continue
            last_error = ""
            if wait is not None and (known := self.schemas.fetched()):
                await self._fetch_schemas(known)

    def _is_outdated(self) -> bool:
        """Whether a kind that matters is defined and not served yet, or still served although its CRD was deleted, or
        still served in a version that its CRD no longer serves."""
        for kind in self._relevant_kinds():
            definition = self.cache.definitions.get(kind.versionless)
            version = definition.version(kind.version) if definition is not None else None
            defined, served = version is not None and version.served, self.discovery.get(kind) is not None
            if served != defined and (defined or kind.versionless in self._deleted):
                return True
            for other in definition.versions if definition is not None else ():
                if not other.served and self.discovery.get(kind._replace(version=other.name)) is not None:
                    return True
        return False

    def _relevant_kinds(self) -> Iterator[Kind]:
        """The watched kinds; and if a rule calls `has_kind`, whose arguments may be computed, all that have or had a
        CRD."""
        yield from (need.kind for need in self.informers.informers)
        if not any(controller.uses_has_kind() for controller in self.controller_set.controllers):
            return
        for kind, definition in self.cache.definitions.items():
            yield from (Kind(kind.group, version.name, kind.kind) for version in definition.versions)
        yield from (found.info.kind for kind in self._deleted if (found := self.discovery.get(kind)) is not None)

    def _apply(self, difference: DiscoveryDifference) -> None:
        """Updates the watches after kinds appeared, disappeared or changed."""
        if difference:
            self.cache.invalidate()
            self.informers.update_resources()
            self.controller_set.update_watches()
            self.controller_set.open_workers()
        for kind in difference.gone:
            controller = self.controller_set.controllers.get(kind.versionless)
            if controller is not None and kind != controller.kind:  # children may refer to their owners by this version
                self.controller_set.controllers.enqueue_all(controller, f"{kind} is no longer served")
        for controller in self.controller_set.controllers if difference.appeared or difference.gone else ():
            if controller.uses_has_kind():
                self.controller_set.controllers.enqueue_all(controller, "the served kinds changed")

    # -- schemas -------------------------------------------------------------------------------------------------------

    async def follow_schemas(self) -> None:
        """Fetches the published schemas of kinds whose CRD cannot be read, at first often, then rarely. Only at first
        do CRs wait for them."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.schemas.pause(self._written_kinds())):
                    await self.schemas.fetch_needed.wait()
            self.schemas.fetch_needed.clear()
            if missing := self.schemas.missing(self._written_kinds()):
                await self._fetch_schemas(missing)

    def _written_kinds(self) -> list[Kind]:
        return [kind for controller in self.controller_set.controllers for kind in controller.kinds()]

    async def _fetch_schemas(self, kinds: list[Kind]) -> None:
        try:
            await self.refresh()
        except RuleopError as error:
            self.log.warning("discovery failed; will retry", error=str(error))
            await asyncio.sleep(RETRY_INTERVAL)
            return
        for has_changed in asyncio.as_completed([self.schemas.fetch(kind) for kind in kinds]):
            for controller in self.controller_set.controllers if await has_changed else ():
                self.controller_set.status_schemas.report(controller.rules, self.cache)
                self.controller_set.controllers.enqueue_all(controller, "schemas were published")
            self.controller_set.open_workers()


def _established_changed(change: StoreChange) -> bool:
    return change.old is None or change.new is None or change.old.status != change.new.status
