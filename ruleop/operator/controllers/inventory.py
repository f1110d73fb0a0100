"""The inventory: what the operator has to know after its rules changed while it was not running.

It is stored in one ConfigMap, `<name>-inventory`.

For each watched kind: the kinds of children that its CRs have or had, so that children of a kind that the rules dropped
are still found and pruned; the objects of others whose fields they set or have set, so that these are released; whether
its CRs may carry ruleop's finalizer, so that it can be removed; and the conditions that its rules have or had, so that
dropped ones are removed from the status. It is written before the first such object is created: only the first CR of a
kind costs a write of the inventory.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import GroupKind, Object, ObjectKey
from ruleop.planning import AddFinalizer, Create, ServerSideApply, patched_key
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ruleop.language.rules import Rule
    from ruleop.operator.server_api import StoredData
    from ruleop.planning import Plan


# One can collide with the last write of the leader before; more mean that something else writes the ConfigMap
MAX_ATTEMPTS = 5


def inventory_key(namespace: str, name: str) -> ObjectKey:
    """The ConfigMap of an operator of this name."""
    return ObjectKey("", "ConfigMap", namespace, f"{name}-inventory")


@dataclass(frozen=True, slots=True)
class InventoryEntry:
    """The kinds of children, the finalizer, the conditions and the patched objects that CRs of one watched kind have or
    had."""

    children: frozenset[GroupKind] = frozenset()
    finalizer: bool = False
    conditions: frozenset[str] = frozenset()  # types of custom conditions
    patched: frozenset[ObjectKey] = frozenset()  # objects of others with fields of ruleop; without a name: any of them

    def covers(self, other: InventoryEntry) -> bool:
        return (
            other.children <= self.children
            and self.finalizer >= other.finalizer
            and other.conditions <= self.conditions
            and other.patched <= self.patched
        )

    def union(self, other: InventoryEntry) -> InventoryEntry:
        return InventoryEntry(
            self.children | other.children,
            self.finalizer or other.finalizer,
            self.conditions | other.conditions,
            self.patched | other.patched,
        )


NOTHING: Final = InventoryEntry()


def entry_of_plan(rule: Rule, plan: Plan) -> InventoryEntry:
    """The entry for everything that executing a plan may leave in the cluster."""
    applied = [action for action in plan.actions if isinstance(action, ServerSideApply)]
    created = [action.key for action in plan.actions if isinstance(action, Create)]
    patches = {action.child for action in applied if action.manager}
    return InventoryEntry(
        frozenset(key.group_kind for key in (*created, *(each.key for each in applied if not each.manager))),
        any(isinstance(action, AddFinalizer) for action in plan.actions),
        frozenset(each.type for each in rule.status.conditions),
        frozenset(patched_key(each.target) for each in rule.patches if each.target.id in patches),
    )


def entry_of_rules(rules: Iterable[Rule]) -> InventoryEntry:
    """All that CRs of these rules can have. A finalizer is for children that the garbage collector does not delete."""
    rules = tuple(rules)
    return InventoryEntry(
        frozenset(kind.versionless for rule in rules for child in rule.owned_children for kind in child.kinds),
        any(rule.needs_key for rule in rules),
        frozenset(each.type for rule in rules for each in rule.status.conditions),
        frozenset(patched_key(each.target) for rule in rules for each in rule.patches),
    )


class Inventory:
    """The last known content of the ConfigMap. Only the leader writes it."""

    def __init__(self, inventory_store: StoredData) -> None:
        self.inventory_store = inventory_store
        self.entries: dict[GroupKind, InventoryEntry] = {}
        self.in_doubt = False  # a write may or may not have happened
        self._version = ""
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        self._take(await self.inventory_store.read())
        self.in_doubt = False

    def of(self, watched: GroupKind) -> InventoryEntry:
        return self.entries.get(watched, NOTHING)

    def has_finalizers(self) -> bool:
        """Whether CRs of any kind may carry the finalizer."""
        return any(each.finalizer for each in self.entries.values())

    async def before_writes(self, rule: Rule, plan: Plan) -> None:
        """Returns when the ConfigMap contains the kinds and conditions that the plan is about to write."""
        watched, entry = rule.kind.versionless, entry_of_plan(rule, plan)
        if not self.entries.get(watched, NOTHING).covers(entry):  # usually it does
            await self.ensure(watched, entry)

    async def ensure(self, watched: GroupKind, entry: InventoryEntry) -> None:
        """Returns when the ConfigMap contains at least this."""
        async with self._writing:  # if many wait here, the first writes for all
            for _ in range(MAX_ATTEMPTS):
                if self.of(watched).covers(entry):
                    return
                await self._write({**self.entries, watched: self.of(watched).union(entry)})
            if not self.of(watched).covers(entry):
                raise RuleopError(
                    f"the inventory does not keep its entry for {watched}: does something else write this ConfigMap?"
                )

    async def shrink(self, watched: GroupKind, remaining: Callable[[], InventoryEntry]) -> bool:
        """Reduces an entry to what `remaining` returns, which is called while nothing else is being written. A
        reconcile that is about to create an object of a removed kind meanwhile has the kind recorded again first.
        False: somebody else wrote the ConfigMap, and nothing was removed."""
        async with self._writing:
            if self.in_doubt:
                await self.load()
            entry = remaining()
            if entry == self.of(watched):
                return True
            # Removed here before it is removed there: from now on `ensure` sees that it has to write, and waits for the
            # lock.
            self.entries = {**self.entries, watched: entry}
            self.in_doubt = True  # if the response is lost
            is_written = await self._write(self.entries)
            self.in_doubt = False
            return is_written

    async def _write(self, entries: Mapping[GroupKind, InventoryEntry]) -> bool:
        written = await self.inventory_store.write(encode(entries), self._version)
        if written is not None:
            self._take(written)
            return True
        # Somebody else wrote or deleted it: the caller repeats its change on the result. The entries known here are
        # kept, because the other write may be an edit by hand; obsolete ones are removed later.
        known = self.entries
        await self.load()
        self.entries = {each: self.of(each).union(known.get(each, NOTHING)) for each in {*known, *self.entries}}
        return False

    def _take(self, obj: Object | None) -> None:
        if obj is None:
            self._version = ""  # if somebody deleted it, the next write contains all that is known here
            return
        self._version = obj["metadata"]["resourceVersion"]
        self.entries = decode(obj.get("data") or {})


def encode(entries: Mapping[GroupKind, InventoryEntry]) -> dict[str, str]:
    return {
        str(watched): orjson.dumps(_plain(entry)).decode()
        for watched, entry in sorted(entries.items())
        if entry != NOTHING
    }


def _plain(entry: InventoryEntry) -> dict[str, Any]:
    found: dict[str, Any] = {"children": sorted(map(str, entry.children)), "finalizer": entry.finalizer}
    if entry.conditions:
        found["conditions"] = sorted(entry.conditions)
    if entry.patched:
        found["patched"] = sorted(map(list, entry.patched))
    return found


def decode(data: Mapping[str, Any]) -> dict[GroupKind, InventoryEntry]:
    """Entries that cannot be parsed are ignored: they are written again before they matter."""
    entries = {}
    for name, text in data.items():
        try:
            found = orjson.loads(text)
            children = frozenset(_parse(each) for each in found["children"])
            finalizer, conditions = found["finalizer"], frozenset(map(str, found.get("conditions") or ()))
            patched = frozenset(ObjectKey(*map(str, each)) for each in found.get("patched") or ())
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if isinstance(found["children"], list) and isinstance(finalizer, bool):
            entries[_parse(name)] = InventoryEntry(children, finalizer, conditions, patched)
    return entries


def _parse(text: str) -> GroupKind:
    kind, _, group = text.partition(".")
    return GroupKind(group, kind)
