"""The watches that the rules need: children by ruleop's label, observed resources by the constant part of their
selector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from ruleop.language.templates import Expression, StringTemplate, TextTemplate, Tree
from ruleop.operator.cache.informers import WatchSpec
from ruleop.planning.model.marks import PART_OF

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.kinds import GroupKind, Kind
    from ruleop.language.rules import Observe, Rule, Selector

CHILD_LABELS = PART_OF  # any value


def child_needs(
    rules: Iterable[Rule], remembered: frozenset[GroupKind], preferred: dict[GroupKind, Kind]
) -> Iterator[WatchSpec]:
    """The kinds of children that the rules write, in each version that they write, and those that earlier rules wrote
    according to the inventory. The live object and the desired one are compared in one version, because field names
    may differ between versions."""
    children = [child for rule in rules for child in rule.owned_children]
    made = dict.fromkeys(kind for child in children for kind in sorted(child.kinds))
    for kind in made:
        yield child_need(kind)
    for group_kind in sorted(remembered - {kind.versionless for kind in made}):
        if group_kind in preferred:
            yield child_need(preferred[group_kind])


def child_need(kind: Kind) -> WatchSpec:
    return WatchSpec(kind, labels=CHILD_LABELS, children=True)


def observe_need(observe: Observe) -> WatchSpec:
    """A constant name is watched with a field selector, a constant namespace alone. Of a selector, the terms that are
    the same for each CR are sent to the API server, unless an object that lost these labels is still of interest."""
    namespace = observe.namespace.constant or "" if observe.namespace is not None else ""
    if observe.name is not None:
        name = observe.name.constant
        fields = f"metadata.name={name}" if name else ""
        return WatchSpec(observe.kind, fields=fields, namespace=namespace, metadata_only=observe.metadata_only)
    labels = constant_labels(observe.selector) if not observe.patched else ""
    return WatchSpec(observe.kind, labels=labels, namespace=namespace, metadata_only=observe.metadata_only)


def uses_has_kind(part: Any) -> bool:
    """Whether a rule, or a part of one, calls `has_kind`. No watch reports when its result changes."""
    if isinstance(part, (Expression, StringTemplate, TextTemplate, Tree)):
        return "has_kind" in part.names
    if is_dataclass(part):
        part = tuple(getattr(part, field.name) for field in fields(part))
    elif isinstance(part, Mapping):
        part = tuple(part.values())
    return isinstance(part, tuple) and any(map(uses_has_kind, part))


def constant_labels(selector: Selector | None) -> str:
    if selector is None:
        return ""
    terms = [f"{key}={value.constant}" for key, value in selector.match_labels.items() if value.constant is not None]
    # A label whose value differs between CRs has to exist at least.
    terms += [key for key, value in selector.match_labels.items() if value.constant is None]
    for each in selector.match_expressions:
        values = [value.constant for value in each.values]
        if each.operator == "Exists":
            terms.append(each.key)
        elif each.operator == "DoesNotExist":
            terms.append(f"!{each.key}")
        elif all(value is not None for value in values):
            terms.append(
                f"{each.key} {'in' if each.operator == 'In' else 'notin'} ({','.join(str(value) for value in values)})"
            )
        elif each.operator == "In":
            terms.append(each.key)
    return ",".join(terms)
