"""Findings for people who read a plan: the expressions that block children, the names of items, and the masks.

- A child is blocked by its `waitFor`, or by its `readyWhen`. Who asks why gets the current values of what it reads;
  those that may come from a Secret are masked.
- The name of an object of a `forEach` may be a hash of its item. So tests and plans name it by the item: `access[joe]`.
- Masks are for fields that were computed from Secrets, and for the values of the Secrets that the pass read. A value
  that is public anyway is not masked: one that is in the CR, the name of an object, or a value that the rule writes
  into a Secret without reading one.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal

from ruleop.errors import RenderError, RuleopError
from ruleop.language.rules import Given
from ruleop.language.secrets.hidden_fields import hidden_fields
from ruleop.language.secrets.masks import Masks, hidden_texts
from ruleop.language.secrets.secret_values import (
    MASK,
    SECRET,
    is_public_field,
    is_secret,
    known_values,
    leaves_of,
    public_names,
    secret_values,
)
from ruleop.language.templates import Fault, Lazy, MapView, Origin, UndefinedValue, field_of, plain
from ruleop.messages import shortened
from ruleop.planning.changes import flow
from ruleop.planning.model.actions import State
from ruleop.planning.model.marks import ITEM, annotations_of, item_on
from ruleop.planning.plan import Blocking
from ruleop.planning.rendering.items import items_of, name_of
from ruleop.planning.rendering.scope import query_of, without_server_noise

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import Object, ObjectKey
    from ruleop.language.rules import Child, Observe, Rule
    from ruleop.language.templates import Expression
    from ruleop.planning.child.children import Children
    from ruleop.planning.rendering.scope import ResourceScope

MISSING: Final = "not available yet"
_OF_THE_RESOURCE: Final = frozenset({"cr", "metadata", "spec", "status", "vars", "ready", "index"})


def find_blocking(children: Children) -> Iterator[Blocking]:
    """One for each child that is blocked. Of a `forEach`, that of the first blocked item."""
    waits = children.report.waits
    for child_plan in children.plans.values():
        child = child_plan.child
        if child.wait_for is not None and any(
            each.is_at(child.wait_for.site) for each in waits if each.child == child.id
        ):
            names = _names_of_wait(child, children)
            if names is not None:
                yield _blocking(child, "waitFor", child.wait_for, names, children.rule)
        if child.ready_when is None:
            continue
        for each in child_plan.objects:
            if each.state is State.PROGRESSING and each.action is None and each.applied and each.applied.result:
                this = MapView(without_server_noise(each.applied.result), "this", Origin.LATER)
                names = {**each.desired.names, "this": this}
                yield _blocking(child, "readyWhen", child.ready_when, names, children.rule)
                break


def _names_of_wait(child: Child, children: Children) -> Mapping[str, Any] | None:
    """The names with which `waitFor` is not true."""
    assert child.wait_for is not None
    names = children.scope.names
    if not child.for_each:
        return names
    try:
        for item in items_of(child, children.scope):
            if not _is_true(child.wait_for, item.names):
                return item.names
    except RuleopError:
        return None
    return None


def _is_true(expression: Expression, names: Mapping[str, Any]) -> bool:
    try:
        return expression.truth(names)
    except RenderError:
        return False


def _blocking(
    child: Child, key: Literal["waitFor", "readyWhen"], expression: Expression, names: Mapping[str, Any], rule: Rule
) -> Blocking:
    values: dict[str, str] = {}
    for reference in expression.references:
        if reference.name in names:
            # A computed step is None, and "?" asks whether the field exists.
            steps = [str(step) for step in takewhile(lambda step: step not in {None, "?"}, reference.path)]
            values.setdefault(".".join(steps), _value(steps, names, child, rule))
    return Blocking(child.id, key, expression.source, expression.site, tuple(values.items()))


def _value(steps: Sequence[str], names: Mapping[str, Any], child: Child, rule: Rule) -> str:
    found = names[steps[0]]
    found = found.value() if isinstance(found, Lazy) else found
    try:
        for step in steps[1:]:
            if isinstance(found, UndefinedValue):
                break
            found = field_of(found, step)
        if isinstance(found, UndefinedValue):
            return MISSING
        return MASK if _may_be_secret(steps, child, rule) else shortened(flow(plain(found)))
    except (Fault, RenderError):
        return MISSING


def _may_be_secret(steps: Sequence[str], child: Child, rule: Rule) -> bool:
    """Whether the value may come from a Secret. In doubt it may."""
    name, *inner = steps[1:] if steps[0] == "live" and len(steps) > 1 else steps
    if name in _OF_THE_RESOURCE:
        return False
    is_public = bool(inner) and is_public_field(inner)
    if (observe := rule.observe.get(name)) is not None:
        return observe.kind.versionless == SECRET and not is_public
    other = child if name == "this" else rule.children.get(name) or rule.finalize.get(name)
    if other is None:  # a `let` or an item
        return child.secrecy.reads
    return other.secrecy.holds and not is_public and inner[:1] != ["status"]


def item_names(children: Children) -> dict[ObjectKey, str]:
    """By object. An object has none whose item has no name, or the same one as another item of the child."""
    found: dict[ObjectKey, str] = {}
    for child_plan in children.plans.values():
        child = child_plan.child
        if not child.for_each or isinstance(child.form, Given) or child.secrecy.loops:
            continue
        names = {each.desired.key: name_of(child, each.desired.names) for each in child_plan.objects}
        for each in children.existing if child.ended_by else ():
            if each.child == child.id and ITEM in annotations_of(each.live):
                record = item_on(each.live, each.key, children.owner)
                names.setdefault(each.key, name_of(child, record.values) if record is not None else "")
        uses = Counter(names.values())
        found |= {key: f"{child.id}[{name}]" for key, name in names.items() if name and uses[name] == 1}
    return found


def find_masks(children: Children) -> Masks:
    scope = children.scope
    plans = [(child_plan.child, each.desired) for child_plan in children.plans.values() for each in child_plan.objects]
    secrets = [each.live for each in children.existing if is_secret(each.live)]
    secrets += [obj for observe in children.rule.observe.values() for obj in _observed(observe, scope)]
    secrets += [desired.rendered for _, desired in plans if is_secret(desired.rendered)]
    public = {*leaves_of(scope.resource), *public_names([*secrets, *(desired.rendered for _, desired in plans)])}
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


def _observed(observe: Observe, scope: ResourceScope) -> Iterator[Object]:
    """The observed Secrets that a template can read."""
    if observe.kind.versionless != SECRET:
        return
    try:
        targets = scope.targets(observe)
    except RuleopError:
        return
    objects = scope.objects
    for target in targets:
        if target.key is not None:
            found = objects.get(target.key, version=observe.kind.version, partial=observe.metadata_only)
            yield from () if found is None else (found,)
        else:
            yield from objects.select(query_of(observe, target))
