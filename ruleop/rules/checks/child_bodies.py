"""Checks the bodies of children without rendering them: their kinds, reserved fields, and namespaces."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from ruleop.kinds import SERVER_METADATA, GroupKind, Kind
from ruleop.names import RESERVED_PREFIX, is_object_name, name_in_words
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
        "generateName": "set metadata.name: ruleop finds objects by name",
        "ownerReferences": "ruleop writes the owner itself",
        "finalizers": "only the controller that removes a finalizer may set it",
        **dict.fromkeys(sorted(SERVER_METADATA), "the API server sets it; remove it"),
    }
)
"""The fields of metadata that a child cannot set, and what to do instead."""

_OWN_NAMESPACE = re.compile(r"\s*\{\{-?\s*(?:cr\.)?metadata\.namespace\s*-?\}\}\s*")
_REACH = "set `reach: cluster` in the watch to allow that"


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
    is_cluster_scoped = _is_namespaced(draft.kind, custom) is False
    for entry in draft.observed.values():
        if (table := entry.value) is None:
            continue
        what = f'the observed resource "{entry.name}"'
        _check_namespace(draft, table.namespace, what, findings)
        if is_cluster_scoped and table.namespace is None and _is_namespaced(_kind_of(table), custom):
            message = f"{what} needs a namespace because its CR is cluster-scoped: set `namespace`"
            findings.mistake("missing-key", message, entry.site)


def _kind_of(table: ObserveTable) -> Kind:
    return Kind(table.group.text, table.version.text if table.version else "", table.kind.text if table.kind else "")


def _is_namespaced(kind: Kind, custom: Mapping[GroupKind, bool]) -> bool | None:
    """Whether the kind is namespaced; None if only the cluster knows."""
    if kind.versionless in custom:
        return custom[kind.versionless]
    builtin = builtin_resource(kind.versionless)
    return builtin.namespaced if builtin is not None else None


def _check_namespace(draft: Draft, namespace: Templated[StringTemplate] | None, what: str, findings: Findings) -> None:
    if namespace is not None and not _is_allowed_namespace(draft, namespace.node):
        findings.mistake("reach", f"{what} may be in another namespace than its CR: {_REACH}", namespace.node.site)


def _is_allowed_namespace(draft: Draft, node: YamlNode) -> bool:
    """Whether a namespace is allowed: any with `reach: cluster`, else the CR's own, as far as its text shows."""
    text = str(node.value)
    only = {word.text for word in draft.table.namespaces or ()}
    return draft.table.reach == "cluster" or bool(_OWN_NAMESPACE.fullmatch(text)) or only == {text}


def _check_object(draft: Draft, child: ChildDraft, findings: Findings) -> None:
    """Checks the fields of an `object`, which are known before rendering."""
    if child.table.object is None:
        return
    node = child.table.object.node
    if (mistake := child.table.object.compiled.kind_mistake) is not None:
        findings.take([mistake], "wrong-value")
    if any(kind.kind == "List" for kind in child.kinds):
        findings.mistake(
            "wrong-value",
            (
                "`kind: List` is not supported: make each item a child, "
                "or use a template with documents separated by `---`"
            ),
            node.site,
        )
    metadata = _member(node, "metadata")
    for path, site in _reserved_fields(node, metadata):
        findings.mistake("wrong-value", f"`{path}` is set by ruleop or the API server: remove it", site)
    if metadata is None or not isinstance(metadata.value, dict):
        if metadata is None and not _has_computed_keys(node):
            findings.mistake("missing-key", "metadata.name of the object is missing", node.site)
        return
    name = _member(metadata, "name")
    if name is None and not _has_computed_keys(metadata):
        findings.mistake("missing-key", "metadata.name of the object is missing", metadata.site)
    elif name is not None and isinstance(name.value, str) and not has_templates(name.value):
        for kind in sorted(child.kinds):
            if not is_object_name(kind.versionless, name.value):
                words = name_in_words(kind.versionless)
                findings.mistake("wrong-value", f'"{name.value}" is not valid: a name has {words}', name.site)
                break
    namespace = _member(metadata, "namespace")
    if namespace is not None and not _is_allowed_namespace(draft, namespace):
        message = f'the child "{child.id}" may be in another namespace than its CR: {_REACH}'
        findings.mistake("reach", message, namespace.site)


def _has_computed_keys(node: YamlNode) -> bool:
    return isinstance(node.value, dict) and any(has_templates(key) for key in node.value)


def _reserved_fields(node: YamlNode, metadata: YamlNode | None) -> Iterator[tuple[str, Site]]:
    if "status" in node.key_sites:
        yield "status", node.key_sites["status"]
    if metadata is None:
        return
    for name, site in metadata.key_sites.items():
        if name in REFUSED_METADATA:
            yield f"metadata.{name}", site
    for name in ("labels", "annotations"):
        map_node = _member(metadata, name)
        for key, site in map_node.key_sites.items() if map_node is not None else ():
            if key.startswith(RESERVED_PREFIX):
                yield f"metadata.{name}['{key}']", site


def _member(node: YamlNode, name: str) -> YamlNode | None:
    return node.value.get(name) if isinstance(node.value, dict) else None
