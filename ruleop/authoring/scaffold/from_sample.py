"""A new project for a kind, by its names alone or from sample custom resources.

Samples do not say what the kind is for. The first child is a Deployment if the spec has an image, with a Service if it
has a port too, and else a ConfigMap with the fields of the spec: something that runs, to be replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.offline import malformed, unknown_metadata
from ruleop.authoring.scaffold.inferred_schema import fields
from ruleop.authoring.scaffold.naming import ScaffoldError, expression, kebab
from ruleop.authoring.scaffold.new_project import READY_REPLICAS, NewChild, NewProject
from ruleop.authoring.scaffold.yaml_layout import WrittenExpr, WrittenText
from ruleop.kubernetes.kinds import LAST_APPLIED, SERVER_METADATA, Kind
from ruleop.kubernetes.names import MAX_LABEL, is_label, is_letter_label, is_subdomain
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.validation import resource_errors

if TYPE_CHECKING:
    from ruleop.kubernetes.schema import Schema

DEFAULT: Final = Kind("example.com", "v1alpha1", "App")
DEFINITION: Final = "CustomResourceDefinition"

NAME: Final = WrittenExpr("metadata.name")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}", re.ASCII)
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
READY_STATUS: Final = {READY_REPLICAS: f"deployment.status.{READY_REPLICAS} | default(0)"}
_CONFIG: Final = "-config"


def check_kind(kind: Kind) -> None:
    """Raises ScaffoldError unless a CustomResourceDefinition can have this kind."""
    if "." not in kind.group or not is_subdomain(kind.group):
        raise ScaffoldError(f'"{kind.group}" is not a group of custom resources: use a domain name, like example.com')
    if not is_letter_label(kind.version):
        raise ScaffoldError(f'"{kind.version}" is not a version: use one like v1 or v1alpha1')
    if not _KIND.fullmatch(kind.kind):
        raise ScaffoldError(f'"{kind.kind}" is not a kind: use letters and digits, the first in upper case, like App')


INFERRED: Final = (
    "The schema in watches.yaml is inferred: text is required; numbers and booleans are defaults.",
    "A field that only some of several samples have is optional.",
)


def empty_project(kind: Kind) -> NewProject:
    """A project for a kind of which only the name is known: a web server, as a start."""
    spec = {"image": "nginx:1.29", "replicas": 2, "port": 80}
    metadata = {"name": f"{kebab(kind.kind)}-sample"}
    sample = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
    return replace(sample_project([sample]), notes=())


def sample_project(objects: Sequence[Mapping[str, Any]]) -> NewProject:
    """A project for the kind of these custom resources."""
    for obj in objects:
        if obj.get("kind") == DEFINITION:
            raise ScaffoldError(f"{(obj.get('metadata') or {}).get('name')} is a {DEFINITION}: use --from-crd")
    kinds = dict.fromkeys(Kind.of(obj) for obj in objects)
    if len(kinds) > 1:
        raise ScaffoldError(f"the samples are of several kinds ({', '.join(map(str, kinds))}): use those of one kind")
    (kind,) = kinds
    check_kind(kind)
    samples = [as_written(obj, kind) for obj in objects]
    if len({sample["metadata"]["name"] for sample in samples}) < len(samples):
        raise ScaffoldError("two samples have the same metadata.name")
    specs = [_spec(sample) for sample in samples]
    spec = fields(specs)
    let = {"labels": {"app.kubernetes.io/name": kebab(kind.kind), "app.kubernetes.io/instance": NAME}}
    found = workload(spec, specs)
    children = found or (settings(spec, name=WrittenText((NAME, _CONFIG)), most=0),)
    return NewProject(
        kind=kind,
        samples=tuple(samples),
        spec=spec,
        children=children,
        longest_name=MAX_LABEL,
        let=let,
        status=READY_STATUS if found else {},
        notes=_notes(objects, workload=bool(found)),
    )


def _notes(objects: Sequence[Mapping[str, Any]], *, workload: bool) -> tuple[str, ...]:
    first = "a Deployment of the image" if workload else "a ConfigMap with the fields of the spec"
    notes = [f"Children are only a start: {first}. Replace them."]
    notes += INFERRED if len(objects) > 1 else INFERRED[:1]
    if any("status" in obj for obj in objects):
        notes.append("The status of the sample was left out: status in watches.yaml decides what is written there.")
    return tuple(notes)


def _spec(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = sample.get("spec") or {}
    if others := [name for name in sample if name not in ("apiVersion", "kind", "metadata", "spec")]:
        raise ScaffoldError(
            f"the {sample['kind']} has fields beside spec ({', '.join(map(str, others))}), which `schema` in "
            "watches.yaml does not declare: move them into the spec, or start from a CRD with --from-crd"
        )
    return spec


def as_written(obj: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The custom resource as a user would write it."""
    if not isinstance(obj.get("metadata") or {}, Mapping):
        raise ScaffoldError(f"metadata of the {kind.kind} is not a mapping")
    metadata = {
        name: value
        for name, value in (obj.get("metadata") or {}).items()
        if name not in SERVER_METADATA | {"ownerReferences", "finalizers", "generateName"}
    }
    name = metadata.get("name") or kebab(kind.kind)
    if not isinstance(name, str) or not is_label(name) or not name[0].isalpha():
        raise ScaffoldError(
            f"metadata.name {name!r} of the sample is not a name that children can be made of: "
            f'use lowercase letters, digits and "-", at most {MAX_LABEL}'
        )
    metadata = {"name": name, **{key: value for key, value in metadata.items() if key != "name"}}
    annotations = metadata.get("annotations")
    if isinstance(annotations, Mapping):
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    metadata = {key: value for key, value in metadata.items() if value}
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    written = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **rest}
    for mistake in (*malformed(written), *unknown_metadata(written)):
        raise ScaffoldError(f"the sample {kind.kind}/{name} is not valid: {mistake}")
    return written


