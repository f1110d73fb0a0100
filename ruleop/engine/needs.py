"""What has to be watched for the rules to be kept, and no more: children by our label, observed resources by the constant part of their
selector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.engine.feeds import Need
from ruleop.planning.marks import PART_OF

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.engine.inventory import Entry
    from ruleop.kinds import GroupKind, Kind
    from ruleop.rules import Observe, Rule, Selector

CHILD_LABELS = PART_OF  # whatever its value


def child_needs(rules: Iterable[Rule], remembered: Entry, preferred: dict[GroupKind, Kind]) -> Iterator[Need]:
    """The kinds that the rules make, and those that they made once. A kind is watched in one version, whatever others rules write it in."""
    seen: set[GroupKind] = set()
    for rule in rules:
        for child in (*rule.children.values(), *rule.finalize.values()):
            for kind in sorted(child.kinds):
                if kind.versionless not in seen:
                    seen.add(kind.versionless)
                    yield Need(kind, labels=CHILD_LABELS)
    for group_kind in sorted(remembered.children - seen):
        if group_kind in preferred:
            yield Need(preferred[group_kind], labels=CHILD_LABELS)


def observe_need(observe: Observe) -> Need:
    """A fixed name in a fixed namespace is watched alone; of a selector, what is the same for every CR goes to the server."""
    namespace = observe.namespace.constant or "" if observe.namespace is not None else ""
    if observe.name is not None:
        name = observe.name.constant
        return Need(observe.kind, fields=f"metadata.name={name}" if name else "", namespace=namespace)
    return Need(observe.kind, labels=constant_labels(observe.selector), namespace=namespace)


def constant_labels(selector: Selector | None) -> str:
    if selector is None:
        return ""
    terms = [f"{key}={value.constant}" for key, value in selector.match_labels.items() if value.constant is not None]
    # A label whose value differs from CR to CR has at least to be there.
    terms += [key for key, value in selector.match_labels.items() if value.constant is None]
    for each in selector.match_expressions:
        values = [value.constant for value in each.values]
        if each.operator == "Exists":
            terms.append(each.key)
        elif each.operator == "DoesNotExist":
            terms.append(f"!{each.key}")
        elif all(value is not None for value in values):
            terms.append(f"{each.key} {'in' if each.operator == 'In' else 'notin'} ({','.join(str(value) for value in values)})")
    return ",".join(terms)
