"""An item of the queue: which CR to reconcile, without the event that triggered it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ruleop.core.kinds import Object


class Request(NamedTuple):
    """The namespace and name of a CR."""

    namespace: str
    name: str

    @classmethod
    def of(cls, resource: Object) -> Request:
        return cls(resource["metadata"].get("namespace") or "", resource["metadata"]["name"])

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
