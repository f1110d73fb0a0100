"""Random schemas as CRDs have them, and random values that are often valid for them."""

from __future__ import annotations

import random
from typing import Any

JSON = Any
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
