"""A new project from a ResourceGraphDefinition: each resource becomes a child or an observed object.

An expression without a counterpart stays as a comment at its place, with `omit` as its value, and is a note for the
person who makes the project. A resource whose name cannot be expressed is left out, and so is what reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.offline import rejections
from ruleop.authoring.scaffold.from_sample import as_written
from ruleop.authoring.scaffold.instance import instance
from ruleop.authoring.scaffold.kro.cel_to_jinja import JinjaNames, Translated, names_in, translated
from ruleop.authoring.scaffold.kro.graphs import (
    DEFINITION,
    Cel,
    KroGraph,
    KroResource,
    only_expression,
    parts,
    read_graph,
)
from ruleop.authoring.scaffold.kro.jinja_terms import AND, OR, InexpressibleError, JinjaTerm, described, text_literal
from ruleop.authoring.scaffold.naming import ScaffoldError, free_id, kebab
from ruleop.authoring.scaffold.new_project import NewChild, NewProject
from ruleop.authoring.scaffold.yaml_layout import Noted, WrittenExpr, WrittenText, replaced, value_at
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.crd import default, schema_at
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.names import MAX_LABEL
from ruleop.kubernetes.schema import SchemaFinding
from ruleop.language.rules import REFUSED_METADATA
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.authoring.offline import Document
    from ruleop.kubernetes.schema import FieldPath

_OMIT: Final = WrittenExpr("omit")
_SAME: Final = ("types", "shortNames", "scope")
"""Keys of the schema that have the same name here."""
_ANY: Final = {"x-kubernetes-preserve-unknown-fields": True}
_MOST_SHOWN: Final = 160
_TAG: Final = re.compile(r"\{(?=[{%#])")
_SPEC_READ: Final = re.compile(r"\bschema\.spec\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?![\w(])")
"""A field of the spec in an expression, without the functions behind it."""
_OWN_NAMESPACE: Final = "${schema.metadata.namespace}"
_READY_NOTE: Final = (
    "Children without readyWhen are ready by ruleop's rules for their kinds; in kro, as soon as they exist."
)


def kro_projects(documents: Sequence[Document], samples: Sequence[Mapping[str, Any]]) -> list[NewProject]:
    """A project for each graph among the objects. `samples`: custom resources of their kinds."""
    graphs = [read_graph(each) for each in documents if each.data["kind"] == DEFINITION]
    others = [each for each in documents if each.data["kind"] != DEFINITION]
    if not graphs:
        kinds = ", ".join(dict.fromkeys(str(each.data["kind"]) for each in others))
        raise ScaffoldError(
            f"there is no {DEFINITION} among the objects ({kinds}): --from-kro reads no other kind of kro"
        )
    found: dict[Kind, NewProject] = {}
    for graph in graphs:
        if graph.kind in found:
            raise ScaffoldError(f"{graph.place(())}: the graph of {graph.kind.kind} appears twice")
        own = [each for each in samples if Kind.of(each) == graph.kind]
        found[graph.kind] = _Converter(graph).project(own)
    for each in samples:
        if Kind.of(each) not in found:
            raise ScaffoldError(f"no graph makes {Kind.of(each)}, the kind of a sample")
    notes = tuple(
        f"{each.data['kind']}/{(each.data.get('metadata') or {}).get('name')} was left out: it is not a {DEFINITION}."
        for each in others
    )
    first, *more = found.values()
    return [replace(first, notes=(*notes, *first.notes)), *more]


@dataclass(slots=True)
class _Found:
    """The counterpart of a resource, for those that read it."""

    id: str
    is_builtin: bool = False
    conditions: list[Translated] = field(default_factory=list)  # the conditions without which it is not desired
    gate: Translated | None = None  # what those that read it wait for


@dataclass(slots=True)
class _Place:
    """The translation of one part of a resource: what it reads, and whether something could not be expressed."""

    names: JinjaNames
    reads: set[str] = field(default_factory=set)
    untranslated: bool = False


class _Converter:
    def __init__(self, graph: KroGraph) -> None:
        self.graph = graph
        self.notes: list[str] = []
        self.found: dict[str, _Found] = {}
        self.children: list[NewChild] = []
        self.observe: dict[str, Any] = {}
        self.reach: list[str] = []
        self.has_order = False  # whether a child reads another
        self.undeclared: set[str] = set()  # fields of the status whose type depends on a kind that is not known

    def project(self, samples: Sequence[Mapping[str, Any]]) -> NewProject:
        for path in self.graph.repaired:
            self._note("the default was put in quotes: kro refuses words without them.", path)
        for resource in self._ordered():
            self._resource(resource)
        order = [each.id for each in self.graph.resources]
        positions = {self.found[each].id: order.index(each) for each in self.found}
        watch: dict[str, Any] = {"schema": self._schema()}
        if self.reach:
            watch["reach"] = "cluster"
            self._note(f"reach: cluster, because of {', '.join(self.reach)}.")
        if self.has_order:
            watch["deletionOrder"] = "reverse"
        status = self._status()
        if status:
            watch["status"] = status
        if self.undeclared:
            watch["schema"]["status"] = dict.fromkeys(sorted(self.undeclared), _ANY)
            self._note(f"Any type, because it is not known: status.{', status.'.join(sorted(self.undeclared))}.")
        self._note(_READY_NOTE)
        kind, findings = self.graph.kind, list[SchemaFinding]()
        written = tuple(as_written(each, kind) for each in samples)
        project = NewProject(
            kind=kind,
            samples=written or (self._sample(findings),),
            spec=self.graph.spec,
            children=tuple(sorted(self.children, key=lambda each: positions[each.id])),
            longest_name=MAX_LABEL,
            observe=self.observe,
            notes=tuple(dict.fromkeys(self.notes)),
            watch=watch,
            incomplete=bool(findings),
        )
        return replace(project, notes=(*project.notes, project.completion(findings))) if findings else project

    def _note(self, text: str, path: FieldPath | None = None) -> None:
        """`path`: the place in the graph."""
        self.notes.append(text if path is None else f"{self.graph.place(path)}: {text}")

    # -- the graph -----------------------------------------------------------------------------------------------------

    def _ordered(self) -> list[KroResource]:
        """The resources, each after those whose ids appear in its expressions."""
        known = {each.id: each for each in self.graph.resources}
        found: dict[str, KroResource] = {}

        def visit(resource: KroResource, within: tuple[str, ...]) -> None:
            if resource.id in within:
                place = self.graph.place(resource.path)
                raise ScaffoldError(f"{place}: {' and '.join(within)} read each other")
            if resource.id not in found:
                names = {*_names_read([resource.template, resource.external, resource.include_when, resource.for_each])}
                for name, other in known.items():
                    if name in names and name != resource.id:
                        visit(other, (*within, resource.id))
                found[resource.id] = resource

        for each in self.graph.resources:
            visit(each, ())
        return list(found.values())

    def _names(self, **variables: JinjaTerm) -> JinjaNames:
        return JinjaNames(self.graph.spec, {each: found.id for each, found in self.found.items()}, variables)

    def _resource(self, resource: KroResource) -> None:
        taken = {each.id for each in self.found.values()}
        kind = Kind.of(resource.template or resource.external or {})
        own = _Found(free_id(resource.id, taken), builtin_resource(kind) is not None)
        if own.id != resource.id:
            self._note(f"the resource {resource.id} is named {own.id} here.", resource.path)
        for key in resource.unknown:
            self._note(f"{key} was left out: it is not known.", (*resource.path, key))
        try:
            self._external(resource, own) if resource.external is not None else self._child(resource, own)
        except InexpressibleError as error:
            self._note(f"the resource {resource.id} was left out: {error}.", resource.path)
            return
        self.found[resource.id] = own

    def _child(self, resource: KroResource, own: _Found) -> None:
        template = resource.template or {}
        place = _Place(self._names())
        settings: dict[str, Any] = self._loops(resource, place)
        body = self._body(template, (*resource.path, "template"), place)
        conditions = self._conditions(resource, place, own)
        in_template = [each for each in conditions if any(not self._is_observed(read) for read in each.ids)]
        plain = [each for each in conditions if each not in in_template]
        if plain:
            settings["when"] = _all(plain)
        condition = _all(in_template) if in_template else ""
        gates = [gate for each in sorted(place.reads) if (gate := self.found[each].gate) is not None]
        if gates:
            settings["waitFor"] = _all(gates)
        self._readiness(resource, own, settings)
        self._reach(resource, template)
        self.has_order |= any(not self._is_observed(each) for each in place.reads)
        apart = "namespace" in _metadata_of(template)
        tested = not (apart or settings.keys() - {"readyWhen"} or condition or place.reads or place.untranslated)
        self.children.append(NewChild(own.id, body, settings=settings, condition=condition, tested=tested))

    def _is_observed(self, name: str) -> bool:
        return self.found[name].id in self.observe

    def _loops(self, resource: KroResource, place: _Place) -> dict[str, Any]:
        """The keys of a child for its loops."""
        loops: dict[str, str] = {}
        variables: dict[str, JinjaTerm] = {}
        taken = {each.id for each in self.found.values()}
        for name, written in resource.for_each:
            source = self._expression(written, (*resource.path, "forEach"), place)
            variable = free_id(name, {*taken, *(each.code for each in variables.values())})
            loops[variable] = source.code
            variables[name] = described(variable, (source.schema or {}).get("items"), certain=True)
        place.names = self._names(**variables)
        if len(loops) == 1:
            ((name, code),) = loops.items()
            return {"forEach": code, "as": name}
        return {"forEach": loops} if loops else {}

    def _conditions(self, resource: KroResource, place: _Place, own: _Found) -> list[Translated]:
        """The conditions of includeWhen, and those of the resources that it reads: without these it is not desired."""
        found: list[Translated] = []
        outer = _Place(self._names())
        for index, written in enumerate(resource.include_when):
            path = (*resource.path, "includeWhen", index)
            try:
                found.append(self._expression(written, path, outer))
            except InexpressibleError as error:
                self._note(f"{resource.id} is never desired, because {error}: {_shown(written)}", path)
                place.untranslated = True
                found.append(Translated("false"))
        place.reads |= outer.reads
        for each in sorted(place.reads):
            found += self.found[each].conditions
        own.conditions = list({each.code: each for each in found}.values())
        return own.conditions

    def _readiness(self, resource: KroResource, own: _Found, settings: dict[str, Any]) -> None:
        if not resource.ready_when:
            return
        this = {"each" if resource.for_each else resource.id: JinjaTerm("this", certain=True)}
        place = _Place(replace(self._names(), variables=this))
        found = []
        for index, written in enumerate(resource.ready_when):
            path = (*resource.path, "readyWhen", index)
            try:
                found.append(self._expression(written, path, place, lenient=True))
            except InexpressibleError as error:
                self._note(f"readyWhen of {resource.id} was left out: {error}: {_shown(written)}", path)
                return
        settings["readyWhen"] = _all(found)
        own.gate = Translated(f"ready.{own.id}")

    def _external(self, resource: KroResource, own: _Found) -> None:
        external = resource.external or {}
        path = (*resource.path, "externalRef")
        place = _Place(self._names())
        if "${" in f"{external['apiVersion']}{external['kind']}":
            raise InexpressibleError("its apiVersion or kind is computed")
        kind = Kind.of(external)
        found: dict[str, Any] = {"group": kind.group} if kind.group else {}
        found |= {"version": kind.version, "kind": kind.kind}
        metadata = _metadata_of(external)
        for key in ("name", "namespace", "selector"):
            if metadata.get(key):
                value = self._value(metadata[key], (*path, "metadata", key), place)
                if _has_comment(value) or not isinstance(value, (str, WrittenExpr, WrittenText, Mapping)):
                    raise InexpressibleError(f"its {key} cannot be expressed")
                found[key] = value
        if ("name" in found) is ("selector" in found):
            raise InexpressibleError("it needs either a name or a selector")
        if any(not self._is_observed(each) for each in place.reads):
            raise InexpressibleError("an observed object cannot be named by another resource")
        if isinstance(found.get("selector"), Mapping) and set(found["selector"]) == {"matchLabels"}:
            found["selector"] = found["selector"]["matchLabels"]
        if "selector" in found and "namespace" not in found:
            self._note(f"{own.id} is looked up in one namespace; in kro, in all.", path)
        conditions = self._conditions(resource, place, own)
        if conditions:
            own.conditions = conditions
            self._note(f"{own.id} is observed even while its includeWhen is false.", path)
        if found.get("namespace") and metadata.get("namespace") != _OWN_NAMESPACE:
            self.reach.append(own.id)
        elif metadata.get("namespace") == _OWN_NAMESPACE:
            del found["namespace"]
        self.observe[own.id] = _in_rules(found)
        if resource.ready_when:
            named = _Place(replace(self._names(), variables={resource.id: JinjaTerm(own.id, certain=True)}))
            written = enumerate(resource.ready_when)
            gates = [
                self._expression(each, (*resource.path, "readyWhen", at), named, lenient=True) for at, each in written
            ]
            own.gate = Translated(_all(gates), OR)

    def _reach(self, resource: KroResource, template: Mapping[str, Any]) -> None:
        namespace = _metadata_of(template).get("namespace")
        info = builtin_resource(Kind.of(template))
        expression = only_expression(namespace) if isinstance(namespace, str) else None
        is_of_other = expression is not None and expression.text.strip().endswith(".metadata.namespace")
        if (namespace and not is_of_other) or (info is not None and not info.namespaced):
            self.reach.append(resource.id)

    # -- templates -----------------------------------------------------------------------------------------------------

    def _body(self, template: Mapping[str, Any], path: FieldPath, place: _Place) -> dict[str, Any]:
        if "${" in f"{template['apiVersion']}{template['kind']}":
            raise InexpressibleError("its apiVersion or kind is computed")
        _metadata_of(template)
        body: dict[str, Any] = {}
        for name, value in template.items():
            if name == "status":
                self._note("status was left out: it belongs to a controller.", (*path, name))
            elif name == "metadata":
                body[name] = self._metadata(value, (*path, name), place)
            else:
                body[name] = self._value(value, (*path, name), place)
        return body

    def _metadata(self, metadata: Mapping[str, Any], path: FieldPath, place: _Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in metadata.items():
            if name in REFUSED_METADATA:
                self._note(f"{name} was left out: ruleop sets it, or the API server.", (*path, name))
                continue
            found[name] = self._value(value, (*path, name), place)
            if name in ("name", "namespace") and _has_comment(found[name]):
                raise InexpressibleError(f"its {name} cannot be expressed")
        if "name" not in found:
            raise InexpressibleError("it has no metadata.name")
        return found

    def _value(self, value: Any, path: FieldPath, place: _Place) -> Any:
        if isinstance(value, Mapping):
            return {key: self._value(each, (*path, key), place) for key, each in value.items()}
        if isinstance(value, list):
            return [self._value(each, (*path, index), place) for index, each in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        remarks: list[str] = []
        try:
            pieces = [self._piece(each, place, remarks) for each in parts(value)]
        except InexpressibleError as error:
            place.untranslated = True
            return self._commented(_OMIT, path, value, f"not translated: {error}")
        found = pieces[0] if len(pieces) == 1 else WrittenText(tuple(pieces))
        return self._commented(found, path, value, "; ".join(remarks)) if remarks else found

    def _piece(self, part: str | Cel, place: _Place, remarks: list[str]) -> str | WrittenExpr:
        if isinstance(part, str):
            return part
        found = translated(part.text, place.names)
        place.reads |= found.ids
        remarks += found.remarks
        return WrittenExpr(found.code)

    def _commented(self, value: Any, path: FieldPath, written: str, why: str) -> Noted:
        place, shown = self.graph.place(path), _shown(written)
        self._note(f"{place}: {why}: {shown}")
        name, _, line = place.rpartition("/")[2].rpartition(":")
        return Noted(f"kro: {shown}\n{_printable(f'{why} ({name}:{line})')}", value)

    def _expression(self, written: str, path: FieldPath, place: _Place, *, lenient: bool = False) -> Translated:
        """The one expression that a text is."""
        cel = only_expression(written.strip())
        if cel is None:
            raise InexpressibleError("it is not one expression in ${}")
        found = translated(cel.text, place.names, lenient=lenient)
        place.reads |= found.ids
        for remark in found.remarks:
            self._note(f"{remark}: {_shown(written)}", path)
        return found

    # -- the schema, the status, and the sample ------------------------------------------------------------------------

    def _schema(self) -> dict[str, Any]:
        schema, path = self.graph.schema, ("spec", "schema")
        found: dict[str, Any] = {"spec": schema.get("spec") or {}}
        found |= {name: schema[name] for name in _SAME if schema.get(name)}
        columns = list(self._columns(schema))
        if columns:
            found["columns"] = columns
        known = {"spec", "status", "group", "apiVersion", "kind", "additionalPrinterColumns", *_SAME}
        for name in schema:
            if name not in known:
                instead = ": a CRD in crds/ can have them" if name == "categories" else ""
                self._note(f"{name} of the schema was left out{instead}.", (*path, str(name)))
        return found

    def _columns(self, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The printer columns, without those of what kro itself writes."""
        for index, column in enumerate(schema.get("additionalPrinterColumns") or ()):
            first, _, field_of = str(column.get("jsonPath")).strip(".").partition(".")
            name = re.split(r"[.\[]", field_of)[0]
            if first == "status" and name not in {*(schema.get("status") or {}), "conditions"}:
                path = ("spec", "schema", "additionalPrinterColumns", index)
                self._note(f"the column of .status.{name} was left out: the status has no such field here.", path)
            else:
                yield column

    def _status(self) -> dict[str, Any]:
        written = self.graph.schema.get("status") or {}
        path: FieldPath = ("spec", "schema", "status")
        found = {}
        for name, value in written.items():
            if name in ("conditions", "observedGeneration", "state"):
                self._note(f"{name} of the status was left out: ruleop writes its own.", (*path, name))
                continue
            try:
                found[name] = _in_rules({name: self._status_field(value, (*path, name))})[name]
            except InexpressibleError as error:
                self._note(f"{name} of the status was left out: {error}.", (*path, name))
        return found

    def _status_field(self, value: Any, path: FieldPath) -> Any:
        """A field of the status, which is left out while a resource that it reads is not desired."""
        if isinstance(value, Mapping):
            return {key: self._status_field(each, (*path, key)) for key, each in value.items()}
        place = _Place(self._names())
        found = self._value(value, path, place)
        is_known = isinstance(found, WrittenText) or all(self.found[each].is_builtin for each in place.reads)
        if place.untranslated or not is_known:
            self.undeclared.add(str(path[3]))
        conditions = [each for name in sorted(place.reads) for each in self.found[name].conditions]
        inner = found.value if isinstance(found, Noted) else found
        if not conditions or inner == _OMIT:
            return found
        code = inner.code if isinstance(inner, WrittenExpr) else _joined(inner)
        if code is None:
            return self._commented(_OMIT, path, str(value), "not translated: it reads a resource that may be left out")
        code = f"({code})" if " " in code else code
        kept = WrittenExpr(f"{code} if {_all(list({each.code: each for each in conditions}.values()))}")
        return replace(found, value=kept) if isinstance(found, Noted) else kept

    def _sample(self, findings: list[SchemaFinding]) -> dict[str, Any]:
        """`findings`: the parts of the schema that it does not satisfy are added here."""
        kind, spec = self.graph.kind, self.graph.spec
        # A field that is read and not set is an error in kro too, so the sample has all that have no default.
        fields = self._with_read_fields(instance(_complete(spec), "spec"))
        name = f"{kebab(kind.kind)[:50]}-sample"
        sample = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": fields}
        whole = {"properties": {"spec": spec}}
        findings += rejections(default({"spec": fields}, whole), whole)
        return sample

    def _with_read_fields(self, spec: Any) -> Any:
        """The spec with what the graph reads of objects whose fields its schema does not declare."""
        resources = [[each.template, each.external, each.include_when, each.for_each] for each in self.graph.resources]
        texts = _expressions([resources, self.graph.schema.get("status")])
        for path in (tuple(read.split(".")) for text in texts for read in _SPEC_READ.findall(text)):
            for length in range(1, len(path)):
                around, rest = value_at(spec, path[:length]), path[length:]
                declared = schema_at(self.graph.spec, path[:length]) or {}
                if isinstance(around, dict) and "properties" not in declared and rest[0] not in around:
                    value: Any = instance({"type": "string"}, rest[-1])
                    for name in reversed(rest[1:]):
                        value = {name: value}
                    spec = replaced(spec, {path[:length]: {**around, rest[0]: value}})
        return spec


