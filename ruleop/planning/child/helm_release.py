"""Objects of a Helm release, which children with `adopt: helm` adopt.

Helm writes on each object the release that it belongs to. Only the release with the name and the namespace of the CR is
adopted: who may write CRs must not reach the objects of another one. Helm's own marks count as fields that were
applied before, so the first write removes them; without them, the object is no longer one of Helm's.

The Helm operator of Operator SDK also has a finalizer on the CR, which nobody else would remove.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.merge import FieldSet
from ruleop.kubernetes.merge.fields import Leaf, MapFields
from ruleop.planning.model.marks import MANAGED_BY, RULEOP, annotations_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.planning.model.marks import Owner

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
