"""The annotations of a chart by which Artifact Hub shows it as an operator, with its kinds and an example of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.generate.samples import samples
from ruleop.authoring.scaffold.yaml_layout import rules_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.rules.loading.operator_choices import Choices

CAPABILITIES: Final = "Deep Insights"
"""The level of the Operator Framework: metrics, alerts and a dashboard come with the operator."""


def artifact_hub(loaded: Loaded, choices: Choices, crds: Sequence[Object], image: str) -> dict[str, JSON]:
    """Each value is text; that of a list is YAML."""
    images = [{"name": "operator", "image": image}]
    if choices.rules_image:
        images.append({"name": "rules", "image": choices.rules_image})
    lists: dict[str, Any] = {
        "crds": [*_kinds(crds)],
        "crdsExamples": samples(loaded, crds),
        "images": images,
    }
    found: dict[str, JSON] = {name: rules_text(each) for name, each in lists.items() if each}
    found |= {"operator": "true", "operatorCapabilities": CAPABILITIES}
    if "-" in choices.version:
        found["prerelease"] = "true"
    return {f"artifacthub.io/{name}": value for name, value in sorted(found.items())}


def _kinds(crds: Sequence[Object]) -> Iterator[Object]:
    for crd in crds:
        spec = crd["spec"]
        kind = spec["names"]["kind"]
        for version in spec["versions"]:
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            if version.get("served"):
                yield {
                    "kind": kind,
                    "version": version["name"],
                    "name": crd["metadata"]["name"],
                    "displayName": kind,
                    "description": schema.get("description") or f"{kind} of {spec['group']}",
                }
