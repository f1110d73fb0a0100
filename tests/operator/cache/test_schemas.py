"""The published schemas of kinds whose CRD cannot be read are fetched when needed, delay CRs for a short time only, and
are not fetched again while they are unchanged."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import orjson
import pytest
from structlog.testing import capture_logs

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import OpenApi
from ruleop.language.rules.checking import build_project
from ruleop.operator.cache.cache import Cache
from ruleop.operator.cache.published_schemas import ATTEMPTS_AWAITED, LONGEST_PAUSE, PublishedSchemas
from ruleop.operator.passes.status import StatusSchemas
from ruleop.operator.wire.client.discovery import Discovery
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning import KindInfo

APP, TOOL, GONE, BUILT_IN = (
    Kind("example.com", "v1", "App"),
    Kind("tools.example.com", "v1", "Tool"),
    Kind("example.com", "v1", "Gone"),
    Kind("apps", "v1", "Deployment"),
)


def document(kind: Kind, **status: object):
    name = f"com.example.{kind.version}.{kind.kind}"
    schema = {
        "type": "object",
        "properties": {
            "status": {"type": "object", "properties": status},
            "spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}]},
        },
        "x-kubernetes-group-version-kind": [{"group": kind.group, "version": kind.version, "kind": kind.kind}],
    }
    inner = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "again": {"$ref": "#/components/schemas/Spec"}},
    }
    return {"components": {"schemas": {name: schema, "Spec": inner}}}


class Published:
    """The schemas that a server publishes. Counts the requests."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], OpenApi | ApiError | asyncio.Event] = {}
        self.asked: list[str] = []

    async def openapi(self, group: str, version: str) -> OpenApi | None:
        self.asked.append(group)
        found = self.documents.get((group, version))
        if isinstance(found, asyncio.Event):
            await found.wait()
            return None
        if isinstance(found, ApiError):
            raise found
        return found


@pytest.fixture
def server():
    return Published()


@pytest.fixture
def world():
    served = {kind: ResourceInfo("x", True, True, kind) for kind in (APP, TOOL, BUILT_IN)}
    return Cache(SimpleNamespace(), served.get)


@pytest.fixture
def schemas(server, world):
    return PublishedSchemas(server, world)


def test_schemas_of_known_and_unserved_kinds_are_not_fetched(schemas, server, world, run):
    world.definitions[TOOL.versionless] = object()
    assert schemas.is_known([BUILT_IN, GONE, TOOL])
    assert not schemas.fetch_needed.is_set()
    assert [run(schemas.fetch(kind)) for kind in (BUILT_IN, GONE, TOOL)] == [False, False, False]
    assert server.asked == []


def test_a_published_schema_is_fetched_and_used_once(schemas, server, world, run):
    server.documents["example.com", "v1"] = OpenApi(document(APP, ready={"type": "boolean"}))
    assert not schemas.is_known([APP])
    assert schemas.fetch_needed.is_set()
    assert run(schemas.fetch(APP))
    assert schemas.is_known([APP])
    assert world.info(APP).status_schema["properties"]["status"]["properties"] == {"ready": {"type": "boolean"}}
    assert not run(schemas.fetch(APP)), "the same document is not new"
    assert schemas.pause([APP]) is None


def test_a_changed_document_replaces_the_schema(schemas, server, world, run):
    for field in ("one", "two"):
        server.documents["example.com", "v1"] = OpenApi(document(APP, **{field: {"type": "string"}}))
        assert run(schemas.fetch(APP))
        assert set(world.info(APP).status_schema["properties"]["status"]["properties"]) == {field}
    assert schemas.fetched() == [APP]


def test_a_kind_without_a_schema_is_awaited_for_some_attempts_and_requested_for_ever(schemas, server, run):
    pauses = []
    for number in range(20):
        assert schemas.is_known([APP]) == (number >= ATTEMPTS_AWAITED)
        pauses.append(schemas.pause([APP]))
        assert not run(schemas.fetch(APP))
    assert sum(pauses[:ATTEMPTS_AWAITED]) < 4
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE
    server.documents["example.com", "v1"] = OpenApi(document(APP))
    assert run(schemas.fetch(APP))


def test_a_kind_that_was_removed_during_its_fetches_is_fetched_again_when_it_returns(schemas, server, run):
    """Otherwise it would not be requested, and its CRs would wait for ever."""
    for _ in range(ATTEMPTS_AWAITED - 1):
        assert not run(schemas.fetch(APP))
    schemas.fetch_needed.clear()
    assert schemas.pause([]) is None, "no rule writes it any more"
    server.documents["example.com", "v1"] = OpenApi(document(APP))
    assert not schemas.is_known([APP])
    assert schemas.fetch_needed.is_set()
    assert run(schemas.fetch(APP))
    assert schemas.is_known([APP])


async def test_fetching_a_schema_delays_no_other_kind(
    schemas,
    server,
):
    """Neither during its fetch, nor if the server of an aggregated API does not respond."""
    server.documents["tools.example.com", "v1"] = OpenApi(document(TOOL))
    server.documents["example.com", "v1"] = hanging = asyncio.Event()
    first_lookup = asyncio.create_task(schemas.fetch(APP))
    await asyncio.sleep(0)
    assert await schemas.fetch(TOOL)
    assert schemas.is_known([TOOL])
    assert not schemas.is_known([APP])
    hanging.set()
    assert not await first_lookup


