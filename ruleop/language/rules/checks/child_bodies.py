"""Checks children without rendering them: their kinds, reserved fields, and namespaces, and the lists that they own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.builtin.table import builtin_resource, builtin_shape, object_meta
from ruleop.kubernetes.crd import definition_of
from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.kubernetes.merge import Path, PathSelector
from ruleop.kubernetes.names import RESERVED_PREFIX, is_object_name, name_in_words
from ruleop.language.rules.keys.model import REFUSED_METADATA
from ruleop.language.secrets.secret_values import DATA_FIELDS, SECRET
from ruleop.language.templates.bodies.body import BodyEntry, BodyMembers, Scalar, as_written, member
from ruleop.language.templates.compile import has_templates
from ruleop.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.errors import Site
    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.merge import Segment
    from ruleop.kubernetes.schema import Shape
    from ruleop.language.rules.findings import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.keys.value_types import PlacedPath, Templated
    from ruleop.language.rules.keys.watches_yaml import ObserveTable, PatchTable
    from ruleop.language.templates import StringTemplate, YamlNode
    from ruleop.language.templates.bodies.body import Body, Node
    from ruleop.language.templates.compile import Library


# -- owned lists -------------------------------------------------------------------------------------------------------
#
# Checks `apply.own`: each path must be a list that is merged by keys or as a set.
#
# A path may be set for one child or, in a watch or a file, for all of them. A shared path must match one of the
# children, and has no effect in the others. For kinds whose schema only the cluster knows, any path is accepted.
#
# The field paths of `apply` are followed through the shape of a kind, to find steps that lead nowhere.


def shape_of(kind: Kind, crds: Iterable[CustomResourceDefinition]) -> Shape | None:
    """The shape of a built-in kind, or of one that a CRD of the project defines."""
    if (found := builtin_shape(kind)) is not None:
        return found
    crd = definition_of(kind, crds)
    return crd.shape(kind.version) if crd is not None else None


def step(shape: Shape, segment: Segment, kind: Kind) -> tuple[Shape | None, str]:
    """The shape below one segment of a path, None if it is unknown, and why there can be nothing, "" if there can."""
    if shape.type == "any":
        return None, ""
    if isinstance(segment, PathSelector):
        is_list = shape.type == "list"
        return shape.items, "" if is_list else f"[...] follows a list, and this is not a list in {kind.kind}"
    if shape.type == "list":
        key = shape.keys[0] if shape.keys else "name"
        return None, f'"{segment}" follows a list: select one of its items, like [{key}=...]'
    found = shape.fields.get(segment) or shape.values
    if found is None and not shape.preserve_unknown:
        return None, f'{kind.kind} has no such field: "{segment}"{did_you_mean(segment, shape.fields)}'
    return found, ""


def first_mistake(segments: Iterable[Segment], kind: Kind, shape: Shape | None) -> str:
    """The reason that an object of the kind can never have a value at a path; "" if it can, for all that is known."""
    current = shape
    for number, segment in enumerate(segments):
        if current is None:
            return ""
        if number == 0 and segment == "metadata":
            current = object_meta()
            continue
        spec = current.fields.get("spec")
        current, reason = step(current, segment, kind)
        if reason:
            in_spec = number == 0 and spec is not None and segment in spec.fields
            return f"{reason} (did you mean spec.{segment}?)" if in_spec else reason
        if current is not None and isinstance(segment, PathSelector):
            mistakes = [step(current, name, kind)[1] for name, _ in segment.pairs]
            if any(mistakes):
                return next(filter(None, mistakes))
    return ""


def check_owned(drafts: Iterable[Draft], crds: Iterable[CustomResourceDefinition], findings: Findings) -> None:
    crds = tuple(crds)
    reasons_by_path: dict[PlacedPath, list[str]] = {}
    for draft in drafts:
        for child in draft.everyone:
            for owned in child.own:
                reasons_by_path.setdefault(owned, []).append(_reason_for_child(child, owned, crds))
    for owned, reasons in reasons_by_path.items():
        if all(reasons):
            findings.mistake("wrong-value", f'an owned path "{owned.path}": {reasons[0]}', owned.site)


def _reason_for_child(child: ChildDraft, owned: PlacedPath, crds: Iterable[CustomResourceDefinition]) -> str:
    """The reason that the path is invalid for the child; "" if it is valid or its kind is unknown."""
    if child.create_only:
        return "the strategy create-only never updates the child, so it cannot remove items of others"
    reasons = [_reason_for_kind(owned.path, kind, shape_of(kind, crds)) for kind in sorted(child.kinds)]
    return reasons[0] if reasons and all(reasons) else ""


def _reason_for_kind(path: Path, kind: Kind, shape: Shape | None) -> str:
    if path.segments[0] == "metadata":
        return "the lists of metadata, such as finalizers, are shared with the API server and other controllers"
    if isinstance(path.segments[-1], PathSelector):
        return "this path selects an item: remove the selector"
    current = shape
    for segment in path.segments:
        if current is None:
            return ""
        if current.atomic or (current.type == "list" and current.list_type == "atomic"):
            return f"this is inside a list or map that {kind.kind} replaces as a whole: remove the path"
        current, reason = step(current, segment, kind)
        if reason:
            return reason
    if current is None or current.type == "any":
        return ""
    if current.type != "list":
        return f"this is not a list in {kind.kind}"
    return (
        f"{kind.kind} replaces this list as a whole already: remove the path" if current.list_type == "atomic" else ""
    )


# -- bodies ------------------------------------------------------------------------------------------------------------

RBAC_GROUPS: Final = frozenset({"rbac.authorization.k8s.io", "authorization.openshift.io"})
MAX_PATCH_ID = 64  # characters; with the prefix and the CR's label it is below the API server's limit of 128

_OWN_NAME = re.compile(r"\s*\{\{-?\s*(?:cr\.)?metadata\.name\s*-?\}\}\s*")
_OWN_NAMESPACE = re.compile(r"\s*\{\{-?\s*(?:cr\.)?metadata\.namespace\s*-?\}\}\s*")
_NO_NAME = "metadata.name of the object is missing"
_REACH = "set `reach: cluster` in the watch to allow that"


def check_bodies(draft: Draft, crds: Iterable[CustomResourceDefinition], library: Library, findings: Findings) -> None:
    custom = {GroupKind(crd.group, crd.kind): crd.namespaced for crd in crds}
    is_cluster_scoped = _is_namespaced(draft.kind, custom) is False
    for child in draft.everyone:
        if child.body is None:
            continue
        if child.table.adopt == "helm" and is_cluster_scoped:
            message = "`adopt: helm` needs a CR with a namespace, as a Helm release has one: use `adopt: orphans`"
            findings.mistake("out-of-place", message, child.table.key_sites["adopt"])
        site = child.body.node.site
        for kind in sorted(child.kinds):
            if draft.table.reach == "namespace" and not child.table.kinds and _is_namespaced(kind, custom) is False:
                findings.mistake("reach", f"{kind.kind} is a cluster-scoped kind: {_REACH}", site)
        _check_object(draft, child, library, findings)
        if child.table.patch is not None:
            _check_patched_fields(draft, child.table.patch, crds, findings)
        if (patch := child.table.patch) is not None and patch.selector is not None:  # else the body has its namespace
            _check_place(draft, patch, f'the child "{child.id}"', child.site, custom, findings)
        _check_given(child, custom, findings)
        _check_template(draft, child, library, findings)
        _check_namespace(draft, child.table.namespace, f'the child "{child.id}"', findings)
    for entry in draft.observed.values():
        if (table := entry.value) is None:
            continue
        what = f'the observed resource "{entry.name}"'
        if table.owned_by is None:  # those are where their owner is
            _check_place(draft, table, what, entry.site, custom, findings)
        if table.where is not None and not table.many:
            message = f'{what} is one object, and "where" selects objects of a list: use `when` or `waitFor` of a child'
            findings.mistake("conflict", message, table.key_sites["where"])


def _check_place(
    draft: Draft,
    table: ObserveTable | PatchTable,
    what: str,
    site: Site,
    custom: Mapping[GroupKind, bool],
    findings: Findings,
) -> None:
    """Checks where the objects are that an `observe`, or the selector of a `patch`, refers to."""
    _check_namespace(draft, table.namespace, what, findings)
    if table.namespaces is not None and draft.table.reach != "cluster":
        message = f"{what} may be in another namespace than its CR: {_REACH}"
        findings.mistake("reach", message, table.key_sites["namespaces"])
    is_given = table.namespace is not None or table.namespaces is not None
    if not is_given and _is_namespaced(draft.kind, custom) is False and _is_namespaced(table.object_kind, custom):
        message = f"{what} needs a namespace because its CR is cluster-scoped: set `namespace`"
        findings.mistake("missing-key", message, site)


def _is_namespaced(kind: Kind, custom: Mapping[GroupKind, bool]) -> bool | None:
    """Whether the kind is namespaced; None if only the cluster knows."""
    if kind.versionless in custom:
        return custom[kind.versionless]
    builtin = builtin_resource(kind.versionless)
    return builtin.namespaced if builtin is not None else None


def _check_namespace(draft: Draft, namespace: Templated[StringTemplate] | None, what: str, findings: Findings) -> None:
    if namespace is not None and not _is_allowed_namespace(draft, str(namespace.node.value)):
        findings.mistake("reach", f"{what} may be in another namespace than its CR: {_REACH}", namespace.node.site)


def _is_allowed_namespace(draft: Draft, text: str) -> bool:
    """Whether a namespace is allowed: any with `reach: cluster`, else the CR's own, as far as its text shows."""
    only = {word.text for word in draft.table.namespaces or ()}
    return draft.table.reach == "cluster" or bool(_OWN_NAMESPACE.fullmatch(text)) or only == {text}


