"""What a server answers to a creation that it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.contract.client import Server


def answer_to_creation(server: Server, namespace: str, about: str, fields: dict[str, Any], name: str = "a") -> Any:
    """`about`: the version, the kind and the plural."""
    version, kind, plural = about.split()
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}
    reply = server.send("POST", f"{root}/namespaces/{namespace}/{plural}?dryRun=All", obj)
    answer = {"code": reply.status, "message": reply.body.get("message"), "causes": None}
    if reply.status == 422:
        # Some checks go through a map in Go, whose order is random.
        causes = reply.body["details"]["causes"]
        causes.sort(key=lambda cause: (cause["field"], cause["reason"], cause["message"]))
        answer |= {"causes": causes, "message": reply.body["message"].partition(" is invalid")[0]}
    return answer
