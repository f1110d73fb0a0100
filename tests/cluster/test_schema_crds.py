"""What becomes of a custom resource, offline and on a real API server: what is dropped, what is filled in, and what is
refused, for random schemas and random objects.

    RULEOP_SCHEMA_OBJECTS=20000 pytest ... tests/cluster/test_schema_crds.py     other ones each time, and that many
"""

from __future__ import annotations

import json
import os
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from ruleop.merge import same
from ruleop.schema.crd_checks import check_crd
from ruleop.schema.structural import default, prune
from ruleop.schema.validation import validate
from tests.cluster.server import CRDS, RefusedError

if TYPE_CHECKING:
    from ruleop.schema.schema_findings import FieldPath
    from tests.cluster.server import Client

pytestmark = pytest.mark.real_server(
    "it says what becomes of an object; the server in memory has the same functions as ruleop"
)

JSON = Any
OBJECTS = int(os.environ.get("RULEOP_SCHEMA_OBJECTS", "0"))
NAMES = ("a", "b", "c")
WORDS = ("", "x", "xy", "xyz", "1", "ä")
NUMBERS = (0, 1, -1, 2, 7, 2**40)
FRACTIONS = (0.5, 1.5, 1.0, -2.25)


class Chance(random.Random):
    def often(self) -> bool:
        return self.random() < 0.7

    def seldom(self) -> bool:
        return self.random() < 0.15

    # -- schemas -------------------------------------------------------------------------------------------------------

    def schema(self, depth: int) -> JSON:
        kind = self.choice(
            ("object", "object", "array", "string", "integer", "number", "boolean", "either", "free")
            if depth
            else SCALARS
        )
        schema: JSON = {"type": kind} if kind not in {"either", "free"} else {}
        if kind == "either":
            schema["x-kubernetes-int-or-string"] = True
        elif kind == "free":
            schema["x-kubernetes-preserve-unknown-fields"] = True
        else:
            getattr(self, f"_{kind}")(schema, depth)
        if self.seldom():
            schema["nullable"] = True
        if self.seldom():
            schema["default"] = self.value(schema, wild=0.0)
        if self.seldom():
            schema[self.choice(("anyOf", "oneOf", "allOf"))] = [self._narrowing(schema) for _ in range(2)]
        elif self.seldom():
            schema["not"] = self._narrowing(schema)
        return schema

    def _object(self, schema: JSON, depth: int) -> None:
        if self.seldom():
            schema["additionalProperties"] = self.schema(depth - 1)
            if self.seldom():
                schema["minProperties"] = self.choice((0, 1, 2))
            if self.seldom():
                schema["maxProperties"] = self.choice((1, 2))
            return
        names = self.sample(NAMES, self.choice((0, 1, 2, 3)))
        schema["properties"] = {name: self.schema(depth - 1) for name in names}
        if self.seldom():
            schema["x-kubernetes-preserve-unknown-fields"] = True
        if names and self.seldom():
            schema["required"] = [self.choice(names)]

    def _array(self, schema: JSON, depth: int) -> None:
        list_type = self.choice((None, None, "atomic", "set", "map"))
        if list_type is not None:
            schema["x-kubernetes-list-type"] = list_type
        schema["items"] = self.schema(depth - 1)
        if list_type == "set":
            schema["items"] = {"type": self.choice(("string", "integer"))}
        elif list_type == "map":
            key = {"type": "string", **({"default": "x"} if self.seldom() else {})}
            schema["items"] = {"type": "object", "properties": {"a": key, "b": self.schema(depth - 1)}}
            if "default" not in key:
                schema["items"]["required"] = ["a"]
            schema["x-kubernetes-list-map-keys"] = ["a"]
        if self.seldom():
            schema["minItems"] = self.choice((0, 1, 2))
        if self.seldom():
            schema["maxItems"] = self.choice((1, 2))

    def _string(self, schema: JSON, depth: int) -> None:
        self._some(
            schema,
            minLength=(0, 1, 2),
            maxLength=(1, 2),
            pattern=("^x", "y$", "^[a-z]*$"),
            format=("date-time", "ipv4", "byte", "uuid"),
        )
        if self.seldom():
            schema["enum"] = self.sample(WORDS, 2)

    def _integer(self, schema: JSON, depth: int) -> None:
        self._some(schema, format=("int32", "int64"), minimum=(0, 1), maximum=(1, 7), multipleOf=(1, 2))
        self._exclusive(schema, depth)

    def _number(self, schema: JSON, depth: int) -> None:
        self._some(schema, minimum=(0, 0.5), maximum=(1, 1.5))
        self._exclusive(schema, depth)

    def _exclusive(self, schema: JSON, depth: int) -> None:
        for bound, word in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if bound in schema and self.seldom():
                schema[word] = True

    def _boolean(self, schema: JSON, depth: int) -> None: ...

    def _some(self, schema: JSON, **keywords: tuple[JSON, ...]) -> None:
        schema |= {word: self.choice(values) for word, values in keywords.items() if self.seldom()}

    def _narrowing(self, schema: JSON) -> JSON:
        """The contents of `allOf`, `anyOf` and the like: no type, and only fields that are declared outside."""
        if schema.get("properties") and self.often():
            return {"required": [self.choice(sorted(schema["properties"]))]}
        found: JSON = {}
        self._some(found, minLength=(1, 2), maximum=(1,), minimum=(1,), minItems=(1,))
        return found or {"enum": self.sample((*WORDS, *NUMBERS), 3)}

    # -- values --------------------------------------------------------------------------------------------------------

    def value(self, schema: JSON, *, wild: float = 0.08) -> JSON:
        """A value that is often valid for the schema."""
        if self.random() < wild:
            return self._anything(2)
        if schema.get("nullable") and self.seldom():
            return None
        if "enum" in schema and self.often():
            return self.choice(schema["enum"])
        match schema.get("type"):
            case "object":
                inner = schema.get("additionalProperties")
                declared = dict.fromkeys(NAMES, inner) if inner is not None else schema.get("properties") or {}
                found = {name: self.value(each, wild=wild) for name, each in declared.items() if self.often()}
                found |= {
                    name: self.value(declared[name], wild=wild)
                    for name in schema.get("required", ())
                    if name not in found
                }
                return found | ({self.choice((*NAMES, "z")): self._anything(1)} if self.random() < wild else {})
            case "array":
                count = self.choice((0, 1, 1, 2, 3))
                items = [self.value(schema["items"], wild=wild) for _ in range(count)]
                return items if wild else items[: 1 if schema.get("x-kubernetes-list-type") in {"set", "map"} else 3]
            case "string":
                return self.choice(
                    ("1.2.3.4", "2026-01-01T00:00:00Z", "AAE=") if "format" in schema and self.often() else WORDS
                )
            case "integer":
                return self.choice(NUMBERS)
            case "number":
                return self.choice((*NUMBERS, *FRACTIONS))
            case "boolean":
                return self.often()
        return self.choice((*WORDS, *NUMBERS)) if schema.get("x-kubernetes-int-or-string") else self._anything(2)

    def _anything(self, depth: int) -> JSON:
        kinds = "snbfNol" if depth else "snbfN"
        match self.choice(kinds):
            case "s":
                return self.choice(WORDS)
            case "n":
                return self.choice(NUMBERS)
            case "b":
                return self.often()
            case "f":
                return self.choice(FRACTIONS)
            case "o":
                return {name: self._anything(depth - 1) for name in self.sample((*NAMES, "z"), 2)}
            case "l":
                return [self._anything(depth - 1) for _ in range(self.choice((0, 1, 2)))]
        return None


