"""CRDs of a test's own, which are removed after it."""

from __future__ import annotations

import uuid
from typing import Any

from tests.contract.client import Server
from tests.contract.kinds import CRDS, GADGETS, WIDGETS, crd
from tests.waiting import eventually

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "contract.example.com"


class Definitions:
    """Makes CRDs of new names, and removes them after the test."""

    def __init__(self, server: Server) -> None:
        self.server, self.made = server, list[str]()

    def make(self, versions: list[dict[str, Any]], **spec: Any) -> tuple[str, str]:
        """Returns the name of the CRD and its plural."""
        plural = f"k{uuid.uuid4().hex[:8]}s"
        made = crd(plural, plural.title(), versions, **spec)
        name: str = made["metadata"]["name"]
        self.server.create(PATH, made)
        self.made.append(name)
        eventually("it is established", lambda: is_established(self.server.get(f"{PATH}/{name}")))
        for each in versions:
            if each["served"]:
                collection = f"/apis/{GROUP}/{each['name']}/{plural}"
                eventually("it is served", lambda collection=collection: self.server.exists(collection))
        return name, plural

    def remove(self) -> None:
        for name in self.made:
            self.server.send("DELETE", f"{PATH}/{name}")


def is_established(definition: Any) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def define_samples(server: Server) -> None:
    """Creates the CRDs of the sample kinds, and waits until they are served."""
    for definition in CRDS:
        server.send("POST", PATH, definition)
    for sample in (WIDGETS, GADGETS):
        eventually("the CRD is served", lambda sample=sample: server.exists(sample.path("default")))
