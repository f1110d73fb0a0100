"""Children whose owner annotations have no valid proof, and field managers of `patch` without one, because the
operator's key was lost together with its inventory; and signs them again.

The operator cannot distinguish them from forged ones: users with permission to write an object can write the
annotation, and a finalizer on a custom resource, too. So a person decides, by a list of exactly what will be believed.
An object is on it if the custom resource that it names exists and has the uid, a rule applies to it, and the rule's
children can be of this kind and in this place, or set fields of it. Objects of kinds that the rules no longer have
are not found.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.operator.manager.remarking import signed_notes
from ruleop.operator.passes.owner_key import owner_key_key, read_proofs
from ruleop.planning import Owner, choose_rule, patch_targets, patches_on
from ruleop.planning.model.managers import manager_of, managers_on
from ruleop.planning.model.marks import PART_OF, claim_on, named_owner
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from ruleop.authoring.live.open_cluster import LiveCluster
    from ruleop.kubernetes.kinds import GroupKind
    from ruleop.language.rules import Project, Rule
    from ruleop.planning.model.marks import KeyedProofs

SECRET: Final = Kind("", "v1", "Secret")


@dataclass(frozen=True, slots=True)
class Unproven:
    """An object whose annotation, or whose field managers, name a custom resource without a valid proof."""

    key: ObjectKey
    owner: ObjectKey
    live: Object
    notes: Mapping[str, str] = field(default_factory=dict)  # the annotations with proofs
    managers: Mapping[str, str] = field(default_factory=dict)  # the names of managers, and those with proofs


async def find_unproven(cluster: LiveCluster, project: Project) -> list[Unproven]:
    """The objects without a valid proof, in the order of their owners. Raises RuleopError."""
    proofs = read_proofs(await _key_secret(cluster))
    resources: dict[ObjectKey, Object | None] = {}
    found = []
    for kind, rules in _children(project).items():
        async for page in cluster.reader.pages(kind, labels=PART_OF):
            for live in page:
                named = named_owner(live)
                if named is None or named[0].group_kind not in rules:
                    continue
                if named[0] not in resources:
                    watched = rules[named[0].group_kind][0].kind
                    resources[named[0]] = await cluster.reader.get(watched, named[0])
                resource = resources[named[0]]
                if resource is not None and (each := _unproven(live, resource, rules[named[0].group_kind], proofs)):
                    found.append(each)
    found += [each async for each in _unproven_managers(cluster, project, proofs)]
    return sorted(found, key=lambda each: (each.owner, each.key))


async def sign(cluster: LiveCluster, unproven: list[Unproven]) -> AsyncIterator[Unproven]:
    """Writes the annotations or renames the managers, and yields each object. Raises ApiError if one has changed."""
    api = cluster.reader.writing()
    for each in unproven:
        if each.managers:
            await api.rename_managers(Kind.of(each.live), each.key, each.managers)
        else:
            guards = {name: each.live["metadata"][name] for name in ("uid", "resourceVersion")}
            await api.patch(Kind.of(each.live), each.key, {"metadata": {**guards, "annotations": dict(each.notes)}})
        yield each


def _children(project: Project) -> dict[Kind, dict[GroupKind, list[Rule]]]:
    """The rules of each watched kind by the kinds of their children."""
    found: dict[Kind, dict[GroupKind, list[Rule]]] = {}
    for rule in project.rules:
        for kind in {kind for child in rule.owned_children for kind in child.kinds}:
            found.setdefault(kind, {}).setdefault(rule.kind.versionless, []).append(rule)
    return found


def _unproven(live: Object, resource: Object, rules: list[Rule], proofs: KeyedProofs) -> Unproven | None:
    key, owner = ObjectKey.of(live), Owner.of(resource, proofs)
    rule = choose_rule(rules, resource)
    is_near = rule is not None and (rule.reach.cluster or key.namespace == owner.namespace)
    if not is_near or not claim_on(live, key, owner).unproven:
        return None
    believing = replace(owner, proofs=replace(proofs, accept_unproven=True))
    notes = signed_notes(live, key, believing, claim_on(live, key, believing))
    return Unproven(key, ObjectKey.of(resource), live, notes) if notes else None


async def _unproven_managers(cluster: LiveCluster, project: Project, proofs: KeyedProofs) -> AsyncIterator[Unproven]:
    """The objects with fields that custom resources seem to have set."""
    for kind in {rule.kind: None for rule in project.rules if rule.patches}:
        rules = [rule for rule in project.rules if rule.kind == kind]
        owners = {
            Owner.of(resource).part_of: resource async for page in cluster.reader.pages(kind) for resource in page
        }
        for patched in {patch.target.kind: None for rule in rules for patch in rule.patches}:
            async for page in cluster.reader.pages(patched):
                for live in page:
                    for label in sorted({each.part_of for each in managers_on(live)} & owners.keys()):
                        if (found := _renamed(live, owners[label], rules, proofs)) is not None:
                            yield found


def _renamed(live: Object, resource: Object, rules: list[Rule], proofs: KeyedProofs) -> Unproven | None:
    key, owner, rule = ObjectKey.of(live), Owner.of(resource, proofs), choose_rule(rules, resource)
    if rule is None:
        return None
    believing = replace(owner, proofs=replace(proofs, accept_unproven_managers=True))
    found = patches_on(live, believing, patch_targets(rule, ()), far=rule.reach.cluster)
    names = {each.manager: manager_of(owner, each.child, key) for each in found if each.child in rule.children}
    managers = {old: new for old, new in names.items() if old != new}
    return Unproven(key, ObjectKey.of(resource), live, managers=managers) if managers else None


async def _key_secret(cluster: LiveCluster) -> Object:
    operator = cluster.operator
    key = owner_key_key(operator.namespace, operator.name)
    if operator.namespace:
        found = await cluster.reader.get(SECRET, key)
    else:  # without the inventory, which is written before the first child
        pages = cluster.reader.pages(SECRET, fields=f"metadata.name={key.name}")
        secrets = [each async for page in pages for each in page]
        found = secrets[0] if len(secrets) == 1 else None
    if found is None:
        raise RuleopError(
            f"no Secret {key.name} found: start the operator, which makes it; or name the operator with --name and "
            "--operator-namespace"
        )
    return found
