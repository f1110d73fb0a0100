"""Decides about fields of an object that belongs to somebody else.

They are applied on the server, by a field manager of the CR and the child, with the uid of the object, so that an apply
never creates one. Nothing is applied if the manager has exactly these fields with these values. Where the server keeps
a value in another form, its answer to an apply shows that: the fields are in sync for as long as they stay as answered.

A field that another manager holds with another value is not taken without `force`: the server rejects the apply, and
names the manager. The apply is retried when the object changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruleop.core.kinds import Kind, ObjectKey
from ruleop.core.merge import MergeError, UnwritableError, normalise_desired, three_way
from ruleop.core.merge.equality import same
from ruleop.core.planning.child.apply import Applied, require_known, unmergeable, unwritable
from ruleop.core.planning.model.actions import ServerSideApply
from ruleop.core.planning.model.managers import applied_fields, fingerprint_of, manager_of, managers_on, values_of
from ruleop.core.planning.model.observed import Served
from ruleop.core.planning.model.outcome import Failure
from ruleop.core.planning.rendering.unplanned import ChildFails, ChildWaits
from ruleop.core.templating.values.cost import EXISTING_UNITS, METER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.planning.memory.history import History
    from ruleop.core.planning.model.marks import Owner
    from ruleop.core.planning.model.observed import Observed
    from ruleop.core.planning.model.outcome import Failed
    from ruleop.core.planning.rendering.desired import Desired
    from ruleop.core.rules import Child
    from ruleop.core.secrets.secrecy import Secrecy

MAX_HELD = 8  # fields that a message about a conflict names
_SECRET_DATA = ("data", "stringData")


@dataclass(frozen=True, slots=True)
class PatchedObject:
    """An object with fields that a child of the CR set, now or by earlier rules."""

    key: ObjectKey
    live: Object
    child: str
    manager: str


def patches_on(live: Object, owner: Owner) -> Iterator[PatchedObject]:
    METER.spend(EXISTING_UNITS)
    for part_of, child in managers_on(live):
        if part_of == owner.part_of:
            yield PatchedObject(ObjectKey.of(live), live, child, manager_of(owner, child))


def state_of(child: Child, desired: Desired, observed: Observed) -> Served:
    """Whether the object can be read."""
    assert child.patch is not None
    target, places = child.patch.target, desired.info.places
    is_fixed = target.namespace is not None and target.namespace.constant
    if places is not None and desired.key.namespace and not is_fixed and desired.key.namespace not in places:
        return Served.UNWATCHED
    return observed.kinds.state_of(target)


def patch(child: Child, desired: Desired, owner: Owner, observed: Observed, history: History) -> Applied:
    """The decision about the fields. Raises ChildFails, ChildWaits and Unlisted."""
    assert child.patch is not None
    require_known(child, desired, observed, state_of(child, desired, observed))
    if desired.key.kind == "Secret" and not desired.key.group and desired.key.namespace != owner.namespace:
        for name in _SECRET_DATA:
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
    manager, digest = manager_of(owner, child.id), desired.digest
    if _is_applied(live, fields, manager, desired.kind) or (
        desired.key in history.applied and history.applied[desired.key] == fingerprint_of(live, manager, digest)
    ):
        return Applied(live, in_sync=True)
    failed = history.failure(desired.key)
    if failed is not None and failed.failure is Failure.HELD and failed.desired_digest == digest:
        message = f"{desired.key}: {held_by_others(failed, child.secrecy)}"
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


def held_by_others(failed: Failed, secrecy: Secrecy) -> str:
    """The fields of a rejected apply, with the managers that hold them."""
    found = []
    for cause in failed.causes[:MAX_HELD]:
        manager = cause.message.removeprefix("conflict with ").partition(" using ")[0].partition(" with ")[0]
        found.append(f"{secrecy.path(cause.field.removeprefix('.'))} is held by {manager or 'another manager'}")
    more = " and more" if len(failed.causes) > MAX_HELD else ""
    return f"{', '.join(found)}{more}; `force: true` would take it"


def release_fields(each: PatchedObject, *, needs: frozenset[str] = frozenset()) -> ServerSideApply:
    """An apply without any fields: the server removes those that no other manager holds."""
    metadata = {
        name: each.live["metadata"][name] for name in ("name", "namespace", "uid") if each.live["metadata"].get(name)
    }
    body = {"apiVersion": each.live["apiVersion"], "kind": each.live["kind"], "metadata": metadata}
    return ServerSideApply(each.key, each.child, body, each.live, "", "given up", manager=each.manager, needs=needs)
