r"""The columns and cells of a custom kind, by the `additionalPrinterColumns` of its CRD.

The JSONPath of printer columns, as client-go has it: `.spec.size`, `.metadata.labels.app\.kubernetes\.io/name`,
`.spec['a.b']`, `.items[0]`, `.items[-1]`, `.items[*].name`, `.conditions[?(@.type=="Ready")].status`.

Not here: ranges of indexes, unions and recursion (`..`). A column with such a path, or an invalid one, is empty.
"""

from __future__ import annotations

import operator
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import orjson

from ruleop.kubernetes.crd.crds import PrinterColumn
from ruleop.localcluster.tables.cells import NAME, ColumnDefinition, name, since

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import JSON, Object

_STEP: Final = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
    |\[(?P<quote>['"])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)\]
    |\[(?P<index>-?\d+)\]
    |(?P<every>\[\*\]|\.\*)
    |\[\?\(\s*@(?P<left>[^=!<>]*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<right>.*?)\s*)?\)\]""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(.)")
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class _Field(NamedTuple):
    name: str


class _Index(NamedTuple):
    number: int


class _Every(NamedTuple):
    pass


class _Filter(NamedTuple):
    left: Path
    operator: str  # empty: the field exists
    right: JSON


Path: TypeAlias = "tuple[_Field | _Index | _Every | _Filter, ...]"


@lru_cache(maxsize=1024)
def parse(text: str) -> Path | None:
    """The steps of a path; None if it is invalid or not supported."""
    text = text.strip().removeprefix("$")
    steps: list[_Field | _Index | _Every | _Filter] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        step = None if match is None else _step(match)
        if match is None or step is None:
            return None
        steps.append(step)
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> _Field | _Index | _Every | _Filter | None:
    if match["every"] or match["field"] == "*":
        return _Every()
    if match["field"] is not None:
        return _Field(_ESCAPE.sub(r"\1", match["field"]))
    if match["quoted"] is not None:
        return _Field(_ESCAPE.sub(r"\1", match["quoted"]))
    if match["index"] is not None:
        return _Index(int(match["index"]))
    left = parse(match["left"])
    if left is None:
        return None
    if not match["operator"]:
        return _Filter(left, "", None)
    right = _literal(match["right"])
    return None if right is None else _Filter(left, match["operator"], right)


def _literal(text: str) -> JSON:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return _ESCAPE.sub(r"\1", text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return None


def first(path: Path, value: JSON) -> tuple[JSON] | None:
    """The first value at the path; None if there is none."""
    for found in _values(path, 0, value):
        return (found,)
    return None


def _values(path: Path, position: int, value: JSON) -> Iterator[JSON]:
    if position == len(path):
        yield value
        return
    for member in _members(path[position], value):
        yield from _values(path, position + 1, member)


def _members(step: _Field | _Index | _Every | _Filter, value: JSON) -> Iterator[JSON]:
    match step:
        case _Field(name):
            if isinstance(value, dict) and name in value:
                yield value[name]
        case _Index(number):
            if isinstance(value, list) and -len(value) <= number < len(value):
                yield value[number]
        case _Every():
            yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        case _Filter():
            if isinstance(value, list):
                yield from (each for each in value if _passes(step, each))


def _passes(step: _Filter, item: JSON) -> bool:
    left = first(step.left, item)
    if left is None or not step.operator:
        return left is not None
    (value,), right = left, step.right
    if isinstance(value, str) != isinstance(right, str) or isinstance(value, bool) != isinstance(right, bool):
        return False  # Go compares only values of one kind
    return bool(_OPERATORS[step.operator](value, right))


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
