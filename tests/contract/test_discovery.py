"""Discovery, OpenAPI and the other paths that name no resource."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.client import Reply, Server
from tests.contract.definitions import PATH, Definitions
from tests.contract.kinds import WIDGETS, crd
from tests.definitions import ANYTHING, version
from tests.waiting import eventually

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OLD = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
DOCUMENT = "/openapi/v3/apis/contract.example.com/v1"


def test_the_aggregated_form_has_every_group_with_its_resources(server: Server) -> None:
    core = server.get("/api", accept=AGGREGATED)
    assert [each["metadata"] for each in core["items"]] == [{}]
    groups = {each["metadata"]["name"]: each for each in server.get("/apis", accept=AGGREGATED)["items"]}
    assert groups["apps"]["metadata"] == {"name": "apps"}
    first = next(each for each in groups["contract.example.com"]["versions"] if each["version"] == "v1")
    widgets = next(each for each in first["resources"] if each["resource"] == "widgets")
    assert widgets["scope"] == "Namespaced"
    assert {each["subresource"]: each["responseKind"]["kind"] for each in widgets["subresources"]} == {
        "scale": "Scale",
        "status": "Widget",
    }


NOT_ANSWERED = {"bindings", "componentstatuses", "pods/ephemeralcontainers", "pods/eviction", "pods/resize"}


def test_discovery_names_the_resources_and_their_subresources(server: Server) -> None:
    """The hashes are those of the versions in which objects are stored."""
    found = {each["name"]: each for each in server.get("/api/v1")["resources"] if each["name"] not in NOT_ANSWERED}
    assert {name for name in found if name.startswith("pods/")} == {
        f"pods/{each}" for each in ("attach", "binding", "exec", "log", "portforward", "proxy", "status")
    }
    assert {"podtemplates", "replicationcontrollers"} <= found.keys()
    assert found["serviceaccounts/token"] == {
        "name": "serviceaccounts/token",
        "singularName": "",
        "namespaced": True,
        "group": "authentication.k8s.io",
        "version": "v1",
        "kind": "TokenRequest",
        "verbs": ["create"],
    }
    assert found["pods"]["storageVersionHash"] == "xPOwRZ+Yhw8="
    events = {each["name"]: each for each in server.get("/apis/events.k8s.io/v1")["resources"]}
    assert events["events"]["storageVersionHash"] == found["events"]["storageVersionHash"] == "r2yiGXH7wu8="
    group = next(each for each in server.get("/api", accept=AGGREGATED)["items"])
    accounts = next(each for each in group["versions"][0]["resources"] if each["resource"] == "serviceaccounts")
    (token,) = accounts["subresources"]
    assert token["responseKind"] == {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}


def test_discovery_names_the_built_in_groups_in_the_servers_order(server: Server) -> None:
    names = [each["name"] for each in server.get("/apis")["groups"]]
    assert [each for each in names if not each.endswith((".example.com", ".example.org"))] == [
        "apiregistration.k8s.io",
        "apps",
        "events.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "networking.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "storage.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "scheduling.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "discovery.k8s.io",
        "resource.k8s.io",
        "flowcontrol.apiserver.k8s.io",
    ]


def test_custom_groups_come_last(server: Server, definitions: Definitions) -> None:
    """In the plain form they are sorted by their least version, in the aggregated form by name."""
    for group, version_name in (("b-groups.example.com", "v1"), ("a-groups.example.com", "v2")):
        made = crd("things", "Thing", [version(version_name, ANYTHING)], group=group)
        server.create(PATH, made)
        definitions.made.append(made["metadata"]["name"])

    def plain() -> list[str]:
        return [each["name"] for each in server.get("/apis")["groups"]]

    def aggregated() -> list[str]:
        return [each["metadata"]["name"] for each in server.get("/apis", accept=AGGREGATED)["items"]]

    def groups(names: list[str]) -> list[str]:
        return [each.removesuffix("-groups.example.com") for each in names if each.endswith("-groups.example.com")]

    eventually("the groups are discovered", lambda: groups(plain()) == ["b", "a"])
    eventually("the aggregated form has them", lambda: groups(aggregated()) == ["a", "b"])
    for found in (plain(), aggregated()):
        last = [each.endswith((".example.com", ".example.org")) for each in found]
        assert last == sorted(last)


def test_the_aggregated_form_is_sent_only_to_clients_that_know_its_version(server: Server) -> None:
    for path, accept in (("/api/v1/namespaces", OLD), ("/api/v1/namespaces", "text/html")):
        server.send("GET", path, accept=accept).refused(406, "NotAcceptable")
    reply = server.send("GET", "/apis", accept=f"{AGGREGATED},{OLD},application/json")
    assert reply.headers["Content-Type"] == AGGREGATED
    assert reply.headers["Vary"] == "Accept"


def test_an_unchanged_aggregated_document_is_not_sent_again(server: Server) -> None:
    first = server.send("GET", "/api", accept=AGGREGATED)
    reply = server.send("GET", "/api", accept=AGGREGATED, headers={"If-None-Match": first.headers["Etag"]})
    assert (reply.status, reply.text, reply.headers["Cache-Control"]) == (304, "", "public")
    assert server.send("GET", "/api", accept=AGGREGATED, headers={"If-None-Match": '"x"'}).status == 200


def test_an_openapi_document_with_its_hash_may_be_kept(server: Server) -> None:
    found = eventually("the listed document", lambda: with_listed_hash(server))
    assert found.headers["Cache-Control"] == "public, immutable"
    document = json.loads(found.text)
    operation = document["paths"]["/apis/contract.example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert operation["x-kubernetes-group-version-kind"] == {
        "group": "contract.example.com",
        "version": "v1",
        "kind": WIDGETS.kind,
    }
    assert {"dryRun", "fieldValidation"} <= {each.get("name") for each in operation["parameters"]}
    moved = server.send("GET", DOCUMENT, hash="another")
    assert moved.status == 301
    assert "?hash=" in moved.headers["Location"]


def with_listed_hash(server: Server) -> Reply | None:
    """None where the document changed after it was listed, as definitions of other tests are still being deleted."""
    index = json.loads(server.send("GET", "/openapi/v3").text)
    address = index["paths"]["apis/contract.example.com/v1"]["serverRelativeURL"]
    path, _, hash_ = address.partition("?hash=")
    assert path == DOCUMENT
    reply = server.send("GET", DOCUMENT, hash=hash_)
    return reply if reply.status == 200 else None


def test_an_unchanged_openapi_document_is_not_sent_again(server: Server) -> None:
    """That of a built-in group: that of the tests' own group changes while definitions of other tests are deleted."""
    document = "/openapi/v3/apis/apps/v1"
    first = server.send("GET", document)
    tag = first.headers["Etag"]
    assert (first.headers["Vary"], first.headers["Cache-Control"]) == ("Accept", "no-cache, private")
    for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        reply = server.send("GET", document, headers={"If-None-Match": known})
        assert (reply.status, reply.text, reply.headers["Etag"]) == (304, "", tag)
        assert not {"Content-Type", "Content-Length"} & set(reply.headers)
    assert server.send("GET", document, headers={"If-None-Match": '"x"'}).text == first.text
    assert server.send("GET", document, hash=tag.strip('"')).headers["Etag"] == tag


