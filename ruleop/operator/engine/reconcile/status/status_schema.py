"""Logs, once for each watched kind, the status fields that are missing from its schema. The API server would drop them,
so ruleop does not write them. The log explains to users why a CR has no conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ruleop.core.schema.crd.structural import declares
from ruleop.core.templating import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.core.kinds import Kind
    from ruleop.core.planning import KindInfo, Kinds
    from ruleop.core.rules import Rule


class StatusSchemas:
    def __init__(self) -> None:
        self._reported: dict[tuple[Kind, str], tuple[str, ...]] = {}
        self.log = structlog.get_logger()

    def report(self, rules: Iterable[Rule], kinds: Kinds) -> None:
        """Logs the fields for kinds whose schema is known, from the CRD or as the API server publishes it."""
        for rule in rules:
            dropped, watch = dropped_by(rule, kinds.info(rule.kind)), (rule.kind, rule.name)
            if dropped and self._reported.get(watch) != dropped:
                fields = ", ".join(dropped)
                message = (
                    f"the schema of {rule.kind.kind} has no {fields}: the API server would drop them, "
                    "so they are not written"
                )
                self.log.warning(
                    "status fields missing from the schema", controller=str(rule.kind.versionless), message=message
                )
            self._reported[watch] = dropped


def dropped_by(rule: Rule, info: KindInfo) -> tuple[str, ...]:
    """The status fields that the rule would write and the API server would drop. Names that templates compute are not
    known here."""
    schema = info.status_schema
    if schema is None or not rule.manage_status:
        return ()
    names = ["conditions", *(["observedGeneration"] if info.status_subresource else [])]
    if isinstance(rule.status, Tree) and isinstance(rule.status.built, dict):
        names += [name for name in rule.status.built if isinstance(name, str)]
    return tuple(f"status.{name}" for name in names if not declares(schema, ("status", name)))
