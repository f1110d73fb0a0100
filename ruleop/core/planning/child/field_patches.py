"""Decides about fields of an object that belongs to somebody else.

They are applied on the server, by a field manager of the CR and the child, with the uid of the object, so that an apply
never creates one. Nothing is applied if the manager has exactly these fields with these values. Where the server keeps
a value in another form, its answer to an apply shows that: the fields are in sync for as long as they stay as answered.

A field that another manager holds with another value is not taken without `force`: the server rejects the apply, and
names the manager. The apply is retried when the object changes.

With a selector, the fields are the same for all objects that match. Those of the CR itself and of the operator do not
count.

Fields that a child set before are found by the managers on the objects that the rules of the CR's kind set fields of,
now or earlier. A manager counts with a proof. Without one, which is possible just after an upgrade, it counts in the
reach of the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ruleop.core.errors import RenderError
from ruleop.core.kinds import Kind, ObjectKey
from ruleop.core.merge import MergeError, UnwritableError, normalise_desired, three_way
from ruleop.core.merge.equality import same
from ruleop.core.planning.child.apply import Applied, require_known, require_readable, unmergeable, unwritable
from ruleop.core.planning.model.actions import ServerSideApply
from ruleop.core.planning.model.managers import FieldsManager, applied_fields, fingerprint_of, managers_on, values_of
from ruleop.core.planning.model.observed import Served
from ruleop.core.planning.model.outcome import Failure
from ruleop.core.planning.rendering.unplanned import ChildFails, ChildWaits, child_error
from ruleop.core.secrets.secret_values import DATA_FIELDS

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping

    from ruleop.core.kinds import Object
    from ruleop.core.planning.history import History
    from ruleop.core.planning.model.marks import Owner
    from ruleop.core.planning.model.observed import Observed
    from ruleop.core.planning.model.outcome import Failed
    from ruleop.core.planning.rendering.desired import Desired
    from ruleop.core.planning.rendering.scope import Scope
    from ruleop.core.rules import Child, Observe, Rule
    from ruleop.core.secrets.secrecy import Secrecy

TAKE, AMONG_RULEOP = HELD_ADVICE = ("`force: true` would take it", "let only one of them set it")
MAX_HELD = 8  # fields that a message about a conflict names
MAX_SELECTED = 1000  # objects that a selector may match
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


def find_patched(rule: Rule, owner: Owner, observed: Observed) -> list[PatchedObject]:
    """The fields that children of the CR have set, sorted by object. Raises Exhausted: who may write an object can put
    thousands of managers on it."""
    targets = None if observed.patched is None else patch_targets(rule, observed.patched)
    found: list[PatchedObject] = []
    for live in observed.objects.patched(owner.part_of):
        if ObjectKey.of(live) not in observed.own:
            found += patches_on(live, owner, targets, far=rule.reach == "cluster")
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


def state_of(target: Observe, namespace: str, observed: Observed) -> Served:
    """Whether objects of this namespace can be read."""
    places = observed.kinds.info(target.kind).places
    is_fixed = target.namespace is not None and target.namespace.constant
    if places is not None and namespace and not is_fixed and namespace not in places:
        return Served.UNWATCHED
    return observed.kinds.state_of(target)


def select(child: Child, scope: Scope, names: Mapping[str, Any], own: Container[ObjectKey]) -> list[ObjectKey]:
    """The objects that the selector of a child matches, sorted; without those of the CR itself, `own`. Their target is
    noted in the scope. Raises ChildFails, ChildWaits and Unlisted."""
    assert child.patch is not None
    observe, observed, site = child.patch.target, scope.observed, child.site
    kind = observe.kind
    if observed.kinds.info(kind).state is Served.UNSERVED:
        raise ChildWaits(f"the kind {kind} to be served by the cluster", site, why="kind")
    try:
        (target,) = scope.targets(observe, names)
    except RenderError as error:
        raise child_error(error) from None
    scope.selections.append(target)
    require_readable(child, kind, target.namespace or "", state_of(observe, target.namespace or "", observed))
    found = [ObjectKey.of(obj) for obj in islice(scope.select(observe, target), MAX_SELECTED + 1)]
    if len(found) > MAX_SELECTED:
        message = f"the selector matches more than {MAX_SELECTED:,} objects of the kind {kind.kind}: narrow it"
        raise ChildFails(message, site, reason="TooManyObjects")
    return [key for key in found if key not in own and key not in observed.own]


def patch(
    child: Child, desired: Desired, owner: Owner, observed: Observed, history: History, *, manager: str
) -> Applied:
    """The decision about the fields, set by this manager. Raises ChildFails, ChildWaits and Unlisted."""
    assert child.patch is not None
    require_known(child, desired, observed, state_of(child.patch.target, desired.key.namespace, observed))
    if desired.key.kind == "Secret" and not desired.key.group and desired.key.namespace != owner.namespace:
        for name in DATA_FIELDS:
            if name in desired.rendered:
                message = f"`{name}` of a Secret in another namespace than the CR's cannot be set"
                raise ChildFails(message, child.body.site)
    live = observed.objects.get(desired.key, version=desired.kind.version)
    if live is None:
        raise ChildWaits(f"{desired.key} to exist", child.body.site, why="object")
    try:
        fields = normalise_desired(desired.rendered, desired.kind)
        result = three_way(live, fields, None, desired.info.shape).object
    except UnwritableError as error:
        raise unwritable(child, desired, error) from None
    except MergeError as error:
        raise unmergeable(child, desired, error) from None
    digest = desired.digest
    if _is_applied(live, fields, manager, desired.kind) or (
        desired.key in history.applied and history.applied[desired.key] == fingerprint_of(live, manager, digest)
    ):
        return Applied(live, in_sync=True)
    failed = history.failure(desired.key)
    if failed is not None and failed.failure is Failure.HELD and failed.desired_digest == digest:
        message = f"{desired.key}: {held_by_others(failed, desired.key, child.secrecy, owner, observed)}"
        fields_held = tuple(cause.field for cause in failed.causes)
        raise ChildFails(message, child.body.site, reason="FieldConflict", fields=fields_held)
    body = {**fields, "metadata": {**fields["metadata"], "uid": live["metadata"].get("uid") or ""}}
    action = ServerSideApply(desired.key, child.id, body, live, digest, manager=manager, force=child.patch.force)
    return Applied(result, action)


def _is_applied(live: Object, fields: Object, manager: str, kind: Kind) -> bool:
    """Whether the manager has exactly these fields, and the object their values."""
    found = applied_fields(live, manager)
    if found is None or found[0] != kind.api_version or not found[1]:
        return False
    metadata = {name: value for name, value in fields["metadata"].items() if name not in {"name", "namespace"}}
    desired: dict[str, Any] = {name: value for name, value in fields.items() if name not in {"apiVersion", "kind"}}
    desired = {**desired, "metadata": metadata} if metadata else {**desired}
    if not metadata:
        del desired["metadata"]
    return same(values_of(dict(live), found[1]), desired)


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
