"""The CustomResourceDefinition of a kind that ruleop manages, as a document: the same for the same arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.crd import API_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kubernetes.schema import Schema

_PROTECTED: Final = (".k8s.io", ".kubernetes.io")
READY_COLUMN: Final = {
    "name": "Ready",
    "type": "string",
    "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
}
AGE_COLUMN: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


@dataclass(frozen=True, slots=True)
class DefinitionNames:
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, kind: str) -> DefinitionNames:
        return cls(kind, plural(kind), kind.lower())


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a kind: the schema of its objects, and how they are served."""

    name: str
    schema: Schema
    columns: tuple[Mapping[str, Any], ...]
    scale: Mapping[str, str] | None = None
    served: bool = True
    stored: bool = True
    deprecated: bool = False


def definition_document(
    group: str, names: DefinitionNames, versions: Iterable[Version], *, scope: str
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": f"{names.plural}.{group}"}
    if f".{group}".endswith(_PROTECTED):
        metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, not an API of the Kubernetes project"}
    every_name: dict[str, Any] = {
        "kind": names.kind,
        "listKind": f"{names.kind}List",
        "plural": names.plural,
        "singular": names.singular,
    }
    if names.short_names:
        every_name["shortNames"] = [*names.short_names]
    return {
        "apiVersion": API_VERSION,
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": group,
            "scope": scope,
            "names": every_name,
            "versions": [_version(each) for each in versions],
        },
    }


def _version(version: Version) -> dict[str, Any]:
    subresources: dict[str, Any] = {"status": {}} if "status" in version.schema["properties"] else {}
    if version.scale is not None:
        subresources["scale"] = dict(version.scale)
    found: dict[str, Any] = {"name": version.name, "served": version.served, "storage": version.stored}
    if version.deprecated:
        found["deprecated"] = True
    if subresources:
        found["subresources"] = subresources
    found["additionalPrinterColumns"] = [dict(each) for each in version.columns]
    found["schema"] = {"openAPIV3Schema": version.schema}
    return found


def plural(kind: str) -> str:
    """The plural of a kind in lower case, as controller-gen and kubebuilder make it."""
    name = kind.lower()
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith(("s", "x", "z", "ch", "sh")) else f"{name}s"