def _check_object(draft: Draft, child: ChildDraft, library: Library, findings: Findings) -> None:
    """Checks the fields of an `object` or a `patch`, which are known before rendering."""
    if child.tree is None:
        return
    node = child.tree.node
    if (mistake := child.tree.compiled.kind_mistake) is not None:
        findings.take([mistake], "wrong-value")
    if any(kind.kind == "List" for kind in child.kinds):
        message = (
            "`kind: List` is not supported: make each item a child, or use a template with documents separated by `---`"
        )
        findings.mistake("wrong-value", message, node.site)
    bodies = library.possible(node).bodies
    is_selected = child.table.patch is not None and child.table.patch.name is None
    _check_bodies(bodies, findings, are_named=not is_selected, may_omit=False)
    if child.table.patch is not None:
        _check_patch(child, child.table.patch, node, findings)
    for namespace in _namespaces(bodies):
        text = as_written(namespace.pieces) if namespace.pieces else str(namespace.value)
        if not _is_allowed_namespace(draft, text):
            message = f'the child "{child.id}" may be in another namespace than its CR: {_REACH}'
            findings.mistake("reach", message, namespace.site)


def _namespaces(bodies: Iterable[Body]) -> Iterable[Scalar]:
    """The values of metadata.namespace in bodies, each once."""
    found = (member(body.document, "metadata", "namespace") for body in bodies)
    return {each.site: each for each in found if isinstance(each, Scalar)}.values()


