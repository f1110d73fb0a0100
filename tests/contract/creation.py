"""Creations that are tried, and what a server answers to one that it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.recording import refusal

if TYPE_CHECKING:
    from tests.contract.client import Reply, Server


def create(server: Server, namespace: str, about: str, fields: dict[str, Any], name: str = "a") -> Reply:
    """`about`: the version, the kind and the plural."""
    version, kind, plural = about.split()
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}
    return server.send("POST", f"{root}/namespaces/{namespace}/{plural}?dryRun=All", obj)


def answer_to_creation(server: Server, namespace: str, about: str, fields: dict[str, Any], name: str = "a") -> Any:
    return refusal(create(server, namespace, about, fields, name))
