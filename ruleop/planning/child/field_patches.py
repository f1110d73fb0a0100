"""Fields of objects of others that children of a CR have set, and who else holds them.

They are found by the managers on the objects that the rules of the CR's kind set fields of, now or earlier. A manager
counts with a proof. Without one, which is possible just after an upgrade, it counts in the reach of the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning.model.actions import ServerSideApply
from ruleop.planning.model.managers import FieldsManager, managers_on
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Observe, Rule
    from ruleop.language.secrets.secrecy import Secrecy
    from ruleop.planning.model.marks import Owner
    from ruleop.planning.model.observed import Objects, Observed
    from ruleop.planning.model.outcome import Failed

TAKE, AMONG_RULEOP = HELD_ADVICE = ("`force: true` would take it", "let only one of them set it")
MAX_HELD = 8  # fields that a message about a conflict names
MOST_UNPROVEN = 8  # managers of a CR without proof on one object: a child has one, so more are forged


@dataclass(frozen=True, slots=True)
class PatchedObject:
    """An object with fields that a child of the CR set, now or by earlier rules."""

    key: ObjectKey
    live: Object
    child: str
    manager: str


def patched_key(target: Observe) -> ObjectKey:
    """The object that a child with `patch` sets fields of; without a name or namespace that depends on the CR."""
    name, namespace = (each.constant or "" if each is not None else "" for each in (target.name, target.namespace))
    return ObjectKey(target.kind.group, target.kind.kind, namespace, name)


def find_patched(rule: Rule, owner: Owner, observed: Observed, objects: Objects) -> list[PatchedObject]:
    """The fields that children of the CR have set, sorted by object. Raises Exhausted: who may write an object can put
    thousands of managers on it."""
    targets = None if observed.patched is None else patch_targets(rule, observed.patched)
    found: list[PatchedObject] = []
    for live in objects.patched(owner.part_of):
        if ObjectKey.of(live) not in observed.own:
            found += patches_on(live, owner, targets, far=rule.reach.cluster)
    return found


def patch_targets(rule: Rule, inventoried: Iterable[ObjectKey]) -> frozenset[ObjectKey]:
    """The objects whose fields the rules of a kind set, now or, by the inventory, earlier."""
    return frozenset((*(patched_key(each.target) for each in rule.patches), *inventoried))


def patches_on(
    live: Object, owner: Owner, targets: Collection[ObjectKey] | None, *, far: bool
) -> Iterator[PatchedObject]:
    """The fields of an object that children of the CR have set: first those whose manager has a proof, then those of
    earlier versions, which are believed in the reach of the rule. `targets`: the objects that count; None: all."""
    key = ObjectKey.of(live)
    if targets is not None and not any(_covers(target, key) for target in targets):
        return
    proven, unproven = list[PatchedObject](), list[PatchedObject]()
    for each in managers_on(live):
        if each.part_of != owner.part_of:
            continue
        if each.is_proven(key, owner.proofs):
            proven.append(PatchedObject(key, live, each.child, each.name))
        elif each.is_believed(key, owner.proofs) and (far or key.namespace == owner.namespace):
            unproven.append(PatchedObject(key, live, each.child, each.name))
    yield from proven
    if len(unproven) <= MOST_UNPROVEN:
        yield from unproven


def _covers(target: ObjectKey, key: ObjectKey) -> bool:
    return (
        target.group_kind == key.group_kind
        and target.namespace in {"", key.namespace}
        and target.name in {"", key.name}
    )


def held_by_others(failed: Failed, key: ObjectKey, secrecy: Secrecy, owner: Owner, observed: Observed) -> str:
    """The fields of a rejected apply, with the managers that hold them. `force` is advised only against others than
    custom resources: it would take from one what it gives to another."""
    holders = [_manager_in(cause.message) for cause in failed.causes]
    found = [
        f"{secrecy.path(cause.field.removeprefix('.'))} is held by {holder_of(name, key, owner, observed)}"
        for cause, name in zip(failed.causes[:MAX_HELD], holders, strict=False)
    ]
    more = " and more" if len(failed.causes) > MAX_HELD else ""
    among_ruleop = any(FieldsManager.named(name) is not None for name in holders)
    return f"{', '.join(found)}{more}; {AMONG_RULEOP if among_ruleop else TAKE}"


def _manager_in(message: str) -> str:
    """The manager that the API server names in a conflict."""
    return message.removeprefix("conflict with ").partition(" using ")[0].partition(" with ")[0].strip('"')


def holder_of(name: str, key: ObjectKey, owner: Owner, observed: Observed) -> str:
    """The name of what sets fields of an object by this manager: another program, or a child of a custom resource."""
    manager = FieldsManager.named(name)
    if manager is None:
        return f'"{name}"' if name else "another manager"
    if not manager.is_believed(key, owner.proofs):
        return f'"{name}", which is not of this operator'
    if manager.part_of == owner.part_of:
        return f"the child {manager.child} of this custom resource"
    other = observed.resource_of(manager.part_of)
    who = other.title(owner.namespace) if other is not None else "another custom resource of this operator"
    return f"the child {manager.child} of {who}"


def release_fields(each: PatchedObject, *, needs: frozenset[str] = frozenset()) -> ServerSideApply:
    """An apply without any fields: the server removes those that no other manager holds."""
    metadata = {
        name: each.live["metadata"][name] for name in ("name", "namespace", "uid") if each.live["metadata"].get(name)
    }
    body = {"apiVersion": each.live["apiVersion"], "kind": each.live["kind"], "metadata": metadata}
    return ServerSideApply(each.key, each.child, body, each.live, "", "given up", manager=each.manager, needs=needs)
