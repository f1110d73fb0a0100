"""The columns and cells of the built-in kinds. Kubernetes has no printer for a few kinds (roles, limit ranges, CRDs):
these show when they were created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.tables.cluster import CLUSTER
from ruleop.localcluster.tables.network import NETWORK
from ruleop.localcluster.tables.pods import POD, pod_conditions
from ruleop.localcluster.tables.printer import ColumnDefinition, Printer, printer
from ruleop.localcluster.tables.storage import STORAGE
from ruleop.localcluster.tables.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.kinds import JSON, Kind, Object

_PLAIN: Final = printer(
    "Name|Created At:date", lambda obj, _: [obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")]
)
_PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {
    ("", "Pod"): POD,
    **WORKLOADS,
    **NETWORK,
    **STORAGE,
    **CLUSTER,
}


def columns(kind: Kind) -> tuple[ColumnDefinition, ...]:
    return _PRINTERS.get((kind.group, kind.kind), _PLAIN).columns


def cells(kind: Kind, obj: Object, now: float) -> list[JSON]:
    """One value for each column. `now` is in seconds since 1970."""
    return _PRINTERS.get((kind.group, kind.kind), _PLAIN).cells(obj, now)


def conditions(kind: Kind, obj: Object) -> list[dict[str, Any]]:
    """The conditions of the row; only pods that have ended have one."""
    return pod_conditions(obj) if (kind.group, kind.kind) == ("", "Pod") else []
