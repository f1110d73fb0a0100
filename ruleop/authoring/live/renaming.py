"""Gives an operator another name or namespace: what the cluster keeps of it becomes that of the other, as if it always
had been.

Neither of the two may run. Each step can be repeated, and what the old one had is deleted last, so after a failure the
command is repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.live.open_cluster import CONFIG_MAP, LEASE, describe_lease, is_fresh, read_leases
from ruleop.authoring.report import listed
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import GroupKind, Kind, ObjectKey
from ruleop.operator.controllers import NOTHING, InventoryEntry, decode, encode, entry_of_rules, inventory_key
from ruleop.operator.passes.owner_key import ACCEPT_UNPROVEN, KEY, PREVIOUS_KEY, owner_key_key
from ruleop.operator.revisions import revisions_key
from ruleop.operator.rollouts import rollouts_key
from ruleop.operator.server_api import StoredData
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning import Owner
from ruleop.planning.model.marks import PART_OF, claim_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from ruleop.authoring.live.open_cluster import LiveCluster, Operator
    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Rule

SECRET: Final = Kind("", "v1", "Secret")
MAX_ATTEMPTS: Final = 5  # of a write of one custom resource, which others write too
MAX_LISTED: Final = 8


class Renaming:
    def __init__(self, cluster: LiveCluster, old: Operator, new: Operator, rules: Sequence[Rule]) -> None:
        """`rules`: those of the project, whose custom resources may have the finalizer, too."""
        self.reader, self.old, self.new, self.rules = cluster.reader, old, new, rules
        self.kinds = {*(rule.kind.versionless for rule in rules), *old.entries, *new.entries}
        self.api = cluster.reader.writing()

    async def run(self) -> tuple[list[str], int]:
        """The names of the objects that the new one has now, and the number of custom resources with another finalizer.
        Raises RuleopError."""
        old, new = self.old, self.new
        if (old.name, old.namespace) == (new.name, new.namespace):
            raise RuleopError(f'the operator "{old.name}" in namespace {old.namespace} has this name already')
        held = [each async for each in self._resources() if old.finalizer != new.finalizer]
        if old.problem and not (old.is_absent and held):  # without its objects, only the finalizers are left to replace
            raise RuleopError(old.problem)
        if not new.namespace:
            raise RuleopError(f"{new.problem}; or name the namespace that it shall have with --operator-namespace")
        await self._require_stopped(old)
        await self._require_stopped(new)
        await self._require_undeleted(held)
        moved = [each async for each in self._moved({Kind.of(each).versionless for each in held})]
        for each in held:
            await self._replace_finalizer(each)
        await self._delete_old()
        return moved, len(held)

    # -- before anything is written ------------------------------------------------------------------------------------

    async def _require_stopped(self, operator: Operator) -> None:
        for lease in await read_leases(self.reader, operator):
            if is_fresh(lease):
                raise RuleopError(f'stop the operator "{operator.name}" first: {describe_lease(lease)}')

    async def _resources(self) -> AsyncIterator[Object]:
        """The custom resources with the old finalizer."""
        for kind in sorted(self.kinds):
            if (served := self.reader.preferred(kind)) is not None:
                async for page in self.reader.pages(served):
                    for each in page:
                        if self.old.finalizer in (each["metadata"].get("finalizers") or ()):
                            yield each

    async def _require_undeleted(self, held: Iterable[Object]) -> None:
        """The API server adds no finalizer to what is being deleted, and without one nobody would clean up."""
        stuck = [
            str(ObjectKey.of(each))
            for each in held
            if each["metadata"].get("deletionTimestamp")
            and self.new.finalizer not in each["metadata"]["finalizers"]
            and not await self._is_clean(each)
        ]
        if stuck:
            raise RuleopError(
                f"{listed(stuck, MAX_LISTED)}: being deleted, and only {self.old.name} can end that: let it, "
                f"with `ruleop run --name {self.old.name}`, then repeat the command"
            )

    async def _is_clean(self, resource: Object) -> bool:
        """Whether the garbage collector will delete all that is left of a custom resource, as far as the rules tell:
        the new operator may have removed the rest, and its finalizer."""
        kind, owner = Kind.of(resource).versionless, Owner.of(resource)
        rules = [rule for rule in self.rules if rule.kind.versionless == kind]
        if not rules or any(
            rule.patches or any(each.final or each.deletion.policy for each in rule.every_child) for rule in rules
        ):
            return False
        for child in sorted(entry_of_rules(rules).union(self.old.entry(kind)).union(self.new.entry(kind)).children):
            if (served := self.reader.preferred(child)) is not None:
                async for page in self.reader.pages(served, labels=f"{PART_OF}={owner.part_of}"):
                    if any(claim_on(each, ObjectKey.of(each), owner).annotated for each in page):
                        return False
        return True

    # -- the objects of the operator -----------------------------------------------------------------------------------

    async def _moved(self, held: Iterable[GroupKind]) -> AsyncIterator[str]:
        entries = {each: InventoryEntry(finalizer=True) for each in held}
        for known in (self.old.entries, self.new.entries):
            entries = {each: entries.get(each, NOTHING).union(known.get(each, NOTHING)) for each in {*entries, *known}}
        store = self._store(inventory_key, self.new)
        found = await store.read()
        if decode((found or {}).get("data") or {}) != entries:
            yield await self._written(store, encode(entries), found)
        if (key := await self._key()) is not None:
            yield key
        for name in (revisions_key, rollouts_key):
            old, store = await self._store(name, self.old).read(), self._store(name, self.new)
            if old is not None and await store.read() is None:
                yield await self._written(store, old.get("data") or {}, None, old.get("binaryData"))

    async def _key(self) -> str | None:
        """The old key becomes that of the new one, or the one before it: children have proofs by it."""
        old, store = await self._store(owner_key_key, self.old).read(), self._store(owner_key_key, self.new)
        new = await store.read()
        if old is None:
            return None
        data: Mapping[str, str] = old.get("data") or {}
        known: Mapping[str, str] = (new or {}).get("data") or {}
        if new is None:
            return await self._written(store, data, None)
        if data.get(KEY) in {known.get(KEY), known.get(PREVIOUS_KEY)}:
            return None
        if PREVIOUS_KEY in {*known, *data}:
            raise RuleopError(
                f"{store.key} or the Secret of {self.old.name} has the entry {PREVIOUS_KEY}: run its operator until "
                "that is removed, stop it and repeat the command"
            )
        unproven = {name: each[name] for each in (known, data) for name in each if name == ACCEPT_UNPROVEN}
        return await self._written(store, {KEY: known[KEY], PREVIOUS_KEY: data[KEY], **unproven}, new)

    def _store(self, key: Callable[[str, str], ObjectKey], operator: Operator) -> StoredData:
        """The place of an object of an operator. Without a namespace, it finds none."""
        return StoredData(self.api, key(operator.namespace or self.new.namespace, operator.name))

    async def _written(
        self, store: StoredData, data: Mapping[str, str], before: Object | None, binary: Any = None
    ) -> str:
        version = before["metadata"]["resourceVersion"] if before is not None else ""
        if await store.write(data, version, binary=binary) is None:
            raise RuleopError(f"{store.key} was changed meanwhile: repeat the command")
        return store.key.name

    async def _delete_old(self) -> None:
        for lease in await read_leases(self.reader, self.old):
            await self._delete(LEASE, ObjectKey.of(lease), lease)
        for kind, name in (
            (CONFIG_MAP, rollouts_key),
            (CONFIG_MAP, revisions_key),
            (SECRET, owner_key_key),
            (CONFIG_MAP, inventory_key),
        ):
            store = self._store(name, self.old)
            if (found := await store.read()) is not None:
                await self._delete(kind, store.key, found)

    async def _delete(self, kind: Kind, key: ObjectKey, found: Object) -> None:
        metadata = found["metadata"]
        version = metadata["resourceVersion"]
        await self.api.delete(kind, key, uid=metadata["uid"], version=version)

    # -- custom resources ----------------------------------------------------------------------------------------------

    async def _replace_finalizer(self, resource: Object) -> None:
        key, kind, found = ObjectKey.of(resource), Kind.of(resource), resource
        for _ in range(MAX_ATTEMPTS):
            metadata = found["metadata"]
            finalizers = metadata.get("finalizers") or []
            if self.old.finalizer not in finalizers:
                return
            await self._require_undeleted([found])
            others = [each for each in finalizers if each != self.old.finalizer]
            is_replaced = not metadata.get("deletionTimestamp") and self.new.finalizer not in others
            after = [*others, self.new.finalizer] if is_replaced else others
            precondition = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
            try:
                await self.api.patch(kind, key, {"metadata": {**precondition, "finalizers": after}})
            except ApiError as error:
                if error.problem is Problem.NOT_FOUND:
                    return
                if error.problem is not Problem.CONFLICT:
                    raise
            else:
                return
            if (live := await self.reader.get(kind, key)) is None:
                return
            found = live
        raise RuleopError(f"{key} was changed each time: repeat the command")
