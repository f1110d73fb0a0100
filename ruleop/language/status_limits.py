"""The limits that the schema of a kind sets to the status that ruleop writes.

A CRD may be somebody else's, made for another operator. The API server drops fields that its schema lacks, and refuses
a whole status for one condition that it does not allow, or for a required field that is missing. So the planner writes
the conditions that fit, and no status without its required fields; `check` and the operator's log say what is missing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.crd import declares, default, drop_unknown, schema_at
from ruleop.kubernetes.schema import validate
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.schema import Schema


# -- written status ----------------------------------------------------------------------------------------------------
#
# The fields of the status that ruleop writes for every rule, as a schema.

_TEXT: Final[Schema] = {"type": "string"}
_GENERATION: Final[Schema] = {"type": "integer", "format": "int64"}

CONDITIONS: Final[Schema] = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": _TEXT,
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": _TEXT,
            "message": _TEXT,
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": _GENERATION,
        },
    },
}
"""The conditions that ruleop writes."""

WRITTEN: Final[Mapping[str, Schema]] = {"observedGeneration": _GENERATION, "conditions": CONDITIONS}
"""The fields of the status that ruleop writes for every rule."""


# -- status limits -----------------------------------------------------------------------------------------------------

IN_CONDITION: Final[tuple[str, ...]] = tuple(CONDITIONS["items"]["properties"])
"""The fields of a condition that ruleop writes."""

OWN_CONDITIONS: Final = ("Ready", "Reconciling", "Stalled")
"""The types of the conditions that every rule has."""

_LONGEST_TYPE: Final = 316
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_STANDARD: Final[Mapping[str, Schema]] = {
    **CONDITIONS["items"]["properties"],
    "type": {
        "type": "string",
        "maxLength": _LONGEST_TYPE,
        "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    },
    "reason": {"type": "string", "maxLength": 1024, "minLength": 1, "pattern": f"^{_REASON.pattern}$"},
    "message": {"type": "string", "maxLength": 32768},
    "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
}
"""The fields of conditions in most CRDs: those of `metav1.Condition`. Each keyword holds for all that ruleop writes,
but for the lengths of types and the form of reasons."""

_NOTHING: Final[Schema] = {}
_APART: Final = frozenset({"description", "items", "properties", "required"})
"""Keywords that are compared on their own, or that allow everything."""

_ALWAYS: Final = frozenset({"type", "status", "reason", "message", "lastTransitionTime"})
"""The fields that each condition has; observedGeneration is only in the status of a kind with that subresource."""

_NEEDED: Final = ("type", "status")
"""Without these, nobody would recognise the condition in the next pass, and it would be added again."""

_PROBE: Final = {
    "status": "False",
    "reason": "Waiting",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "observedGeneration": 1,
}


@dataclass(frozen=True, slots=True)
class StatusLimits:
    """The parts of the status that a schema lacks, does not allow, or requires."""

    dropped: tuple[str, ...]  # fields that the API server would drop: `status.conditions[].message`
    refused: Mapping[str, str]  # by type, why a condition is left out
    required: tuple[str, ...]  # fields without which no status is written; the rule has to set them
    generation: str = ""  # why observedGeneration is left out

    def refusals(self, kind: str, *, without: Collection[str] = ()) -> Iterator[str]:
        """A sentence for each reason that something is left out. `without`: the conditions of these types."""
        if self.generation:
            yield f"the CRD of {kind} does not allow ruleop's status.{self.generation}, so it is left out"
        yield from self.refusals_of(kind, [type_ for type_ in self.refused if type_ not in without])

    def refusals_of(self, kind: str, types: Iterable[str]) -> Iterator[str]:
        """The same for the conditions of some types."""
        refused = {type_: self.refused[type_] for type_ in types if type_ in self.refused}
        for why in dict.fromkeys(refused.values()):
            alike = [type_ for type_, each in refused.items() if each == why]
            some, they = ("conditions", "they are") if len(alike) > 1 else ("condition", "it is")
            yield f"the CRD of {kind} does not allow the {some} {', '.join(alike)}, so {they} left out: {why}"


def limits_of(schema: Schema, types: Iterable[str], *, generation: bool) -> StatusLimits:
    """`types`: of the conditions. `generation`: whether observedGeneration is written, too."""
    names = ["status.conditions", *(["status.observedGeneration"] if generation else [])]
    dropped = [name for name in names if not declares(schema, tuple(name.split(".")))]
    refused: dict[str, str] = {}
    if "status.conditions" not in dropped:
        dropped += [
            f"status.conditions[].{name}"
            for name in IN_CONDITION
            if not declares(schema, ("status", "conditions", name))
        ]
        found = {type_: refusal(as_stored({"type": type_, **_PROBE}, schema), schema) for type_ in types}
        # One sentence for all types, which it would otherwise quote.
        refused = {type_: why.removesuffix(f', not "{type_}"') for type_, why in found.items() if why}
    status = schema_at(schema, ("status",)) or {}
    refused_generation = refused_field("observedGeneration", 1, schema) if generation else ""
    own = {"observedGeneration"} if generation and not refused_generation else set()
    if refused.keys() != {*types}:
        own.add("conditions")
    with_default = {name for name, each in (status.get("properties") or {}).items() if each.get("default") is not None}
    required = [name for name in status.get("required") or () if name not in own | with_default]
    return StatusLimits(tuple(dropped), refused, tuple(required), refused_generation)


def allows_all(conditions: Iterable[Mapping[str, Any]], schema: Schema) -> bool:
    """Whether a schema of conditions allows these of ruleop, because it has no other keywords than CONDITIONS or
    Kubernetes' own type, which they fit. True is certain; False means that each has to be validated."""
    if schema == CONDITIONS:
        return True
    items = schema.get("items") or _NOTHING
    fields = items.get("properties") or _NOTHING
    return (
        _is_no_narrower(schema, CONDITIONS)
        and _is_no_narrower(items, CONDITIONS["items"])
        and not {*(items.get("required") or ())}.difference(_ALWAYS)
        and all(name in fields and _is_no_narrower(fields[name], each) for name, each in _STANDARD.items())
        and all(len(each["type"]) <= _LONGEST_TYPE and _REASON.fullmatch(each["reason"]) for each in conditions)
    )