SCALARS = ("string", "integer", "number", "boolean", "either")


def definition(properties: JSON, name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}.random.example.com"},
        "spec": {
            "group": "random.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Random", "plural": name},
            "versions": [version],
        },
    }


def accepted(server: Client, schema: JSON) -> bool:
    try:
        server.post(f"{CRDS}?dryRun=All", definition({"p": schema}, "tries"))
    except RefusedError:
        return False
    return True


def field(path: FieldPath) -> str:
    """The path as the server writes it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def place(text: str) -> str:
    """Without what ends a list of messages."""
    text = text.rstrip(",")
    return text if text.count("[") == text.count("]") else text.removesuffix("]")


def agree(found: set[str], error: RefusedError) -> bool:
    """What a junction or a format of numbers refuses has no field for the server; its place is in the message. What
    else the server says of a junction is the best of several."""
    junctions = set(re.findall(r'"(spec[^"]*)" must (?:not )?validate', error.message))
    formats = {place(text) for text in re.findall(r"Checked value must be of type .*? in (spec\S*)", error.message)}
    return junctions <= found if junctions else found == (error.causes - {"<nil>"}) | formats


def written(value: JSON) -> JSON:
    """The value as the server writes it: a whole number without a point."""
    if isinstance(value, dict):
        return {name: written(member) for name, member in value.items()}
    if isinstance(value, list):
        return [written(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def test_random_objects_are_defaulted_offline_as_on_the_server(server: Client) -> None:
    chance = Chance(OBJECTS or 7)
    if OBJECTS:
        chance.example()
    candidates = [chance.schema(3) for _ in range(70)]
    taken = [schema for schema in candidates if accepted(server, schema)]
    assert len(taken) > 30
    refused_here = [schema for schema in taken if check_crd(definition({"p": schema}, "tries"))]
    assert refused_here == [], "and what the server takes, so do we"
    properties = {f"p{number}": schema for number, schema in enumerate(taken)}
    crd = definition(properties, "randoms")
    path = f"{server.define(crd)}?dryRun=All&fieldValidation=Ignore"
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    outcomes = {"stored": 0, "refused": 0}
    differences = []
    for number in range(OBJECTS or 1000):
        name = chance.choice(sorted(properties))
        spec = {name: chance.value(properties[name])}
        obj = {
            "apiVersion": "random.example.com/v1",
            "kind": "Random",
            "metadata": {"name": f"r{number}"},
            "spec": spec,
        }
        ours = default(prune(obj, schema), schema)
        found = {field(finding.path) for finding in validate(ours, schema)}
        try:
            stored = server.post(path, obj)
        except RefusedError as error:
            outcomes["refused"] += 1
            if not agree(found, error):
                differences.append(
                    (properties[name], spec, "refused", sorted(error.causes), "here", sorted(found), error.message)
                )
            continue
        outcomes["stored"] += 1
        if found or not same(stored["spec"], written(ours["spec"])):
            differences.append(
                (
                    properties[name],
                    spec,
                    "stored",
                    stored["spec"].get(name),
                    "here",
                    ours["spec"].get(name),
                    sorted(found),
                )
            )
    assert min(outcomes.values()) > 200, outcomes
    if differences:
        smallest = sorted(differences, key=lambda each: len(json.dumps(each)))[:5]
        pytest.fail(
            f"{len(differences)} differ, such as\n"
            + "\n".join(json.dumps(each, ensure_ascii=False) for each in smallest)
        )
