"""The permissions that a rule needs, and the message when one is missing. The message is the same for a forbidden
request and for a kind that cannot be listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.permissions import READ, missing, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kinds import GroupKind
    from ruleop.planning.model.observed import KindInfo
    from ruleop.rules import Child, Rule

WATCHED = (*READ, "patch")  # patch is for the finalizer
WRITTEN = (*READ, "create", "patch", "delete")
LEFT = (*READ, "patch", "delete")  # of a kind that the rules no longer use: existing objects are deleted or released


def verbs(rules: Iterable[Rule], kind: GroupKind) -> frozenset[str]:
    """All verbs that the rules need for objects of a kind, as CRs, children and observed resources."""
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


def needs_key(rule: Rule) -> bool:
    """Whether the garbage collector does not delete all children of this rule."""
    return bool(
        rule.finalize or rule.reach == "cluster" or any(child.deletion is not None for child in rule.children.values())
    )


def missing_permission(rule: Rule, info: KindInfo, namespace: str, verb: str) -> str:
    """A message for a forbidden request for an object of this kind and namespace."""
    needed = verbs([rule], info.kind.versionless) or LEFT
    return missing(verb, info.resource, place(namespace, namespaced=info.namespaced), needed)


def missing_list_permission(rule: Rule, info: KindInfo, namespace: str) -> str:
    """A message for a kind that cannot be listed, in this namespace if ruleop watches single namespaces, else in
    all."""
    return missing_permission(rule, info, namespace if info.places is not None else "", "list")
