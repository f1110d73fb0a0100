"""A login by OIDC: the id token of a kubeconfig, renewed with its refresh token.

`kubernetes` renews one, too (37.0), but where the kubeconfig names no CA it does not verify the provider's certificate,
so the refresh token would go to any server that answers.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruleop.files import MAX_CREDENTIAL, read_regular
from ruleop.operator.wire.http.tls import trusting_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

# A token is renewed this long before it expires, as `kubernetes` does.
EXPIRY_MARGIN = 300.0


class OidcError(ValueError):
    """The login could not be renewed."""


class OidcLogin:
    """`config` is that of the kubeconfig's `auth-provider`. Keeps the tokens that it gets: a refresh token may be valid
    only once, and nothing is written to the kubeconfig."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._id_token = str(config.get("id-token") or "")
        self._refresh_token = str(config.get("refresh-token") or "")

    async def token(self) -> str:
        """An id token that is valid for some minutes at least. Raises OidcError."""
        expires = _expiry(self._id_token) if self._id_token else 0.0
        if expires is not None and expires - EXPIRY_MARGIN <= time.time():
            await self._renew()
        return self._id_token

    async def _renew(self) -> None:
        import aiohttp  # noqa: PLC0415 - only such a login needs it

        if not self._refresh_token:
            raise OidcError("oidc: the id token is missing or has expired, and there is no refresh-token")
        issuer, client_id = self._required("idp-issuer-url"), self._required("client-id")
        login = aiohttp.encode_basic_auth(client_id, str(self._config.get("client-secret") or ""))
        trusted = self._trusted()
        try:
            async with aiohttp.ClientSession(
                headers={"Accept": "application/json", "Authorization": login},
                connector=aiohttp.TCPConnector(ssl=trusted),
                raise_for_status=True,
                trust_env=True,
            ) as session:
                self._id_token, renewed = await self._request_tokens(session, issuer.rstrip("/"))
        except aiohttp.ClientError as error:
            raise OidcError(f"oidc: {str(error) or type(error).__name__}") from error
        except (LookupError, TypeError, ValueError) as error:
            raise OidcError(f"oidc: unexpected answer of {issuer} ({type(error).__name__})") from error
        # The provider may keep the old refresh token.
        self._refresh_token = renewed or self._refresh_token

    async def _request_tokens(self, session: aiohttp.ClientSession, issuer: str) -> tuple[str, str]:
        """An id token and a refresh token; '' for a refresh token that stays the same."""
        async with session.get(f"{issuer}/.well-known/openid-configuration") as response:
            endpoint = (await _json(response))["token_endpoint"]
        grant = {"grant_type": "refresh_token", "refresh_token": self._refresh_token}
        async with session.post(endpoint, data=grant) as response:
            tokens = await _json(response)
        id_token, refresh_token = tokens["id_token"], tokens.get("refresh_token") or ""
        if not isinstance(id_token, str) or not isinstance(refresh_token, str):
            raise TypeError("a token is not a string")
        return id_token, refresh_token

    def _trusted(self) -> ssl.SSLContext:
        try:
            if data := self._config.get("idp-certificate-authority-data"):
                return trusting_context(base64.b64decode(data))
            file = self._config.get("idp-certificate-authority")
            return trusting_context(read_regular(Path(file), MAX_CREDENTIAL) if file else None)
        except (OSError, TypeError, ValueError, ssl.SSLError) as error:
            raise OidcError(f"oidc: the CA of the provider cannot be read: {error}") from error

    def _required(self, name: str) -> str:
        if not self._config.get(name):
            raise OidcError(f"oidc: {name} is missing in the kubeconfig")
        return str(self._config[name])


async def _json(response: aiohttp.ClientResponse) -> Any:
    body = bytearray()
    async for piece in response.content.iter_chunked(1 << 16):
        body += piece
        if len(body) > MAX_CREDENTIAL:
            raise ValueError("the answer is too large")
    return json.loads(body)


def _expiry(token: str) -> float | None:
    """When the token expires; None: never. Its signature is the API server's business."""
    parts = token.split(".")
    if len(parts) != 3:
        raise OidcError("oidc: the id-token is not a JWT")
    try:
        expires = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))).get("exp")
        return None if expires is None else float(expires)
    except (AttributeError, TypeError, ValueError) as error:
        raise OidcError("oidc: the id-token is not a JWT") from error
