"""Fields of manifests that move into the spec of the custom resource: named by the user, or what usually varies.

A lifted field keeps its value as the default of the new field, except host names, which two custom resources cannot
share.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.inferred_schema import infer
from ruleop.authoring.scaffold.manifests.names import group as group_of
from ruleop.authoring.scaffold.naming import ScaffoldError, camel, expression, free
from ruleop.authoring.scaffold.yaml_layout import WrittenExpr, items_at, value_at, walk
from ruleop.kubernetes.merge import PathError, PathSelector, parse_path, scalar_text
from ruleop.language.rules.keys.simple_schema import INT_OR_STRING
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ruleop.authoring.scaffold.manifests.cleaning import Manifest
    from ruleop.authoring.scaffold.manifests.names import SharedName
    from ruleop.authoring.scaffold.yaml_layout import TreePath
    from ruleop.kubernetes.merge import Path
    from ruleop.kubernetes.schema import Schema

_REPLICATED: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"})
_SHARED: Final = frozenset({"image", "host"})
"""Fields of which equal values are one field: two containers of one image, the rule and the certificate of a host."""


@dataclass(frozen=True, slots=True)
class LiftCandidate:
    """A field of a manifest, and where it would go in the spec."""

    manifest: Manifest
    path: TreePath
    field: tuple[str, ...]
    required: bool = False

    @property
    def value(self) -> Any:
        return value_at(self.manifest.body, self.path)


@dataclass(slots=True)
class Lifted:
    """The spec that the lifted fields make, and the expressions that take their place."""

    spec: dict[str, Any] = field(default_factory=dict)  # of the sample
    properties: dict[str, Any] = field(default_factory=dict)  # the schema's, nested as the spec is
    required: set[tuple[str, ...]] = field(default_factory=set)
    changes: dict[str, dict[TreePath, Any]] = field(default_factory=dict)
    shown: list[tuple[str, str]] = field(default_factory=list)  # the field, and what it came from

    def add(self, name: tuple[str, ...], value: Any, schema: Schema, *, required: bool) -> tuple[str, ...]:
        """Adds a field to the spec, under a name that is free."""
        spec, properties = self.spec, self.properties
        *groups, last = name
        path: list[str] = []
        for group in groups:
            inner = f"{group}Values" if isinstance(properties.get(group), _Leaf) else group
            spec, properties = spec.setdefault(inner, {}), properties.setdefault(inner, {})
            path.append(inner)
        last = free(last, spec)
        spec[last], properties[last] = value, _Leaf(schema)
        full = (*path, last)
        if required:
            self.required.add(full)
        return full

    def schema(self, properties: Mapping[str, Any] | None = None, path: tuple[str, ...] = ()) -> Schema:
        """The schema of the spec."""
        declared: dict[str, Any] = {}
        required = []
        for name, inner in (self.properties if properties is None else properties).items():
            full = (*path, name)
            if isinstance(inner, _Leaf):
                schema = inner.schema
                default = None if full in self.required else value_at(self.spec, full)
            else:
                schema = self.schema(inner, full)
                default = None if schema.get("required") else {}
            declared[name] = schema if default is None else {**schema, "default": default}
            if default is None:
                required.append(name)
        return {"type": "object", **({"required": required} if required else {}), "properties": declared}


@dataclass(frozen=True, slots=True)
class _Leaf:
    schema: Schema


def lift(candidates: Sequence[LiftCandidate], taken: Mapping[str, Collection[TreePath]], lifted: Lifted) -> None:
    """Lifts the candidates, except where the value names another object (`taken`, by manifest)."""
    shared: dict[tuple[str, Any], tuple[str, ...]] = {}
    for candidate in candidates:
        manifest, path, value = candidate.manifest, candidate.path, candidate.value
        if any(each[: len(path)] == path for each in taken.get(str(manifest), ())):
            continue
        key = (candidate.field[-1], value if isinstance(value, str) else None)
        name = shared.get(key) if key[0] in _SHARED else None
        if name is None:
            name = _added(lifted, candidate, value)
            if key[0] in _SHARED and key[1] is not None:
                shared[key] = name
        else:
            lifted.shown.append((expression("spec", *name), manifest.describe(path)))
        lifted.changes.setdefault(str(manifest), {})[path] = WrittenExpr(expression("spec", *name))


def _added(lifted: Lifted, candidate: LiftCandidate, value: Any) -> tuple[str, ...]:
    schema = INT_OR_STRING if candidate.field[-1] == "storage" else infer([value], candidate.field[-1], defaults=False)
    name = lifted.add(candidate.field, value, schema, required=candidate.required)
    lifted.shown.append((expression("spec", *name), candidate.manifest.describe(candidate.path)))
    return name


# -- what usually varies ---------------------------------------------------------------------------------------------


def usual(manifests: Sequence[Manifest], shared: SharedName) -> Iterator[LiftCandidate]:
    """The fields that vary from one installation to another."""
    # The fields of the main objects come first.
    for manifest in sorted(manifests, key=lambda each: bool(group_of(each, shared))):
        group = group_of(manifest, shared)
        body, kind = manifest.body, manifest.kind.kind
        if kind in _REPLICATED:
            yield from _field(manifest, ("spec", "replicas"), (*group, "replicas"))
        for path, value in walk(body):
            if isinstance(value, dict) and isinstance(value.get("containers"), list):
                yield from _of_pod(manifest, path, group)
        yield from _of_storage(manifest, group)
        yield from _of_kind(manifest, group)


def _field(
    manifest: Manifest, path: TreePath, name: tuple[str, ...], *, required: bool = False
) -> Iterator[LiftCandidate]:
    if value_at(manifest.body, path) not in (None, "", {}, []):
        yield LiftCandidate(manifest, path, name, required)


def _of_pod(manifest: Manifest, pod: TreePath, group: tuple[str, ...]) -> Iterator[LiftCandidate]:
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(items_at(manifest.body, (*pod, kind))):
            if not isinstance(container, dict):
                continue
            path = (*pod, kind, index)
            inside = group if kind == "containers" and index == 0 else (*group, camel(str(container.get("name"))))
            yield from _field(manifest, (*path, "image"), (*inside, "image"))
            yield from _field(manifest, (*path, "resources"), (*inside, "resources"))
            for number, variable in enumerate(items_at(container, ("env",))):
                if isinstance(variable, dict) and isinstance(variable.get("value"), str):
                    name = (*inside, "env", camel(str(variable.get("name"))))
                    yield from _field(manifest, (*path, "env", number, "value"), name)


def _of_storage(manifest: Manifest, group: tuple[str, ...]) -> Iterator[LiftCandidate]:
    claims: list[tuple[TreePath, tuple[str, ...]]] = []
    if manifest.kind.kind == "PersistentVolumeClaim":
        claims.append((("spec",), group))
    templates = items_at(manifest.body, ("spec", "volumeClaimTemplates"))
    for index, template in enumerate(templates):
        name = camel(str(value_at(template, ("metadata", "name"))))
        inside = (*group, name) if len(templates) > 1 else group
        claims.append((("spec", "volumeClaimTemplates", index, "spec"), inside))
    for path, inside in claims:
        yield from _field(manifest, (*path, "resources", "requests", "storage"), (*inside, "storage"))
        yield from _field(manifest, (*path, "storageClassName"), (*inside, "storageClass"))


def _of_kind(manifest: Manifest, group: tuple[str, ...]) -> Iterator[LiftCandidate]:
    body = manifest.body
    match manifest.kind.kind:
        case "CronJob":
            yield from _field(manifest, ("spec", "schedule"), (*group, "schedule"))
        case "HorizontalPodAutoscaler":
            for name in ("minReplicas", "maxReplicas"):
                yield from _field(manifest, ("spec", name), (*group, name))
        case "Ingress":
            yield from _field(manifest, ("spec", "ingressClassName"), (*group, "ingressClass"))
            for path, _ in walk(body):
                if path[-1:] == ("host",) or path[-2:-1] == ("hosts",):
                    yield from _field(manifest, path, (*group, "host"), required=True)


# -- named by the user -----------------------------------------------------------------------------------------------


def named(manifests: Sequence[Manifest], shared: SharedName, texts: Sequence[str]) -> Iterator[LiftCandidate]:
    """The fields that `--lift` names: `PATH`, `KIND/NAME:PATH`, each also with `=FIELD` for the name in the spec."""
    for text in texts:
        place, _, target = _split(text)
        owner, colon, path_text = place.partition(":")
        if not colon or "[" in owner:
            owner, path_text = "", place
        try:
            path = parse_path(path_text)
        except PathError as error:
            raise ScaffoldError(f"--lift {text}: {error}") from None
        found = [
            (manifest, concrete)
            for manifest in manifests
            if owner in ("", str(manifest))
            for concrete in _matches(manifest.body, path)
        ]
        if not found:
            where = f" in {owner}" if owner else ""
            raise ScaffoldError(f"--lift {text}: no manifest has this field{where}")
        for manifest, concrete in found:
            if concrete[0] in ("apiVersion", "kind", "metadata"):
                raise ScaffoldError(f"--lift {text}: names and kinds follow the custom resource, and are not lifted")
            name = tuple(target.split(".")) if target else (*group_of(manifest, shared), _field_name(path))
            yield LiftCandidate(manifest, concrete, name)


def _split(text: str) -> tuple[str, str, str]:
    """The place and the field: the `=` outside of brackets separates them."""
    depth = 0
    for index, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if sign == "=" and not depth:
            return text[:index], "=", text[index + 1 :]
    return text, "", ""


def _field_name(path: Path) -> str:
    *_, last = names = [each for each in path.segments if isinstance(each, str)]
    selectors = [each for each in path.segments if isinstance(each, PathSelector)]
    if last == "value" and selectors:
        return camel(selectors[-1].pairs[0][1])
    return camel(names[-1])


def _matches(body: Mapping[str, Any], path: Path) -> Iterator[TreePath]:
    open_paths: list[tuple[TreePath, Any]] = [((), body)]
    for segment in path.segments:
        following: list[tuple[TreePath, Any]] = []
        for concrete, value in open_paths:
            if isinstance(segment, str):
                if isinstance(value, dict) and segment in value:
                    following.append(((*concrete, segment), value[segment]))
            elif isinstance(value, list):
                following += [
                    ((*concrete, index), item)
                    for index, item in enumerate(value)
                    if isinstance(item, dict)
                    and all(key in item and scalar_text(item[key]) == text for key, text in segment.pairs)
                ]
        open_paths = following
    yield from (concrete for concrete, _ in open_paths)
