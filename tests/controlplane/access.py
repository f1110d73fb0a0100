"""The users of the control plane: bearer tokens, and a kubeconfig for each.

A token file is the simplest way to have several users. With several users, the audit log distinguishes the requests of
an operator, of the controllers and of a tenant. The API server reads the file only when it starts.
"""

from __future__ import annotations

import base64
import csv
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ADMINS = "system:masters"


@dataclass(frozen=True)
class User:
    """An identity: the name that RBAC and the audit log see, its groups, and its token."""

    name: str
    groups: tuple[str, ...]
    token: str


# Short name: (its name for the API server, its groups). 'operator' and 'tenant' may do nothing until a test grants it.
KNOWN_USERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("admin", (ADMINS,)),
    "operator": ("operator", ()),
    "tenant": ("tenant", ()),
    # One identity for all its controllers needs the rights of all of them, which no built-in role has.
    "controller-manager": ("system:kube-controller-manager", (ADMINS,)),
    "scheduler": ("system:kube-scheduler", ()),
    "kwok": ("kwok", (ADMINS,)),
}


class Users:
    """The users of one cluster."""

    def __init__(self) -> None:
        self._users: dict[str, User] = {}
        for short, (name, groups) in KNOWN_USERS.items():
            self._users[short] = User(name, groups, secrets.token_urlsafe(24))

    def __getitem__(self, short: str) -> User:
        return self._users[short]

    def __contains__(self, short: str) -> bool:
        return short in self._users

    def names(self) -> list[str]:
        """The short names."""
        return list(self._users)

    def add(self, name: str, groups: Sequence[str]) -> User:
        """Adds a user; the API server knows it from its next start."""
        user = User(name, tuple(groups), secrets.token_urlsafe(24))
        self._users[name] = user
        return user

    def write_token_file(self, path: Path) -> None:
        """Writes the file for --token-auth-file: token, user, uid, "group,group"."""
        path.touch(mode=0o600)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            for short, user in self._users.items():
                writer.writerow([user.token, user.name, f"uid-{short}", ",".join(user.groups)])


KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: ruleop
  cluster:
    server: {server}
{authority}users:
- name: {user}
  user:
    token: {token}
contexts:
- name: ruleop
  context:
    cluster: ruleop
    user: {user}
current-context: ruleop
"""


def write_kubeconfig(path: Path, server: str, authority: Path | None, user: User) -> None:
    """Writes a kubeconfig that needs no other file, so that it may be copied anywhere. Without an authority, for plain
    HTTP."""
    certificate = base64.b64encode(authority.read_bytes()).decode() if authority is not None else ""
    text = KUBECONFIG.format(
        server=server,
        authority=f"    certificate-authority-data: {certificate}\n" if certificate else "",
        user=user.name,
        token=user.token,
    )
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
