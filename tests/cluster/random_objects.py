"""Random objects of the built-in kinds, made of the schemas that the API server publishes.

What a schema does not say (what a name or an image looks like) comes from the examples in builtin.yaml and the words
below. What is invalid even so is found by asking the server: `Drawing.valid` takes back what a refusal names, until the
server accepts the rest.
"""

from __future__ import annotations

import collections
import copy
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ruleop.kubernetes.merge.equality import canonical
from tests.cluster.server import RefusedError

JSON = Any
Object = dict[str, Any]
Steps = tuple[str | int, ...]

META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
# Free-form, or another object in the object: only as the examples have it.
OPAQUE = ("RawExtension", "JSONSchemaProps", "ManagedFieldsEntry", "FieldsV1", "JSON")
# What a rule may write of metadata beside the name.
OF_META = ("annotations", "labels")
WORDS: Mapping[str, Sequence[JSON]] = {
    "annotations": ["x", "y"],
    "clusterIP": ["None"],
    "clusterIPs": ["None"],
    "containerPort": [53, 80, 8080],
    "externalName": ["one.example.com", "two.example.com"],
    "healthCheckNodePort": [],  # allocated
    "hostPort": [53, 80],
    "image": ["app", "app:1", "app:latest", "registry.example.com:5000/app", f"app@sha256:{'0' * 64}"],
    "ipFamilies": ["IPv4", "IPv6"],
    "loadBalancerClass": [],  # may not change once set, but for the type
    "mountPath": ["/a", "/b"],
    "nodePort": [],  # allocated, and taken by the objects of other tests
    "port": [53, 80, 443],
    "reference": ["app", "app:1"],
    "serviceAccount": ["one", "two"],
    "serviceAccountName": ["one", "two"],
}
TEXTS, NUMBERS, KEYS = ["x", "y"], [1, 2, 5], ["a", "b"]
QUANTITIES = ["1", "2", "500m", "1Gi"]
TIMES = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]
ROUNDS, ATTEMPTS, DEPTH = 12, 6, 14


