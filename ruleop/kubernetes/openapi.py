"""The OpenAPI v3 document of a group version, as an API server publishes it at /openapi/v3/apis/GROUP/VERSION.

Clients read three things from it: kubectl finds the schema of a kind by a path's `x-kubernetes-group-version-kind`
(`explain`), asks whether PATCH has the parameters dryRun and fieldValidation before it applies, and takes the keys of
strategic merge patches from the types. Everything else is here because documents are compared with the real server's.

Not here: prose, the deprecated paths below /watch/, and the paths that stream (exec, attach, log, portforward, proxy).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema import BUILTIN_PREFIXES, OBJECT_META, names_of_kinds, with_inner
from ruleop.reachable import reached

if TYPE_CHECKING:
    from ruleop.kubernetes.builtin.builtin_types import ServedResource
    from ruleop.kubernetes.crd import CrdVersion, CustomResourceDefinition
    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import Schema


_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_GVK: Final = "x-kubernetes-group-version-kind"
_STREAMS: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
_ACTIONS: Final = {
    "create": ("post", "post"),
    "delete": ("delete", "delete"),
    "deletecollection": ("delete", "deletecollection"),
    "get": ("get", "get"),
    "list": ("get", "list"),
    "patch": ("patch", "patch"),
    "update": ("put", "put"),
}
"""HTTP method and x-kubernetes-action of a verb. A watch is a list with a parameter."""
_COLLECTION_VERBS: Final = ("list", "create", "deletecollection")
_OBJECT_VERBS: Final = ("get", "update", "delete", "patch")

_WRITE: Final = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_DELETE: Final = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "boolean",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
}
_SELECT: Final = {
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "shardSelector": "string",
    "timeoutSeconds": "integer",
}
_PARAMETERS: Final[Mapping[str, Mapping[str, str]]] = {
    "create": _WRITE,
    "update": _WRITE,
    "patch": {**_WRITE, "force": "boolean"},
    "delete": _DELETE,
    "deletecollection": {**_DELETE, **_SELECT},
    "get": {},
    "list": {**_SELECT, "allowWatchBookmarks": "boolean", "watch": "boolean"},
}
_PATCH_TYPES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_TEXT: Final = {"type": "string"}
_OF_EACH_GROUP: Final = (f"{_META}.DeleteOptions", f"{_META}.WatchEvent")
_STRATEGIC: Final = "application/strategic-merge-patch+json"


def openapi_document(
    group: str, version: str, resources: Iterable[ServedResource], schemas: Mapping[str, Schema], *, release: str
) -> dict[str, Any]:
    """The document of a group version with these resources. `schemas` are types by name; the document has those that
    its paths refer to, directly or through other types."""
    names = names_of_kinds(schemas)
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    paths: dict[str, Any] = {f"{root}/": {"get": {"responses": _responses(f"{_META}.APIResourceList")}}}
    types = set()
    for resource in resources:
        paths.update(_paths(root, resource, names))
        if "watch" in resource.verbs:
            types.add(f"{_META}.WatchEvent")
    types |= _references(paths)
    used = reached(types & schemas.keys(), lambda name: _references(schemas[name]) & schemas.keys())
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": {name: _in_group(name, schemas[name], group, version) for name in sorted(used)}},
    }


def crd_types(crd: CustomResourceDefinition, version: CrdVersion) -> dict[str, Schema]:
    """The types that the server publishes for a version of a custom kind: the kind and its list."""
    prefix = ".".join((*reversed(crd.group.split(".")), version.name))
    name = f"{prefix}.{crd.kind}"
    schema = dict(_published({"type": "object", **version.schema}))
    schema["properties"] = {**(schema.get("properties") or {}), **_RESOURCE_FIELDS}
    listed = {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _TEXT,
            "items": {"type": "array", "items": _reference(name)},
            "kind": _TEXT,
            "metadata": {"allOf": [_reference(f"{_META}.ListMeta")]},
        },
    }
    return {
        name: {**schema, _GVK: [_gvk(Kind(crd.group, version.name, crd.kind))]},
        f"{prefix}.{crd.list_kind}": {**listed, _GVK: [_gvk(Kind(crd.group, version.name, crd.list_kind))]},
    }


def _published(schema: Schema) -> Schema:
    """The schema of a CRD with what the server adds: the fields of embedded resources, and the two types of an
    int-or-string."""
    whole = with_inner(schema, _published)
    if schema.get("x-kubernetes-embedded-resource"):
        whole["properties"] = {**whole.get("properties", {}), **_RESOURCE_FIELDS}
        whole["required"] = [*dict.fromkeys([*whole.get("required", []), "kind", "apiVersion"])]
    if schema.get("x-kubernetes-int-or-string") and not {"anyOf", "allOf"} & set(schema):
        whole["anyOf"] = [{"type": "integer"}, _TEXT]
    return whole


def _paths(root: str, resource: ServedResource, names: Mapping[Kind, str]) -> dict[str, Any]:
    kind, lists = names.get(resource.kind, ""), names.get(resource.kind._replace(kind=f"{resource.kind.kind}List"), "")
    everywhere = f"{root}/{resource.plural}"
    collection = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else everywhere
    within = ("namespace",) if resource.namespaced else ()
    operations = {
        verb: _operation(verb, resource.kind, kind, lists if verb == "list" else kind)
        for verb in _PARAMETERS
        if verb in resource.verbs
    }
    if "delete" in operations and not resource.returns_deleted:
        operations["delete"]["responses"] = _responses(f"{_META}.Status")
    paths = {
        collection: _path(within, operations, _COLLECTION_VERBS),
        f"{collection}/{{name}}": _path(("name", *within), operations, _OBJECT_VERBS),
    }
    if resource.namespaced:
        paths[everywhere] = _path((), operations, ("list",))
    for each in resource.subresources:
        if each.name not in _STREAMS:
            of_each = {verb: _operation(verb, each.kind, names.get(each.kind, "")) for verb in each.verbs}
            paths[f"{collection}/{{name}}/{each.name}"] = _path(("name", *within), of_each, ("create", *_OBJECT_VERBS))
    return {path: item for path, item in paths.items() if len(item) > 1}


def _path(within: tuple[str, ...], operations: Mapping[str, Any], verbs: Iterable[str]) -> dict[str, Any]:
    parameters = [{**_parameter(name, "string", "path"), "required": True} for name in within]
    item: dict[str, Any] = {"parameters": [*parameters, _parameter("pretty", "string")]}
    return item | {_ACTIONS[verb][0]: operations[verb] for verb in verbs if verb in operations}


def _operation(verb: str, kind: Kind, name: str, answer: str = "") -> dict[str, Any]:
    """An operation on the type with this name, which answers with a type that may differ."""
    operation: dict[str, Any] = {
        "parameters": [_parameter(name, of_type) for name, of_type in sorted(_PARAMETERS[verb].items())],
        "responses": _responses(f"{_META}.Status" if verb == "deletecollection" else answer or name),
        _GVK: _gvk(kind),
        "x-kubernetes-action": _ACTIONS[verb][1],
    }
    if verb in ("delete", "deletecollection"):
        operation["requestBody"] = _body(("*/*",), f"{_META}.DeleteOptions")
    elif verb == "patch":
        types = (*_PATCH_TYPES, _STRATEGIC) if name.startswith(BUILTIN_PREFIXES) else _PATCH_TYPES
        operation["requestBody"] = {**_body(types, f"{_META}.Patch"), "required": True}
    elif verb in ("create", "update"):
        operation["requestBody"] = {**_body(("*/*",), name), "required": True}
    return operation


def _parameter(name: str, of_type: str, place: str = "query") -> dict[str, Any]:
    return {"name": name, "in": place, "schema": {"type": of_type, "uniqueItems": True}}


def _body(content_types: Iterable[str], name: str) -> dict[str, Any]:
    return {"content": {content_type: {"schema": _reference(name)} for content_type in content_types}}


def _responses(name: str) -> dict[str, Any]:
    return {"200": {"description": "OK", **_body(("application/json", "application/yaml"), name)}}


def _gvk(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


_RESOURCE_FIELDS: Final = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"allOf": [_reference(OBJECT_META)]}}


def _references(value: Any) -> set[str]:
    """The names of the types that any part of the value refers to."""
    found: set[str] = set()
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, Mapping):
            reference = each.get("$ref")
            if isinstance(reference, str):
                found.add(reference.rpartition("/")[2])
            stack += each.values()
        elif isinstance(each, list):
            stack += each
    return found


def _in_group(name: str, schema: Schema, group: str, version: str) -> Schema:
    """Options and watch events belong to each group version, beside the core group."""
    if not group or name not in _OF_EACH_GROUP:
        return schema
    own = Kind(group, version, name.rpartition(".")[2])
    return {**schema, _GVK: [*schema[_GVK], _gvk(own)]}


# -- version 2 -------------------------------------------------------------------------------------------------------
#
# The documents of all group versions as one of OpenAPI v2, which Terraform and older clients read at /openapi/v2.
#
# It has less than v3: no alternatives, no nulls and no defaults. Where a schema of a CRD needs one of these, the real
# server leaves out all that it says of the value, and so does this.


_ALTERNATIVES: Final = ("allOf", "anyOf", "oneOf", "not")
_OPEN: Final = ("type", "properties", "items", "additionalProperties", "required")
_METHODS: Final = ("get", "put", "post", "delete", "patch")


def openapi_v2(documents: Iterable[Object], *, release: str) -> dict[str, Any]:
    """The document of OpenAPI v2 for those of v3."""
    paths: dict[str, Any] = {}
    definitions: dict[str, Schema] = {}
    for document in documents:
        paths |= {path: _path_v2(item) for path, item in document["paths"].items()}
        for name, schema in document["components"]["schemas"].items():
            definitions.setdefault(name, _schema_v2(schema))
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release},
        "paths": paths,
        "definitions": definitions,
    }


def _schema_v2(schema: Schema) -> Schema:
    own = {keyword: value for keyword, value in schema.items() if keyword not in ("default", *_ALTERNATIVES)}
    if schema.get("nullable"):
        return {}
    if reference := schema.get("$ref") or ((schema.get("allOf") or [{}])[0].get("$ref")):
        return {**own, "$ref": reference.replace("#/components/schemas/", "#/definitions/")}
    if schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields"):
        return {keyword: value for keyword, value in own.items() if keyword not in _OPEN}
    if "type" not in schema and schema.get("oneOf"):  # of Quantity and IntOrString
        return {**own, "type": "string"}
    return with_inner(own, _schema_v2)


def _path_v2(item: Mapping[str, Any]) -> dict[str, Any]:
    operations = {method: _operation_v2(item[method]) for method in _METHODS if method in item}
    return {"parameters": [*map(_parameter_v2, item.get("parameters", ()))], **operations}


def _operation_v2(operation: Mapping[str, Any]) -> dict[str, Any]:
    parameters = [*map(_parameter_v2, operation.get("parameters", ()))]
    found = {name: each for name, each in operation.items() if name != "requestBody"}
    if (body := operation.get("requestBody")) is not None:
        content = body["content"]
        schema = _schema_v2(next(iter(content.values()))["schema"])
        required = {"required": True} if body.get("required") else {}
        parameters = [{"name": "body", "in": "body", **required, "schema": schema}, *parameters]
        found["consumes"] = list(content)
    answers = operation["responses"]
    found["produces"] = [*dict.fromkeys(media for each in answers.values() for media in each.get("content", ()))]
    return {**found, "parameters": parameters, "responses": {code: _answer_v2(each) for code, each in answers.items()}}


def _answer_v2(answer: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: each for name, each in answer.items() if name != "content"}
    for each in answer.get("content", {}).values():
        return {**found, "schema": _schema_v2(each["schema"])}
    return found


def _parameter_v2(parameter: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: each for name, each in parameter.items() if name != "schema"}, **parameter["schema"]}
