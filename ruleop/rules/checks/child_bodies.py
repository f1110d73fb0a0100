"""What a child would make, as far as its text tells: kinds that are known, fields that are ruleop's own, and how far it reaches."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from ruleop.kinds import SERVER_METADATA, GroupKind, Kind
from ruleop.names import RESERVED_PREFIX, SUBDOMAIN_IN_WORDS, is_object_name
from ruleop.schema.table import builtin_resource
from ruleop.templating.compile.hints import has_templates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.rules.findings import Findings
    from ruleop.rules.language.parsed import ChildDraft, Draft
    from ruleop.rules.language.value_types import Templated
    from ruleop.rules.language.watches_yaml import ObserveTable
    from ruleop.schema.crds import CustomResourceDefinition
    from ruleop.templating import StringTemplate, YamlNode

REFUSED_METADATA: Mapping[str, str] = MappingProxyType(
    {
        "generateName": "give it a name: without one ruleop could not find it again",
        "ownerReferences": "ruleop writes the owner itself",
        "finalizers": "they belong to whoever removes them",
        **dict.fromkeys(sorted(SERVER_METADATA), "the API server sets it; remove it"),
    }
)
"""The fields of metadata that a child cannot have, and what to do instead."""

_OWN_NAMESPACE = re.compile(r"\s*\{\{-?\s*(?:cr\.)?metadata\.namespace\s*-?\}\}\s*")
_REACH = "say `reach: cluster` in the watch if that is meant"


def check_bodies(draft: Draft, crds: Iterable[CustomResourceDefinition], findings: Findings) -> None:
    custom = {GroupKind(crd.group, crd.kind): crd.namespaced for crd in crds}
    for child in draft.everyone:
        if child.body is None:
            continue
        site = child.body.node.site
        for kind in sorted(child.kinds):
            if draft.table.reach == "namespace" and _is_namespaced(kind, custom) is False:
                findings.mistake("reach", f"{kind.kind} is a cluster-scoped kind: {_REACH}", site)
        _check_object(draft, child, findings)
        _check_namespace(draft, child.table.namespace, f'the child "{child.id}"', findings)
    nowhere = _is_namespaced(draft.kind, custom) is False
    for entry in draft.observed.values():
        if (table := entry.value) is None:
            continue
        what = f'the observed resource "{entry.name}"'
        _check_namespace(draft, table.namespace, what, findings)
        if nowhere and table.namespace is None and _is_namespaced(_kind_of(table), custom):
            message = f"{what} needs a namespace, and a cluster-scoped CR has none: say `namespace:` in it"
            findings.mistake("missing-key", message, entry.site)


def _kind_of(table: ObserveTable) -> Kind:
    return Kind(table.group.text, table.version.text if table.version else "", table.kind.text if table.kind else "")


def _is_namespaced(kind: Kind, custom: Mapping[GroupKind, bool]) -> bool | None:
    """None where that is not known before there is a cluster."""
    if kind.versionless in custom:
        return custom[kind.versionless]
    builtin = builtin_resource(kind.versionless)
    return builtin.namespaced if builtin is not None else None


def _check_namespace(draft: Draft, namespace: Templated[StringTemplate] | None, what: str, findings: Findings) -> None:
    if namespace is not None and not _stays_at_home(draft, namespace.node):
        findings.mistake("reach", f"{what} may be in another namespace than its CR: {_REACH}", namespace.node.site)


def _stays_at_home(draft: Draft, node: YamlNode) -> bool:
    """Whether a namespace is allowed, or is the CR's own for all that its text tells."""
    text = str(node.value)
    only = {word.text for word in draft.table.namespaces or ()}
    return draft.table.reach == "cluster" or bool(_OWN_NAMESPACE.fullmatch(text)) or only == {text}


def _check_object(draft: Draft, child: ChildDraft, findings: Findings) -> None:
    """An `object` is read like a document of a template, but its fields are known now."""
    if child.table.object is None:
        return
    node = child.table.object.node
    if (mistake := child.table.object.compiled.kind_mistake) is not None:
        findings.take([mistake], "wrong-value")
    if any(kind.kind == "List" for kind in child.kinds):
        findings.mistake(
            "wrong-value", "`kind: List` is refused: make each of its items a child, or use a template with `---` between them", node.site
        )
    metadata = _member(node, "metadata")
    for path, site in _own_fields(node, metadata):
        findings.mistake("wrong-value", f"`{path}` is ruleop's or the API server's to write: remove it", site)
    if metadata is None or not isinstance(metadata.value, dict):
        if metadata is None and not _has_computed_keys(node):
            findings.mistake("missing-key", "the object needs metadata.name", node.site)
        return
    name = _member(metadata, "name")
    if name is None and not _has_computed_keys(metadata):
        findings.mistake("missing-key", "the object needs metadata.name", metadata.site)
    elif name is not None and isinstance(name.value, str) and not _may_be_name(name.value, child.kinds):
        findings.mistake("wrong-value", f'"{name.value}" is not valid: a name has {SUBDOMAIN_IN_WORDS}', name.site)
    namespace = _member(metadata, "namespace")
    if namespace is not None and not _stays_at_home(draft, namespace):
        message = f'the child "{child.id}" may be in another namespace than its CR: {_REACH}'
        findings.mistake("reach", message, namespace.site)


def _may_be_name(text: str, kinds: Iterable[Kind]) -> bool:
    """Whether an object may have this name, as far as that is known before it is rendered."""
    return has_templates(text) or all(is_object_name(kind.group, text) for kind in kinds)


def _has_computed_keys(node: YamlNode) -> bool:
    return isinstance(node.value, dict) and any(has_templates(key) for key in node.value)


def _own_fields(node: YamlNode, metadata: YamlNode | None) -> Iterator[tuple[str, Site]]:
    if "status" in node.key_sites:
        yield "status", node.key_sites["status"]
    if metadata is None:
        return
    for name, site in metadata.key_sites.items():
        if name in REFUSED_METADATA:
            yield f"metadata.{name}", site
    for name in ("labels", "annotations"):
        below = _member(metadata, name)
        for key, site in below.key_sites.items() if below is not None else ():
            if key.startswith(RESERVED_PREFIX):
                yield f"metadata.{name}['{key}']", site


def _member(node: YamlNode, name: str) -> YamlNode | None:
    return node.value.get(name) if isinstance(node.value, dict) else None
