"""Children with `patch`: fields of an object that belongs to somebody else, or of all that a selector matches.

They are applied on the server, by a field manager of the CR and the child, with the uid of the object, so that an apply
never creates one. Nothing is applied if the manager has exactly these fields with these values. Where the server keeps
a value in another form, its answer to an apply shows that: the fields are in sync for as long as they stay as answered.

A field that another manager holds with another value is not taken without `force`: the server rejects the apply, and
names the manager. The apply is retried when the object changes.

With a selector, the fields are the same for all objects that match. Those of the CR itself and of the operator do not
count.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ruleop.errors import RenderError
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.merge import MergeError, UnwritableError, normalise_desired, same, three_way
from ruleop.language.secrets.secret_values import DATA_FIELDS
from ruleop.planning.child.child_plan import Applied, ChildPlan
from ruleop.planning.child.field_patches import held_by_others
from ruleop.planning.child.readiness import READY
from ruleop.planning.model.actions import Failure, ServerSideApply
from ruleop.planning.model.managers import applied_fields, fingerprint_of, values_of
from ruleop.planning.model.observed import Served
from ruleop.planning.rendering.desired import render
from ruleop.planning.rendering.unplanned import ChildFails, ChildWaits, Unlisted, child_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import Kind, Object
    from ruleop.language.rules import Patched
    from ruleop.planning.child.child_plan import ObjectPlan
    from ruleop.planning.child.readiness import Readiness
    from ruleop.planning.model.actions import Action
    from ruleop.planning.rendering.desired import Desired
    from ruleop.planning.rendering.items import LoopItem

# Objects that a selector may match. With more, none is changed: half of them would depend on the order of names.
MAX_SELECTED: Final = 1000


class PatchPlan(ChildPlan):
    owns: ClassVar[bool] = False
    form: Patched

    def render(self, item: LoopItem) -> list[Desired]:
        """The fields of an object, or of all that a selector matches; with `optional`, of those that exist."""
        child, scope = self.child, self.context.scope
        if self.form.target.selector is not None:
            try:
                selected = self._select(item.names)
            except Unlisted:
                self.unreadable = scope.missing_permission(self.form.target)
                raise ChildFails(self.unreadable, child.site, reason="Forbidden") from None
            return render(child, scope, item.names, item.place, selected=selected)
        desired, found = render(child, scope, item.names, item.place), []
        if not child.optional:
            return desired
        for each in desired:
            known = self._served(each.key.namespace) is Served.SYNCED
            if known and scope.objects.get(each.key, version=each.kind.version) is None:
                self.context.awaited.append(each.key)
                self.message = f"{each.key} does not exist"
            else:
                found.append(each)
        return found

    def decide(self, object_plan: ObjectPlan) -> Applied:
        child, desired, context = self.child, object_plan.desired, self.context
        owner, observed, history = context.owner, context.scope.observed, context.history
        manager = context.manager(child.id, desired.key)
        self.require_known(desired, self._served(desired.key.namespace))
        if desired.key.kind == "Secret" and not desired.key.group and desired.key.namespace != owner.namespace:
            for name in DATA_FIELDS:
                if name in desired.rendered:
                    message = f"`{name}` of a Secret in another namespace than the CR's cannot be set"
                    raise ChildFails(message, child.body.site)
        live = context.scope.objects.get(desired.key, version=desired.kind.version)
        if live is None:
            raise ChildWaits(f"{desired.key} to exist", child.body.site, why="object")
        try:
            fields = normalise_desired(desired.rendered, desired.kind)
            result = three_way(live, fields, None, desired.info.shape).object
        except UnwritableError as error:
            raise self.unwritable(desired, error) from None
        except MergeError as error:
            raise self.unmergeable(desired, error) from None
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
        action = ServerSideApply(desired.key, child.id, body, live, digest, manager=manager, force=self.form.force)
        return Applied(result, action)

    def needs_ready(self, _action: Action) -> bool:
        return True

    def readiness(self, desired: Desired, live: Object) -> Readiness:
        return READY if self.child.ready_when is None else super().readiness(desired, live)

    def unknown_scopes(self) -> list[Mapping[str, Any]]:
        return []

    def _served(self, namespace: str) -> Served:
        """Whether objects of this namespace can be read."""
        target, kinds = self.form.target, self.context.scope.observed.kinds
        places = kinds.info(target.kind).places
        is_fixed = target.namespace is not None and target.namespace.constant
        if places is not None and namespace and not is_fixed and namespace not in places:
            return Served.UNWATCHED
        return kinds.state_of(target)

    def _select(self, names: Mapping[str, Any]) -> list[ObjectKey]:
        """The objects that the selector matches, sorted; without those of the CR itself. Their target is noted in the
        scope. Raises ChildFails, ChildWaits and Unlisted."""
        observe, scope, site = self.form.target, self.context.scope, self.child.site
        kind, observed = observe.kind, scope.observed
        if observed.kinds.info(kind).state is Served.UNSERVED:
            raise ChildWaits(f"the kind {kind} to be served by the cluster", site, why="kind")
        try:
            (target,) = scope.targets(observe, names)
        except RenderError as error:
            raise child_error(error) from None
        scope.selections.append(target)
        self.require_readable(kind, target.namespace or "", self._served(target.namespace or ""))
        found = [ObjectKey.of(obj) for obj in islice(scope.select(observe, target), MAX_SELECTED + 1)]
        if len(found) > MAX_SELECTED:
            message = f"the selector matches more than {MAX_SELECTED:,} objects of the kind {kind.kind}: narrow it"
            raise ChildFails(message, site, reason="TooManyObjects")
        own = {each.key for each in self.context.existing}
        return [key for key in found if key not in own and key not in observed.own]


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
