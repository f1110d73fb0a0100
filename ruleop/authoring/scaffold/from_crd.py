"""A new project for kinds that exist: from their CustomResourceDefinitions.

A definition is copied, with the fields of the status that ruleop writes. The first child is what a project from a
sample has, with the fields of the schema, and the example is the least that the schema accepts.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.offline.stand_in import rejections
from ruleop.authoring.scaffold.from_sample import DEFINITION, NAME, READY_STATUS, settings, workload
from ruleop.authoring.scaffold.instance import instance, validate_value
from ruleop.authoring.scaffold.naming import kebab
from ruleop.authoring.scaffold.new_project import READY_REPLICAS, NewChild, NewProject
from ruleop.authoring.scaffold.unusable_input import ScaffoldError
from ruleop.core.kinds import LAST_APPLIED, SERVER_METADATA, Kind
from ruleop.core.names import MAX_LABEL
from ruleop.core.schema.crd.crds import parse_crd
from ruleop.core.schema.crd.definition import WRITTEN
from ruleop.core.schema.crd.schema_findings import SchemaError
from ruleop.core.schema.crd.structural import default

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.schema.crd.crds import CrdVersion
    from ruleop.core.schema.openapi import Schema

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
    found: dict[str, NewProject] = {}
    for obj in definitions:
        project = _project(obj, several=len(definitions) > 1)
        if str(project.kind) in found:
            raise ScaffoldError(f"the definition of {project.kind.kind} appears twice")
        found[str(project.kind)] = project
    notes = tuple(
        f"{each.get('kind')}/{(each.get('metadata') or {}).get('name')} was left out: it is not a {DEFINITION}."
        for each in others
    )
    first, *more = found.values()
    return [replace(first, notes=(*first.notes, *notes)), *more]


def _project(obj: Mapping[str, Any], *, several: bool) -> NewProject:
    name = (obj.get("metadata") or {}).get("name")
    try:
        crd = parse_crd(obj)
    except SchemaError as error:
        raise ScaffoldError(f"{name} is not a valid {DEFINITION}: {error}") from None
    version = _version(crd.versions)
    if version is None:
        raise ScaffoldError(f"{name} serves no version: a version needs `served: true`")
    kind = Kind(crd.group, version.name, crd.kind)
    definition, added = _with_status(obj, version.name)
    spec = _schema_of(version.schema, "spec")
    is_given = "spec" in (version.schema.get("required") or ()) or "default" in spec
    children = (workload(spec) if is_given and crd.namespaced else ()) or (
        _config(spec, crd.namespaced, is_given=is_given),
    )
    sample, missing = _example(kind, crd.singular, version)
    counted = _schema_of(_schema_of(version.schema, "status"), READY_REPLICAS).get("type") == "integer"
    is_workload = children[0].id == "deployment"
    start = "a Deployment of the image" if is_workload else "a ConfigMap with fields of the spec"
    notes = [
        f"Children are only a start: {start}. Replace them.",
        *added,
        *missing,
        *_other_versions(kind, crd.versions),
    ]
    return NewProject(
        kind=kind,
        samples=(sample,),
        spec=spec,
        children=children,
        longest_name=MAX_LABEL,
        let={"labels": {"app.kubernetes.io/name": kebab(kind.kind), "app.kubernetes.io/instance": NAME}},
        status=READY_STATUS if is_workload and counted else {},
        notes=tuple(f"{kind.kind}: {each}" if several else each for each in notes),
        definition=definition,
    )


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
    if not status.get("x-kubernetes-preserve-unknown-fields"):
        properties = status.setdefault("properties", {})
        for name, schema in reversed([*WRITTEN.items()]):
            if name not in properties:
                properties[name] = schema
                added.append(f"status.{name}")
    note = f"New in the copy in crds/, because ruleop writes the status: {', '.join(added)}."
    return definition, [note] if added else []


# -- the example -----------------------------------------------------------------------------------------------------


def _example(kind: Kind, singular: str, version: CrdVersion) -> tuple[dict[str, Any], list[str]]:
    """A custom resource for the schema, and a note for each part of the schema that it does not satisfy."""
    schema = version.schema
    fields = {
        name: instance(inner, name)
        for name, inner in (schema.get("properties") or {}).items()
        if name == "spec" or (name in (schema.get("required") or ()) and name not in _IDENTITY)
    }
    sample = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": f"{kebab(singular)[:50]}-sample"},
        **fields,
    }
    named = _schema_of(_schema_of(schema, "metadata"), "name")
    if named and validate_value(sample["metadata"]["name"], named):
        sample["metadata"]["name"] = instance(named, "name")
    name = sample["metadata"]["name"]
    findings = [each for each in rejections(default(sample, schema), schema) if each.path[:1] != ("status",)]
    return sample, [f"examples/{name}.yaml has to be completed: {each}." for each in findings]