def _check_given(child: ChildDraft, custom: Mapping[GroupKind, bool], findings: Findings) -> None:
    """Checks what the objects that a CR gives may be: nothing by which its author gains permissions."""
    for kind, site in child.given_kinds:
        if _is_namespaced(kind, custom) is False:
            message = f"{kind.kind} is a cluster-scoped kind: `objects` are in the namespace of the CR"
            findings.mistake("reach", message, site)
        elif kind.group in RBAC_GROUPS and not child.table.allow:
            message = (
                f"who writes a CR could grant permissions by a {kind.kind}: remove it, "
                "or set `allow: [extra-privileges]` in the child"
            )
            findings.mistake("out-of-place", message, site)
    if child.table.objects is not None and child.table.adopt != "never":
        message = "who writes a CR could take over objects of others: `adopt` is not for `objects`"
        findings.mistake("out-of-place", message, child.table.key_sites["adopt"])


def _check_patched_fields(
    draft: Draft, patch: PatchTable, crds: Iterable[CustomResourceDefinition], findings: Findings
) -> None:
    """Finds fields that server-side apply cannot take, or that the authors of the CR own."""
    if patch.fields is None or not isinstance(patch.fields.value, dict):
        return
    name = patch.name.node.value if patch.name is not None else None
    is_own = isinstance(name, str) and _OWN_NAME.fullmatch(name) is not None
    if patch.object_kind.versionless == draft.kind.versionless and is_own:
        for key, site in patch.fields.key_sites.items():
            if key != "metadata":
                message = f"`{key}` of the CR itself belongs to its authors: set a default in its CRD"
                findings.mistake("out-of-place", message, site)
        return
    for where, key, site in _unkeyed_items(patch.fields, shape_of(patch.object_kind, crds), ()):
        message = f"an item of {where} needs `{key}`: server-side apply finds the item by it"
        findings.mistake("missing-key", message, site)


