"""`allow` of watches.yaml: the checks that are off for the project, each with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.rules.check_ids import BY_CODE, BY_ID, FATAL, SILENCEABLE
from ruleop.core.rules.findings import did_you_mean_quoted
from ruleop.core.rules.language.value_types import MapOf, NamedEntry, Reading, Text, Type, Word

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON
    from ruleop.core.templating import YamlNode

_REASONS = MapOf(Text(r"(?s:.*\S.*)", "a reason, in a few words"), "the check")


class AllowedChecks(Type[tuple[NamedEntry[Word], ...]]):
    """id: reason."""

    def read(self, node: YamlNode, what: str, reading: Reading) -> tuple[NamedEntry[Word], ...] | None:
        entries = _REASONS.read(node, what, reading)
        for entry in entries or ():
            if (mistake := refusal(entry.name)) is not None:
                reading.findings.mistake("wrong-value", mistake, entry.site)
        return entries

    def schema(self) -> dict[str, JSON]:
        names = [check.id for check in SILENCEABLE]
        return {
            "type": "object",
            "propertyNames": {"enum": names},
            "additionalProperties": {"type": "string", "pattern": r"\S"},
        }

    def of(self, default: JSON) -> tuple[NamedEntry[Word], ...]:
        return _REASONS.of(default)


def refusal(name: str) -> str | None:
    """The reason that a check of this name cannot be allowed; None if it can."""
    check = BY_ID.get(name)
    if check is None:
        meant = next((each for code, each in BY_CODE.items() if code == name), None)
        guess = f": write its id, {meant.id}" if meant is not None else did_you_mean_quoted(name, BY_ID)
        return f'unknown check "{name}"{guess}'
    if check.code in FATAL:
        return f"{name} ({check.code}) cannot be allowed: the project cannot be used until it is corrected"
    return None
