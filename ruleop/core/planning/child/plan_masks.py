"""The masks for the plan of a CR: fields that were computed from Secrets, and the values of the Secrets that the pass
read.

A value that is public anyway is not masked: one that is in the CR, the name of an object, or a value that the rule
writes into a Secret without reading one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.core.errors import RuleopError
from ruleop.core.rules import SECRET
from ruleop.core.secrets.covered_fields import hidden_texts, leaves_of
from ruleop.core.secrets.masks import Masks, known_values, secret_values
from ruleop.core.secrets.secret_values import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.planning.child.children import Children
    from ruleop.core.planning.rendering.scope import Scope
    from ruleop.core.rules import Observe, Rule

_TRUTHS = frozenset({"true", "false"})


def masks_of(rule: Rule, resource: Object, scope: Scope, children: Children) -> Masks:
    plans = [(child_plan.child, each) for child_plan in children.plans.values() for each in child_plan.objects]
    secrets = [each.live for each in children.existing if is_secret(each.live)]
    secrets += [obj for observe in rule.observe.values() for obj in _observed(observe, scope)]
    secrets += [each.desired.rendered for _, each in plans if is_secret(each.desired.rendered)]
    public = {*_TRUTHS, *leaves_of(resource)}
    public |= {name for obj in (*secrets, *(each.desired.rendered for _, each in plans)) for name in _names(obj)}
    for child, each in plans:
        if not child.reads_secret and is_secret(each.desired.rendered):
            public |= set(secret_values(each.desired.rendered))
    hidden = {each.desired.key: each.desired.hidden for _, each in plans if each.desired.hidden is not None}
    computed = {
        text
        for _, each in plans
        if each.desired.hidden is not None
        for text in hidden_texts(each.desired.rendered, each.desired.hidden)
    }
    return Masks(hidden, known_values(secrets, computed, public))


def _observed(observe: Observe, scope: Scope) -> Iterator[Object]:
    """The observed Secrets that a template can read."""
    if observe.kind.versionless != SECRET:
        return
    try:
        target = scope.target(observe)
    except RuleopError:
        return
    objects = scope.observed.objects
    if target.key is not None:
        found = objects.get(target.key, version=observe.kind.version, partial=observe.metadata_only)
        yield from () if found is None else (found,)
        return
    yield from objects.select(
        target.kind, target.namespace, version=observe.kind.version, partial=observe.metadata_only
    )


def _names(obj: Object) -> Iterable[Any]:
    metadata = obj.get("metadata") or {}
    return (metadata.get("name"), metadata.get("namespace"), obj.get("kind"))
