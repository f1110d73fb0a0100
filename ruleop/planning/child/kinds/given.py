"""Children with `objects`: the CR gives whole objects, and its author gains no permissions by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.language.secrets.secret_values import SECRET
from ruleop.messages import shortened
from ruleop.planning.child.kinds.ordinary import OrdinaryPlan
from ruleop.planning.rendering.desired import Title, render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.language.rules import Given
    from ruleop.planning.rendering.desired import Desired
    from ruleop.planning.rendering.items import LoopItem
    from ruleop.planning.rendering.unplanned import ChildFails

_PRIVILEGED = "`allow: [extra-privileges]` in the child would permit that"


class GivenPlan(OrdinaryPlan):
    form: Given

    def render(self, item: LoopItem) -> list[Desired]:
        child = self.child
        desired = render(child, self.context.scope, item.names, item.place)
        own = child.namespace.string(item.names) if child.namespace is not None else ""
        for each in desired:
            self._refuse(each, own or self.context.scope.namespace)
        return desired

    def failures(self, failed: Sequence[tuple[LoopItem, ChildFails]]) -> list[ChildFails]:
        """Unlike items of a template, each has a mistake of its own."""
        return [each for one in failed for each in super(GivenPlan, self).failures([one])]

    def _refuse(self, desired: Desired, own: str) -> None:
        """Refuses what would give the author of a CR permissions: objects elsewhere, whatever the rule's reach, tokens
        of ServiceAccounts, and Pods and other objects that use one."""
        site, kind = self.child.body.site, desired.kind
        title = Title(kind.kind, desired.key.name)
        if desired.key.namespace != own or not desired.key.namespace:
            raise title.error(f": `objects` can only be in the namespace {own}", site)
        if self.form.privileged:
            return
        if kind.versionless == SECRET:
            if desired.rendered.get("type") == "kubernetes.io/service-account-token":
                raise title.error(f" would be the token of a ServiceAccount: {_PRIVILEGED}", site)
            return
        pending: list[Any] = [] if (kind.group, kind.kind) == ("", "ConfigMap") else [*desired.rendered.values()]
        while pending:
            value = pending.pop()
            if isinstance(value, dict):
                for field, named in value.items():
                    if _names_account(field, named):
                        raise title.error(f" uses a ServiceAccount ({shortened(field, 80)}): {_PRIVILEGED}", site)
                pending.extend(value.values())
            elif isinstance(value, list):
                pending.extend(value)


def _names_account(field: str, value: Any) -> bool:
    """Whether a field lets the object, or the controller that reads it, use a ServiceAccount other than `default`.
    Each kind has names of its own for such fields, so those that are harmless are named, and not the others."""
    if field == "kind":
        return isinstance(value, str) and value == "ServiceAccount"
    is_harmless = isinstance(value, bool) or value in (None, "", "default", [], {})
    return "serviceaccount" in field.lower() and not is_harmless
