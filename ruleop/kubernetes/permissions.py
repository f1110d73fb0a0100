"""Permissions in the terms of a Role (verbs, a resource and a namespace), and the ServiceAccounts that have them.

People grant what the message names, so it names all verbs that are needed, not only the first that was denied."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ruleop.kubernetes.names import LABEL, MAX_LABEL, MAX_NAME, SUBDOMAIN

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


# -- ServiceAccounts by whose permissions ruleop writes --------------------------------------------------------------
#
# A custom resource may decide a name, so it is checked as a name of the API before it becomes a part of a request.


ACCOUNT_PATTERN: Final = rf"(?=[^/]{{1,{MAX_LABEL}}}/[^/]{{1,{MAX_NAME}}}$){LABEL}/{SUBDOMAIN}"
ACCOUNT_IN_WORDS: Final = 'a ServiceAccount as NAMESPACE/NAME, such as "shop/deployer"'
IMPERSONATE: Final = "impersonate"
"""The verb that the operator needs on the ServiceAccount."""

_SLOT: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_COMPUTED: Final = "\0"


class ServiceAccount(NamedTuple):
    """The identity of one."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ServiceAccount | None:
        """None if it is not the name of one."""
        if re.fullmatch(ACCOUNT_PATTERN, text, re.ASCII) is None:
            return None
        namespace, _, name = text.partition("/")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


def literal_parts(source: str) -> tuple[str, str]:
    """The namespace and the name in a template of an account, each empty if it is computed."""
    namespace, slash, name = _SLOT.sub(_COMPUTED, source).partition("/")
    if not slash or "/" in name:
        return "", ""
    return "" if _COMPUTED in namespace else namespace, "" if _COMPUTED in name else name