def test_a_schema_of_a_server_that_does_not_answer_is_not_waited_for(schemas, server, run, monkeypatch):
    monkeypatch.setattr("ruleop.operator.cache.published_schemas.TIMEOUT", 0.01)
    server.documents["example.com", "v1"] = asyncio.Event()
    assert not run(schemas.fetch(APP))
    assert schemas.is_known([APP])


def test_a_schema_without_permission_is_not_waited_for(schemas, server, run):
    server.documents["example.com", "v1"] = ApiError(
        Problem.FORBIDDEN, verb="discover", resource="/openapi/v3", text="no"
    )
    with capture_logs() as logs:
        run(schemas.fetch(APP))
        run(schemas.fetch(APP))
    assert schemas.is_known([APP])
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["no schema"]


def test_a_schema_is_complete_although_it_refers_to_others():
    whole = OpenApi(document(APP)).schema(APP)
    inner = whole["properties"]["spec"]["properties"]
    assert inner["size"] == {"type": "integer"}
    assert inner["again"] == {"x-kubernetes-preserve-unknown-fields": True}


def test_status_fields_missing_from_a_published_schema_are_logged_too(schemas, server, world, run):
    rules = build_project(
        {"watches.yaml": "- {group: example.com, version: v1, kind: App, status: {one: 1, two: 2}}"},
        root="r",
        environ={},
    ).rules
    status_schemas = StatusSchemas()
    with capture_logs() as logs:
        status_schemas.report(rules, world)
        assert logs == [], "nothing is known yet"
        server.documents["example.com", "v1"] = OpenApi(document(APP, one={"type": "integer"}))
        run(schemas.fetch(APP))
        status_schemas.report(rules, world)
        status_schemas.report(rules, world)
    (logged,) = logs
    assert "status.conditions, status.observedGeneration, status.two" in logged["message"]


def test_conditions_and_required_fields_that_prevent_a_status_are_logged():
    watches = "- {group: example.com, version: v1, kind: App, status: {one: 1}}"
    rules = build_project({"watches.yaml": watches}, root="r", environ={}).rules
    types = {"type": "string", "enum": ["Ready"]}
    fields = {name: {"type": "string"} for name in ("status", "reason", "message", "lastTransitionTime")}
    conditions = {"type": "array", "items": {"type": "object", "properties": {"type": types, **fields}}}
    status = {
        "type": "object",
        "required": ["one", "two", "conditions"],
        "properties": {"one": {"type": "integer"}, "two": {"type": "integer"}, "conditions": conditions},
    }
    info = KindInfo(APP, status_schema={"type": "object", "properties": {"status": status}})
    with capture_logs() as logs:
        StatusSchemas().report(rules, SimpleNamespace(info=lambda _: info))
    assert [each["message"] for each in logs] == [
        (
            "the schema of App has no status.observedGeneration, status.conditions[].observedGeneration: "
            "the API server would drop them, so they are not written"
        ),
        (
            "the CRD of App does not allow the conditions Reconciling, Stalled, so they are left out: "
            'type: must be one of "Ready"'
        ),
        "the CRD of App requires status.two, and no status is written without: set each in `status` of the rule",
    ]


# -- what goes over the wire -------------------------------------------------------------------------------------------


class Wire:
    """A client of a server whose documents are named by their hashes."""

    server = "https://x"

    def __init__(self) -> None:
        self.hashes = {"apis/example.com/v1": "1", "apis/tools.example.com/v1": "1"}
        self.asked: list[str] = []
        self.held: asyncio.Event | None = None

    async def fetch(self, request):
        self.asked.append(request.path)
        paths = {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={number}"} for path, number in self.hashes.items()
        }
        etag = orjson.dumps(paths).decode()
        return (b"", etag) if request.etag == etag else (orjson.dumps({"paths": paths}), etag)

    async def send(self, request):
        self.asked.append(f"{request.path}?{request.query}")
        if self.held is not None and "tools" in request.path:
            await self.held.wait()
        return document(APP)


async def test_a_document_is_fetched_when_needed_and_again_only_when_its_hash_has_changed():
    wire = Wire()
    discovery = Discovery(wire)
    first = await discovery.openapi("example.com", "v1")
    assert await discovery.openapi("example.com", "v1") is first
    assert wire.asked == ["/openapi/v3", "/openapi/v3/apis/example.com/v1?hash=1"]
    discovery._index_due = True  # as a refresh leaves it
    wire.hashes["apis/tools.example.com/v1"] = "2"
    assert await discovery.openapi("example.com", "v1") is first
    assert wire.asked[2:] == ["/openapi/v3"]
    discovery._index_due = True
    wire.hashes["apis/example.com/v1"] = "2"
    assert await discovery.openapi("example.com", "v1") is not first
    assert wire.asked[3:] == ["/openapi/v3", "/openapi/v3/apis/example.com/v1?hash=2"]


async def test_a_slow_document_delays_no_other():
    wire = Wire()
    wire.held = asyncio.Event()
    discovery = Discovery(wire)
    slow = asyncio.create_task(discovery.openapi("tools.example.com", "v1"))
    assert await discovery.openapi("example.com", "v1") is not None
    assert not slow.done()
    wire.held.set()
    await slow
