"""The masks for the plan of a CR: fields that can hold data of Secrets, and the values of the Secrets that the pass
read.

A value that is public anyway is not masked: one that is in the CR, the name of an object, or a value that the rule
writes into a Secret without reading one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.errors import RuleopError
from ruleop.core.planning.rendering.scope import query_of
from ruleop.core.secrets.hidden_fields import hidden_fields, hidden_texts
from ruleop.core.secrets.masks import Masks
from ruleop.core.secrets.secret_values import SECRET, is_secret, known_values, leaves_of, public_names, secret_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.planning.child.children import Children
    from ruleop.core.planning.rendering.scope import Scope
    from ruleop.core.rules import Observe, Rule


def find_masks(rule: Rule, resource: Object, scope: Scope, children: Children) -> Masks:
    plans = [(child_plan.child, each.desired) for child_plan in children.plans.values() for each in child_plan.objects]
    secrets = [each.live for each in children.existing if is_secret(each.live)]
    secrets += [obj for observe in rule.observe.values() for obj in _observed(observe, scope)]
    secrets += [desired.rendered for _, desired in plans if is_secret(desired.rendered)]
    public = {*leaves_of(resource), *public_names([*secrets, *(desired.rendered for _, desired in plans)])}
    for child, desired in plans:
        if not child.secrecy.reads and is_secret(desired.rendered):
            public |= set(secret_values(desired.rendered))
    fields = {id_: hidden_fields(each.child.body, each.child.secrecy.slots) for id_, each in children.plans.items()}
    hidden = {desired.key: fields[child.id] for child, desired in plans if child.secrecy.reads}
    computed = {
        text
        for _, desired in plans
        if desired.key in hidden
        for text in hidden_texts(desired.rendered, hidden[desired.key])
    }
    return Masks(hidden, known_values(secrets, computed, public))


def _observed(observe: Observe, scope: Scope) -> Iterator[Object]:
    """The observed Secrets that a template can read."""
    if observe.kind.versionless != SECRET:
        return
    try:
        targets = scope.targets(observe)
    except RuleopError:
        return
    objects = scope.observed.objects
    for target in targets:
        if target.key is not None:
            found = objects.get(target.key, version=observe.kind.version, partial=observe.metadata_only)
            yield from () if found is None else (found,)
        else:
            yield from objects.select(query_of(observe, target))
