"""The CustomResourceDefinitions of a cluster that a project would replace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.authoring.live.reading.read_only_connection import connected
from ruleop.authoring.live.reading.reader import Reader
from ruleop.authoring.live.reading.served_kinds import CRD
from ruleop.kubernetes.kinds import GroupKind, ObjectKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.kinds import Object


async def definitions_in_use(crds: Iterable[Object], kubeconfig: str, context: str) -> list[Object]:
    """Those of the kinds of these CRDs, whatever their plural is. Raises NotConnectedError and ApiError."""
    found = []
    async with connected(kubeconfig, context) as connection:
        reader = Reader(connection)
        for crd in crds:
            preferred = reader.preferred(GroupKind(crd["spec"]["group"], crd["spec"]["names"]["kind"]))
            served = reader.resource(preferred) if preferred is not None else None
            name = served.title if served is not None else crd["metadata"]["name"]
            if (definition := await reader.get(CRD, ObjectKey(CRD.group, CRD.kind, "", name))) is not None:
                found.append(definition)
    return found