def _metadata_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(body.get("metadata"), Mapping):
        raise InexpressibleError("it has no metadata")
    found: Mapping[str, Any] = body["metadata"]
    return found


def _complete(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with all fields required but those with a default."""
    properties = {name: _complete(each) for name, each in (schema.get("properties") or {}).items()}
    if not properties:
        return schema
    required = [name for name, each in properties.items() if "default" not in each]
    rest = {key: each for key, each in schema.items() if key != "default" or not required}
    return {**rest, "properties": properties, "required": required}


def _all(found: Sequence[Translated]) -> str:
    return found[0].code if len(found) == 1 else " and ".join(each.within(AND + 1) for each in found)


def _joined(value: Any) -> str | None:
    if not isinstance(value, WrittenText):
        return None
    return " ~ ".join(f"({each.code})" if isinstance(each, WrittenExpr) else text_literal(each) for each in value.parts)


def _in_rules(value: Any) -> Any:
    """A value of watches.yaml, where strings and keys are templates: text with tags of Jinja becomes an expression."""
    if isinstance(value, Noted):
        return replace(value, value=_in_rules(value.value))
    if isinstance(value, Mapping):
        if any(isinstance(key, str) and _TAG.search(key) for key in value):
            raise InexpressibleError("a key has tags of Jinja")
        return {key: _in_rules(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_in_rules(each) for each in value]
    if isinstance(value, str) and _TAG.search(value):
        return WrittenExpr(text_literal(value))
    if isinstance(value, WrittenText) and any(
        "{" in each or "}" in each for each in value.parts if isinstance(each, str)
    ):
        return WrittenExpr(str(_joined(value)))
    return value


def _has_comment(value: Any) -> bool:
    members = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return (isinstance(value, Noted) and value.value == _OMIT) or any(map(_has_comment, members))


def _names_read(value: Any) -> Iterator[str]:
    """The names in all expressions of a value."""
    for text in _expressions(value):
        yield from names_in(text)


def _expressions(value: Any) -> Iterator[str]:
    """All expressions of a value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, str):
        yield from (each.text for each in parts(value) if isinstance(each, Cel))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _expressions(each)


def _shown(text: str) -> str:
    """A text of the graph in one line of a comment or of the output."""
    line = _printable(" ".join(text.split()))
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}..."


def _printable(text: str) -> str:
    return _TAG.sub("{ ", "".join(each if each.isprintable() else "?" for each in text))
