"""The users of requests: names for tokens. Every user may do everything; the names tell the requests of several clients
apart."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Final

LOCAL_ADMIN: Final = "local-admin"


@dataclass(slots=True)
class Users:
    """The users of one cluster by their tokens. Any thread may add some."""

    by_token: dict[str, str] = field(default_factory=dict)

    def token_for(self, name: str) -> str:
        """The token of a user, who is added if there is none of that name."""
        known = next((token for token, user in self.by_token.items() if user == name), None)
        return known if known is not None else self.add(name, secrets.token_urlsafe(24))

    def add(self, name: str, token: str) -> str:
        self.by_token = {**self.by_token, token: name}
        return token

    def name_of(self, token: str) -> str | None:
        given, found = token.encode(), None
        for known, name in self.by_token.items():  # all of them, so that the time tells nothing
            if secrets.compare_digest(given, known.encode()):
                found = name
        return found
