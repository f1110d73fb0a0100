"""crds/: the definitions of the watched kinds, and whether they have room for what a rule writes into the status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kinds import GroupKind, Kind
from ruleop.rules.checks.watches import is_builtin
from ruleop.rules.findings import Findings, meant
from ruleop.schema.crd_checks import check_crd
from ruleop.schema.crds import CrdVersion, CustomResourceDefinition, parse_crd
from ruleop.schema.schema_findings import FieldPath, SchemaError
from ruleop.schema.structural import has_room
from ruleop.schema.table import builtin_kinds, builtin_release
from ruleop.templating import YamlNode, read_resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.rules.language.parsed import Draft


def read_crds(files: Mapping[str, str], findings: Findings) -> tuple[CustomResourceDefinition, ...]:
    """The definitions in these files. What the API server would refuse in one is only a warning: the rules do not depend on it."""
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
        findings.warning("crd", "this document of crds/ is no CustomResourceDefinition and is not looked at", node.site)
        return None
    try:
        crd = parse_crd(document)
    except SchemaError as error:
        findings.mistake("crd", str(error.finding), _site(node, error.finding.path))
        return None
    for finding in check_crd(document):
        findings.warning("crd", str(finding), _site(node, finding.path))
    return crd


def _site(node: YamlNode, path: FieldPath) -> Site:
    """Where the value at a path stands, or the nearest one around it that is there."""
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


def check_definition(draft: Draft, crds: Iterable[CustomResourceDefinition], findings: Findings) -> None:
    """The watched kind against its CRD."""
    table = draft.table
    if is_builtin(draft) or table.kind is None or table.version is None:
        return
    known = {f"{crd.kind}.{crd.group}": crd for crd in crds}
    title = str(draft.kind.versionless)
    crd = known.get(title)
    if crd is None:
        findings.warning("crd", f"crds/ has no CustomResourceDefinition of {title}{meant(title, known)}", table.kind.site)
        return
    version = crd.version(draft.kind.version)
    served = [version.name for version in crd.versions if version.served]
    if version is None or not version.served:
        what = f"has no version {draft.kind.version}" if version is None else f"does not serve its version {draft.kind.version}"
        guess = meant(draft.kind.version, served) or (f": it serves {', '.join(served)}" if served else "")
        findings.mistake("crd", f"{title} {what}{guess}", table.version.site)
    elif table.manage_status:
        for message, site in _without_room(draft, version, table.kind.site):
            findings.warning("status-room", message, site)


def check_kinds(draft: Draft, crds: Iterable[CustomResourceDefinition], findings: Findings) -> None:
    """Kinds of children and observed resources in groups that are Kubernetes' own. Of other groups nothing is known without a cluster."""
    defined = {GroupKind(crd.group, crd.kind) for crd in crds}
    named = [(kind, child.body.node.site) for child in draft.everyone if child.body is not None for kind in sorted(child.kinds)]
    for entry in draft.observed.values():
        table = entry.value
        if table is not None and table.version is not None and table.kind is not None:
            named.append((Kind(table.group.text, table.version.text, table.kind.text), table.kind.site))
    for kind, site in named:
        peers = [known for known in builtin_kinds() if known.group == kind.group]
        if not peers or kind in peers or kind.versionless in defined or kind.kind == "List":
            continue
        versions = [known.version for known in peers if known.kind == kind.kind]
        guess = f"; there it is {versions[0]}" if versions else meant(kind.kind, (known.kind for known in peers))
        findings.warning("unknown-kind", f"Kubernetes {builtin_release()} has no {kind}{guess}", site)


def _without_room(draft: Draft, version: CrdVersion, site: Site) -> Iterator[tuple[str, Site]]:
    kind = draft.kind.kind
    if not version.status_subresource:
        message = (
            f"the CRD of {kind} has no status subresource: the status is written through the resource itself, without observedGeneration"
        )
        yield message, site
    elif not has_room(version.schema, ("status", "observedGeneration")):
        yield _dropped(kind, "status.observedGeneration"), site
    if not has_room(version.schema, ("status", "conditions")):
        yield _dropped(kind, "status.conditions"), site
    else:
        for name in ("type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"):
            if not has_room(version.schema, ("status", "conditions", name)):
                yield _dropped(kind, f"status.conditions[].{name}"), site
    status = draft.table.status
    if status is not None and isinstance(status.node.value, dict):
        for path, field_site in _fields_without_room(status.node, ("status",), version):
            yield _dropped(kind, ".".join(path)), field_site


def _fields_without_room(node: YamlNode, path: tuple[str, ...], version: CrdVersion) -> Iterator[tuple[tuple[str, ...], Site]]:
    """The outermost fields of a projected status that the server would drop. A key with a template in it may be any."""
    if not isinstance(node.value, dict):
        return
    for name, member in node.value.items():
        if "{{" in name or "{%" in name:
            continue
        if has_room(version.schema, (*path, name)):
            yield from _fields_without_room(member, (*path, name), version)
        else:
            yield (*path, name), node.key_sites[name]


def _dropped(kind: str, field: str) -> str:
    return f"the CRD of {kind} has no {field}, so the API server drops it: add it to the schema"
