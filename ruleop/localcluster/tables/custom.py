"""The columns and cells of a custom kind, by the `additionalPrinterColumns` of its CRD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from ruleop.core.schema.crd.crds import PrinterColumn
from ruleop.localcluster.tables.cell_text import name, since
from ruleop.localcluster.tables.json_path import first, parse
from ruleop.localcluster.tables.printer import NAME, ColumnDefinition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.core.kinds import JSON, Object

_AGE: Final = (PrinterColumn("Age", "date", ".metadata.creationTimestamp"),)


def custom_columns(declared: Sequence[PrinterColumn]) -> tuple[ColumnDefinition, ...]:
    """The name, and the declared columns; without any, the age."""
    others = (
        ColumnDefinition(
            each.name,
            each.type,
            each.format,
            each.priority,
            each.description or f"Custom resource definition column (in JSONPath format): {each.json_path}",
        )
        for each in declared or _AGE
    )
    return (NAME, *others)


def custom_cells(declared: Sequence[PrinterColumn], obj: Object, now: float) -> list[JSON]:
    return [name(obj), *(_cell(each, obj, now) for each in declared or _AGE)]


def _cell(column: PrinterColumn, obj: Object, now: float) -> JSON:
    path = parse(column.json_path)
    found = None if path is None else first(path, obj)
    if found is None:
        return None
    (value,) = found
    if column.type == "string":
        return _text(value)
    return None if value is None else _typed(column.type, value, now)


def _typed(of_type: str, value: JSON, now: float) -> JSON:
    """The value, if it is of the column's type."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match of_type:
        case "integer":
            return _int64(value) if is_number else None
        case "number":
            return value if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date" if isinstance(value, str):
            try:
                return since(value, now)
            except ValueError:
                return "<invalid>"
        case _:
            return None


def _int64(value: float) -> int:
    """Go's conversion, which makes the least integer of whatever does not fit."""
    return int(value) if abs(value) < 2**63 else -(2**63)


def _text(value: JSON) -> str:
    """The value as Go prints it; maps and lists as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    if isinstance(value, float):
        return _float(value)
    return "<no value>" if value is None else str(value)


def _float(value: float) -> str:
    """Go's %v: the shortest digits, with an exponent of at least two digits from 1e+21 and below 1e-4."""
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)
