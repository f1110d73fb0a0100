"""The connection to the cluster of a kubeconfig. It changes nothing: one client rejects every request that does not
only read, and the other makes a dry run of it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.errors import RuleopError
from ruleop.operator.wire.auth.credentials import find_credentials
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import Client, Session
from ruleop.operator.wire.client.discovery import Discovery
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.operator.wire.http.access import CredentialsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.operator.wire.http.connection import PreparedRequest


class NotConnectedError(RuleopError):
    """The cluster cannot be used: no credentials, no answer, or no permission to discover its kinds."""


class ReadingClient(Client):
    """A client that sends no other requests than GET, whatever is asked of it."""

    async def fetch(self, request: PreparedRequest) -> tuple[bytes, str]:
        if request.method != "GET":
            raise RuleopError(f"{request.verb} {request.resource}: this command only reads")
        return await super().fetch(request)


class DryRunClient(Client):
    """A client whose writes are all dry runs, whatever is asked of it."""

    async def fetch(self, request: PreparedRequest) -> tuple[bytes, str]:
        return await super().fetch(requests.as_dry_run(request))


@dataclass(frozen=True, slots=True)
class ReadOnlyConnection:
    session: Session
    client: ReadingClient
    discovery: Discovery
    namespace: str  # of the context

    def resources(self) -> list[ResourceInfo]:
        """All kinds whose objects can be listed, each in the version that the server prefers."""
        found = self.discovery.catalogue.preferred.values()
        return [each.info for each in found if {"get", "list"} <= each.verbs]


@contextlib.asynccontextmanager
async def connected(kubeconfig: str, context: str) -> AsyncIterator[ReadOnlyConnection]:
    """Connects, and discovers the kinds that the cluster serves. Raises NotConnectedError."""
    try:
        credentials = find_credentials(kubeconfig, context, environ=os.environ)
        session = await Session.open(credentials)
    except CredentialsError as error:
        raise NotConnectedError(str(error)) from error
    try:
        client = ReadingClient(session)
        discovery = Discovery(client)
        try:
            await discovery.refresh()
        except ApiError as error:
            raise NotConnectedError(f"{session.server}: {error}") from error
        yield ReadOnlyConnection(session, client, discovery, credentials.namespace or "default")
    finally:
        await session.close()
