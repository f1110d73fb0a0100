"""The tables of kinds, a function that gives the cells of an object for each, and the parts of cells: durations,
selectors, lists that are cut, values in the spelling of Go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import JSON, Object
from ruleop.localcluster.timestamps import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Cells = Callable[[Object, float], list[JSON]]
"""The cells of an object at a time, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0  # columns with a priority are only in `kubectl get -o wide`
    description: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


NAME = ColumnDefinition("Name", format="name")


@dataclass(frozen=True, slots=True)
class Printer:
    columns: tuple[ColumnDefinition, ...]
    cells: Cells


def printer(columns: str, others: Cells = lambda _obj, _now: []) -> Printer:
    """A printer with columns such as `Name|Ready:integer|IP+|Node=spec.nodeName?<none>`: names, types other than
    string, a plus for those that are only in `-o wide`, and perhaps the path of the value with what is shown without
    one. `others`: the cells of an object beside these and those that many kinds have."""
    texts = [each.partition("=") for each in columns.split("|")]
    paths = [path.partition("?")[::2] for _, _, path in texts]
    shown = tuple(_column(each) for each, _, _ in texts)

    def cells(obj: Object, now: float) -> list[JSON]:
        values, own = iter(others(obj, now)), {"Name": name(obj), "Age": age(obj, now)}
        if "Images+" in columns:
            own |= _of_template(spec(spec(obj).get("jobTemplate") or obj))
        return [
            own[each.name] if each.name in own else _value(obj, path, default) if path else next(values)
            for each, (path, default) in zip(shown, paths, strict=True)
        ]

    return Printer(shown, cells)


def _of_template(desired: Object) -> dict[str, str]:
    found = spec(desired.get("template") or {}).get("containers") or ()
    return {
        "Containers": ",".join(each["name"] for each in found),
        "Images": ",".join(each.get("image", "") for each in found),
        "Selector": label_selector(desired.get("selector")) or NONE,
    }


def _value(obj: JSON, path: str, default: str) -> JSON:
    for step in path.split("."):
        obj = (obj or {}).get(step)
    return (int(default) if default.isdecimal() else default) if obj in (None, "") else obj


def _column(text: str) -> ColumnDefinition:
    name, _, of_type = text.rstrip("+").partition(":")
    return ColumnDefinition(
        name, of_type or "string", "name" if name == "Name" else "", priority=1 if text.endswith("+") else 0
    )


OF_TEMPLATE: Final = "Containers+|Images+|Selector+"
"""The columns of what makes pods."""


NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def human_duration(seconds: float) -> str:
    """Two or three significant figures: 5s, 3m20s, 12m, 5h3m, 30h, 5d2h, 100d, 3y40d."""
    whole = int(seconds)
    if whole < -1:  # a second's difference between clocks is not an error
        return "<invalid>"
    minutes, hours, days = whole // _MINUTE, whole // _HOUR, whole // _DAY
    years = days // 365
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if minutes < 10:
        return _pair(minutes, "m", whole % _MINUTE, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if years < 2:
        return f"{days}d"
    return _pair(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _pair(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def since(timestamp: JSON, now: float) -> str:
    return human_duration(now - seconds_of(timestamp)) if timestamp else UNKNOWN


def name(obj: Object) -> str:
    found: str = obj["metadata"].get("name", "")
    return found


def age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def annotation(obj: Object, key: str) -> str:
    found: str = (obj["metadata"].get("annotations") or {}).get(key, "")
    return found


def is_being_deleted(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def spec(obj: Object) -> Object:
    found: Object = obj.get("spec") or {}
    return found


def status(obj: Object) -> Object:
    found: Object = obj.get("status") or {}
    return found


def labels(found: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def label_selector(selector: Object | None) -> str:
    """A LabelSelector as `kubectl -l` takes it; empty if it selects everything or nothing."""
    selector = selector or {}
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(sorted(each.get("values") or ()))
        match each["operator"]:
            case "In":
                parts.append((key, f"{key} in ({values})"))
            case "NotIn":
                parts.append((key, f"{key} notin ({values})"))
            case "Exists":
                parts.append((key, key))
            case _:
                parts.append((key, f"!{key}"))
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def boolean(value: JSON) -> str:
    return UNSET if value is None else "True" if value else "False"


def condition(obj: Object, of_type: str) -> Object | None:
    conditions: Iterable[Object] = status(obj).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == of_type), None)


def is_true(obj: Object, of_type: str) -> bool:
    found = condition(obj, of_type)
    return found is not None and found.get("status") == "True"


def load_balancer(obj: Object) -> str:
    ingress = (status(obj).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(sorted({found for each in ingress if (found := each.get("ip") or each.get("hostname"))}))
