"""ServiceAccounts by whose permissions ruleop writes: their names, and the user that the API server knows.

A custom resource may decide a name, so it is checked as a name of the API before it becomes a part of a request.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ruleop.kubernetes.names import LABEL, MAX_LABEL, MAX_NAME, SUBDOMAIN

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