class Drawing:
    """Draws objects, and changes them at random. The same random numbers give the same objects."""

    def __init__(
        self, schemas: Mapping[str, Any], examples: Sequence[Object], types: Mapping[str, str], chance: random.Random
    ) -> None:
        """`types` are the names of the schemas by apiVersion and kind."""
        self._schemas, self._types, self._chance = schemas, types, chance
        self._examples: dict[tuple[str, str], list[JSON]] = collections.defaultdict(list)
        for example in examples:
            self._collect(example, {"$ref": self.type_of(example)})

    def type_of(self, obj: Object) -> str:
        return self._types[f"{obj['apiVersion']} {obj['kind']}"]

    def valid(
        self, before: Object, fixed: Sequence[str], refusal: Callable[[Object], RefusedError | None]
    ) -> Object | None:
        """Another object of the kind: some of `before` is changed, added and removed at random, but for what is at the
        paths in `fixed`. None if nothing valid was found."""
        for _ in range(ATTEMPTS):
            drawn = self._changed(before, {"$ref": self.type_of(before)}, "", 0)
            for path in ("metadata.name", "apiVersion", "kind", "status", *fixed):
                _restore(drawn, before, tuple(path.split(".")))
            for round_ in range(ROUNDS):
                refused = refusal(drawn)
                if refused is None:
                    return drawn if canonical(drawn) != canonical(before) else None
                if not refused.causes:
                    break
                for cause in sorted(refused.causes):
                    _take_back(drawn, before, _steps(cause), further=round_ // 3)
        return None

    def _collect(self, value: JSON, schema: JSON) -> None:
        name, schema = self._resolved(schema)
        if type(value) is dict and "properties" in schema:
            for key, member in value.items():
                if key in schema["properties"]:
                    found = self._examples[name, key]
                    if member not in found:
                        found.append(member)
                    self._collect(member, schema["properties"][key])
        elif type(value) is dict and isinstance(schema.get("additionalProperties"), dict):
            for member in value.values():
                self._collect(member, schema["additionalProperties"])
        elif type(value) is list:
            for item in value:
                self._collect(item, schema.get("items", {}))

    def _resolved(self, schema: JSON) -> tuple[str, JSON]:
        reference = schema.get("$ref") or next((each["$ref"] for each in schema.get("allOf", ()) if "$ref" in each), "")
        name = reference.rpartition("/")[2]
        return (
            (name, {**self._schemas[name], **{key: schema[key] for key in schema if key.startswith("x-")}})
            if name
            else ("", schema)
        )

    def _changed(self, value: JSON, schema: JSON, label: str, depth: int) -> JSON:
        name, resolved = self._resolved(schema)
        if _opaque(name):
            return copy.deepcopy(value)
        if type(value) is dict and "properties" in resolved:
            return self._changed_members(value, name, resolved, depth)
        if type(value) is dict:
            values = resolved.get("additionalProperties") or {}
            kept = {
                key: self._changed(each, values, label, depth + 1)
                for key, each in value.items()
                if not self._happens(0.2)
            }
            return {**kept, **(self._map(resolved, label, depth) if self._happens(0.2) else {})}
        if type(value) is list:
            items = [
                self._changed(each, resolved["items"], label, depth + 1) for each in value if not self._happens(0.15)
            ]
            if self._happens(0.2):
                items.append(self._drawn(resolved["items"], label, depth + 1))
            return _distinct([each for each in items if each is not None], resolved)
        return value if not self._happens(0.2) else self._drawn(schema, label, depth)

    def _changed_members(self, value: Object, name: str, schema: JSON, depth: int) -> Object:
        properties = _written(name, schema)
        changed: Object = {}
        for key, inner in properties.items():
            if key in value:
                required = key in schema.get("required", ())
                if not required and self._happens(min(0.2, 2 / len(value))):
                    continue
                redrawn = self._example(name, key, inner, depth) if self._happens(0.1) else None
                changed[key] = redrawn if redrawn is not None else self._changed(value[key], inner, key, depth + 1)
            elif self._happens(min(0.15, 1.5 / len(properties))):
                drawn = self._example(name, key, inner, depth)
                if drawn is not None:
                    changed[key] = drawn
        return changed

    def _example(self, name: str, key: str, schema: JSON, depth: int) -> JSON:
        found = self._examples.get((name, key))
        if found and key not in WORDS and self._happens(0.5):
            return copy.deepcopy(self._chance.choice(found))
        return self._drawn(schema, key, depth + 1)

    def _drawn(self, schema: JSON, label: str, depth: int) -> JSON:
        """A new value; None where there is nothing to draw from."""
        name, resolved = self._resolved(schema)
        if _opaque(name) or depth > DEPTH:
            return None
        if name == QUANTITY:
            return self._chance.choice(QUANTITIES)
        if "properties" in resolved:
            return self._object(name, resolved, depth)
        if "additionalProperties" in resolved:
            return self._map(resolved, label, depth)
        if resolved.get("type") == "array":
            items = [self._drawn(resolved["items"], label, depth + 1) for _ in range(self._chance.choice((1, 1, 2)))]
            return _distinct([each for each in items if each is not None], resolved)
        return self._scalar(resolved, label)

    def _object(self, name: str, schema: JSON, depth: int) -> Object:
        properties = _written(name, schema)
        drawn = {}
        for key, inner in properties.items():
            if key in schema.get("required", ()) or self._happens(min(0.5, 2 / len(properties))):
                value = self._example(name, key, inner, depth)
                if value is not None:
                    drawn[key] = value
        return drawn

    def _map(self, schema: JSON, label: str, depth: int) -> Object:
        values = schema["additionalProperties"]
        keys = ["cpu", "memory"] if values.get("$ref", "").endswith(QUANTITY) else KEYS
        drawn = {
            key: self._drawn(values, label, depth + 1) for key in self._chance.sample(keys, self._chance.choice((1, 2)))
        }
        return {key: value for key, value in drawn.items() if value is not None}

    def _scalar(self, schema: JSON, label: str) -> JSON:
        kind = schema.get("type")
        if kind == "boolean":
            return self._happens(0.5)
        pool: Sequence[JSON]
        if schema.get("enum"):
            pool = [each for each in schema["enum"] if each]
        elif schema.get("format") == "date-time":
            pool = TIMES
        elif label in WORDS:
            pool = WORDS[label]
        else:
            kinds: tuple[type, ...] = (
                (int, float) if kind in ("integer", "number") else (int, str) if "oneOf" in schema else (str,)
            )
            known = (value for (_, key), values in self._examples.items() if key == label for value in values)
            pool = [value for value in known if type(value) in kinds] or (
                NUMBERS if int in kinds and str not in kinds else TEXTS
            )
        return self._chance.choice(pool) if pool else None

    def _happens(self, probability: float) -> bool:
        return self._chance.random() < probability


def _opaque(name: str) -> bool:
    return name.rpartition(".")[2] in OPAQUE


def _written(name: str, schema: JSON) -> dict[str, Any]:
    """The properties of a type that a user writes."""
    properties = schema["properties"]
    names = OF_META if name == META else [key for key in sorted(properties) if key != "status"]
    return {key: properties[key] for key in names}


def _distinct(items: list[JSON], schema: JSON) -> list[JSON]:
    """The items of a list without duplicates and without items that lack a key, by the keys that the list declares."""
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    merge = schema.get("x-kubernetes-patch-merge-key")
    names = keys or ([merge] if merge else [])

    def key_of(item: JSON) -> bytes:
        return canonical([item.get(name, "TCP") for name in names] if names and type(item) is dict else item)

    keyed = (item for item in items if all(name in item or name == "protocol" for name in names))
    return list({key_of(item): item for item in keyed}.values())


def _steps(cause: str) -> Steps:
    """`spec.containers[0].env[a.b]` as its names and positions."""
    found = re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", cause)
    return tuple(name or (int(index) if index.isdigit() else index) for name, index in found)


def at(value: JSON, path: Steps) -> JSON:
    """The value at a path, or None."""
    for step in path:
        if type(value) is dict:
            value = value.get(str(step))
        elif type(value) is list and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _restore(drawn: Object, before: Object, path: Steps) -> None:
    """What stands at a path as it was before, also if nothing did. `*` is every name there but those after it:
    `*-image-tolerations`."""
    *outer, last = path
    if str(last).startswith("*"):
        either = (at(drawn, tuple(outer)) or {}) | (at(before, tuple(outer)) or {})
        for name in set(either) - set(str(last).split("-")):
            _restore(drawn, before, (*outer, name))
        return
    holder, model = at(drawn, tuple(outer)), at(before, tuple(outer))
    if type(model) is not dict:
        return
    if type(holder) is not dict:
        _restore(drawn, before, tuple(outer))
    elif last in model:
        holder[str(last)] = copy.deepcopy(model[last])
    else:
        holder.pop(str(last), None)


def _take_back(drawn: Object, before: Object, path: Steps, *, further: int) -> None:
    """Reverts the change at a path that the server rejects: the value before is valid. `further`: this many levels
    above the path."""
    for target in list(_upwards(path))[further:]:
        holder, last = at(drawn, target[:-1]), target[-1]
        if type(holder) is list and isinstance(last, int) and last < len(holder):
            del holder[last]
            return
        if type(holder) is dict:
            old = at(before, target)
            if canonical(holder.get(str(last))) == canonical(old):
                continue
            if old is None:
                holder.pop(str(last), None)
            else:
                holder[str(last)] = copy.deepcopy(old)
            return


def _upwards(path: Steps) -> Iterator[Steps]:
    return (path[:length] for length in range(len(path), 0, -1))
