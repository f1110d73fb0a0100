r"""The columns and cells of a custom kind, by the `additionalPrinterColumns` of its CRD.

Of the JSONPath of printer columns, the common form: `.spec.size`, `.metadata.labels.app\.kubernetes\.io/name`,
`.items[0].name`, `.items[*].name`, `.conditions[?(@.type=="Ready")].status`. A column with another path is empty.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import orjson

from ruleop.kubernetes.crd import PrinterColumn
from ruleop.localcluster.tables.cells import NAME, ColumnDefinition, name, since

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.kubernetes.kinds import JSON, Object

_STEP: Final = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
    |\[(?P<index>\d+|\*)\]
    |\[\?\(\s*@\.(?P<key>\w+)\s*==\s*(?P<quote>['"])(?P<value>[^'"]*)(?P=quote)\s*\)\]""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(.)")


def values_at(path: str, value: JSON) -> list[JSON]:
    """The values at a path; none if it leads nowhere."""
    found, position = [value], 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return []
        found, position = [each for one in found for each in _members(match, one)], match.end()
    return found


def _members(step: re.Match[str], value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        name = _ESCAPE.sub(r"\1", step["field"] or "")
        return [value[name]] if name in value else []
    if not isinstance(value, list) or step["field"]:
        return []
    if step["key"]:
        return [each for each in value if isinstance(each, dict) and each.get(step["key"]) == step["value"]]
    return value if step["index"] == "*" else value[int(step["index"]) :][:1]


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
    found = values_at(column.json_path, obj)
    if not found:
        return None
    value = found[0]
    if column.type == "string":
        return _text(value)
    return None if value is None else _typed(column.type, value, now)


def _typed(of_type: str, value: JSON, now: float) -> JSON:
    """The value, if it is of the column's type."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match of_type:
        case "integer":
            return int(value) if is_number else None
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


def _text(value: JSON) -> str:
    """The value as JSON, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | float):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return "<no value>" if value is None else str(value)