def _unkeyed_items(node: YamlNode, shape: Shape | None, path: tuple[str, ...]) -> Iterator[tuple[str, str, Site]]:
    """The items of lists that lack a key by which the API server merges them, in plain text."""
    if shape is None:
        return
    if isinstance(node.value, list):
        keys = [key for key in shape.keys if key not in shape.key_defaults] if shape.list_type == "map" else []
        for item in node.value:
            if isinstance(item.value, dict) and not any(map(has_templates, item.value)):
                yield from ((".".join(path), key, item.site) for key in keys if key not in item.value)
            yield from _unkeyed_items(item, shape.items, path)
    elif isinstance(node.value, dict):
        for key, member in node.value.items():
            yield from _unkeyed_items(member, shape.fields.get(key) or shape.values, (*path, key))


def _check_patch(child: ChildDraft, patch: PatchTable, node: YamlNode, findings: Findings) -> None:
    if patch.namespaces is not None and patch.object_kind.versionless == SECRET:
        for name in (each for each in DATA_FIELDS if each in node.key_sites):
            message = f"`{name}` of a Secret in another namespace than the CR's cannot be set"
            findings.mistake("out-of-place", message, node.key_sites[name])
    if child.final:
        message = f'"{child.id}" has `patch`, which is for `children`: fields are released when the CR is deleted'
        findings.mistake("out-of-place", message, child.site)
    if len(child.id) > MAX_PATCH_ID:
        message = f"the id of a child with `patch` has at most {MAX_PATCH_ID} characters: it names its field manager"
        findings.mistake("wrong-value", message, child.site)
    spec = node.member("spec")
    if spec is not None and "finalizers" in spec.key_sites:
        message = f"`spec.finalizers` is not allowed: {REFUSED_METADATA['finalizers']}"
        findings.mistake("wrong-value", message, spec.key_sites["finalizers"])


def _check_template(draft: Draft, child: ChildDraft, library: Library, findings: Findings) -> None:
    """Checks what a template file renders with any values: the fields of its bodies that are literal text."""
    if child.table.template is None:
        return
    bodies = library.possible(child.table.template.compiled.name).bodies
    others = [body for body in bodies if not isinstance(body.document, BodyMembers) and not _is_printed(body.document)]
    if others and _variants(others) == _variants(bodies):
        message = "a template must render objects (mappings with apiVersion, kind and metadata), not a list or text"
        findings.mistake("wrong-value", message, others[0].document.site)
    for key in ("apiVersion", "kind"):
        for node in _without(bodies, key):
            findings.mistake("missing-key", f"this document has no {key}, which every object needs", node.site)
    _check_bodies(bodies, findings)
    for namespace in _namespaces(bodies):
        # An expression may be a local name of the template for the CR's namespace; and all CRs may be in this one.
        text = namespace.value
        if isinstance(text, str) and text and not _is_allowed_namespace(draft, text):
            message = f'the child "{child.id}" is in the namespace {text}, whatever that of its CR is: {_REACH}'
            findings.warning("reach", message, namespace.site)


