"""The part of `kubernetes` that reads credentials, without the rest of it.

Importing anything of that package runs its `__init__`, which imports the generated models of the whole API: 18 MB and 0.2 s for what
ruleop never uses. So its modules about kubeconfigs are imported between packages that are nothing but their folders, and kept here alone:
whoever imports `kubernetes` after that gets it whole.

One thing in them is put right: a login by OIDC was renewed without a look at the provider's certificate (37.0), so the refresh token went
to whoever answered. It is also the only one that needs aiohttp, so it is imported when there is such a login to renew.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ruleop.kube.http.tls import trusting

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDERS = ("kubernetes", "kubernetes.aio", "kubernetes.aio.client", "kubernetes.aio.config")
_OPENID = "kubernetes.aio.config.openid"


class Official(NamedTuple):
    """Modules of `kubernetes.aio.config`."""

    kube_config: Any
    incluster_config: Any
    config_exception: Any


_importing = threading.Lock()  # leader election has a thread of its own
_imported: list[Official] = []


def official() -> Official:
    with _importing:
        if not _imported:
            _imported.append(_import())
    return _imported[0]


def _import() -> Official:
    with _only_folders():
        modules = Official(*(importlib.import_module(f"kubernetes.aio.config.{name}") for name in Official._fields))
    modules.kube_config.OpenIDRequestor = _requestor
    return modules


def _requestor(*arguments: Any) -> Any:
    """Who renews a login by OIDC."""
    import aiohttp  # noqa: PLC0415 - see above

    with _importing, _only_folders():
        del sys.modules[_OPENID]
        sys.modules["kubernetes.aio.config.config_exception"] = _imported[0].config_exception
        theirs: type[Any] = importlib.import_module(_OPENID).OpenIDRequestor

    class Careful(theirs):  # type: ignore[misc]  # it has no types
        def _client_session(self) -> aiohttp.ClientSession:
            return aiohttp.ClientSession(
                headers={**self._default_headers, "Authorization": aiohttp.encode_basic_auth(self._client_id, self._client_secret)},
                connector=aiohttp.TCPConnector(ssl=trusting(Path(self._ssl_ca_cert).read_bytes() if self._ssl_ca_cert else None)),
                raise_for_status=True,
                trust_env=True,
            )

        async def refresh_token(self, refresh_token: str) -> dict[str, Any]:
            """With the old refresh token where the provider gives no new one, as it may."""
            try:
                return {"refresh_token": refresh_token, **await super().refresh_token(refresh_token)}
            except aiohttp.ClientError as error:  # it is caught there only where the provider has answered
                raise _imported[0].config_exception.ConfigException(f"oidc: {str(error) or type(error).__name__}") from error

    return Careful(*arguments)


@contextmanager
def _only_folders() -> Iterator[None]:
    found = importlib.util.find_spec("kubernetes")
    assert found is not None, "a requirement of ruleop"
    assert found.origin is not None, "it is a package with an __init__"
    root = Path(found.origin).parent
    theirs = _taken()
    for name in _FOLDERS:
        folder = ModuleType(name)
        folder.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = folder
    # Both modules ask for these by name, for functions that are not called here.
    client: Any = sys.modules["kubernetes.aio.client"]
    client.ApiClient = client.Configuration = object
    openid: Any = ModuleType(_OPENID)
    openid.OpenIDRequestor = object
    sys.modules[_OPENID] = openid
    try:
        yield
    finally:
        _taken()
        sys.modules.update(theirs)


def _taken() -> dict[str, ModuleType]:
    """What is imported of `kubernetes`; after this, nothing is."""
    names = [name for name in sys.modules if name == "kubernetes" or name.startswith("kubernetes.")]
    return {name: sys.modules.pop(name) for name in names}
