"""The permissions that the API server asks of a client that writes roles and bindings.

Nobody may grant more than they have: who writes a binding needs `bind` on the role, or all that the role grants; who
writes a role needs all that it grants, or `escalate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

RBAC: Final = "rbac.authorization.k8s.io"
BINDINGS: Final = frozenset({"RoleBinding", "ClusterRoleBinding"})
ROLES: Final = frozenset({"Role", "ClusterRole"})
_PLURALS: Final = {"Role": "roles", "ClusterRole": "clusterroles"}


@dataclass(frozen=True, slots=True)
class Granting:
    """Of one role or binding."""

    verb: str  # bind or escalate
    role: str  # Role or ClusterRole
    name: str  # of the role; empty if it is unknown
    aggregated: bool = False  # a ClusterRole whose rules are those of others

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Granting | None:
        """None for an object that grants nothing."""
        kind = obj.get("kind")
        if kind in BINDINGS:
            role = obj.get("roleRef")
            role = role if isinstance(role, dict) else {}
            referred = role.get("kind")
            return cls("bind", referred, str(role.get("name") or "")) if referred in ROLES else None
        if kind in ROLES:
            name = (obj.get("metadata") or {}).get("name")
            return cls("escalate", str(kind), str(name or ""), bool(obj.get("aggregationRule")))
        return None

    @property
    def resource(self) -> str:
        """The plural of the role's kind."""
        return _PLURALS[self.role]

    def remedy(self, account: str = "") -> str:
        """A name is quoted if it is known. `account`: the ServiceAccount that writes it, if not the operator."""
        named = f" (resourceNames: [{self.name}])" if self.name else ""
        others = "every permission" if self.aggregated else "all permissions of that role"
        whom = f"ServiceAccount {account}" if account else "operator"
        return f"grant the {whom} `{self.verb}` on {self.resource}.{RBAC}{named}, or {others}"
