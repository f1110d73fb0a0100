"""Says, once for each watched kind, what its definition has no room for in the status. The API server would drop it, so it is not written,
and whoever looks for conditions on a CR in vain finds the reason in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ruleop.schema.structural import has_room
from ruleop.templating import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kinds import GroupKind, Kind
    from ruleop.rules import Rule
    from ruleop.schema.crds import CustomResourceDefinition


class Room:
    def __init__(self) -> None:
        self._told: dict[tuple[Kind, str], tuple[str, ...]] = {}
        self.log = structlog.get_logger()

    def look(self, rules: Iterable[Rule], definitions: Mapping[GroupKind, CustomResourceDefinition]) -> None:
        for rule in rules:
            definition = definitions.get(rule.kind.versionless)
            if definition is None:
                continue
            dropped, watch = dropped_by(rule, definition), (rule.kind, rule.name)
            if dropped and self._told.get(watch) != dropped:
                message = f"the CRD of {rule.kind.kind} has no {', '.join(dropped)}: the API server would drop it, so it is not written"
                self.log.warning("no room in the status", controller=str(rule.kind.versionless), message=message)
            self._told[watch] = dropped


def dropped_by(rule: Rule, definition: CustomResourceDefinition) -> tuple[str, ...]:
    """The fields of the status that the rule would write and the API server would drop. Names from templates are not known yet."""
    version = definition.version(rule.kind.version)
    if version is None or not rule.manage_status:
        return ()
    names = ["conditions", *(["observedGeneration"] if version.status_subresource else [])]
    if isinstance(rule.status, Tree) and isinstance(rule.status.built, dict):
        names += [name for name in rule.status.built if isinstance(name, str)]
    return tuple(f"status.{name}" for name in names if not has_room(version.schema, ("status", name)))
