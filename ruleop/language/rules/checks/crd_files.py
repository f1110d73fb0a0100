"""Checks crds/: the CRDs of watched kinds, and whether their schemas declare the status fields that a rule writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.builtin.table import builtin_kinds, builtin_release
from ruleop.kubernetes.crd import CrdVersion, CustomResourceDefinition, declares, parse_crd
from ruleop.kubernetes.crd_checks import check_crd, misspelt_fields, without_consequences
from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.kubernetes.schema import FieldPath, SchemaError
from ruleop.language.status_limits import OWN_CONDITIONS, limits_of, unwritten
from ruleop.language.templates import TextTemplate, YamlNode
from ruleop.language.templates.bodies.body import Scalar
from ruleop.language.templates.bodies.body import member as member_of
from ruleop.language.templates.resource_reader import read_resources
from ruleop.nearest import did_you_mean_quoted, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.language.rules.findings import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.templates.compile import Library


def read_crds(files: Mapping[str, str], findings: Findings) -> tuple[CustomResourceDefinition, ...]:
    """The CRDs in these files. Problems for which the API server would reject a CRD do not make the project invalid:
    rules do not depend on them."""
    crds: dict[str, CustomResourceDefinition] = {}
    for path in sorted(files):
        documents, mistakes = read_resources(files[path], path)
        findings.take(mistakes, "yaml")
        for node in documents if not mistakes else ():
            crd = _read(node, findings)
            if crd is None:
                continue
            if crd.name in crds:
                findings.mistake("crd", f"{crd.name} is defined twice in crds/", node.site)
            crds[crd.name] = crd
    return tuple(crds.values())


def _read(node: YamlNode, findings: Findings) -> CustomResourceDefinition | None:
    document = node.data()
    if not isinstance(document, dict) or document.get("kind") != "CustomResourceDefinition":
        findings.warning("crd", "ignored: this document in crds/ is not a CustomResourceDefinition", node.site)
        return None
    try:
        crd = parse_crd(document)
    except SchemaError as error:
        found = without_consequences([*misspelt_fields(document), error.finding])
        for finding in found:
            findings.mistake("crd", str(finding), site_at(node, finding.path))
        return None
    for finding in without_consequences(check_crd(document)):
        findings.error("crd", str(finding), site_at(node, finding.path))
    return crd


def site_at(node: YamlNode, path: FieldPath) -> Site:
    """The site of the value at a path, or of the nearest existing container."""
    site = node.site
    for part in path:
        if isinstance(part, int) and isinstance(node.value, list) and part < len(node.value):
            node = node.value[part]
            site = node.site
        elif isinstance(part, str) and isinstance(node.value, dict) and part in node.value:
            site = node.key_sites[part]
            node = node.value[part]
        else:
            break
    return site


def check_crds(
    draft: Draft,
    crds: Iterable[CustomResourceDefinition],
    used: Collection[GroupKind],
    library: Library,
    findings: Findings,
) -> None:
    """Checks the kinds of a watch against their CRDs. `used`: the kinds of all watches and children."""
    _check_definition(draft, crds, used, findings)
    _check_kinds(draft, crds, library, findings)


def _check_definition(
    draft: Draft, crds: Iterable[CustomResourceDefinition], used: Collection[GroupKind], findings: Findings
) -> None:
    table = draft.table
    if draft.is_builtin or table.kind is None or table.version is None:
        return
    known = {f"{crd.kind}.{crd.group}": crd for crd in crds}
    title = str(draft.kind.versionless)
    crd = known.get(title)
    if crd is None:
        message = f"crds/ has no CustomResourceDefinition of {title}"
        meant = _meant(draft.kind, [each for each in crds if GroupKind(each.group, each.kind) not in used])
        if meant is not None:
            findings.error("crd", f'{message} (did you mean "{meant}"?)', table.kind.site)
        elif not findings.failed_in("crds/"):
            findings.warning("crd", message, table.kind.site)
        return
    version = crd.version(draft.kind.version)
    served = [version.name for version in crd.versions if version.served]
    if version is None or not version.served:
        what = (
            f"has no version {draft.kind.version}"
            if version is None
            else f"does not serve its version {draft.kind.version}"
        )
        guess = did_you_mean_quoted(draft.kind.version, served) or (
            f": it serves {', '.join(served)}" if served else ""
        )
        findings.mistake("crd", f"{title} {what}{guess}", table.version.site)
    elif table.manage_status and version.schema:
        _check_status(draft, version, table.kind.site, findings)


def _meant(kind: Kind, crds: Iterable[CustomResourceDefinition]) -> GroupKind | None:
    """The kind of a CRD with the same name in another group, or with nearly the name in the same one."""
    same = [crd for crd in crds if crd.kind == kind.kind]
    near = nearest(kind.kind, [crd.kind for crd in crds if crd.group == kind.group])
    if same:
        return GroupKind(same[0].group, kind.kind)
    return GroupKind(kind.group, near) if near is not None else None


def _check_kinds(draft: Draft, crds: Iterable[CustomResourceDefinition], library: Library, findings: Findings) -> None:
    """Finds unknown kinds in Kubernetes' own groups, in children and observed resources. Groups of CRDs, which have a
    dot in their names, are known only to the cluster."""
    defined = {GroupKind(crd.group, crd.kind) for crd in crds}
    for child in draft.everyone:
        for kind in sorted(child.kinds) if child.body is not None else ():
            if not _is_older_version(kind, child) and (unknown := _unknown_kind(kind, defined)) is not None:
                key, message, guess = unknown
                site = _site_of_kind(kind, key, child, library)
                findings.error("unknown-kind", f"{message}{_combined(kind, child) or guess}", site)
    for entry in draft.observed.values():
        table = entry.value
        if table is not None and table.version is not None and table.kind is not None:
            kind = Kind(table.group.text, table.version.text, table.kind.text)
            if (unknown := _unknown_kind(kind, defined)) is not None:
                findings.error("unknown-kind", "".join(unknown[1:]), table.kind.site)


def _unknown_kind(kind: Kind, defined: Collection[GroupKind]) -> tuple[str, str, str] | None:
    """The key that is wrong, the message, and what may be meant; None for a kind that Kubernetes or a CRD has."""
    builtin = [known for known in builtin_kinds() if known.group == kind.group]
    if kind in builtin or kind.versionless in defined or kind.kind == "List":
        return None
    if not builtin and "." not in kind.group:
        guess = did_you_mean_quoted(kind.group, {known.group for known in builtin_kinds()})
        return "apiVersion", f'Kubernetes {builtin_release()} has no API group "{kind.group}"', guess
    if not builtin:
        return None
    message = f"Kubernetes {builtin_release()} has no {kind}"
    if versions := [known.version for known in builtin if known.kind == kind.kind]:
        return "apiVersion", message, f"; there it is {versions[0]}"
    return "kind", message, did_you_mean_quoted(kind.kind, (known.kind for known in builtin))


def _site_of_kind(kind: Kind, key: str, child: ChildDraft, library: Library) -> Site:
    """The place of the apiVersion or kind in a template, or in an object."""
    assert child.body is not None
    compiled, node = child.body.compiled, child.body.node
    text = kind.kind if key == "kind" else kind.api_version
    bodies = library.possible(compiled.name if isinstance(compiled, TextTemplate) else node).bodies
    found = (member_of(body.document, key) for body in bodies)
    return next((each.site for each in found if isinstance(each, Scalar) and each.value == text), node.site)


def _combined(kind: Kind, child: ChildDraft) -> str:
    """The reason that a child has a kind which nobody wrote: its apiVersion and kind are chosen separately."""
    others = child.kinds - {kind}
    pairs = any(each.api_version == kind.api_version for each in others) and any(
        each.kind == kind.kind for each in others
    )
    return ": apiVersion and kind by different conditions have all combinations; choose both by one" if pairs else ""


def _is_older_version(kind: Kind, child: ChildDraft) -> bool:
    """Whether the child has a version of the kind for other clusters, which it tells apart by `has_kind`."""
    assert child.body is not None
    others = {each.versionless for each in child.kinds if each != kind and each in builtin_kinds()}
    return kind.versionless in others and "has_kind" in child.body.compiled.names


def _check_status(draft: Draft, version: CrdVersion, site: Site, findings: Findings) -> None:
    """Finds status fields that the schema lacks, does not allow, or requires. It is a warning for a part that ruleop
    can leave out: the CRD may be somebody else's."""
    kind, schema = draft.kind.kind, version.schema
    named = {each.type.text: each.site for each in draft.table.conditions if each.type is not None}
    limits = limits_of(schema, [*OWN_CONDITIONS, *named], generation=version.status_subresource)
    in_conditions = [name for name in limits.dropped if name.startswith("status.conditions[]")]
    for name in limits.dropped:
        if name not in in_conditions:
            findings.error("status-room", _dropped_message(kind, name), site)
    if in_conditions:
        message = f"the CRD of {kind} has no {', '.join(in_conditions)}: ruleop writes conditions without"
        findings.warning("status-room", message, site)
    for message in limits.refusals(kind, without=named):
        findings.warning("status-room", message, site)
    for type_, condition_site in named.items():
        for message in limits.refusals_of(kind, [type_]):
            findings.error("status-room", message, condition_site)
    if not version.status_subresource:
        message = (
            f"the CRD of {kind} has no status subresource: "
            "ruleop writes the status with the resource itself, and no observedGeneration"
        )
        findings.warning("status-room", message, site)
    _check_fields_of_rule(draft, version, limits.required, site, findings)


