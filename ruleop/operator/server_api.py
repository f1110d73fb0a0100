"""Requests by kind and identity, sent to the path at which the cluster serves the kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.kubernetes.merge import Fields, KeyedFields, MapFields
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import stored_object
from ruleop.operator.wire.client.requests import MANAGER
from ruleop.operator.wire.client.server_errors import ApiError, Problem

if TYPE_CHECKING:
    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.kubernetes.merge import FieldSet
    from ruleop.kubernetes.permissions import ServiceAccount
    from ruleop.operator.wire.client.client import Client
    from ruleop.operator.wire.http.connection import PreparedRequest


# -- managed fields ----------------------------------------------------------------------------------------------------
#
# ruleop's entries of managedFields, migrated before the first server-side apply of an object that it wrote otherwise,
# and renamed when a manager gets another proof.
#
# A create, a merge patch and a PUT leave an entry with the operation Update. Server-side apply removes only fields that
# the same manager *applied*, so the entry is changed to Apply; otherwise a field that the rule drops would stay for
# ever. A patch that sets the key of a list item again makes ruleop the owner of the whole item, including fields that
# others set in it. So from an Update entry only fields in ruleop's record are kept.


Managed = Mapping[str, Any]
"""One entry of managedFields."""


def needs_migration(entries: Sequence[Managed]) -> bool:
    return any(_is_ruleop(entry) and entry.get("operation") == "Update" for entry in entries)


def migrated(entries: Sequence[Managed], recorded: FieldSet | None) -> list[Managed]:
    """The entries, with ruleop's joined to one Apply entry: the fields that it applied, and those that it updated and
    recorded."""
    own = [entry for entry in entries if _is_ruleop(entry)]
    fields: dict[str, Any] = {}
    for entry in own:
        found = entry.get("fieldsV1") or {}
        if recorded is not None and entry.get("operation") == "Update":
            found = _recorded(found, recorded.root)
        fields = _union(fields, found)
    applied = next((entry for entry in own if entry.get("operation") == "Apply"), own[0])
    return [
        *(entry for entry in entries if not _is_ruleop(entry)),
        {**applied, "operation": "Apply", "fieldsV1": fields},
    ]


def renamed(entries: Sequence[Managed], names: Mapping[str, str]) -> list[Managed]:
    """The entries, with other names for some managers that applied fields. Two of one name are joined."""
    found: dict[tuple[Any, ...], Managed] = {}
    for entry in entries:
        applied = entry.get("operation") == "Apply" and not entry.get("subresource")
        name = names.get(str(entry.get("manager"))) if applied else None
        new = {**entry, "manager": name} if name is not None else entry
        identity = tuple(new.get(part) for part in ("manager", "operation", "apiVersion", "subresource"))
        if (known := found.get(identity)) is not None:
            new = {**new, "fieldsV1": _union(known.get("fieldsV1") or {}, new.get("fieldsV1") or {})}
        found[identity] = new
    return list(found.values())


def _is_ruleop(entry: Managed) -> bool:
    return entry.get("manager") == MANAGER and not entry.get("subresource")


def _union(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _union(one.get(key) or {}, two.get(key) or {}) for key in {**one, **two}}


def _recorded(found: Mapping[str, Any], fields: Fields) -> dict[str, Any]:
    """The part of the server's field set that is in the record. Everything below a recorded single value is."""
    left: dict[str, Any] = {}
    for name, inner in found.items():
        if isinstance(fields, MapFields) and name.startswith("f:"):
            below = fields.members.get(name[2:])
        elif isinstance(fields, KeyedFields) and name.startswith("k:"):
            keys = orjson.loads(name[2:])
            below = fields.items.get(tuple(keys.get(key) for key in fields.keys))
        else:
            left[name] = inner
            continue
        if below is not None:
            left[name] = _recorded(inner, below)
    return left


# -- server api --------------------------------------------------------------------------------------------------------


Lookup = Callable[[Kind], "ResourceInfo | None"]


