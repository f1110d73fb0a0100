"""A new project for kinds that exist: from their CustomResourceDefinitions.

A definition is copied, with the fields of the status that ruleop writes. The first child is what a project from a
sample has, with the fields of the schema, and the example is the least that the schema accepts."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.offline import rejections
from ruleop.authoring.scaffold.from_sample import DEFINITION, NAME, READY_STATUS, settings, workload
from ruleop.authoring.scaffold.instance import LIKELY, instance, matching_texts, validate_value
from ruleop.authoring.scaffold.naming import ScaffoldError, kebab
from ruleop.authoring.scaffold.new_project import READY_REPLICAS, NewChild, NewProject
from ruleop.authoring.scaffold.yaml_layout import replaced, value_at, without
from ruleop.kubernetes.cel import RuleVerdict, cel_rules
from ruleop.kubernetes.crd import default, parse_crd, schema_at
from ruleop.kubernetes.kinds import LAST_APPLIED, SERVER_METADATA, Kind
from ruleop.kubernetes.names import MAX_LABEL, is_subdomain
from ruleop.kubernetes.schema import SchemaError, validate
from ruleop.language.status_limits import CONDITIONS, OWN_CONDITIONS, WRITTEN, limits_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ruleop.authoring.scaffold.yaml_layout import TreePath
    from ruleop.kubernetes.cel import BrokenRule
    from ruleop.kubernetes.crd import CrdVersion, CustomResourceDefinition
    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.schema import Schema, SchemaFinding


# -- satisfied rules ---------------------------------------------------------------------------------------------------
#
# Changes a proposed custom resource until it satisfies the CEL rules of its schema, where small changes do.
#
# Most rules are about fields that belong together: exactly one of two, one that a type requires. So fields that a
# broken rule names are added, removed, or set to a text or a number of the rule, and the first change that leaves no
# rule broken is taken. The search is bounded: some rules mean more than that.


_TRIALS: Final = 600
_DEPTH: Final = 8  # rules that are satisfied one after another
_TOGETHER: Final = 3  # fields that are added at once, if neither one nor all of them do
_CHAIN: Final = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*((?:\??\.[A-Za-z_]\w*)+)")
_WORD: Final = re.compile(r"(?<![\w'\"])[A-Za-z_]\w*")
_TEXT: Final = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_NUMBER: Final = re.compile(r"(?<![\w.'\"])-?\d+")
_ESCAPED: Final = re.compile(r"__(\w+?)__")
"""CEL writes the field `namespace` as `__namespace__`."""


def satisfying(obj: Mapping[str, Any], schema: Schema) -> Mapping[str, Any]:
    """The custom resource with as few broken rules as the search finds."""
    if validate(default(obj, schema), schema):
        return obj
    return _Search(schema).best(obj, _DEPTH)[0]


class _Search:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.rules = cel_rules(schema)
        self.trials = _TRIALS

    def best(self, obj: Mapping[str, Any], depth: int) -> tuple[Mapping[str, Any], int]:
        """The changed object, and the number of rules that it breaks."""
        broken = self._broken(obj)
        best = (obj, len(broken))
        if not broken or not depth:
            return best
        for change in _Changes(self.schema, obj, broken[0]).all():
            if not self.trials:
                break
            self.trials -= 1
            if not _has_identity(change, obj) or validate(default(change, self.schema), self.schema):
                continue
            if _identity(broken[0]) in map(_identity, self._broken(change)):
                continue
            tried = self.best(change, depth - 1)
            if tried[1] < best[1]:
                best = tried
            if not best[1]:
                break
        return best

    def _broken(self, obj: Mapping[str, Any]) -> list[BrokenRule]:
        found = self.rules.broken(default(obj, self.schema))
        return [
            each for each in found if each.verdict is not RuleVerdict.NOT_EVALUATED and each.path[:1] != ("status",)
        ]


def _has_identity(change: Mapping[str, Any], obj: Mapping[str, Any]) -> bool:
    """Whether it is of the same kind and has a name that an object can have."""
    name = value_at(change, ("metadata", "name"))
    same = all(change.get(key) == obj.get(key) for key in ("apiVersion", "kind"))
    return same and isinstance(name, str) and is_subdomain(name)


def _identity(broken: BrokenRule) -> tuple[Any, ...]:
    return broken.rule.path, broken.path


@dataclass(frozen=True, slots=True)
class _Changes:
    """Objects in which a broken rule may hold, the smallest changes first."""

    schema: Schema
    obj: Mapping[str, Any]
    broken: BrokenRule

    def all(self) -> Iterator[Mapping[str, Any]]:
        place = self._place()
        value = value_at(self.obj, place)
        if isinstance(value, Mapping):
            yield from self._of_fields([place])
        elif isinstance(value, list):
            yield from self._of_fields([(*place, index) for index in range(len(value))])
        if not isinstance(value, Mapping):
            yield from self._other_values_at(self.obj, place)

    def _place(self) -> TreePath:
        """The path of the value that has the rule. A rule may report a field of it."""
        more = len(self.broken.rule.field) if self.broken.verdict is RuleVerdict.BROKEN else 0
        return self.broken.path[: len(self.broken.path) - more]

    def _of_fields(self, places: Iterable[TreePath]) -> Iterator[Mapping[str, Any]]:
        for place in places:
            present, missing = self._named(place)
            for path in missing:
                changed = self._with(self.obj, [path])
                yield changed
                if value_at(changed, path) == []:
                    yield from self._other_values_at(changed, path)
            yield self._with(self.obj, missing)
            for path in present:
                yield without(self.obj, path)
                for changed in self._other_values_at(self.obj, path):
                    yield changed
                    for each in missing:
                        yield self._with(changed, [each])
            for one, other in itertools.product(present, missing):
                yield self._with(without(self.obj, one), [other])
            for count in range(2, _TOGETHER + 1):
                for paths in itertools.combinations(missing, count):
                    yield self._with(self.obj, paths)

    def _named(self, place: TreePath) -> tuple[list[TreePath], list[TreePath]]:
        """The paths of fields that the rule names, below the place: those that have a value, and those that have
        none."""
        text = _TEXT.sub("''", self.broken.rule.rule)
        chains = [tuple(_field(each) for each in re.split(r"\??\.", chain)[1:]) for chain in _CHAIN.findall(text)]
        chains += [(_field(word),) for word in _WORD.findall(text)]
        if not any(self._is_field((*place, chain[0])) for chain in chains):
            properties = (schema_at(self.schema, place) or {}).get("properties") or {}
            chains = [(name,) for name in properties]
        present: dict[TreePath, None] = {}
        missing: dict[TreePath, None] = {}
        for chain in chains:
            path = place
            for name in chain:
                if not self._is_field((*path, name)):
                    break  # a function of CEL
                path = (*path, name)
            if path != place:
                (present if value_at(self.obj, path) is not None else missing)[path] = None
        return list(present), list(missing)

    def _is_field(self, path: TreePath) -> bool:
        return value_at(self.obj, path) is not None or schema_at(self.schema, path) is not None

    def _with(self, obj: Any, paths: Iterable[TreePath]) -> Any:
        """The object with these fields, and with those around them."""
        for path in paths:
            for length in range(1, len(path) + 1):
                if value_at(obj, path[:length]) is None:
                    name, around = str(path[length - 1]), value_at(obj, path[: length - 1]) or {}
                    added = instance(schema_at(self.schema, path[:length]) or {}, name)
                    obj = replaced(obj, {path[: length - 1]: {**around, name: added}})
        return obj

    def _other_values_at(self, obj: Any, path: TreePath) -> Iterator[Mapping[str, Any]]:
        for other in self._other_values(value_at(obj, path), schema_at(self.schema, path) or {}):
            yield replaced(obj, {path: other})

    def _other_values(self, value: JSON, schema: Schema) -> Iterator[JSON]:
        """Values of the same type: members of an enum, then what the rule compares with."""
        rule = self.broken.rule.rule
        if isinstance(value, bool):
            yield not value
        elif isinstance(value, int):
            named = [value_at(self.obj, path) for path in self._named(self._place())[0]]
            numbers = [*map(int, _NUMBER.findall(rule)), *(each for each in named if type(each) is int)]
            yield from dict.fromkeys(near for each in numbers for near in (each, each + 1, each - 1))
        elif isinstance(value, list):
            yield [*value, instance(schema.get("items") or {})]
            if value:
                yield value[:-1]
        elif isinstance(value, str):
            quoted = [one or other for one, other in _TEXT.findall(rule)]
            yield from schema.get("enum") or ()
            yield from quoted
            for pattern in quoted:
                yield from itertools.islice(matching_texts(pattern.replace("\\\\", "\\"), 1), 3)
            yield from LIKELY


def _field(word: str) -> str:
    escaped = _ESCAPED.fullmatch(word)
    return escaped[1] if escaped else word


# -- from crd ----------------------------------------------------------------------------------------------------------


_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_SHOWN_FIELDS: Final = 8


def crd_projects(objects: Sequence[Mapping[str, Any]]) -> list[NewProject]:
    """A project for each definition among the objects."""
    definitions = [each for each in objects if each.get("kind") == DEFINITION]
    others = [each for each in objects if each.get("kind") != DEFINITION]
    if not definitions:
        kinds = ", ".join(dict.fromkeys(str(each.get("kind")) for each in others))
        raise ScaffoldError(
            f"there is no {DEFINITION} among the objects ({kinds}): use --from-sample for custom resources, "
            "--from-manifests for the objects of an application"
        )
    notes = [
        f"{each.get('kind')}/{(each.get('metadata') or {}).get('name')} was left out: it is not a {DEFINITION}."
        for each in others
    ]
    usable: list[_Definition] = []
    for obj in definitions:
        try:
            usable.append(_definition(obj))
        except ScaffoldError as error:
            notes.append(f"Left out: {error}.")
            if len(notes) - len(others) == len(definitions):
                raise
    found: dict[Kind, NewProject] = {}
    for each in usable:
        same = [other for other in usable if each.is_named_like(other)]
        project = _project(each, with_group=len(same) > 1, several=len(definitions) > 1)
        if project.kind in found:
            raise ScaffoldError(f"the definition of {project.kind.kind} appears twice")
        if project.samples[0]["metadata"]["name"] in {of.samples[0]["metadata"]["name"] for of in found.values()}:
            project = replace(project, prefix=f"{project.folder}-")
        found[project.kind] = project
    first, *more = found.values()
    return [replace(first, notes=(*first.notes, *notes)), *more]


@dataclass(frozen=True, slots=True)
class _Definition:
    obj: Mapping[str, Any]
    crd: CustomResourceDefinition
    version: CrdVersion

    @property
    def kind(self) -> Kind:
        return Kind(self.crd.group, self.version.name, self.crd.kind)

    def is_named_like(self, other: _Definition) -> bool:
        """Whether files that are named by the kind would have the same names."""
        ours, theirs = ({kebab(each.crd.kind), kebab(each.crd.singular)} for each in (self, other))
        return not ours.isdisjoint(theirs)


def _definition(obj: Mapping[str, Any]) -> _Definition:
    name = (obj.get("metadata") or {}).get("name")
    try:
        crd = parse_crd(obj)
    except SchemaError as error:
        raise ScaffoldError(f"{name} is not a valid {DEFINITION}: {error}") from None
    for mistake in (mistake for each in crd.versions for mistake in each.malformed):
        raise ScaffoldError(f"{name} is not a valid {DEFINITION}: {mistake}")
    version = _version(crd.versions)
    if version is None:
        raise ScaffoldError(f"{name} serves no version: a version needs `served: true`")
    return _Definition(obj, crd, version)


def _project(definition: _Definition, *, with_group: bool, several: bool) -> NewProject:
    crd, version, kind = definition.crd, definition.version, definition.kind
    document, added = _with_status(definition.obj, version.name)
    spec = _schema_of(version.schema, "spec")
    is_given = "spec" in (version.schema.get("required") or ()) or "default" in spec
    children = (workload(spec) if is_given and crd.namespaced else ()) or (
        _config(spec, crd.namespaced, is_given=is_given),
    )
    counted = _schema_of(_schema_of(version.schema, "status"), READY_REPLICAS).get("type") == "integer"
    is_workload = children[0].id == "deployment"
    status = READY_STATUS if is_workload and counted else {}
    required = _required_status(version, document, status)
    base = f"{kebab(crd.singular)[:25]}-{kebab(crd.group)[:25]}" if with_group else kebab(crd.singular)[:50]
    sample, findings = _example(kind, f"{base.rstrip('-')}-sample", version)
    start = "a Deployment of the image" if is_workload else "a ConfigMap with fields of the spec"
    project = NewProject(
        kind=kind,
        samples=(sample,),
        spec=spec,
        children=children,
        longest_name=MAX_LABEL,
        let={"labels": {"app.kubernetes.io/name": kebab(kind.kind), "app.kubernetes.io/instance": NAME}},
        status=status,
        definition=document,
        required_status=required,
        incomplete=bool(findings),
        with_group=with_group,
    )
    fields = ", ".join(f"status.{name}" for name in required)
    placeholders = f"status in watches.yaml has placeholders for what the CRD requires: {fields}. Replace them."
    notes = [
        f"Children are only a start: {start}. Replace them.",
        *added,
        *([placeholders] if required else []),
        *([project.completion(findings)] if findings else []),
        *_other_versions(kind, crd.versions),
    ]
    return replace(project, notes=tuple(f"{kind.kind}: {each}" if several else each for each in notes))


def _config(spec: Schema, namespaced: bool, *, is_given: bool) -> NewChild:
    """A ConfigMap with fields of the spec. It has the name of the custom resource, which may be a long one."""
    if not is_given:
        # Where the spec is missing, so are the defaults of its fields.
        fields = (spec.get("properties") or {}).items()
        spec = {
            "properties": {
                name: {key: each for key, each in inner.items() if key != "default"} for name, inner in fields
            }
        }
    child = settings(spec, name=NAME, most=_SHOWN_FIELDS)
    return child if namespaced else replace(child, namespace="default")


def _version(versions: Sequence[CrdVersion]) -> CrdVersion | None:
    """The version to watch: the stored version, if it is served."""
    served = [each for each in versions if each.served]
    return next((each for each in served if each.storage), next(iter(served), None))


def _other_versions(kind: Kind, versions: Sequence[CrdVersion]) -> Iterator[str]:
    others = [each.name for each in versions if each.served and each.name != kind.version]
    if others:
        yield (
            f"The rule watches {kind.version}. The API server converts custom resources of other versions "
            f"({', '.join(others)})."
        )


def _schema_of(schema: Schema, name: str) -> Schema:
    found = (schema.get("properties") or {}).get(name)
    return found if isinstance(found, Mapping) else {}


# -- the definition --------------------------------------------------------------------------------------------------


def _with_status(obj: Mapping[str, Any], version: str) -> tuple[dict[str, Any], list[str]]:
    """The definition as its author wrote it, with what ruleop writes into the status; and a note of what is new."""
    definition = copy.deepcopy({name: each for name, each in obj.items() if name != "status"})
    metadata = {name: each for name, each in definition["metadata"].items() if name not in SERVER_METADATA}
    annotations = {key: each for key, each in (metadata.pop("annotations", None) or {}).items() if key != LAST_APPLIED}
    definition["metadata"] = {**metadata, **({"annotations": annotations} if annotations else {})}
    added = []
    (served,) = [each for each in definition["spec"]["versions"] if each["name"] == version]
    subresources = dict(served.get("subresources") or {})
    if subresources.get("status") is None:
        served["subresources"] = {"status": {}, **subresources}
        added.append("the subresource status")
    root = served.setdefault("schema", {}).setdefault("openAPIV3Schema", {"type": "object"})
    status = root.setdefault("properties", {}).setdefault("status", {"type": "object"})
    is_closed = not status.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in status
    properties = status.setdefault("properties", {}) if is_closed else status.get("properties") or {}
    for name, schema in reversed([*WRITTEN.items()]) if is_closed else ():
        if name not in properties:
            properties[name] = schema
            added.append(f"status.{name}")
    added += _with_conditions(properties.get("conditions") or {})
    note = f"New in the copy in crds/, because ruleop writes the status: {', '.join(added)}."
    return definition, [note] if added else []


def _with_conditions(conditions: dict[str, Any]) -> list[str]:
    """Adds the fields of a condition that are missing; their paths."""
    items = conditions.get("items")
    if conditions.get("type") != "array" or not isinstance(items, dict) or "properties" not in items:
        return []
    properties = items["properties"]
    missing = {name: each for name, each in CONDITIONS["items"]["properties"].items() if name not in properties}
    if items.get("x-kubernetes-preserve-unknown-fields") or missing.keys() & {"type", "status"}:
        return []  # these are conditions of another form
    properties |= missing
    return [f"status.conditions[].{name}" for name in missing]


def _required_status(version: CrdVersion, document: Mapping[str, Any], status: Collection[str]) -> dict[str, Any]:
    """Values of the fields without which the API server refuses a status: zero or nothing, where it is allowed."""
    (served,) = [each for each in document["spec"]["versions"] if each["name"] == version.name]
    limits = limits_of(served["schema"]["openAPIV3Schema"], OWN_CONDITIONS, generation=True)
    schema = _schema_of(version.schema, "status")
    missing = [name for name in limits.required if name not in status and name != "conditions"]
    return {name: _empty(_schema_of(schema, name), name) for name in missing}


def _empty(schema: Schema, name: str) -> JSON:
    empty: JSON = {"integer": 0, "number": 0, "string": "", "boolean": False, "array": [], "object": {}}.get(
        str(schema.get("type"))
    )
    return instance(schema, name) if empty is None or validate_value(empty, schema) else empty


# -- the example -----------------------------------------------------------------------------------------------------


def _example(kind: Kind, name: str, version: CrdVersion) -> tuple[dict[str, Any], list[SchemaFinding]]:
    """A custom resource for the schema, and the parts of the schema that it does not satisfy."""
    schema = version.schema
    fields = {
        name: instance(inner, name)
        for name, inner in (schema.get("properties") or {}).items()
        if name == "spec" or (name in (schema.get("required") or ()) and name not in _IDENTITY)
    }
    metadata = {"name": name}
    named = _schema_of(_schema_of(schema, "metadata"), "name")
    if named and validate_value(name, named):
        metadata["name"] = str(instance(named, "name"))
    sample: Mapping[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}
    sample = satisfying(sample, schema)
    return dict(sample), [each for each in rejections(default(sample, schema), schema) if each.path[:1] != ("status",)]
