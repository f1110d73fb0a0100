"""The health of a project's kinds for Argo CD, which takes every custom resource that exists as healthy.

One script in Lua serves all kinds (argocd_health.lua): it reads Ready and Stalled as kstatus does, by which Flux knows
the same without any configuration, and Paused.
"""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, Final

from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.scaffold import rules_text
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import Kind
from ruleop.language.status_limits import limits_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import Schema
    from ruleop.language.rules.loading import Loaded

CONFIG_MAP: Final = "argocd-cm"
_HEADER: Final = f"{MARK} argocd` from watches.yaml: change it there.\n"


def health_script() -> str:
    return importlib.resources.files(__package__).joinpath("argocd_health.lua").read_text(encoding="utf-8")


def health_kinds(loaded: Loaded, crds: Sequence[Object]) -> tuple[list[Kind], list[str]]:
    """The kinds whose conditions say how they are, and a sentence for each other one."""
    schemas = dict(_schemas(crds))
    known: list[Kind] = []
    notes: list[str] = []
    for kind in dict.fromkeys(rule.kind.versionless for rule in loaded.project.rules):
        rules = [rule for rule in loaded.project.rules if rule.kind.versionless == kind]
        schema = schemas.get(rules[0].kind)
        limits = limits_of(schema, ["Ready"], generation=False) if schema is not None else None
        if not all(rule.status.managed for rule in rules):
            notes.append(f"{kind.kind}: the rules write no status, so its health is left to Argo CD")
        elif limits is not None and ("status.conditions" in limits.dropped or "Ready" in limits.refused):
            notes.append(f"{kind.kind}: its CRD does not allow the condition Ready, so its health is left to Argo CD")
        else:
            known.append(rules[0].kind)
    return known, notes


def _schemas(crds: Sequence[Object]) -> Iterator[tuple[Kind, Schema]]:
    for document in crds:
        crd = parse_crd(document)
        for version in crd.versions:
            if version.schema:
                yield Kind(crd.group, version.name, crd.kind), version.schema


def argocd_text(kinds: Sequence[Kind], namespace: str) -> str:
    """A part of Argo CD's ConfigMap."""
    script = health_script()
    labels = {"app.kubernetes.io/name": CONFIG_MAP, "app.kubernetes.io/part-of": "argocd"}
    return _HEADER + rules_text(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIG_MAP, "namespace": namespace, "labels": labels},
            "data": {f"resource.customizations.health.{each.group}_{each.kind}": script for each in kinds},
        }
    )
