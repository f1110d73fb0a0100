"""`allow` of watches.yaml: the checks that are off for the project, each with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
            if (mistake := reading.analysis.refusal(entry.name)) is not None:
                reading.findings.mistake("wrong-value", mistake, entry.site)
        return entries

    def schema(self) -> dict[str, JSON]:
        """Without the ids (json_schema.py)."""
        return {"type": "object", "additionalProperties": {"type": "string", "pattern": r"\S"}}

    def of(self, default: JSON) -> tuple[NamedEntry[Word], ...]:
        return _REASONS.of(default)
