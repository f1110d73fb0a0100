"""Authorization of reads of `/metrics` by the rules of the cluster, like controller-runtime's filter.

A TokenReview names the user of the request's bearer token, and a SubjectAccessReview says whether this user may `get`
the path. Results are kept for a short time, because a scraper asks every few seconds. A client that sends a new token
each time costs the API server a limited number of reviews, and the operator's own requests hardly anything."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import structlog

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.permissions import grant
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.server_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.operator.wire.client.client import Client


# -- reviews -----------------------------------------------------------------------------------------------------------
#
# Asks the API server who a bearer token belongs to, and what that user is allowed to do.


TOKEN_REVIEWS = ResourceInfo(
    "tokenreviews",
    namespaced=False,
    status_subresource=False,
    kind=Kind("authentication.k8s.io", "v1", "TokenReview"),
)
ACCESS_REVIEWS = ResourceInfo(
    "subjectaccessreviews",
    namespaced=False,
    status_subresource=False,
    kind=Kind("authorization.k8s.io", "v1", "SubjectAccessReview"),
)


async def review_token(client: Client, token: str) -> Mapping[str, Any] | None:
    """The user of the token, or None for a token that is not valid. Raises ApiError."""
    status = await _review(client, TOKEN_REVIEWS, {"token": token})
    user = status.get("user")
    return user if status.get("authenticated") is True and isinstance(user, dict) and user.get("username") else None


async def is_allowed(client: Client, user: Mapping[str, Any], verb: str, path: str) -> bool:
    """Whether RBAC (or another authorizer of the server) allows the user this verb on a non-resource URL. Raises
    ApiError."""
    spec = {
        "user": user["username"],
        "uid": user.get("uid") or "",
        "groups": user.get("groups") or [],
        "extra": user.get("extra") or {},
        "nonResourceAttributes": {"path": path, "verb": verb},
    }
    status = await _review(client, ACCESS_REVIEWS, spec)
    return status.get("allowed") is True and status.get("denied") is not True


async def _review(client: Client, resource: ResourceInfo, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = resource.kind
    review = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec, "metadata": {}}
    response = await client.send(requests.create(resource, review))
    status = response.get("status")
    return status if isinstance(status, dict) else {}


# -- authorization -----------------------------------------------------------------------------------------------------


log = structlog.get_logger(__name__)

KEPT_ALLOWED, KEPT_REFUSED = 60.0, 10.0  # seconds
MAX_KEPT = 256  # results of each sort
MAX_REVIEWS = 10  # tokens that are reviewed in a second; a scraper has one
AT_ONCE = 2  # of the 16 requests that the operator sends at once
PATIENCE = 10.0  # seconds that a request waits for its turn
LOG_AGAIN = 60.0  # seconds

BUSY: Final = HTTPStatus.SERVICE_UNAVAILABLE


class Authorizer:
    """Called by the threads of the server. `review` gives 200, 401 or 403 for a token, or raises ApiError or
    TimeoutError."""

    def __init__(self, review: Callable[[str], HTTPStatus], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._review = review
        self._clock = clock
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        # Separate, so that invalid tokens cannot displace the scraper's.
        self._allowed, self._refused = _Results(KEPT_ALLOWED), _Results(KEPT_REFUSED)
        self._window, self._reviews = clock(), 0
        self._logged = clock() - LOG_AGAIN

    def status_of(self, authorization: str) -> HTTPStatus:
        """The status for a request with this header: 200, 401, 403, or a server error."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii() or not token.isprintable() or " " in token:
            return HTTPStatus.UNAUTHORIZED
        key = hashlib.sha256(token.encode()).digest()
        found = self._known(key)
        if found is not None:
            return found
        if not self._turns.acquire(timeout=PATIENCE):
            return BUSY
        try:
            return self._known(key) or self._reviewed(key, token)
        finally:
            self._turns.release()

    def _known(self, key: bytes) -> HTTPStatus | None:
        with self._lock:
            now = self._clock()
            return self._allowed.get(key, now) or self._refused.get(key, now)

    def _reviewed(self, key: bytes, token: str) -> HTTPStatus:
        with self._lock:
            now = self._clock()
            if now - self._window >= 1:
                self._window, self._reviews = now, 0
            self._reviews += 1
            if self._reviews > MAX_REVIEWS:
                return BUSY
        try:
            status = self._review(token)
        except ApiError as error:
            self._log(error)
            return HTTPStatus.INTERNAL_SERVER_ERROR
        except TimeoutError:
            return BUSY
        with self._lock:
            (self._allowed if status is HTTPStatus.OK else self._refused).add(key, status, self._clock())
        return status

    def _log(self, error: ApiError) -> None:
        with self._lock:
            if self._clock() - self._logged < LOG_AGAIN:
                return
            self._logged = self._clock()
        # The server's words about a request that holds a token are shown only where they are about permissions.
        text = str(error) if error.not_permitted else error.redacted
        log.warning("metrics: TokenReview failed", error=text, grant=grant(error.resource, "", ("create",)))


class _Results:
    """The statuses of tokens, by a digest: no token is kept."""

    def __init__(self, kept: float) -> None:
        self._kept = kept
        self._found: OrderedDict[bytes, tuple[HTTPStatus, float]] = OrderedDict()  # the oldest first

    def get(self, key: bytes, now: float) -> HTTPStatus | None:
        status, until = self._found.get(key, (None, 0.0))
        return status if now < until else None

    def add(self, key: bytes, status: HTTPStatus, now: float) -> None:
        self._found.pop(key, None)
        while len(self._found) >= MAX_KEPT:
            self._found.popitem(last=False)
        self._found[key] = status, now + self._kept


async def review(client: Client, path: str, token: str) -> HTTPStatus:
    """Raises ApiError."""
    user = await review_token(client, token)
    if user is None:
        return HTTPStatus.UNAUTHORIZED
    return HTTPStatus.OK if await is_allowed(client, user, "get", path) else HTTPStatus.FORBIDDEN
