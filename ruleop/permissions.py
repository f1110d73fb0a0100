"""Descriptions of permissions in the terms of a Role: verbs, a resource and a namespace.

People grant what the message names, so it names all verbs that are needed, not only the first that was denied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

READ = ("get", "list", "watch")
ORDER = (*READ, "create", "update", "patch", "delete")


def place(namespace: str, *, namespaced: bool = True) -> str:
    """The scope of a request: a namespace, all namespaces, or nothing for a cluster-scoped kind."""
    return (f" in namespace {namespace}" if namespace else " in all namespaces") if namespaced else ""


def missing(verb: str, resource: str, where: str, needed: Iterable[str]) -> str:
    """`cannot list services in namespace shop: needs get, list, watch`; `where` as `place` gives it."""
    return f"cannot {verb} {resource}{where}: needs {_listed([verb, *needed])}"


def grant(resource: str, where: str, needed: Iterable[str]) -> str:
    """The same for the log: `get, list, watch on services in namespace shop`."""
    return f"{_listed(needed)} on {resource}{where}"


def _listed(verbs: Iterable[str]) -> str:
    known = set(verbs)
    return ", ".join([*(verb for verb in ORDER if verb in known), *sorted(known - set(ORDER))])
