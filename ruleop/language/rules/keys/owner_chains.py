"""The kinds whose objects are known to own others, as the controllers of Kubernetes write ownerReferences.

The watches of `ownedBy` have to be known before there is any object, so owners in between are found by kind.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.language.rules.keys.watches_yaml import kind_in_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.language.rules.keys.watches_yaml import ObserveTable

_POD: Final = Kind("", "v1", "Pod")
_REVISION: Final = Kind("apps", "v1", "ControllerRevision")
_OWNED: Final[Mapping[GroupKind, tuple[Kind, ...]]] = MappingProxyType(
    {
        GroupKind("apps", "Deployment"): (Kind("apps", "v1", "ReplicaSet"),),
        GroupKind("apps", "ReplicaSet"): (_POD,),
        GroupKind("apps", "StatefulSet"): (_POD, _REVISION),
        GroupKind("apps", "DaemonSet"): (_POD, _REVISION),
        GroupKind("batch", "CronJob"): (Kind("batch", "v1", "Job"),),
        GroupKind("batch", "Job"): (_POD,),
        GroupKind("", "ReplicationController"): (_POD,),
        GroupKind("", "Service"): (Kind("discovery.k8s.io", "v1", "EndpointSlice"),),
    }
)
"""By owner. No kind owns itself, also through others."""


def kinds_between(owner: GroupKind, owned: GroupKind) -> tuple[Kind, ...] | None:
    """The kinds of the owners in between, outermost first; empty if the owner owns such objects itself. None if it is
    not known to own any."""
    for kind in _OWNED.get(owner, ()):
        if kind.versionless == owned:
            return ()
        if (inner := kinds_between(kind.versionless, owned)) is not None:
            return (kind, *inner)
    return None


def chain_of(table: ObserveTable, owner: Kind) -> tuple[Kind, ...] | None:
    """The kinds of owners between objects of the kind `owner` and those that are observed; None if it is not known."""
    if "through" in table.key_sites:
        return tuple(map(kind_in_version, table.through))
    return kinds_between(owner.versionless, GroupKind(table.group.text, table.kind.text if table.kind else ""))
