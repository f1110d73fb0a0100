"""The CRDs of `schema:` with all that the operator does not need: the fields of the status, which are inferred from the
rules, and the types of the API.

A status may read that of a child whose kind has a `schema` too, so the fields are inferred in rounds, until no round
finds more.

A field of the status has the type of its value and no more: a bound or an enumeration of the field that the value comes
from says nothing about the status, and the API server would refuse the whole status for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.typing.conformance import Types, own_fields
from ruleop.authoring.checking.typing.inference import Report
from ruleop.authoring.checking.typing.statements import Runner
from ruleop.authoring.checking.typing.types import (
    NULL,
    STRING,
    UNKNOWN,
    KindSchemas,
    Type,
    item_of,
    join,
    list_of,
    mapping_of,
    of_data,
)
from ruleop.authoring.checking.typing.watches import WatchTypes
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.crd_checks import check_crd, without_consequences
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.kubernetes.schema import SchemaError
from ruleop.language.rules import Findings, ProjectErrors
from ruleop.language.rules.checks.crd_files import site_at
from ruleop.language.rules.keys.definitions import Definition, read_definition
from ruleop.language.rules.keys.simple_schema import api_type, named_type, structural
from ruleop.language.status_limits import WRITTEN
from ruleop.language.templates.bodies.body import BodyEntry, BodyMembers, BodySpread, Items
from ruleop.language.templates.resource_reader import read_resources
from ruleop.messages import format_path
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.authoring.checking.typing.conformance import Typed
    from ruleop.authoring.checking.typing.types import SchemaNode
    from ruleop.errors import Site
    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import FieldPath, Schema
    from ruleop.language.rules import Project
    from ruleop.language.rules.loading import Loaded, Watch
    from ruleop.language.templates import YamlNode
    from ruleop.language.templates.bodies.body import Node

_SCALARS: Final[Mapping[frozenset[str], Schema]] = {
    frozenset({"string"}): {"type": "string"},
    frozenset({"integer"}): {"type": "integer"},
    frozenset({"number"}): {"type": "number"},
    frozenset({"integer", "number"}): {"type": "number"},
    frozenset({"boolean"}): {"type": "boolean"},
    frozenset({"integer", "string"}): {"x-kubernetes-int-or-string": True},
    frozenset({"integer", "number", "string"}): {"x-kubernetes-int-or-string": True},  # a quantity
}
_KEPT: Final = (
    "type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StatusField:
    """A field of the status. `schema` is None if its type is not known."""

    site: Site
    schema: Schema | None


def status_fields(bodies: Iterable[Typed]) -> dict[str, StatusField] | None:
    """The fields of a status that these bodies set; None if their names are not known."""
    sites: dict[str, Site] = {}
    types: dict[str, list[Type]] = {}
    for document, printed in bodies:
        if not isinstance(document, BodyMembers) or document.is_open:
            return None
        for name, member in document.entries.items():
            sites.setdefault(name, member.key.site)
            types.setdefault(name, []).append(_type_of(member.value, printed))
    return {name: StatusField(sites[name], schema_of(_union(found))) for name, found in types.items()}


def _type_of(body: Node, types: Types) -> Type:
    if isinstance(body, BodyMembers):
        spread = [own_fields(each.type) for each in types.spreads(body.members)]
        computed = [each.value for each in body.members if isinstance(each, BodyEntry) and each.name is None]
        values = UNKNOWN if None in spread else _union([_type_of(each, types) for each in computed])
        fields = {name: each.defined() for found in spread for name, each in (found or {}).items()}
        fields |= {name: _type_of(each.value, types) for name, each in body.entries.items()}
        return mapping_of(fields, values=values if types.may_have_others(body) else None)
    if isinstance(body, Items):
        found = [UNKNOWN if isinstance(each, BodySpread) else _type_of(each, types) for each in body.members]
        return list_of(_union(found))
    if body.is_literal:
        return of_data(body.value) if body.value is not None else NULL
    return types.slots(body)[0].type.defined() if body.whole else STRING


def _union(types: list[Type]) -> Type:
    """The type of a value that is of one of these types: field by field for mappings, item by item for lists. A value
    that is missing, null or an empty list says nothing."""
    known = [each for each in types if each.kinds - {"null"} and not _is_empty(each)]
    made = [each for each in known if each.node is None and each.values is None]
    if len(made) < len(known) or len(known) < 2:
        return join(known or types)
    if all(each.kinds == {"list"} for each in known):
        return list_of(_union([item_of(each) for each in known]))
    if all(each.fields is not None for each in known):
        fields = [each.fields or {} for each in known]
        names = dict.fromkeys(name for each in fields for name in each)
        return mapping_of({name: _union([each[name] for each in fields if name in each]) for name in names})
    return join(known)


def _is_empty(each: Type) -> bool:
    return each.kinds == {"list"} and each.node is None and each.least == 0 and each.item in (None, UNKNOWN)


def schema_of(found: Type) -> Schema | None:
    """The schema of a type; None if too little is known of it."""
    kinds = found.kinds - {"null"}
    if kinds in _SCALARS:
        is_time = found.node is not None and found.node.schema.get("format") == "date-time"
        return {**_SCALARS[kinds], "format": "date-time"} if is_time else _SCALARS[kinds]
    if kinds == {"list"}:
        items = schema_of(item_of(found))
        return None if items is None else {"type": "array", "items": items}
    if kinds != {"mapping"}:
        return None
    if found.node is not None:
        return _of_node(found.node)
    if found.values is not None:
        inner = schema_of(_union([found.values, *(found.fields or {}).values()]))
        return None if inner is None else {"type": "object", "additionalProperties": inner}
    if not found.fields:
        return None
    properties = {name: schema_of(each) for name, each in found.fields.items()}
    return None if None in properties.values() else {"type": "object", "properties": properties}


def _of_node(node: SchemaNode) -> Schema | None:
    if not node.builtin:
        return _types_only(node.schema)
    return _types_only(named_type(node.name) if node.name else structural(node.schema))


def _types_only(schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {keyword: schema[keyword] for keyword in _KEPT if keyword in schema}
    if schema.get("format") == "date-time":
        found["format"] = "date-time"
    if isinstance(properties := schema.get("properties"), Mapping):
        found["properties"] = {name: _types_only(each) for name, each in properties.items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(keyword), Mapping):
            found[keyword] = _types_only(inner)
        elif inner is not None:
            found[keyword] = inner
    return found


_RUNS: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MAX_DIFFERENCES: Final = 8
"""Differences between a file of crds/ and `schema` that are reported."""


@dataclass(slots=True)
class _Kind:
    """A kind whose watches have a `schema`."""

    watch: Watch  # with the schema
    watches: list[Watch]  # all of the kind
    fields: dict[str, StatusField] | None = field(default_factory=dict)

    @property
    def unknown(self) -> int:
        """The number of status fields without a known type."""
        by_hand = self._by_hand
        return sum(each.schema is None and name not in by_hand for name, each in (self.fields or {}).items())

    @property
    def _by_hand(self) -> frozenset[str]:
        table = self.watch.draft.table.schema
        return frozenset(table.status.key_sites) if table is not None and table.status is not None else frozenset()

    def infer(self, loaded: Loaded, crds: Iterable[CustomResourceDefinition]) -> None:
        runner, kinds = Runner.of(loaded.library, Report(Findings({}))), KindSchemas(crds)
        found: list[Any] = []
        for watch in self.watches:
            if watch.draft.table.manage_status:
                found += WatchTypes(watch, runner, kinds).status_bodies()
        self.fields = status_fields(found)

    def definition(self, findings: Findings) -> Definition:
        inferred: dict[str, Schema] = {
            name: each.schema if each.schema is not None else {"x-kubernetes-preserve-unknown-fields": True}
            for name, each in (self.fields or {}).items()
            if name not in WRITTEN
        }
        if any(child.run is not None for watch in self.watches for child in watch.draft.everyone):
            inferred["ruleop"] = {"type": "object", "properties": {"once": _RUNS}}
        found = read_definition(self.watch.draft, findings, api_type=api_type, inferred=inferred)
        assert found is not None, "a project with mistakes is never loaded"
        return found

    def report(self, findings: Findings) -> None:
        """The fields whose types are not known."""
        if self.fields is None:
            table = next(each.draft.table for each in self.watches if each.draft.table.status is not None)
            if not self._by_hand and table.status is not None:
                message = "the fields of this status cannot be inferred: declare them in `status` of the schema"
                findings.mistake("crd", message, table.status.node.site)
        for name, each in (self.fields or {}).items():
            if each.schema is None and name not in self._by_hand:
                message = (
                    f"the type of status.{name} cannot be inferred: "
                    f"declare it in `status` of the schema, such as `{name}: string`"
                )
                findings.mistake("crd", message, each.site)


def with_definitions(loaded: Loaded) -> Loaded:
    """The project with the whole CRDs of its schemas, for tools that plan or serve it. A field whose type is not known
    is open."""
    return _completed(loaded, whole_definitions(loaded, Findings({})))


def to_serve(written: Iterable[Object], project: Project) -> list[Object]:
    """The definitions that a cluster of the project needs: those of files, and those of schemas in their place."""
    made = {ObjectKey.of(each) for each in project.definitions}
    return [*(each for each in written if ObjectKey.of(each) not in made), *project.definitions]


def checked_definitions(loaded: Loaded, findings: Findings) -> Loaded:
    """The same, with findings about the schemas, and where files of crds/ differ from them."""
    definitions = whole_definitions(loaded, findings)
    for definition in definitions:
        _compare_with_files(definition, loaded, findings)
    return _completed(loaded, definitions)


def _completed(loaded: Loaded, definitions: tuple[Definition, ...]) -> Loaded:
    if not definitions:
        return loaded
    made = {(each.crd.group, each.crd.kind): each.crd for each in definitions}
    crds = tuple(made.get((crd.group, crd.kind), crd) for crd in loaded.project.crds)
    documents = tuple(each.document for each in definitions)
    return replace(loaded, project=replace(loaded.project, crds=crds, definitions=documents))


def whole_definitions(loaded: Loaded, findings: Findings) -> tuple[Definition, ...]:
    """The definitions of all schemas, in the order of the watches."""
    kinds = _kinds(loaded)
    if not kinds:
        return ()
    others = tuple(crd for crd in loaded.project.crds if (crd.group, crd.kind) not in kinds)
    crds: tuple[CustomResourceDefinition, ...] = loaded.project.crds
    before, unknown = -1, 0
    while unknown != before:
        for each in kinds.values():
            each.infer(loaded, crds)
        in_schemas = Findings(loaded.files)
        definitions = tuple(each.definition(in_schemas) for each in kinds.values())
        crds = (*others, *(each.crd for each in definitions))
        before, unknown = unknown, sum(each.unknown for each in kinds.values())
    findings.add_all_of(in_schemas)
    for kind in kinds.values():
        kind.report(findings)
    for definition in definitions:
        _check(definition, findings)
    return definitions


def sound_definitions(loaded: Loaded) -> tuple[Definition, ...]:
    """The same. Raises ProjectErrors if a schema has mistakes."""
    findings = Findings(loaded.files)
    found = whole_definitions(loaded, findings)
    if findings.failed:
        raise ProjectErrors(findings.sorted())
    return found


def _kinds(loaded: Loaded) -> dict[tuple[str, str], _Kind]:
    found = {
        (watch.rule.kind.group, watch.rule.kind.kind): _Kind(watch, [])
        for watch in loaded.watches
        if watch.draft.table.schema is not None
    }
    for watch in loaded.watches:
        kind = watch.rule.kind
        if (kind.group, kind.kind) in found:
            found[kind.group, kind.kind].watches.append(watch)
    return found


def _check(definition: Definition, findings: Findings) -> None:
    """Reports mistakes that the API server would refuse."""
    for finding in without_consequences(check_crd(definition.document)):
        place = _in_words(finding.path)
        message = f"{place}: {finding.message}" if place else finding.message
        findings.mistake("crd", message, definition.place(finding.path))


def _in_words(path: FieldPath) -> str:
    """The path of a part of a CRD, as that of the field that it is about: spec.replicas.maximum."""
    if "openAPIV3Schema" not in path:
        return format_path(path[1:])
    parts = iter(path[path.index("openAPIV3Schema") + 1 :])
    return format_path(tuple(next(parts, part) if part == "properties" else part for part in parts))


# -- files of crds/ ----------------------------------------------------------------------------------------------------


def _compare_with_files(definition: Definition, loaded: Loaded, findings: Findings) -> None:
    for path, text in sorted(loaded.files.items()):
        if not path.startswith("crds/"):
            continue
        documents, _ = read_resources(text, path)
        for node in documents:
            written = node.data()
            if isinstance(written, dict) and _defines(written, definition):
                _compare(node, written, definition, findings)


def _defines(written: Mapping[str, Any], definition: Definition) -> bool:
    try:
        crd = parse_crd(written)
    except SchemaError:
        return False  # reported by loading
    return (crd.group, crd.kind) == (definition.crd.group, definition.crd.kind)


def _compare(node: YamlNode, written: Any, definition: Definition, findings: Findings) -> None:
    differences = list(_differences(_filled(written), _filled(definition.document), ()))
    for path, here, there in differences[:MAX_DIFFERENCES]:
        site, place = site_at(node, ("spec", *path)), definition.place(("spec", *path))
        message = f"{_in_words(('spec', *path))} is {_shown(here)} here, and {_shown(there)} by the schema at {place}"
        findings.mistake("crd", f"{message}: run `ruleop generate crd --out crds --force`", site)


_MISSING: Final = object()


def _differences(here: Any, there: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Any, Any]]:
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for key in dict.fromkeys((*here, *there)):
            yield from _differences(here.get(key, _MISSING), there.get(key, _MISSING), (*path, key))
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there) and path[-1:] != ("required",):
        for index, (a, b) in enumerate(zip(here, there, strict=True)):
            yield from _differences(a, b, (*path, index))
    elif path[-1:] == ("required",) and isinstance(here, list) and isinstance(there, list):
        if sorted(map(str, here)) != sorted(map(str, there)):
            yield path, here, there
    elif here is _MISSING or there is _MISSING or type(here) is not type(there) or here != there:
        yield path, here, there


def _filled(document: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a CRD with the names that the server fills in, and without what it says by default."""
    spec = dict(document["spec"])
    if spec.get("conversion") == {"strategy": "None"}:
        del spec["conversion"]
    names = spec["names"]
    kind = str(names.get("kind", ""))
    return {**spec, "names": {"singular": kind.lower(), "listKind": f"{kind}List", **names}}


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "missing"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else str(value)
