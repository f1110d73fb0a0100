"""Random custom resources that are valid by the schema of their CRD. A seed always gives the same resource."""

from __future__ import annotations

import random
import re
from typing import Any

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import Schema

WORDS = [
    "a",
    "b",
    "web",
    "db-1",
    "x" * 20,
    "example.com",
    "1Gi",
    "500m",
    "*/5 * * * *",
    "10",
    "v1",
    "1.2",
    "A",
    "/a",
    "https://a.b/c",
]
FREE: list[Any] = [{}]
"""Fields that no schema declares: nothing is known of them, and they may be anything."""
OPTIONAL = 0.5


class ImpossibleError(Exception):
    """No value was found for a pattern."""


def resource(kind: Kind, schema: Schema, rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": rng.choice(["a", "blog", "my-app"]), "namespace": "shop"},
    }
    for texts in ("labels", "annotations"):
        if rng.random() < OPTIONAL:
            found["metadata"][texts] = {rng.choice(["a", "app"]): "b"}
    properties = schema.get("properties") or {}
    if "spec" in properties and ("spec" in (schema.get("required") or ()) or rng.random() < OPTIONAL):
        found["spec"] = value(properties["spec"], rng)
    return found


def value(schema: Schema, rng: random.Random) -> Any:
    if schema.get("nullable") and rng.random() < 0.2:
        return None
    if schema.get("enum"):
        return rng.choice([each for each in schema["enum"] if each is not None])
    if schema.get("x-kubernetes-int-or-string"):
        return rng.choice([_text(schema, rng), rng.randint(0, 5)])
    make = _MAKERS.get(str(schema.get("type") or ""))
    return make(schema, rng) if make is not None else rng.choice(["a", 1, True])


def _object(schema: Schema, rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    required = schema.get("required") or ()
    for name, inner in (schema.get("properties") or {}).items():
        if name in required or rng.random() < OPTIONAL:
            try:
                found[name] = value(inner, rng)
            except ImpossibleError:
                if name in required:
                    raise
    others = schema.get("additionalProperties")
    if isinstance(others, dict) and rng.random() < 0.7:
        for name in rng.sample(["a", "b", "app"], rng.randint(int(schema.get("minProperties") or 0), 2)):
            found[name] = value(others, rng)
    if schema.get("x-kubernetes-preserve-unknown-fields") and rng.random() < OPTIONAL:
        found |= rng.choice(FREE)
    return found


def _list(schema: Schema, rng: random.Random) -> list[Any]:
    least = int(schema.get("minItems") or 0)
    size = rng.randint(least, max(least, min(3, int(schema.get("maxItems") or 3))))
    found: list[Any] = []
    for _ in range(size * 3):
        item = value(schema.get("items") or {}, rng)
        if item not in found and len(found) < size:
            found.append(item)
    return found


def _integer(schema: Schema, rng: random.Random) -> int:
    least = int(schema.get("minimum") or 0)
    found = rng.randint(least, min(int(schema.get("maximum") or least + 5), least + 5))
    return found * int(schema.get("multipleOf") or 1)


def _number(schema: Schema, rng: random.Random) -> float:
    return rng.choice([_integer(schema, rng), _integer(schema, rng) + 0.5])


def _text(schema: Schema, rng: random.Random) -> str:
    pattern = re.compile(str(schema.get("pattern") or ""))
    least, most = int(schema.get("minLength") or 0), int(schema.get("maxLength") or 1000)
    words = [word for word in WORDS if pattern.search(word) and least <= len(word) <= most]
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    if not words:
        raise ImpossibleError(pattern.pattern)
    return rng.choice(words)


_MAKERS = {
    "object": _object,
    "array": _list,
    "integer": _integer,
    "number": _number,
    "string": _text,
    "boolean": lambda _, rng: rng.random() < 0.5,
}