# -- children -------------------------------------------------------------------------------------------------------


def workload(spec: Schema, specs: Sequence[Mapping[str, Any]] = ()) -> tuple[NewChild, ...]:
    """A Deployment for the first image of the spec, and a Service for the port beside it. `specs`: of the samples."""
    path = _image(spec, specs)
    if path is None:
        return ()
    beside, values = spec, list(specs)
    for name in path[:-1]:
        beside, values = beside["properties"][name], [each[name] for each in values]
    properties = beside["properties"]
    image = WrittenExpr(expression("spec", *path))
    container: dict[str, Any] = {"name": "main", "image": image}
    replicas = {}
    numbers = [each["replicas"] for each in values if "replicas" in each]
    if _is_given(beside, "replicas", "integer") and all(0 <= number < 1 << 31 for number in numbers):
        replicas = {"replicas": WrittenExpr(expression("spec", *path[:-1], "replicas"))}
    has_port = _is_given(beside, "port", "integer") and properties["port"].get("maximum")
    if has_port:
        port = WrittenExpr(expression("spec", *path[:-1], "port"))
        container["ports"] = [{"name": "http", "containerPort": port}]
    are_resources = all(_are_resources(each.get("resources") or {}) for each in values)
    if _is_given(beside, "resources", "object") and are_resources and not _has_any_text(properties["resources"]):
        container["resources"] = WrittenExpr(expression("spec", *path[:-1], "resources"))
    template = {"metadata": {"labels": WrittenExpr("labels")}, "spec": {"containers": [container]}}
    body = {"selector": {"matchLabels": WrittenExpr("labels")}, "template": template}
    children = [NewChild("deployment", _object("apps/v1", "Deployment", NAME, {"spec": {**replicas, **body}}))]
    if has_port:
        ports = [{"name": "http", "port": WrittenExpr(expression("spec", *path[:-1], "port")), "targetPort": "http"}]
        service = _object("v1", "Service", NAME, {"spec": {"selector": WrittenExpr("labels"), "ports": ports}})
        children.append(NewChild("service", service))
    return tuple(children)


def _image(schema: Schema, specs: Sequence[Mapping[str, Any]], path: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    """The path of the first image that every sample has: the nearest to the top."""
    properties = schema.get("properties") or {}
    if _is_given(schema, "image", "string"):
        images = [properties["image"].get("default", "x"), *(each.get("image", "x") for each in specs)]
        if all(image and image == image.strip() for image in images):
            return (*path, "image")
    for name, inner in properties.items():
        if _is_given(schema, name, "object"):
            within = [each[name] for each in specs if isinstance(each.get(name), Mapping)]
            if (found := _image(inner, within, (*path, name))) is not None:
                return found
    return None


def _are_resources(value: Mapping[str, Any]) -> bool:
    """Whether a container can have these resources."""
    parts = [value[name] for name in ("limits", "requests") if value.get(name) is not None]
    if value.keys() - {"limits", "requests"} or not all(isinstance(part, Mapping) for part in parts):
        return False
    amounts = [amount for part in parts for amount in part.values() if amount is not None]
    return None not in map(parse_quantity, amounts) and not any(resource_errors(value))


def _has_any_text(resources: Schema) -> bool:
    """Whether an amount of the resources may be any text."""
    parts = [part for name in ("limits", "requests") if (part := (resources.get("properties") or {}).get(name))]
    amounts = [each for part in parts for each in (part.get("properties") or {}).values()]
    amounts += [others for part in parts if isinstance(others := part.get("additionalProperties"), Mapping)]
    return any(each.get("type") == "string" and "pattern" not in each for each in amounts)


def _is_given(schema: Schema, name: str, declared: str) -> bool:
    """Whether each object has this field: by its own value or by a default."""
    inner = (schema.get("properties") or {}).get(name) or {}
    return inner.get("type") == declared and ("default" in inner or name in (schema.get("required") or ()))


def settings(spec: Schema, *, name: WrittenExpr | WrittenText, most: int) -> NewChild:
    """A ConfigMap with fields of the spec: all that each custom resource has, and others up to this number."""
    properties = spec.get("properties") or {}
    given = [each for each, inner in properties.items() if _is_given(spec, each, str(inner.get("type")))]
    others = [each for each in properties if each not in given][: max(0, most - len(given))]
    data: dict[str, Any] = {}
    for field in (*given, *others):
        read, inner = expression("spec", field), properties[field]
        declared = inner.get("type") if "nullable" not in inner else None
        if not _KEY.fullmatch(field) or (declared is None and field in given):
            continue
        empty = {"array": "[]", "object": "{}"}.get(str(declared), "''")
        code = read if field in given else f"{read} | default({empty})"
        text = (
            code
            if declared == "string"
            else f"{code} | to_json"
            if empty != "''" or declared is None
            else f"{code} | string"
        )
        data[field] = WrittenExpr(text)
    return NewChild("config", _object("v1", "ConfigMap", name, {"data": data} if data else {}))


def _object(api_version: str, kind: str, name: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "labels": WrittenExpr("labels")}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}