def _without_prose(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_prose(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_prose(each) for name, each in value.items() if name not in ("description", "tags")}


@pytest.mark.slow
def test_one_document_of_openapi_v2_has_all_kinds(server: Server) -> None:
    """Terraform and older clients read it."""
    found = _without_prose(json.loads(server.send("GET", "/openapi/v2").text))
    definitions, prefix = found["definitions"], "#/definitions/io.k8s"
    assert found["swagger"] == "2.0"
    assert definitions["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"] == {
        "$ref": f"{prefix}.api.apps.v1.DeploymentStrategy",
        "x-kubernetes-patch-strategy": "retainKeys",
    }
    assert definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] == {"type": "string"}
    assert definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] == {
        "type": "string",
        "format": "int-or-string",
    }
    widget = definitions["com.example.contract.v1.Widget"]
    assert widget["properties"]["metadata"] == {"$ref": f"{prefix}.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    fields = widget["properties"]["spec"]["properties"]
    assert fields["note"] == {}
    assert fields["options"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert fields["port"] == {"x-kubernetes-int-or-string": True}
    assert fields["size"] == {"type": "integer", "minimum": 1, "maximum": 10}
    patch = found["paths"]["/apis/contract.example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "Widget"
    assert patch["responses"]["200"]["schema"] == {"$ref": "#/definitions/com.example.contract.v1.Widget"}


def test_the_index_of_openapi_documents_has_no_version(server: Server) -> None:
    reply = server.send("GET", "/openapi/v3")
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert "Etag" not in reply.headers
    assert reply_of(server.send("GET", "/openapi/v3/apis/nothing/v1")) == (404, "")


def test_a_group_version_that_is_not_served_is_not_found(server: Server) -> None:
    for path in ("/apis/apps/v9", "/api/v9", "/apis/apps/v9/deployments"):
        assert server.send("GET", path).refused(404, "NotFound")["details"] == {}
    for path in ("/apis/nothing.example.com", "/apis/contract.example.com/v9", "/nothing", "/readyz/nothing"):
        assert reply_of(server.send("GET", path)) == (404, "404 page not found\n")


def reply_of(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.text


def test_an_answer_to_head_has_no_body(server: Server) -> None:
    """Else the next answer on the connection could not be read."""
    assert reply_of(server.send("HEAD", "/version")) == (405, "")
    assert server.send("GET", "/version").ok()["major"] == "1"
