"""Discovery documents become a catalogue of kinds; the rest is in tests/cluster."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.operator.wire.client.discovery import Catalogue, Discovery, difference, read_catalogue
from ruleop.operator.wire.client.server_errors import ApiError
from tests.operator.wire.http_server import Exchange
from tests.operator.wire.test_client import client_of


def resource(
    kind: str, *, scope: str = "Namespaced", subresources: tuple[str, ...] = (), group: str = "example.com"
) -> dict[str, Any]:
    return {
        "resource": kind.lower() + "s",
        "responseKind": {"group": group, "version": "v1", "kind": kind},
        "scope": scope,
        "verbs": ["list", "watch"],
        "subresources": [{"subresource": name} for name in subresources],
    }


def document(*versions: dict[str, Any], group: str = "example.com") -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": group}, "versions": list(versions)}]}


def version(name: str, *resources: dict[str, Any], freshness: str = "Current") -> dict[str, Any]:
    return {"version": name, "resources": list(resources), "freshness": freshness}


def test_discovered_kinds_have_their_scope_verbs_and_subresources() -> None:
    found = read_catalogue([document(version("v1", resource("App", subresources=("status", "scale"))))], Catalogue())
    app = found.get(Kind("example.com", "v1", "App"))
    assert (app.info.plural, app.info.namespaced, app.info.status_subresource) == ("apps", True, True)
    assert {"list", "watch"} <= app.verbs
    assert app.subresources == {"status", "scale"}
    assert found.get(Kind("example.com", "v2", "App")) is None


def test_a_kind_has_its_singular_and_short_names() -> None:
    named = {**resource("App"), "singularResource": "app", "shortNames": ["a"]}
    found = read_catalogue([document(version("v1", named, resource("Job")))], Catalogue())
    assert found.kinds[Kind("example.com", "v1", "App")].aliases == {"app", "a"}
    assert found.kinds[Kind("example.com", "v1", "Job")].aliases == frozenset()


def test_a_kind_without_a_version_resolves_to_the_version_preferred_by_the_server() -> None:
    found = read_catalogue(
        [document(version("v2", resource("App")), version("v1", resource("App"), resource("Old")))], Catalogue()
    )
    assert found.get(GroupKind("example.com", "App")).info.kind.version == "v2"
    assert found.get(GroupKind("example.com", "Old")).info.kind.version == "v1"
    assert not found.get(Kind("example.com", "v1", "App")).preferred


def test_a_stale_aggregated_api_server_hides_neither_its_kinds_nor_others() -> None:
    metrics = document(version("v1beta1", resource("PodMetrics")), group="metrics.k8s.io")
    before = read_catalogue([metrics], Catalogue())
    stale = document(version("v1beta1", freshness="Stale"), group="metrics.k8s.io")
    after = read_catalogue([stale, document(version("v1", resource("App")))], before)
    assert after.stale == {("metrics.k8s.io", "v1beta1")}
    assert not difference(before, after).gone
    assert after.get(Kind("example.com", "v1", "App"))


def test_the_difference_of_two_catalogues_is_appeared_changed_and_gone_kinds() -> None:
    before = read_catalogue(
        [document(version("v1", resource("Stays"), resource("Goes"), resource("Changes")))], Catalogue()
    )
    after = read_catalogue(
        [document(version("v1", resource("Stays"), resource("Comes"), resource("Changes", scope="Cluster")))], before
    )
    found = difference(before, after)
    assert [{kind.kind for kind in kinds} for kinds in (found.appeared, found.changed, found.gone)] == [
        {"Comes"},
        {"Changes"},
        {"Goes"},
    ]
    assert not difference(after, after)


def test_empty_discovery_documents_make_an_empty_catalogue() -> None:
    assert read_catalogue([{}, {"items": []}, document(version("v1", {"resource": "x"}))], Catalogue()) == Catalogue()


async def test_a_login_page_instead_of_a_discovery_document_is_a_transient_error() -> None:
    """A proxy that asks for a login answers 200 with a page, which may have an ETag, too."""
    page = True

    async def handler(exchange: Exchange) -> None:
        if page:
            await exchange.answer(b"<html>please log in</html>", ETag='"1"')
        elif exchange.headers.get("if-none-match"):
            await exchange.answer(b"", 304)
        elif exchange.path == "/openapi/v3":
            await exchange.answer(
                {"paths": {"apis/example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/example.com/v1?hash=1"}}}
            )
        elif exchange.path.startswith("/openapi"):
            await exchange.answer({"components": {"schemas": {}}})
        else:
            await exchange.answer(document(version("v1", resource("App"))))

    async with client_of(handler) as (client, _server):
        discovery = Discovery(client)
        for looked in (discovery.refresh, lambda: discovery.openapi("example.com", "v1")):
            with pytest.raises(ApiError, match="not a JSON object") as caught:
                await looked()
            assert caught.value.retryable
        page = False
        await discovery.refresh()
        assert discovery.get(Kind("example.com", "v1", "App")) is not None
        assert await discovery.openapi("example.com", "v1") is not None
