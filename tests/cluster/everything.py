"""A custom kind with every kind of list and map that a CRD can declare."""

from __future__ import annotations

from typing import Any

from tests.definitions import crd, version

GROUP, VERSION, PLURAL, KIND = "merge.example.com", "v1", "everythings", "Everything"
TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}


def struct(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def listed(items: dict[str, Any], list_type: str | None = None, *keys: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": items}
    if list_type:
        schema["x-kubernetes-list-type"] = list_type
    if keys:
        schema["x-kubernetes-list-map-keys"] = list(keys)
    return schema


def opened(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


FREE = {"x-kubernetes-preserve-unknown-fields": True}
ATOMIC = {"x-kubernetes-map-type": "atomic"}
GRANULAR = {"x-kubernetes-map-type": "granular"}
PORT = struct("port", port=NUMBER, protocol={**TEXT, "default": "TCP"}, name=TEXT, to=NUMBER)
INNER = struct("name", name=TEXT, value=TEXT)

SPEC = struct(
    text=TEXT,
    number=NUMBER,
    fraction={"type": "number"},
    flag={"type": "boolean"},
    either={"x-kubernetes-int-or-string": True},
    filled={**TEXT, "default": "by the server"},
    struct=struct(a=TEXT, b=NUMBER, filled={**NUMBER, "default": 7}, deep=struct(c=TEXT, d=opened(TEXT))),
    standing={**struct(a=TEXT, size={**NUMBER, "default": 3}), "default": {}},
    plain=listed(TEXT),
    plainStructs=listed(struct(a=TEXT, b={**TEXT, "default": "by the server"})),
    atomic=listed(TEXT, "atomic"),
    set=listed(TEXT, "set"),
    numbers=listed(NUMBER, "set"),
    byName=listed(
        struct(
            "name",
            name=TEXT,
            value=TEXT,
            filled={**TEXT, "default": "by the server"},
            tags=listed(TEXT, "set"),
            args=listed(TEXT),
            labels=opened(TEXT),
            inner=listed(INNER, "map", "name"),
            struct=struct(a=TEXT, b=TEXT),
        ),
        "map",
        "name",
    ),
    byTwo=listed(struct("host", "port", host=TEXT, port=NUMBER, weight=NUMBER), "map", "host", "port"),
    ports=listed(PORT, "map", "port", "protocol"),
    atomicItems=listed({**struct("name", name=TEXT, a=TEXT, b=TEXT), **ATOMIC}, "map", "name"),
    open=opened(TEXT),
    granular={**opened(TEXT), **GRANULAR},
    atomicMap={**opened(TEXT), **ATOMIC},
    atomicStruct={**struct(a=TEXT, b=TEXT), **ATOMIC},
    structs=opened(struct(a=TEXT, b=TEXT, filled={**TEXT, "default": "by the server"})),
    sets=opened(listed(TEXT, "set")),
    maps=opened(opened(TEXT)),
    free={"type": "object", **FREE},
    halfFree={**struct(a=TEXT, list=listed(INNER, "map", "name")), **FREE},
    anything=FREE,
    embedded={"type": "object", "x-kubernetes-embedded-resource": True, **FREE},
)

CRD = crd(KIND, GROUP, version(VERSION, struct(spec=SPEC)), plural=PLURAL)
