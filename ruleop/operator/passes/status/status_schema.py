"""Logs, once for each watched kind, the status fields that its schema lacks, does not allow or requires. The API server
would drop these fields, or refuse the status, so ruleop does not write them. The log explains to users why a CR has no
conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ruleop.kubernetes.crd.structural import declares
from ruleop.language.definitions.status_limits import OWN_CONDITIONS, limits_of, unwritten
from ruleop.language.templates import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import Rule
    from ruleop.planning import KindInfo, Kinds


class StatusSchemas:
    def __init__(self) -> None:
        self._reported: dict[tuple[Kind, str], tuple[str, ...]] = {}
        self.log = structlog.get_logger()

    def report(self, rules: Iterable[Rule], kinds: Kinds) -> None:
        """Logs this for kinds whose schema is known, from the CRD or as the API server publishes it."""
        for rule in rules:
            messages, watch = tuple(_missing(rule, kinds.info(rule.kind))), (rule.kind, rule.name)
            if self._reported.get(watch) != messages:
                for message in messages:
                    self.log.warning(
                        "status fields missing from the schema", controller=str(rule.kind.versionless), message=message
                    )
            self._reported[watch] = messages


def _missing(rule: Rule, info: KindInfo) -> Iterator[str]:
    """The fields that the rule would write and the API server would drop or refuse, in sentences. Names that templates
    compute are not known here."""
    schema, kind = info.status_schema, rule.kind.kind
    if schema is None or not rule.status.managed:
        return
    types = [*OWN_CONDITIONS, *(each.type for each in rule.status.conditions)]
    limits = limits_of(schema, types, generation=info.status_subresource)
    body = rule.status.body
    fields = body.fields if isinstance(body, Tree) else ()
    named = [f"status.{name}" for name in fields if not declares(schema, ("status", name))]
    if dropped := [*limits.dropped, *named]:
        yield (
            f"the schema of {kind} has no {', '.join(dropped)}: the API server would drop them, so they are not written"
        )
    yield from limits.refusals(kind)
    if isinstance(body, Tree | None) and (missing := [name for name in limits.required if name not in fields]):
        yield unwritten(kind, missing)
