"""The options of a write, from the query and from the body of a delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import Rejected, bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

PROPAGATIONS: Final = ("Orphan", "Background", "Foreground")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    manager: str = "unknown"
    dry_run: bool = False
    field_validation: str = "Warn"  # Strict, Warn or Ignore
    force: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str], user_agent: str = "") -> WriteOptions:
        validation = query.get("fieldValidation") or "Warn"
        if validation not in ("Strict", "Warn", "Ignore"):
            raise bad_request(
                f'PatchOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "{validation}": '
                'supported values: "Ignore", "Strict", "Warn"'
            )
        manager = query.get("fieldManager") or user_agent.partition("/")[0] or "unknown"
        return cls(manager[:128], dry_run_of(query), validation, query.get("force") in ("true", "1"))


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    dry_run: bool = False
    propagation: str = ""
    grace: int | None = None
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str], body: Any) -> DeleteOptions:
        if not isinstance(body, dict):
            body = {}
        preconditions = body.get("preconditions") or {}
        propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
        if not propagation:
            orphan = body.get("orphanDependents", query.get("orphanDependents"))
            propagation = {"true": "Orphan", "True": "Orphan"}.get(str(orphan), "")
        if propagation and propagation not in PROPAGATIONS:
            raise bad_request(
                f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "{propagation}": '
                'supported values: "Background", "Foreground", "Orphan"'
            )
        grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
        return cls(
            dry_run_of({"dryRun": (body.get("dryRun") or [query.get("dryRun", "")])[0]}),
            propagation,
            None if grace in (None, "") else int(grace),
            preconditions.get("uid") or "",
            preconditions.get("resourceVersion") or "",
        )


def dry_run_of(query: Mapping[str, str]) -> bool:
    value = query.get("dryRun", "")
    if value not in ("", "All"):
        raise Rejected(422, "Invalid", f'dryRun: Unsupported value: "{value}": supported values: "All"')
    return value == "All"
