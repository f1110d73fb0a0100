"""The documents of all group versions as one of OpenAPI v2, which Terraform and older clients read at /openapi/v2.

It has less than v3: no alternatives, no nulls and no defaults. Where a schema of a CRD needs one of these, the real
server leaves out all that it says of the value, and so does this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.schema import with_inner

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.schema import Schema

_ALTERNATIVES: Final = ("allOf", "anyOf", "oneOf", "not")
_OPEN: Final = ("type", "properties", "items", "additionalProperties", "required")
_METHODS: Final = ("get", "put", "post", "delete", "patch")


def openapi_v2(documents: Iterable[Object], *, release: str) -> dict[str, Any]:
    """The document of OpenAPI v2 for those of v3."""
    paths: dict[str, Any] = {}
    definitions: dict[str, Schema] = {}
    for document in documents:
        paths |= {path: _path(item) for path, item in document["paths"].items()}
        for name, schema in document["components"]["schemas"].items():
            definitions.setdefault(name, _schema(schema))
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release},
        "paths": paths,
        "definitions": definitions,
    }


def _schema(schema: Schema) -> Schema:
    own = {keyword: value for keyword, value in schema.items() if keyword not in ("default", *_ALTERNATIVES)}
    if schema.get("nullable"):
        return {}
    if reference := schema.get("$ref") or ((schema.get("allOf") or [{}])[0].get("$ref")):
        return {**own, "$ref": reference.replace("#/components/schemas/", "#/definitions/")}
    if schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields"):
        return {keyword: value for keyword, value in own.items() if keyword not in _OPEN}
    if "type" not in schema and schema.get("oneOf"):  # of Quantity and IntOrString
        return {**own, "type": "string"}
    return with_inner(own, _schema)


def _path(item: Mapping[str, Any]) -> dict[str, Any]:
    operations = {method: _operation(item[method]) for method in _METHODS if method in item}
    return {"parameters": [*map(_parameter, item.get("parameters", ()))], **operations}


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    parameters = [*map(_parameter, operation.get("parameters", ()))]
    found = {name: each for name, each in operation.items() if name != "requestBody"}
    if (body := operation.get("requestBody")) is not None:
        content = body["content"]
        schema = _schema(next(iter(content.values()))["schema"])
        required = {"required": True} if body.get("required") else {}
        parameters = [{"name": "body", "in": "body", **required, "schema": schema}, *parameters]
        found["consumes"] = list(content)
    answers = operation["responses"]
    found["produces"] = [*dict.fromkeys(media for each in answers.values() for media in each.get("content", ()))]
    return {**found, "parameters": parameters, "responses": {code: _answer(each) for code, each in answers.items()}}


def _answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: each for name, each in answer.items() if name != "content"}
    for each in answer.get("content", {}).values():
        return {**found, "schema": _schema(each["schema"])}
    return found


def _parameter(parameter: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: each for name, each in parameter.items() if name != "schema"}, **parameter["schema"]}
