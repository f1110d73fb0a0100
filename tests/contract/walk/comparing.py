"""Compares the answers of two servers, without what differs from server to server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.contract.client import Reply
from tests.contract.recording import GO_WORDS

_OF_THE_SERVER = {
    "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "lastTransitionTime",
    "clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort",
}  # fmt: skip
_GIVEN = (None, "", "None", ["None"], "u1", "u2")  # values of these fields that a request gave
_IN_TEXTS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"kube-api-access-\w{5}"), "kube-api-access-X"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    # The real server stops at some of the errors, in a random order.
    (re.compile(r"(failed to create typed patch object \([^)]*\)).*", re.DOTALL), r"\1"),
    # Whole objects, with the names of Go's fields or in another order.
    (re.compile(r'Invalid value: "?\{.{200,}', re.DOTALL), "Invalid value: OBJECT"),
)
SHOWN = 300


def differences(real: Reply, memory: Reply) -> list[str]:
    """Where the answers differ, beginning with the status code."""
    if real.status >= 400 and GO_WORDS.search(real.text):
        return [] if memory.status == real.status else [f"code: real {real.status}, in memory {memory.status}"]
    return list(_different(_answer(real), _answer(memory), ""))


def is_wrong_status(real: Reply, memory: Reply) -> bool:
    """Whether only the status is refused: the server in memory does not check it, as controllers write it."""
    causes = (real.body.get("details") or {}).get("causes") if real.status == 422 and memory.status < 300 else ()
    return bool(causes) and all(cause.get("field", "").startswith("status.") for cause in causes)


def _answer(reply: Reply) -> dict[str, Any]:
    body = _normal(reply.body)
    if isinstance(body, dict) and (body.get("details") or {}).get("causes"):
        # A refusal is the same if it names the same fields: rare ones have words of their own in memory, and some
        # checks go through a map in Go, whose order is random.
        body["details"]["causes"] = sorted({cause.get("field", "") for cause in body["details"]["causes"]})
        body["details"]["causes"] = [each for each in body["details"]["causes"] if each != "<nil>"]
        del body["message"]
    return {"code": reply.status, "body": body}


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _normal_field(name, inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_normal(each) for each in value]
    if isinstance(value, str):
        for pattern, replacement in _IN_TEXTS:
            value = pattern.sub(replacement, value)
    return value


def _normal_field(name: str, value: Any) -> Any:
    if name in _OF_THE_SERVER and not isinstance(value, dict) and value not in _GIVEN:
        return "*"
    if name == "managedFields" and isinstance(value, list):  # times decide the order of entries
        return sorted(_normal(value), key=lambda each: json.dumps(each, sort_keys=True))
    return _normal(value)


def _different(real: Any, memory: Any, path: str) -> Iterator[str]:
    if isinstance(real, dict) and isinstance(memory, dict):
        names = [*real, *(name for name in memory if name not in real)]
        for name in sorted(names, key=lambda name: (path or name != "code", name)):
            inner = f"{path}.{name}".lstrip(".")
            if name not in real:
                yield f"{inner}: only in memory: {_shown(memory[name])}"
            elif name not in memory:
                yield f"{inner}: only real: {_shown(real[name])}"
            else:
                yield from _different(real[name], memory[name], inner)
    elif isinstance(real, list) and isinstance(memory, list) and len(real) == len(memory):
        for index, (one, other) in enumerate(zip(real, memory, strict=True)):
            yield from _different(one, other, f"{path}[{index}]")
    elif real != memory or type(real) is not type(memory):
        yield f"{path}: real {_shown(real)}, in memory {_shown(memory)}"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
