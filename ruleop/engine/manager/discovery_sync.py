"""What the cluster serves, and in which form: discovery and schemas, kept in step with the definitions of custom kinds.

Definitions are watched, so that nothing is asked for without a reason. Where they may not be, the cluster is asked now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import structlog

from ruleop.engine.cache.informers import Informer, Informers, WatchSpec
from ruleop.engine.manager.controller_set import CRD, ControllerSet
from ruleop.errors import RuleopError
from ruleop.kinds import GroupKind, Kind
from ruleop.kube.watch.store import Change, State
from ruleop.schema.crds import parse_crd
from ruleop.schema.schema_findings import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.engine.cache.cache import Cache
    from ruleop.engine.cache.published_schemas import PublishedSchemas
    from ruleop.kube.client.discovery import Difference, Discovery

DISCOVERY_LAG = 0.2  # seconds to the first new look at what is served; then twice as long each time
LOOK_FOR_KINDS = 60.0  # seconds between discoveries where definitions cannot be watched
AGAIN = 1.0  # after a failure


class DiscoverySync:
    def __init__(
        self, discovery: Discovery, schemas: PublishedSchemas, *, world: Cache, informers: Informers, controller_set: ControllerSet
    ) -> None:
        self.discovery = discovery
        self.schemas = schemas
        self.world = world
        self.informers = informers
        self.controller_set = controller_set
        self.log = structlog.get_logger()
        self._refreshing = asyncio.Event()
        self._undefined: set[GroupKind] = set()  # kinds whose definition has gone

    def definition_changed(self, informer: Informer, change: Change) -> None:
        entry = change.new or change.old
        obj = self.world.parse(informer, change.key, entry) if entry is not None else None
        if obj is None or (not change.outside_status and not _established_changed(change)):
            return
        with contextlib.suppress(SchemaError):
            definition = parse_crd(obj)
            kind = GroupKind(definition.group, definition.kind)
            if change.new is not None:
                self.world.definitions[kind] = definition
                self._undefined.discard(kind)
            else:
                self.world.definitions.pop(kind, None)
                self._undefined.add(kind)
            self.world.forget()
            controllers = self.controller_set.controllers
            if (controller := controllers.get(kind)) is not None and change.outside_status:
                self.controller_set.room.look(controller.rules, self.world)
                controllers.all_again(controller, f"the definition of {kind} changed")
        self._refreshing.set()

    # -- discovery -----------------------------------------------------------------------------------------------------------------------

    async def follow_discovery(self) -> None:
        """Looks at what is served when a definition changed, until it is what the definitions say: the server publishes it a moment later.
        Where definitions cannot be watched, now and then."""
        pause, trouble = DISCOVERY_LAG, ""
        while True:
            crds = self.informers.informers[WatchSpec(CRD)]
            wait = None if crds.state is State.SYNCED else LOOK_FOR_KINDS
            late = self._out_of_step()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause if late else wait):
                    await self._refreshing.wait()
            if self._refreshing.is_set():
                pause = DISCOVERY_LAG
                self.informers.wake()  # a kind that went and came between two looks has only its watch to tell
            elif late:
                pause = min(LOOK_FOR_KINDS, pause * 2)
            self._refreshing.clear()
            try:
                difference = await self.discovery.refresh()
            except RuleopError as error:
                news, trouble = trouble != str(error), str(error)
                (self.log.warning if news else self.log.debug)("discovery failed; trying again", error=trouble)
                await asyncio.sleep(AGAIN)
                self._refreshing.set()
                continue
            trouble = ""
            self._take(difference)
            if wait is not None and (known := self.schemas.known()):
                await self._look_at_schemas(known)

    def _out_of_step(self) -> bool:
        """Something that is watched or asked for is defined and not served yet, or still served although its definition has gone; or
        another version of it is, that its definition takes back."""
        for kind in self._of_interest():
            definition = self.world.definitions.get(kind.versionless)
            version = definition.version(kind.version) if definition is not None else None
            defined, served = version is not None and version.served, self.discovery.get(kind) is not None
            if served != defined and (defined or kind.versionless in self._undefined):
                return True
            for other in definition.versions if definition is not None else ():
                if not other.served and self.discovery.get(kind._replace(version=other.name)) is not None:
                    return True
        return False

    def _of_interest(self) -> Iterator[Kind]:
        """What is watched; and where rules call `has_kind`, whose arguments may be computed, all that is defined or was."""
        yield from (need.kind for need in self.informers.informers)
        if not any(controller.asks_for_kinds() for controller in self.controller_set.controllers):
            return
        for kind, definition in self.world.definitions.items():
            yield from (Kind(kind.group, version.name, kind.kind) for version in definition.versions)
        yield from (found.info.kind for kind in self._undefined if (found := self.discovery.get(kind)) is not None)

    def _take(self, difference: Difference) -> None:
        """Kinds that came, went, or are another."""
        if difference:
            self.world.forget()
            self.informers.look_again()
            self.controller_set.watch()
            self.controller_set.open()
        for kind in difference.gone:
            controller = self.controller_set.controllers.get(kind.versionless)
            if controller is not None and kind != controller.kind:  # children may refer to their owners by this version
                self.controller_set.controllers.all_again(controller, f"{kind} is not served any more")
        for controller in self.controller_set.controllers if difference.appeared or difference.gone else ():
            if controller.asks_for_kinds():
                self.controller_set.controllers.all_again(controller, "other kinds are served")

    # -- schemas -------------------------------------------------------------------------------------------------------------------------

    async def follow_schemas(self) -> None:
        """Looks for what is published of kinds whose definition cannot be read, at first often, then seldom. Only at first do CRs wait
        for it."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.schemas.pause(self._written())):
                    await self.schemas.wanted.wait()
            self.schemas.wanted.clear()
            if missing := self.schemas.missing(self._written()):
                await self._look_at_schemas(missing)

    def _written(self) -> list[Kind]:
        return [kind for controller in self.controller_set.controllers for kind in controller.kinds()]

    async def _look_at_schemas(self, kinds: list[Kind]) -> None:
        try:
            self._take(await self.discovery.refresh())
        except RuleopError as error:
            self.log.warning("discovery failed; trying again", error=str(error))
            await asyncio.sleep(AGAIN)
            return
        for look in asyncio.as_completed([self.schemas.look(kind) for kind in kinds]):
            for controller in self.controller_set.controllers if await look else ():
                self.controller_set.room.look(controller.rules, self.world)
                self.controller_set.controllers.all_again(controller, "more schemas are known")
            self.controller_set.open()


def _established_changed(change: Change) -> bool:
    return change.old is None or change.new is None or change.old.status != change.new.status