def _variants(bodies: Iterable[Body]) -> frozenset[int]:
    return frozenset().union(*(body.variants for body in bodies))


def _check_bodies(bodies: Sequence[Body], findings: Findings, *, are_named: bool = True, may_omit: bool = True) -> None:
    """Checks the fields that are literal text. `are_named`: whether each object needs a name. `may_omit`: whether a
    single printed value counts as one that may be omitted."""
    reserved = (found for body in bodies for found in _reserved_fields(body.document, may_omit=may_omit))
    for path, site in dict.fromkeys(reserved):
        why = "is set by ruleop or the API server: remove it"
        if path == "metadata.generateName":
            why = f"is not allowed: {REFUSED_METADATA['generateName']}"
        findings.mistake("wrong-value", f"`{path}` {why}", site)
    for body in bodies:
        _check_name(body, findings)
    for node in _without(bodies, "metadata", "name") if are_named else ():
        metadata = member(node, "metadata")
        findings.mistake("missing-key", _NO_NAME, metadata.site if metadata is not None else node.site)


def _without(bodies: Sequence[Body], *path: str) -> Iterator[BodyMembers]:
    """The documents without a field, in all bodies: those of other branches share their keys, and may have it."""
    objects = [body.document for body in bodies if isinstance(body.document, BodyMembers)]
    having = [node for node in objects if _may_have(node, path)]
    sites = {site for node in having for site in _key_sites(node)}
    yield from (node for node in objects if node not in having and sites.isdisjoint(_key_sites(node)))


def _key_sites(node: BodyMembers) -> Iterator[Site]:
    return (each.key.site if isinstance(each, BodyEntry) else each.site for each in node.members)


def _may_have(node: Node, path: Sequence[str]) -> bool:
    """Whether a field is there, or may be among entries that are known only after rendering."""
    if not path or not isinstance(node, BodyMembers):
        return not path or _is_printed(node)
    if node.is_open or (tuple(path) == ("name",) and "generateName" in node.entries):
        return True
    return path[0] in node.entries and _may_have(node.entries[path[0]].value, path[1:])


def _check_name(body: Body, findings: Findings) -> None:
    name, kind = member(body.document, "metadata", "name"), body.kind
    text = name.value if isinstance(name, Scalar) else None
    if name is not None and isinstance(text, str) and not is_object_name(kind.versionless, text):
        message = f'"{text}" is not valid: a name has {name_in_words(kind.versionless)}'
        findings.mistake("wrong-value", message, name.site)


def _is_printed(node: Node | None) -> bool:
    """Whether a value is a single printed one, which may be omitted."""
    return isinstance(node, Scalar) and node.only is not None


def _reserved_fields(document: Node, *, may_omit: bool) -> Iterator[tuple[str, Site]]:
    """The fields that a child cannot set."""
    fields = document.entries if isinstance(document, BodyMembers) else {}
    if "status" in fields and not (may_omit and _is_printed(fields["status"].value)):
        yield "status", fields["status"].key.site
    metadata = member(document, "metadata")
    entries = metadata.entries if isinstance(metadata, BodyMembers) else {}
    for name, entry in entries.items():
        # Without generateName there would be no name either.
        needed = name == "generateName" and "name" not in entries
        if name in REFUSED_METADATA and (needed or not (may_omit and _is_printed(entry.value))):
            yield f"metadata.{name}", entry.key.site
    for name in ("labels", "annotations"):
        values = entries[name].value if name in entries else None
        for key, entry in values.entries.items() if isinstance(values, BodyMembers) else ():
            if key.startswith(RESERVED_PREFIX):
                yield f"metadata.{name}['{key}']", entry.key.site
