"""The existing objects of a CR: which of them are its children, what ruleop has written on one, and its release."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from ruleop.kubernetes.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.kubernetes.merge import FieldSet, Leaf, MapFields, Record, decode, merge_patch
from ruleop.kubernetes.names import BUCKET_LABEL
from ruleop.language.rules import Once, Scheduled
from ruleop.language.templates import Later, MapView, ObjectsView, Origin
from ruleop.planning.model.actions import Patch
from ruleop.planning.model.item_records import ITEM
from ruleop.planning.model.marks import (
    APPLIED,
    MANAGED_BY,
    OWNER,
    PART_OF,
    RULEOP,
    Claim,
    Owner,
    annotations_of,
    claim_on,
)
from ruleop.planning.rendering.scope import without_server_noise
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Child, Rule
    from ruleop.planning.model.item_records import ItemRecord
    from ruleop.planning.model.marks import Owner
    from ruleop.planning.model.observed import Objects


# -- helm release ------------------------------------------------------------------------------------------------------
#
# Objects of a Helm release, which children with `adopt: helm` adopt.
#
# Helm writes on each object the release that it belongs to. Only the release with the name and the namespace of the CR
# is adopted: who may write CRs must not reach the objects of another one. Helm's own marks count as fields that were
# applied before, so the first write removes them; without them, the object is no longer one of Helm's.
#
# The Helm operator of Operator SDK also has a finalizer on the CR, which nobody else would remove.


RELEASE_NAME: Final = "meta.helm.sh/release-name"
RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"
FINALIZER: Final = "uninstall-helm-release"
_CHART: Final = "helm.sh/chart"


def is_of_release(live: Object, owner: Owner) -> bool:
    """Whether the object belongs to the release with the name and the namespace of the CR."""
    annotations = annotations_of(live)
    release = (annotations.get(RELEASE_NAMESPACE), annotations.get(RELEASE_NAME))
    return bool(owner.namespace) and release == (owner.namespace, owner.name)


def marks_of_helm(live: Object) -> FieldSet:
    """Helm's own labels and annotations of an object, as fields that were applied before."""
    labels: Mapping[str, Any] = (live.get("metadata") or {}).get("labels") or {}
    own: dict[str, list[str]] = {
        "labels": [each for each in (_CHART, MANAGED_BY) if labels.get(each, RULEOP) != RULEOP],
        "annotations": [each for each in (RELEASE_NAME, RELEASE_NAMESPACE) if each in annotations_of(live)],
    }
    members = {name: MapFields(dict.fromkeys(keys, Leaf.SCALAR), created=True) for name, keys in own.items()}
    return FieldSet(MapFields({"metadata": MapFields(members, created=False)}, created=False))


# -- existing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Existing:
    """An existing object that the CR owns."""

    key: ObjectKey
    live: Object
    claim: Claim
    child: str  # the id in its record; "" without a record

    @property
    def terminating(self) -> bool:
        return bool(self.live["metadata"].get("deletionTimestamp"))


@dataclass(slots=True)
class Ending:
    """An item whose end has begun, or begins in this pass."""

    record: ItemRecord
    made: list[Existing] = field(default_factory=list)
    decided: set[str] = field(default_factory=set)  # the `finalize` children that are rendered, or not desired


def find_existing(rule: Rule, owner: Owner, objects: Objects, own: Collection[ObjectKey] = ()) -> list[Existing]:
    """All objects that the CR owns, sorted by key; each in the version that its child's template uses. Those of the
    operator itself are nobody's children. Raises Exhausted: others may change the records on the objects, and the
    longest take a quarter of a second."""
    found: dict[ObjectKey, Existing] = {}
    far = rule.reach.cluster
    for live in objects.children(owner.part_of):
        key = ObjectKey.of(live)
        claim = claim_on(live, key, owner)
        # With `reach: namespace`, only a proof shows that an object elsewhere is left from rules with a longer reach.
        if claim.owned and (far or key.namespace == owner.namespace or claim.proven) and key not in own:
            record = read_record(live)
            child = record.id if record is not None else ""
            if key not in found or _may_be(live, rule.children.get(child) or rule.finalize.get(child)):
                found[key] = Existing(key, live, claim, child)
    return [found[key] for key in sorted(found)]


