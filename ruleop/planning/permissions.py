"""Which permissions a rule needs, and what is reported when one is missing. It is the same report whether a request was
refused, or the kind could not be listed when the operator started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.permissions import READ, missing, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kinds import GroupKind
    from ruleop.planning.observed import KindInfo
    from ruleop.rules import Child, Rule

WATCHED = (*READ, "patch")  # patch is for the finalizer
WRITTEN = (*READ, "create", "patch", "delete")
LEFT = (*READ, "patch", "delete")  # of a kind that the rules make no more: what exists is deleted, or released


def verbs(rules: Iterable[Rule], kind: GroupKind) -> frozenset[str]:
    """All that rules need on objects of a kind: as what they watch, as children, and as what they observe."""
    return frozenset(verb for rule in rules for verb in _verbs(rule, kind))


def _verbs(rule: Rule, kind: GroupKind) -> Iterator[str]:
    if rule.kind.versionless == kind:
        yield from WATCHED
    for child in rule.every_child():
        if any(each.versionless == kind for each in child.kinds):
            yield from _written(child)
    if any(observe.kind.versionless == kind for observe in rule.observe.values()):
        yield from READ


def _written(child: Child) -> Iterator[str]:
    yield from WRITTEN
    if child.apply.strategy == "replace":
        yield "update"


def missing_permission(rule: Rule, info: KindInfo, namespace: str, verb: str) -> str:
    """A request for an object of this kind and namespace that was not permitted."""
    needed = verbs([rule], info.kind.versionless) or LEFT
    return missing(verb, info.resource, place(namespace, namespaced=info.namespaced), needed)


def missing_list_permission(rule: Rule, info: KindInfo, namespace: str) -> str:
    """A kind that cannot be watched. `namespace` matters where ruleop watches namespaces one by one; else it lists all
    of them at once."""
    return missing_permission(rule, info, namespace if info.places is not None else "", "list")
