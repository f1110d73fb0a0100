"""An API server without controllers, for the tests that compare ruleop's own reckoning with it, and a client quick
enough for thousands of requests."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from typing import Any

from controlplane.cluster import ControlPlane

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class RefusedError(Exception):
    """The server's answer when it does not do what it was asked to, a Status."""

    def __init__(self, status: dict[str, Any]) -> None:
        super().__init__(f"{status.get('code')} {status.get('reason')}: {status.get('message')}")
        self.code: int = status.get("code", 0)
        # The fields that are at fault; empty where the server names none.
        self.causes = frozenset(cause.get("field", "") for cause in (status.get("details") or {}).get("causes") or ())
        self.message: str = status.get("message", "")


IDLE = 15.0


class Client:
    """One connection that is kept, as the admin. (The control plane's own client opens one for each request.)"""

    def __init__(self, plane: ControlPlane) -> None:
        scheme, _, address = plane.server.partition("://")
        self._connection: http.client.HTTPConnection
        if scheme == "https":
            context = ssl.create_default_context(cafile=str(plane.layout.authority))
            self._connection = http.client.HTTPSConnection(address, context=context, timeout=30)
        else:
            self._connection = http.client.HTTPConnection(address, timeout=30)
        self._used = time.monotonic()
        self._headers = {"Authorization": f"Bearer {plane.token_for('admin')}"}

    def close(self) -> None:
        self._connection.close()

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Any:
        """The answer's JSON; raises RefusedError for whatever is not a success, or has no body."""
        headers = {**self._headers, "Accept": accept, **({"Content-Type": content_type} if body is not None else {})}
        data = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        if time.monotonic() - self._used > IDLE:  # other tests have taken their time, and the server may have closed it
            self._connection.close()
        self._used = time.monotonic()
        self._connection.request(method, path, data, headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status >= 300 or not answer:
            status = json.loads(answer) if answer.startswith(b"{") else {"message": answer.decode()}
            raise RefusedError({**status, "code": response.status})
        return json.loads(answer)

    def get(self, path: str, accept: str = "application/json") -> Any:
        return self.send("GET", path, accept=accept)

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except RefusedError as error:
            if error.code != 404:
                raise
            return False
        return True

    def post(self, path: str, body: object) -> Any:
        return self.send("POST", path, body)

    def delete(self, path: str) -> Any:
        return self.send("DELETE", path)

    def apply(self, path: str, body: object, manager: str, *, dry_run: bool = False) -> Any:
        """Server-side apply, with force."""
        query = f"fieldManager={manager}&force=true&fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.send("PATCH", f"{path}?{query}", body, APPLY)

    def merge(self, path: str, patch: object, manager: str, *, dry_run: bool = False) -> Any:
        """A JSON merge patch, RFC 7386."""
        query = f"fieldManager={manager}&fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.send("PATCH", f"{path}?{query}", patch, MERGE)

    def schemas(self) -> dict[str, Any]:
        """The types that the server publishes, by their names."""
        found: dict[str, Any] = {}
        for entry in self.get("/openapi/v3")["paths"].values():
            try:
                document = self.get(entry["serverRelativeURL"])
            except RefusedError as error:
                if error.code != 200:
                    raise
                continue  # of a group whose last kind was deleted: it is empty for a while
            found |= (document.get("components") or {}).get("schemas") or {}
        return found

    def define(self, crd: dict[str, Any], *, is_published: bool = True) -> str:
        """Makes a CRD, and returns the path of its objects in the default namespace once the server serves them.
        `is_published`: and their types, for which a server takes the longer the more often they have changed."""
        spec = crd["spec"]
        self.post(CRDS, crd)
        version = spec["versions"][0]["name"]
        path = f"/apis/{spec['group']}/{version}/namespaces/default/{spec['names']['plural']}"
        document = f"/openapi/v3/apis/{spec['group']}/{version}"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                self.get(path)
                if is_published:
                    self.get(document)
            except RefusedError:
                time.sleep(0.05)
                continue
            return path
        raise TimeoutError(f"{crd['metadata']['name']} is not served")
