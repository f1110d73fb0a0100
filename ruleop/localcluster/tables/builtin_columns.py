"""The columns and cells of the built-in kinds that authors of templates meet. Others show when they were
created, as the kinds do for which Kubernetes has no printer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.tables.apps import APPS
from ruleop.localcluster.tables.autoscaling import AUTOSCALING
from ruleop.localcluster.tables.batch import BATCH
from ruleop.localcluster.tables.core import CORE
from ruleop.localcluster.tables.networking import NETWORKING
from ruleop.localcluster.tables.others import OTHERS
from ruleop.localcluster.tables.pod_cells import POD, pod_conditions
from ruleop.localcluster.tables.printer import ColumnDefinition, Printer, printer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.core.kinds import JSON, Kind, Object

_PLAIN: Final = printer(
    "Name|Created At:date", lambda obj, _: [obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")]
)
PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {
    ("", "Pod"): POD,
    **CORE,
    **APPS,
    **AUTOSCALING,
    **BATCH,
    **NETWORKING,
    **OTHERS,
}


def columns(kind: Kind) -> tuple[ColumnDefinition, ...]:
    return PRINTERS.get((kind.group, kind.kind), _PLAIN).columns


def cells(kind: Kind, obj: Object, now: float) -> list[JSON]:
    """One value for each column. `now` is in seconds since 1970."""
    return PRINTERS.get((kind.group, kind.kind), _PLAIN).cells(obj, now)


def conditions(kind: Kind, obj: Object) -> list[dict[str, Any]]:
    """The conditions of the row; only pods that have ended have one."""
    return pod_conditions(obj) if (kind.group, kind.kind) == ("", "Pod") else []