def _may_be(live: Object, child: Child | None) -> bool:
    return child is not None and Kind.of(live) in child.kinds


def select_shown(
    rule: Rule, owner: Owner, child: Child, existing: Iterable[Existing], key: ObjectKey | None
) -> list[Existing]:
    """The existing objects that a template can read as this child. Anybody who can write to their namespace can forge
    their record, so they have to be of a kind that the child may be, and within the rule's reach. If the child has one
    object, it is the one with the desired key; while that is unknown, the oldest, or the newest if there is
    one for each run."""
    kinds, far = _versionless(child.kinds), rule.reach.cluster
    found = [
        each for each in existing if each.key.group_kind in kinds and (far or each.key.namespace == owner.namespace)
    ]
    if key is not None:
        return [each for each in found if each.key == key]
    if child.many or len(found) < 2:
        return found
    return [(max if isinstance(child.form, Once | Scheduled) else min)(found, key=age_of)]


@lru_cache(maxsize=1024)
def _versionless(kinds: frozenset[Kind]) -> frozenset[GroupKind]:
    return frozenset(kind.versionless for kind in kinds)


def age_of(each: Existing) -> tuple[str, ObjectKey]:
    """The API server sets creationTimestamp, so an object cannot be made to look older."""
    return each.live["metadata"].get("creationTimestamp") or "", each.key


def existing_view(child: Child, existing: list[Existing], origin: Origin) -> Any:
    """The child's objects as they are now, as a value for templates."""
    found = [without_server_noise(each.live) for each in existing]
    name = f"live.{child.id}" if origin is Origin.LIVE else child.id
    if child.many:
        return ObjectsView(found, name, origin)
    return MapView(found[0], name, origin) if found else Later(name)


# -- what ruleop has written on an object ------------------------------------------------------------------------------


def read_record(live: Object) -> Record | None:
    text = annotations_of(live).get(APPLIED)
    return decode(text) if isinstance(text, str) else None


def guarded(live: Object, result: Object) -> dict[str, Any]:
    """The merge patch from one to the other, with uid and resourceVersion, so that the server rejects it if the object
    has changed."""
    patch = merge_patch(live, result)
    assert patch is not None, "at least the record or a mark differs"
    metadata = live["metadata"]
    guards = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **guards}}


def release(child: str, live: Object, key: ObjectKey, owner: Owner, *, needs: frozenset[str] = frozenset()) -> Patch:
    """A patch that removes ruleop's own metadata from an object that is kept when it is orphaned."""
    metadata = live["metadata"]
    labels = {
        name: value
        for name, value in (metadata.get("labels") or {}).items()
        if name not in {PART_OF, BUCKET_LABEL} and (name, value) != (MANAGED_BY, RULEOP)
    }
    notes = {name: value for name, value in annotations_of(live).items() if name not in {APPLIED, OWNER, ITEM}}
    return _metadata_patch(child, live, key, owner, "released", labels=labels, annotations=notes, needs=needs)


def keep(child: str, live: Object, key: ObjectKey, owner: Owner) -> Patch:
    """A patch that protects an orphan from the garbage collector while `finalize` still needs it."""
    notes = {**annotations_of(live), OWNER: owner.annotation(key, orphan=True, kept=True, live=live)}
    return _metadata_patch(
        child, live, key, owner, "changed", labels=live["metadata"].get("labels") or {}, annotations=notes
    )


def _metadata_patch(
    child: str,
    live: Object,
    key: ObjectKey,
    owner: Owner,
    why: Literal["changed", "released"],
    *,
    labels: Mapping[str, Any],
    annotations: Mapping[str, Any],
    needs: frozenset[str] = frozenset(),
) -> Patch:
    """A patch that sets these labels and annotations, and removes ruleop's ownerReference."""
    metadata = live["metadata"]
    references = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != owner.uid]
    new = {name: value for name, value in metadata.items() if name not in {"labels", "annotations", "ownerReferences"}}
    new |= {
        name: value
        for name, value in (("labels", labels), ("annotations", annotations), ("ownerReferences", references))
        if value
    }
    result = {**live, "metadata": new}
    return Patch(key, child, guarded(live, result), live, result, "", why, needs=needs)