def _check_fields_of_rule(
    draft: Draft, version: CrdVersion, required: Iterable[str], site: Site, findings: Findings
) -> None:
    """Finds status fields that the rule sets and the schema lacks, or that the schema requires and the rule does not
    set."""
    kind = draft.kind.kind
    for child in draft.children.values():
        if child.run is not None and not declares(version.schema, ("status", "ruleop", "once", child.id)):
            findings.error("status-room", _dropped_message(kind, "status.ruleop.once"), child.run.node.site)
    status = draft.table.status
    fields = status.node.value if status is not None else {}
    if not isinstance(fields, dict):
        return  # a template, whose fields are known when it is rendered
    for path, field_site in _undeclared_fields(status.node, ("status",), version) if status is not None else ():
        findings.error("status-room", _dropped_message(kind, ".".join(path)), field_site)
    if missing := [name for name in required if name not in fields]:
        findings.error("status-room", unwritten(kind, missing), status.node.site if status is not None else site)


def _undeclared_fields(
    node: YamlNode, path: tuple[str, ...], version: CrdVersion
) -> Iterator[tuple[tuple[str, ...], Site]]:
    """The outermost status fields that the API server would drop. Keys with templates are skipped."""
    if not isinstance(node.value, dict):
        return
    for name, member in node.value.items():
        if "{{" in name or "{%" in name:
            continue
        if declares(version.schema, (*path, name)):
            yield from _undeclared_fields(member, (*path, name), version)
        else:
            yield (*path, name), node.key_sites[name]


def _dropped_message(kind: str, field: str) -> str:
    return f"the CRD of {kind} has no {field}, so the API server drops the field: add it to the schema"