def _is_no_narrower(schema: Schema, known: Schema) -> bool:
    return all(known.get(key) == value or key in _APART for key, value in schema.items())


def as_stored(condition: Mapping[str, Any], schema: Schema) -> Mapping[str, Any]:
    """The condition as the API server would store it."""
    kept: Any = drop_unknown({"status": {"conditions": [condition]}}, schema)
    found: Mapping[str, Any] = default(kept, schema)["status"]["conditions"][0]
    return found


def refusal(condition: Mapping[str, Any], schema: Schema) -> str:
    """The reason that the schema does not allow a condition, as it would be stored; empty if it does."""
    if missing := [name for name in _NEEDED if name not in condition]:
        return f"its conditions have no {' and no '.join(missing)}"
    return refused_field("conditions", [condition], schema).removeprefix("conditions[0].")


def refused_field(name: str, value: JSON, schema: Schema) -> str:
    """The reason that the schema does not allow a value of a field of the status; empty if it does."""
    field = schema_at(schema, ("status", name))
    found = validate({name: value}, {"type": "object", "properties": {name: field}}) if field is not None else ()
    return str(found[0]) if found else ""


def unwritten(kind: str, missing: Collection[str]) -> str:
    """The message about a status without required fields."""
    if "conditions" in missing:
        return (
            f"the CRD of {kind} requires status.conditions and allows none that ruleop writes, so no status is "
            "written: set `manageStatus: false`"
        )
    fields = ", ".join(f"status.{name}" for name in missing)
    return f"the CRD of {kind} requires {fields}, and no status is written without: set each in `status` of the rule"