class ServerApi:
    """The API server as the executor and the reconciler see it."""

    def __init__(self, client: Client, lookup: Lookup) -> None:
        self.client = client
        self.holds_lease: Callable[[], bool] | None = None  # None: it needs none
        self.lookup = lookup
        self.account: ServiceAccount | None = None  # as which it writes; None: as the operator

    def writing_as(self, account: ServiceAccount | None) -> ServerApi:
        """The same API server, on which all writes have the permissions of the account. Reads stay the operator's. The
        API server adds the groups of a ServiceAccount itself; naming them would need permission for each group."""
        if account is None:
            return self
        found = ServerApi(self.client, self.lookup)
        found.holds_lease, found.account = self.holds_lease, account
        return found

    def resource(self, kind: Kind, verb: str) -> ResourceInfo:
        found = self.lookup(kind)
        if found is None:
            raise ApiError(
                Problem.NOT_FOUND, verb=verb, resource=str(kind), text="the cluster does not serve this kind"
            )
        return found

    async def read(self, kind: Kind, key: ObjectKey) -> Object | None:
        return await self._send_or_none(requests.get(self.resource(kind, "get"), key))

    async def read_metadata(self, kind: Kind, key: ObjectKey) -> Object | None:
        """Its metadata only, with its own apiVersion and kind."""
        found = await self._send_or_none(requests.get(self.resource(kind, "get"), key, metadata_only=True))
        return (
            None
            if found is None
            else {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": found["metadata"]}
        )

    async def create(self, obj: Object) -> Object:
        return await self._send(requests.create(self.resource(Kind.of(obj), "create"), obj))

    async def patch(
        self,
        kind: Kind,
        key: ObjectKey,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
        manager: str = requests.MANAGER,
    ) -> Object:
        resource = self.resource(kind, "patch")
        return await self._send(requests.merge_patch(resource, key, patch, subresource=subresource, manager=manager))

    async def replace(self, obj: Object) -> Object:
        return await self._send(requests.replace(self.resource(Kind.of(obj), "update"), ObjectKey.of(obj), obj))

    async def apply(self, obj: Object, *, recorded: FieldSet | None) -> Object:
        kind, key = Kind.of(obj), ObjectKey.of(obj)
        resource = self.resource(kind, "patch")
        await self._migrate(resource, key, recorded)
        return await self._send(requests.apply(resource, key, obj, force=True))

    async def patch_fields(self, obj: Object, *, manager: str, force: bool) -> Object:
        """Applies fields of an object that belongs to somebody else. Its uid is in it, so it is not created."""
        kind, key = Kind.of(obj), ObjectKey.of(obj)
        return await self._send(requests.apply(self.resource(kind, "patch"), key, obj, manager=manager, force=force))

    async def rename_managers(self, kind: Kind, key: ObjectKey, names: Mapping[str, str]) -> Object | None:
        """Renames managers of fields, which stay as they are. None if the object does not exist."""
        resource = self.resource(kind, "patch")
        live = await self._send_or_none(requests.get(resource, key))
        if live is None:
            return None
        entries = renamed(live["metadata"].get("managedFields") or [], names)
        return await self._send(requests.json_patch(resource, key, _with_entries(live, entries)))

    async def delete(self, kind: Kind, key: ObjectKey, *, uid: str, version: str) -> Object | None:
        """The object with its deletionTimestamp, or None if it was deleted at once."""
        try:
            response = await self._send(requests.delete(self.resource(kind, "delete"), key, uid=uid, version=version))
        except ApiError as error:
            if error.problem is Problem.NOT_FOUND:
                return None
            raise
        return None if response.get("kind") == "Status" else response

    async def _migrate(self, resource: ResourceInfo, key: ObjectKey, recorded: FieldSet | None) -> None:
        """Turns the fields that ruleop owns by Update into fields that it owns by Apply, so that the API server removes
        those that it no longer applies."""
        live = await self._send_or_none(requests.get(resource, key))
        entries = (live or {}).get("metadata", {}).get("managedFields") or []
        if live is None or not needs_migration(entries):
            return
        await self._send(requests.json_patch(resource, key, _with_entries(live, migrated(entries, recorded))))

    async def _send_or_none(self, request: PreparedRequest) -> dict[str, Any] | None:
        try:
            return await self._send(request)
        except ApiError as error:
            if error.problem is Problem.NOT_FOUND:
                return None
            raise

    async def _send(self, request: PreparedRequest) -> dict[str, Any]:
        holds = self.holds_lease
        if request.method != "GET" and holds is not None and not holds():  # it was suspended, and is about to exit
            raise ApiError(
                Problem.UNREACHABLE, verb=request.verb, resource=request.resource, text="the Lease has run out"
            )
        if request.method != "GET" and self.account is not None:
            request = replace(request, as_user=self.account.user)
        response: dict[str, Any] = await self.client.send(request)
        return (
            response
            if request.verb == "delete" and response.get("kind") == "Status"
            else stored_object(response, request)
        )


def _with_entries(live: Object, entries: Sequence[Managed]) -> list[dict[str, Any]]:
    """A JSON patch of managedFields, guarded by the resourceVersion."""
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": list(entries)},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
    ]


class StoredData:
    """An object with `data` of the operator's own on the API server: the ConfigMap of the inventory or of the
    revisions, or the Secret of the owner key."""

    def __init__(self, api: ServerApi, key: ObjectKey) -> None:
        self.api = api
        self.key = key

    async def read(self) -> Object | None:
        return await self.api.read(Kind(self.key.group, "v1", self.key.kind), self.key)

    async def write(
        self, data: Mapping[str, str], version: str, *, binary: Mapping[str, str] | None = None
    ) -> Object | None:
        """Returns the object as written; without a version it is created. None if the version is outdated (or there is
        none). `binary` is in base64."""
        metadata: dict[str, Any] = {"name": self.key.name, "namespace": self.key.namespace}
        metadata["labels"] = {"app.kubernetes.io/managed-by": "ruleop"}
        body: dict[str, Any] = {"apiVersion": "v1", "kind": self.key.kind, "metadata": metadata, "data": dict(data)}
        if binary:
            body["binaryData"] = dict(binary)
        try:
            if not version:
                return await self.api.create(body)
            return await self.api.replace({**body, "metadata": {**metadata, "resourceVersion": version}})
        except ApiError as error:
            if error.problem in {Problem.CONFLICT, Problem.EXISTS} or (version and error.problem is Problem.NOT_FOUND):
                return None
            raise
