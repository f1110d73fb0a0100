"""What the operator has to remember when its rules change while it is away: one ConfigMap, `<name>-inventory`.

For each watched kind: the kinds of children that its CRs have or had, so that a kind dropped from the rules is still looked for and pruned;
whether CRs of it may carry our finalizer, so that it can be taken off when nobody needs it any more; and the conditions that its rules have
or had, so that one that was dropped does not stand in a status for ever. It is written before the first such object is made, so creating a
CR costs no write for it, save the very first.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from ruleop.errors import RuleopError
from ruleop.kinds import GroupKind, Object
from ruleop.planning import AddFinalizer, Create, ServerSideApply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.planning import Plan
    from ruleop.rules import Rule


MOST_TRIES = 5
"""Writes of the same thing. One may meet an older leader's last write; more, and something is rewriting the ConfigMap after us."""


class InventoryStore(Protocol):
    """Where the ConfigMap is."""

    async def read(self) -> Object | None: ...

    async def write(self, data: Mapping[str, str], version: str) -> Object | None:
        """The ConfigMap as written; without a version it is created. None where the one on the server is another (or there is none)."""
        ...


@dataclass(frozen=True, slots=True)
class InventoryEntry:
    """What one watched kind has or had."""

    children: frozenset[GroupKind] = frozenset()
    finalizer: bool = False
    conditions: frozenset[str] = frozenset()  # types that rules had beside ruleop's own

    def covers(self, other: InventoryEntry) -> bool:
        return other.children <= self.children and self.finalizer >= other.finalizer and other.conditions <= self.conditions

    def joined(self, other: InventoryEntry) -> InventoryEntry:
        return InventoryEntry(self.children | other.children, self.finalizer or other.finalizer, self.conditions | other.conditions)


class Inventory:
    """The ConfigMap as known here. Only the leader writes it."""

    def __init__(self, inventory_store: InventoryStore) -> None:
        self.inventory_store = inventory_store
        self.entries: dict[GroupKind, InventoryEntry] = {}
        self.in_doubt = False  # the ConfigMap may say more than is known here
        self._version = ""
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        self._take(await self.inventory_store.read())
        self.in_doubt = False

    def of(self, watched: GroupKind) -> InventoryEntry:
        return self.entries.get(watched, InventoryEntry())

    def conditions_of(self, watched: GroupKind) -> frozenset[str]:
        """Types of conditions that the rules of a kind have or had."""
        return self.of(watched).conditions

    async def before_writes(self, rule: Rule, plan: Plan) -> None:
        """Returns when the ConfigMap says what the plan is about to make."""
        kinds = {action.key.group_kind for action in plan.actions if isinstance(action, (Create, ServerSideApply))}
        finalizer = any(isinstance(action, AddFinalizer) for action in plan.actions)
        entry = InventoryEntry(frozenset(kinds), finalizer, frozenset(each.type for each in rule.conditions))
        await self.ensure(rule.kind.versionless, entry)

    async def ensure(self, watched: GroupKind, entry: InventoryEntry) -> None:
        """Returns when the ConfigMap says at least this. Most calls find that it does, and cost nothing."""
        if self.of(watched).covers(entry):
            return
        async with self._writing:  # of many that wait here, the first writes for all
            for _ in range(MOST_TRIES):
                if self.of(watched).covers(entry):
                    return
                await self._write({**self.entries, watched: self.of(watched).joined(entry)})
            if not self.of(watched).covers(entry):
                raise RuleopError(f"the inventory does not keep what is written to it about {watched}: who else writes this ConfigMap?")

    async def shrink(self, watched: GroupKind, left: Callable[[], InventoryEntry]) -> bool:
        """When the last object of a kind is gone, its name goes too: `left` says what is to be remembered still. It is asked when nothing
        else is being written, and believed until it is asked again, so whoever is about to make such an object meanwhile has its name
        written again first. False: somebody else wrote, and nothing was done."""
        async with self._writing:
            if self.in_doubt:
                await self.load()
            entry = left()
            if entry == self.of(watched):
                return True
            # Forgotten here before it is there: from now on `ensure` finds that it has to be written, and waits for its turn.
            self.entries = {**self.entries, watched: entry}
            self.in_doubt = True  # should the answer be lost
            done = await self._write(self.entries)
            self.in_doubt = False
            return done

    async def _write(self, entries: Mapping[GroupKind, InventoryEntry]) -> bool:
        written = await self.inventory_store.write(encode(entries), self._version)
        if written is not None:
            self._take(written)
            return True
        # Somebody else wrote, or deleted it: theirs is read, and the caller looks again. What is known here stays known, for theirs may be
        # an edit by hand; what says too much is found out.
        known = self.entries
        await self.load()
        self.entries = {each: self.of(each).joined(known.get(each, InventoryEntry())) for each in {*known, *self.entries}}
        return False

    def _take(self, obj: Object | None) -> None:
        if obj is None:
            self._version = ""  # what is known here is all there is, should somebody have deleted it; the next write says it all again
            return
        self._version = obj["metadata"]["resourceVersion"]
        self.entries = decode(obj.get("data") or {})


def encode(entries: Mapping[GroupKind, InventoryEntry]) -> dict[str, str]:
    return {str(watched): orjson.dumps(_plain(entry)).decode() for watched, entry in sorted(entries.items()) if entry != InventoryEntry()}


def _plain(entry: InventoryEntry) -> dict[str, Any]:
    conditions = {"conditions": sorted(entry.conditions)} if entry.conditions else {}
    return {"children": sorted(map(str, entry.children)), "finalizer": entry.finalizer, **conditions}


def decode(data: Mapping[str, Any]) -> dict[GroupKind, InventoryEntry]:
    """What cannot be read counts as not there: it is written again before it matters."""
    entries = {}
    for name, text in data.items():
        try:
            found = orjson.loads(text)
            children = frozenset(_parse(each) for each in found["children"])
            finalizer, conditions = found["finalizer"], frozenset(map(str, found.get("conditions") or ()))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if isinstance(found["children"], list) and isinstance(finalizer, bool):
            entries[_parse(name)] = InventoryEntry(children, finalizer, conditions)
    return entries


def _parse(text: str) -> GroupKind:
    kind, _, group = text.partition(".")
    return GroupKind(group, kind)
