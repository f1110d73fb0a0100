"""Descriptions of permissions in the terms of a Role: verbs, a resource and a namespace.

People grant what the message names, so it names all verbs that are needed, not only the first that was denied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLLOW = ("list", "watch")
"""The verbs that a cache needs. A server that streams lists is asked for a watch only, another one for a list first."""
READ = ("get", *FOLLOW)
ORDER = (*READ, "create", "update", "patch", "delete", "bind", "escalate")
GRANTING = frozenset({"bind", "escalate"})
ANY = "*"
NAMED = ("get", "update")
STORED = ("get", "create", "update")
"""On the operator's own objects: the inventory, the revisions, the owner key and the Lease. `NAMED`: on the object of
that name."""

EVENT_VERBS = ("create", "patch")
REVIEWS = (
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
)
"""Created for each token with --metrics-auth."""

ESCALATION = ("attempting to grant RBAC permissions not currently held", "must have cluster-admin privileges to use an")
"""The API server's words for a role or binding that grants more than its writer has."""


def place(namespace: str, *, namespaced: bool = True) -> str:
    """The scope of a request: a namespace, all namespaces, or nothing for a cluster-scoped kind."""
    return (f" in namespace {namespace}" if namespace else " in all namespaces") if namespaced else ""


def missing(verb: str, resource: str, where: str, needed: Iterable[str]) -> str:
    """`cannot list services in namespace shop: needs get, list, watch`; `where` as `place` gives it."""
    return f"cannot {verb} {resource}{where}: needs {listed([verb, *needed])}"


def grant(resource: str, where: str, needed: Iterable[str]) -> str:
    """The same for the log: `get, list, watch on services in namespace shop`."""
    return f"{listed(needed)} on {resource}{where}"


def ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    known = set(verbs)
    return (*(verb for verb in ORDER if verb in known), *sorted(known - set(ORDER)))


def listed(verbs: Iterable[str]) -> str:
    return ", ".join(ordered(verbs))
