"""The CustomResourceDefinition that `schema:` of a watch describes.

Loading makes it without two things that only tools need: types of the API are open there, so that the operator need not
load their schemas, and so is the status, whose fields `ruleop check` infers from the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.crd import API_VERSION, CustomResourceDefinition, parse_crd, schema_at
from ruleop.kubernetes.schema import subschemas
from ruleop.language.rules.findings import Findings
from ruleop.language.rules.keys.schema_keys import FieldReader, OtherVersionTable, with_empty_default
from ruleop.language.status_limits import WRITTEN
from ruleop.nearest import did_you_mean_quoted
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.errors import Site
    from ruleop.kubernetes.schema import FieldPath, Schema
    from ruleop.language.rules.keys.parsed import Draft
    from ruleop.language.rules.keys.schema_keys import CelRuleTable, ColumnTable, SchemaTable
    from ruleop.language.rules.keys.simple_schema import Resolve
    from ruleop.language.rules.keys.value_types import Word
    from ruleop.language.templates import YamlNode


# -- the document ------------------------------------------------------------------------------------------------------

_PROTECTED: Final = (".k8s.io", ".kubernetes.io")
READY_COLUMN: Final = {
    "name": "Ready",
    "type": "string",
    "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
}
AGE_COLUMN: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


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


def _document(group: str, names: Mapping[str, Any], versions: Iterable[Version], *, scope: str) -> dict[str, Any]:
    """`names`: those of its kind, as `spec.names` has them."""
    metadata: dict[str, Any] = {"name": f"{names['plural']}.{group}"}
    if f".{group}".endswith(_PROTECTED):
        metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, not an API of the Kubernetes project"}
    return {
        "apiVersion": API_VERSION,
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": group,
            "scope": scope,
            "names": names,
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


# -- from the keys -----------------------------------------------------------------------------------------------------

_OPEN: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
_UNCORRELATED: Final = "the API server cannot compare an item of a list with its old value: use `map[string]` instead"
_FIELD_PATH: Final = re.compile(r"\.(?:spec|status)(?:\.[A-Za-z_][A-Za-z0-9_-]*)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Definition:
    """A CRD with the places of its parts in the rules."""

    document: Mapping[str, Any]
    crd: CustomResourceDefinition
    sites: Mapping[FieldPath, Site]
    site: Site  # of `schema`

    def place(self, path: FieldPath) -> Site:
        """The place of the innermost part on a path of the document."""
        return place(self.sites, path, self.site)


def place(sites: Mapping[FieldPath, Site], path: FieldPath, default: Site) -> Site:
    return next((sites[path[:end]] for end in range(len(path), 0, -1) if path[:end] in sites), default)


def read_definition(
    draft: Draft, findings: Findings, *, api_type: Resolve | None = None, inferred: Mapping[str, Schema] | None = None
) -> Definition | None:
    """The definition by `schema` of a watch; None without one, or of a kind that can have none. `inferred`: the fields
    of the status that the rules write; None if they are not known, and all are allowed."""
    table = draft.table.schema
    if table is None or table.spec is None or not draft.kind.group:
        return None
    return _Builder(draft, table, findings, api_type, inferred).built()


@dataclass(frozen=True, slots=True)
class _Part:
    """The parts of the definition of one version."""

    name: str
    table: SchemaTable | OtherVersionTable
    status: YamlNode | None
    stored: bool


class _Builder:
    def __init__(
        self,
        draft: Draft,
        table: SchemaTable,
        findings: Findings,
        api_type: Resolve | None,
        inferred: Mapping[str, Schema] | None,
    ) -> None:
        self.draft, self.table, self.findings, self.inferred = draft, table, findings, inferred
        types = {entry.name: entry.value for entry in table.types if entry.value is not None}
        self.reader = FieldReader(types, Findings(findings.files), api_type)

    def built(self) -> Definition:
        table, kind = self.table, self.draft.kind.kind
        self.reader.read_types()
        versions = [self._version(part, index) for index, part in enumerate(self._parts())]
        self.findings.add_all_of(self.reader.findings)
        self._check_fields(versions)
        names: dict[str, Any] = {
            "kind": kind,
            "listKind": f"{kind}List",
            "plural": table.plural.text if table.plural else plural(kind),
            "singular": table.singular.text if table.singular else kind.lower(),
        }
        if table.short_names:
            names["shortNames"] = [word.text for word in table.short_names]
        document = _document(self.draft.kind.group, names, versions, scope=table.scope)
        sites: dict[FieldPath, Site] = {
            ("spec", "names", key): word.site
            for key, word in (("plural", table.plural), ("singular", table.singular))
            if word is not None
        }
        sites |= {("spec", "names", "shortNames", index): word.site for index, word in enumerate(table.short_names)}
        sites[("spec", "group")] = self.draft.table.group.site
        return Definition(document, parse_crd(document), {**self.reader.sites, **sites}, table.site)

    def _check_fields(self, versions: Sequence[Version]) -> None:
        (stored,) = [each for each in versions if each.stored]
        for version in versions:
            for below in _uncorrelated(version.schema, ()):
                self.findings.mistake("wrong-value", _UNCORRELATED, self._site(versions, version, below))
        for version in versions if not self.reader.findings.failed else ():
            lost = dict(_lost_fields(version.schema, stored.schema, ()))
            for below, name in lost.items():
                message = f"{name} is not the same in {stored.name}, which is stored: objects would lose it"
                self.findings.mistake("conflict", message, self._site(versions, version, below))
            for below, name in _lost_fields(stored.schema, version.schema, ()) if version.served else ():
                if below not in lost:
                    message = f"{name} is missing in {version.name}: objects would lose it at a write in that version"
                    self.findings.mistake("conflict", message, self._site(versions, stored, below))

    def _site(self, versions: Sequence[Version], version: Version, below: FieldPath) -> Site:
        path = ("spec", "versions", versions.index(version), "schema", "openAPIV3Schema", *below)
        return place(self.reader.sites, path, self.table.site)

    def _parts(self) -> list[_Part]:
        """The versions, that of the watch first."""
        others = [entry for entry in self.table.versions if entry.value is not None and entry.value.spec is not None]
        for entry in others:
            if entry.name == self.draft.kind.version:
                message = f"{entry.name} is the version of the watch: its fields are those of `schema` itself"
                self.findings.mistake("conflict", message, entry.site)
        others = [entry for entry in others if entry.name != self.draft.kind.version]
        stored = [entry for entry in others if entry.value is not None and entry.value.stored]
        for entry in stored[1:]:
            message = f"{stored[0].name} is stored already: one version is"
            self.findings.mistake("conflict", message, entry.site)
        found = [_Part(self.draft.kind.version, self.table, self.table.status, stored=not stored)]
        for entry in others:
            assert entry.value is not None
            status = entry.value.status or self.table.status
            found.append(_Part(entry.name, entry.value, status, stored=entry in stored[:1]))
        return found

    def _version(self, part: _Part, index: int) -> Version:
        path: FieldPath = ("spec", "versions", index)
        table = part.table
        schema = self._schema(part, (*path, "schema", "openAPIV3Schema"))
        columns = [
            self._column(column, schema, (*path, "additionalPrinterColumns", number))
            for number, column in enumerate(table.columns)
        ]
        names = {column["name"] for column in columns}
        standard = [READY_COLUMN, AGE_COLUMN] if self._writes_status else [AGE_COLUMN]
        return Version(
            part.name,
            schema,
            (*columns, *(column for column in standard if column["name"] not in names)),
            self._scale(schema),
            served=not isinstance(table, OtherVersionTable) or table.served,
            stored=part.stored,
            deprecated=isinstance(table, OtherVersionTable) and table.deprecated,
        )

    @property
    def _writes_status(self) -> bool:
        return self.draft.table.manage_status

    # -- fields --------------------------------------------------------------------------------------------------------

    def _schema(self, part: _Part, path: FieldPath) -> dict[str, Any]:
        properties: dict[str, Schema] = {}
        if (names := self.table.metadata) is not None:
            properties["metadata"] = self._metadata(names, (*path, "properties", "metadata"))
        spec = self._spec(part.table, (*path, "properties", "spec"))
        properties["spec"] = spec
        if (status := self._status(part.status, (*path, "properties", "status"))) is not None:
            properties["status"] = status
        required = spec.get("required") or ("x-kubernetes-validations" in spec and "default" not in spec)
        return {"type": "object", **({"required": ["spec"]} if required else {}), "properties": properties}

    def _metadata(self, node: YamlNode, path: FieldPath) -> Schema:
        schema = self.reader.mapping(node, path)
        for name, each in schema["properties"].items():
            if name != "name" or each.get("type") != "string":
                message = f'metadata can restrict "name", which is text, and not "{name}"'
                if name == "name":
                    message = "metadata.name is text: write `name: string | maxLength=40`"
                self.findings.mistake("wrong-value", message, self.reader.sites[(*path, "properties", name)])
        return {"type": "object", "properties": schema["properties"]}

    def _spec(self, table: SchemaTable | OtherVersionTable, path: FieldPath) -> dict[str, Any]:
        self.reader.sites[path] = table.key_sites["spec"]
        assert table.spec is not None
        schema = self.reader.mapping(table.spec, path)
        if table.validation:
            schema["x-kubernetes-validations"] = [
                self._rule(rule, (*path, "x-kubernetes-validations", index))
                for index, rule in enumerate(table.validation)
            ]
        return with_empty_default(schema)

    def _rule(self, rule: CelRuleTable, path: FieldPath) -> dict[str, str]:
        self.reader.sites[path] = rule.site
        found = {"rule": _text(rule.rule)}
        return found if rule.message is None else {**found, "message": rule.message.text}

    def _status(self, by_hand: YamlNode | None, path: FieldPath) -> dict[str, Any] | None:
        if by_hand is None and not self._writes_status:
            return None
        fields: dict[str, Schema] = {}
        if by_hand is not None:
            self.reader.sites[path] = by_hand.site
            fields |= self.reader.mapping(by_hand, path)["properties"]
        for name in WRITTEN.keys() & fields.keys() if self._writes_status else ():
            message = f"ruleop declares status.{name} itself: remove it"
            self.findings.mistake("conflict", message, self.reader.sites[(*path, "properties", name)])
        inferred = {name: each for name, each in (self.inferred or {}).items() if name not in fields}
        own = WRITTEN if self._writes_status else {}
        schema = {"type": "object", "properties": {**fields, **inferred, **own}}
        return {**schema, **_OPEN} if self.inferred is None and self._writes_status else schema

    # -- columns and scale ---------------------------------------------------------------------------------------------

    def _column(self, column: ColumnTable, schema: Schema, path: FieldPath) -> dict[str, Any]:
        self.reader.sites[path] = column.site
        shown = _text(column.json_path)
        declared = self._declared(column.json_path, schema)
        found: dict[str, Any] = {
            "name": _text(column.name),
            "type": column.type or _column_type(shown, declared),
            "jsonPath": shown,
        }
        if column.description is not None:
            found["description"] = column.description.text
        return {**found, "priority": 1} if column.wide else found

    def _scale(self, schema: Schema) -> dict[str, str] | None:
        scale = self.table.scale
        if scale is None:
            return None
        found: dict[str, str] = {}
        for key, word, root, of_type in (
            ("specReplicasPath", scale.replicas, ".spec.", "integer"),
            ("statusReplicasPath", scale.status, ".status.", "integer"),
            ("labelSelectorPath", scale.selector, ".", "string"),
        ):
            if word is None:
                continue
            found[key] = word.text
            if not word.text.startswith(root):
                message = f'the path must start with "{root}", not "{word.text}"'
                self.findings.mistake("wrong-value", message, word.site)
            elif (declared := self._declared(word, schema)) is not None and declared.get("type", of_type) != of_type:
                message = f"{word.text[1:]} must be of type {of_type}, and is of type {declared['type']}"
                self.findings.mistake("wrong-value", message, word.site)
        return found

    def _declared(self, word: Word | None, schema: Schema) -> Schema | None:
        """The schema of the field at a path. Reports one that is not declared."""
        if word is None or _FIELD_PATH.fullmatch(word.text) is None:
            return None
        names = word.text[1:].split(".")
        current: Schema | None = schema
        for index, name in enumerate(names):
            below = schema_at(schema, tuple(names[: index + 1]))
            if below is None and current is not None:
                if not current.get("x-kubernetes-preserve-unknown-fields"):
                    known = current.get("properties") or {}
                    what = ".".join(names[: index + 1])
                    message = f'the schema has no field "{what}"{did_you_mean_quoted(name, known)}'
                    self.findings.mistake("unknown-field", message, word.site)
                return None
            current = below
        return current


def _column_type(path: str, declared: Schema | None) -> str:
    of_type = (declared or {}).get("type")
    if path == AGE_COLUMN["jsonPath"] or (of_type == "string" and declared and declared.get("format") == "date-time"):
        return "date"
    return str(of_type) if of_type in ("integer", "number", "boolean") else "string"


def _uncorrelated(schema: Schema, path: FieldPath, *, in_list: bool = False) -> Iterator[FieldPath]:
    """The rules about changes that are inside of a list whose items have no identity."""
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or () if in_list else ()):
        if isinstance(rule, Mapping) and "oldSelf" in str(rule.get("rule")):
            yield (*path, "x-kubernetes-validations", index)
    for part, below in subschemas(schema):
        if part[0] in ("properties", "items", "additionalProperties") and isinstance(below, Mapping):
            is_list = part[0] == "items" and schema.get("x-kubernetes-list-type") != "map"
            yield from _uncorrelated(below, (*path, *part), in_list=in_list or is_list)


def _lost_fields(schema: Schema, stored: Schema, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    """The outermost fields that another version does not have, or with another type, by their paths and names."""
    if stored.get("x-kubernetes-preserve-unknown-fields"):
        return
    for part, below in subschemas(schema):
        if part[0] == "properties":
            other = (stored.get("properties") or {}).get(part[1], stored.get("additionalProperties"))
        elif part[0] in ("items", "additionalProperties"):
            other = stored.get(part[0])
        else:
            continue
        if not isinstance(other, Mapping) or other.get("type") != below.get("type"):
            yield (*path, *part), f'the field "{part[-1]}"' if part[0] == "properties" else "a value"
        else:
            yield from _lost_fields(below, other, (*path, *part))


def _text(word: Word | None) -> str:
    return word.text if word is not None else "?"


def read_definitions(drafts: Iterable[Draft], findings: Findings) -> dict[tuple[str, str], Definition]:
    """The definitions of all watches, by group and kind."""
    found: dict[tuple[str, str], Definition] = {}
    for draft in drafts:
        if (definition := read_definition(draft, findings)) is None:
            continue
        key = (draft.kind.group, draft.kind.kind)
        if key in found:
            message = f"another watch of {draft.kind.versionless} has a schema ({found[key].site}): keep one"
            findings.mistake("conflict", message, definition.site)
        found.setdefault(key, definition)
    return found
