"""Writes owner annotations again that have no proof by the current key, and renames such field managers: of earlier
versions, or after the key changed.

A pass writes the annotations of desired children. This does the rest, once per leadership: children of paused and
failing CRs, and those that are to be pruned. Afterwards only proofs by the current key are believed.

Before that, an annotation without proof is believed if everything else agrees: the CR exists and has the uid, a rule
applies to it, whose reach includes the object, and the inventory has the kind among those of its children. Likewise a
manager without proof: the inventory or a rule has the object among those whose fields it sets.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ruleop.errors import RenderError, RuleopError
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.names import PATCH_MANAGER
from ruleop.operator.server_api import ServerApi
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.watch.store import StoreState
from ruleop.planning import Owner, choose_rule, patch_targets, patches_on
from ruleop.planning.model.managers import manager_of, managers_on
from ruleop.planning.model.marks import ITEM, OWNER, annotations_of, claim_on, item_on, named_owner
from ruleop.planning.model.rule_permissions import account_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.language.rules import Rule
    from ruleop.operator.controllers import ControllerSet
    from ruleop.operator.passes.owner_key import OwnerKey
    from ruleop.planning.model.marks import Claim

CHECK_INTERVAL = 1.0  # seconds between two checks whether the pause at the start is over
RETRY_INTERVAL = 30.0  # seconds after a failed write
_ANNOTATION = f'"{OWNER}"'.encode()
_MANAGER = f'"{PATCH_MANAGER}'.encode()


def signed_notes(live: Object, key: ObjectKey, owner: Owner, claim: Claim) -> dict[str, str]:
    """The annotations of an owned object with proofs by the current key; none if they have them."""
    notes = {OWNER: owner.annotation(key, orphan=claim.orphan, kept=claim.kept)}
    if (record := item_on(live, key, owner)) is not None:
        notes[ITEM] = record.annotation(owner, key)
    return {name: note for name, note in notes.items() if annotations_of(live).get(name) != note}


class Remarking:
    def __init__(
        self,
        controller_set: ControllerSet,
        owner_key: OwnerKey,
        api: ServerApi,
        is_alone: Callable[[], bool] = lambda: True,
    ) -> None:
        self.is_alone = is_alone  # else other processes have annotations of their own to write
        self.controller_set, self.owner_key, self.api = controller_set, owner_key, api
        self.controllers, self.cache = controller_set.controllers, controller_set.cache
        self.inventory = controller_set.inventory
        self.log = structlog.get_logger()

    async def run(self) -> None:
        while True:
            await self.owner_key.unsettled.wait()
            await asyncio.sleep(CHECK_INTERVAL)
            if not self.controller_set.is_settled:
                continue
            try:
                done = await self.remark_all() and self.is_alone() and await self.owner_key.settle()
            except RuleopError as error:
                done = False
                self.log.warning("owner key not written; will retry", error=str(error), retry_in=RETRY_INTERVAL)
            if done:
                self.log.info("all owner annotations are signed with the current key")
            else:
                await asyncio.sleep(RETRY_INTERVAL)

    async def remark_all(self) -> bool:
        """Whether no annotation is left."""
        unlisted, left, count = set(), 0, 0
        for kind, informers in self.cache.children_of.items():
            for informer in informers:
                if informer.state in {StoreState.PENDING, StoreState.FORBIDDEN}:
                    unlisted.add(str(kind))
                for key, entry in list(informer.entries()):
                    live = self.cache.parse(informer, key, entry) if _ANNOTATION in entry.body else None
                    notes = self._renewed(key, live) if live is not None else None
                    if live is not None and notes:
                        count += 1
                        guards = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
                        patch = {"metadata": {**guards, "annotations": notes}}
                        named = named_owner(live)
                        assert named is not None, "it has an annotation to be signed"
                        sign = partial(ServerApi.patch, kind=Kind.of(live), key=key, patch=patch)
                        left += not await self._write_for(named[0], key, sign)
        labels = self._labels() if self.cache.patched_kinds else {}
        for kind, informers in self.cache.patched_kinds.items():
            for informer in informers:
                if informer.state in {StoreState.PENDING, StoreState.FORBIDDEN}:
                    unlisted.add(str(kind))
                for key, entry in list(informer.entries()):
                    live = self.cache.parse(informer, key, entry) if _MANAGER in entry.body else None
                    for owner, names in self._renamed(key, live, labels) if live is not None else ():
                        assert live is not None
                        count += 1
                        rename = partial(ServerApi.rename_managers, kind=Kind.of(live), key=key, names=names)
                        left += not await self._write_for(owner, key, rename)
        if count:
            self.log.info("owner annotations re-signed", objects=count - left, failed=left)
        if unlisted:
            self.log.warning(
                "owner annotations without proof are still believed: kinds cannot be listed", kinds=sorted(unlisted)
            )
        return not left and not unlisted

    def _renewed(self, key: ObjectKey, live: Object) -> dict[str, str] | None:
        """The annotations with proofs by the current key; none if they have them, or are not to be believed."""
        named = named_owner(live)
        controller = self.controllers.get(named[0].group_kind) if named is not None else None
        resource = self.cache.resource(named[0]) if named is not None and controller is not None else None
        if controller is None or resource is None:
            return None
        owner = Owner.of(resource, self.owner_key.proofs())
        claim, rule = claim_on(live, key, owner), choose_rule(controller.rules, resource)
        known = key.group_kind in self.inventory.of(controller.kind.versionless).children
        near = claim.proven or (rule is not None and (rule.reach.cluster or key.namespace == owner.namespace))
        if not (claim.owned and claim.annotated and known and near):
            return None
        return signed_notes(live, key, owner, claim)

    def _labels(self) -> dict[str, ObjectKey]:
        """The CRs by the label that names of managers contain."""
        return {
            Owner(controller.kind, key.namespace, key.name, "").part_of: key
            for controller in self.controllers
            for key, _ in self.cache.resources(controller.kind.versionless)
        }

    def _renamed(
        self, key: ObjectKey, live: Object, labels: Mapping[str, ObjectKey]
    ) -> Iterator[tuple[ObjectKey, dict[str, str]]]:
        """The managers without a proof by the current key that are to be believed, with their new names, by CR."""
        for label in sorted({each.part_of for each in managers_on(live)} & labels.keys()):
            controller = self.controllers.get(labels[label].group_kind)
            resource = self.cache.resource(labels[label])
            rule = choose_rule(controller.rules, resource) if controller is not None and resource is not None else None
            if controller is None or resource is None or rule is None:
                continue
            owner = Owner.of(resource, self.owner_key.proofs())
            found: dict[str, str] = {}
            targets = patch_targets(rule, self.inventory.of(controller.kind.versionless).patched)
            for each in patches_on(live, owner, targets, far=rule.reach.cluster):
                name = manager_of(owner, each.child, key)
                if name != each.manager:
                    found[each.manager] = name
            if found:
                yield labels[label], found

    def _rule_of(self, owner: ObjectKey) -> tuple[Rule, Object] | None:
        """The CR with the rule that applies to it."""
        controller, resource = self.controllers.get(owner.group_kind), self.cache.resource(owner)
        rule = choose_rule(controller.rules, resource) if controller is not None and resource is not None else None
        return (rule, resource) if rule is not None and resource is not None else None

    async def _write_for(
        self, owner: ObjectKey, key: ObjectKey, write: Callable[[ServerApi], Awaitable[Object | None]]
    ) -> bool:
        """Writes a child by the permissions by which a pass over its CR writes it."""
        found = self._rule_of(owner)
        try:
            account = account_of(*found) if found is not None else None
        except RenderError as error:
            self.log.warning("owner annotation not written; will retry", object=str(key), error=str(error))
            return False
        return await self._write(key, write(self.api.writing_as(account)))

    async def _write(self, key: ObjectKey, request: Awaitable[Object | None]) -> bool:
        try:
            response = await request
        except ApiError as error:
            if error.problem is Problem.NOT_FOUND:
                return True
            if error.problem is not Problem.CONFLICT:
                self.log.warning("owner annotation not written; will retry", object=str(key), error=str(error))
            return False
        if response is not None:
            self.cache.put(response)
        return True
