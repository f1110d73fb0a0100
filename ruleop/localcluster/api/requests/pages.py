"""The tokens by which a list is continued, in the form of the real server: a version, and the key of the last object.

The next page shows the objects as they were at that version. Where it is no longer known, the response has a token by
which the list continues with the objects as they are now.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

import orjson

from ruleop.localcluster.objects.go_json import problem_of
from ruleop.localcluster.status_errors import Rejected, bad_request
from ruleop.localcluster.store.object_store import Name

NOW: Final = -1
"""The version of a token that continues with the objects as they are."""

_FORMAT: Final = "meta.k8s.io/v1"
_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9_-]")
_EXPIRED: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def continue_token(version: int, after: Name, namespace: str) -> str:
    """The token of the page after an object. `namespace` is that of the list, "" for one of all namespaces."""
    return _encoded(version, f"/{_key(after, namespace)}\0")


def read_token(token: str, namespace: str, *, namespaced: bool) -> tuple[int, Name]:
    """The version of a token, and the object after which the list is continued. Raises Rejected."""
    data = _decoded(token)
    try:
        document = orjson.loads(data)
    except ValueError:
        raise _invalid(problem_of(data)) from None
    if not isinstance(document, dict) or document.get("v") != _FORMAT:
        version = document.get("v", "") if isinstance(document, dict) else ""
        raise _invalid(f"server does not recognize this encoded version {version}")
    start, version = document.get("start"), document.get("rv")
    if not version or not isinstance(version, int):
        raise _invalid(f"incorrect encoded start resourceVersion (version {_FORMAT})")
    if not start or not isinstance(start, str):
        raise _invalid(f"encoded start key empty (version {_FORMAT})")
    if ".." in start.split("/"):
        raise _invalid(start)
    key = start.removeprefix("/").removesuffix("\0")
    if not namespaced or namespace:
        return version, Name(namespace, key)
    return version, Name(*key.partition("/")[::2])


def expired_page(after: Name, namespace: str) -> Rejected:
    """The response where the version of a token is no longer known."""
    return Rejected(410, "Expired", _EXPIRED, metadata={"continue": _encoded(NOW, f"{_key(after, namespace)}\0")})


def _key(name: Name, namespace: str) -> str:
    return "/".join(filter(None, ("" if namespace else name.namespace, name.name)))


def _encoded(version: int, start: str) -> str:
    document = {"v": _FORMAT, "rv": version, "start": start}
    return base64.urlsafe_b64encode(orjson.dumps(document)).decode().rstrip("=")


def _decoded(token: str) -> bytes:
    found = _NOT_BASE64.search(token)
    try:
        if found is None:
            return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except binascii.Error:
        pass
    raise _invalid(f"illegal base64 data at input byte {found.start() if found is not None else len(token) - 1}")


def _invalid(problem: str) -> Rejected:
    return bad_request(f"invalid continue token: continue key is not valid: {problem}")
