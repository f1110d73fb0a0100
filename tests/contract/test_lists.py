"""Lists: pages, selectors, versions and forms."""

from __future__ import annotations

import base64
from typing import Any

from tests.contract.client import Server
from tests.contract.kinds import CONFIG_MAPS, WIDGETS, Sample, config_map
from tests.waiting import eventually

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def decoded(token: str) -> str:
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def names(listed: Any) -> list[str]:
    return [each["metadata"]["name"] for each in listed["items"]]


def fill(server: Server, namespace: str, sample: Sample, letters: str) -> None:
    for number, name in enumerate(letters):
        server.create(
            sample.path(namespace), sample.obj(name, labels={"n": str(number), "odd": str(number % 2), name: ""})
        )


def test_a_list_is_sorted_by_name(server: Server, namespace: str, sample: Sample) -> None:
    fill(server, namespace, sample, "cab")
    found = server.get(sample.path(namespace))
    assert names(found) == ["a", "b", "c"]
    assert (found["kind"], found["apiVersion"]) == (f"{sample.kind}List", sample.api_version)
    assert int(found["metadata"]["resourceVersion"]) >= int(found["items"][0]["metadata"]["resourceVersion"])
    assert ("kind" in found["items"][0]) == (sample is WIDGETS)


def test_an_empty_list_has_an_items_field(server: Server, namespace: str, sample: Sample) -> None:
    assert server.get(sample.path(namespace))["items"] == []


def test_a_list_can_span_all_namespaces(server: Server, namespace: str, sample: Sample) -> None:
    fill(server, namespace, sample, "ab")
    found = server.get(sample.everywhere(), fieldSelector=f"metadata.namespace={namespace}")
    assert names(found) == ["a", "b"]


def test_a_list_can_be_read_in_pages(server: Server, namespace: str, sample: Sample) -> None:
    fill(server, namespace, sample, "abcde")
    first = server.get(sample.path(namespace), limit=2)
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    second = server.get(sample.path(namespace), limit=2, **{"continue": first["metadata"]["continue"]})
    assert names(second) == ["c", "d"]
    assert second["metadata"]["remainingItemCount"] == 1
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = server.get(sample.path(namespace), limit=2, **{"continue": second["metadata"]["continue"]})
    assert names(third) == ["e"]
    assert not third["metadata"].get("continue")
    assert "remainingItemCount" not in third["metadata"]


def test_pages_of_a_list_are_a_snapshot(server: Server, namespace: str, sample: Sample) -> None:
    fill(server, namespace, sample, "abcd")
    first = server.get(sample.path(namespace), limit=1)
    server.delete(sample.path(namespace, "b"))
    server.merge(sample.path(namespace, "c"), {"metadata": {"labels": {"new": "yes"}}})
    server.create(sample.path(namespace), sample.obj("e"))
    rest = server.get(sample.path(namespace), **{"continue": first["metadata"]["continue"]})
    assert names(rest) == ["b", "c", "d"]
    assert "new" not in rest["items"][1]["metadata"]["labels"]


def test_a_list_with_a_selector_can_be_read_in_pages(server: Server, namespace: str, sample: Sample) -> None:
    fill(server, namespace, sample, "abcdef")
    first = server.get(sample.path(namespace), limit=2, labelSelector="odd=0")
    assert names(first) == ["a", "c"]
    assert "remainingItemCount" not in first["metadata"]
    query = {"labelSelector": "odd=0", "limit": 2, "continue": first["metadata"]["continue"]}
    assert names(server.get(sample.path(namespace), **query)) == ["e"]


def test_a_continue_token_with_a_resource_version_is_refused(server: Server, namespace: str, sample: Sample) -> None:
    fill(server, namespace, sample, "abc")
    first = server.get(sample.path(namespace), limit=1)
    query = {"limit": 1, "continue": first["metadata"]["continue"], "resourceVersion": "1"}
    status = server.send("GET", sample.path(namespace), **query).body
    assert status["message"] == "specifying resource version is not allowed when using continue"


def test_a_token_of_all_namespaces_continues_in_the_next_namespace(server: Server, namespace: str) -> None:
    fill(server, namespace, WIDGETS, "ab")
    other = f"{namespace}-2"
    server.create("/api/v1/namespaces", {"metadata": {"name": other}})
    fill(server, other, WIDGETS, "ab")
    query: dict[str, Any] = {"labelSelector": "n", "limit": 1}
    found: list[tuple[str, str]] = []
    while query.get("continue", "first"):
        page = server.get(WIDGETS.everywhere(), **query)
        found += [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in page["items"]]
        query["continue"] = page["metadata"].get("continue", "")
    assert [each for each in found if each[0] in (namespace, other)] == [
        (other, "a"), (other, "b"), (namespace, "a"), (namespace, "b"),
    ]  # fmt: skip
    server.delete(f"/api/v1/namespaces/{other}")


def test_an_invalid_token_is_refused(server: Server, namespace: str, sample: Sample) -> None:
    tokens = (
        "*",
        "aGk*",
        encoded("hi"),
        encoded('{"v": "x"}'),
        encoded('{"v": "meta.k8s.io/v1", "rv": 5}'),
        encoded('{"v": "meta.k8s.io/v1", "start": "a"}'),
        encoded('{"v": "meta.k8s.io/v1", "rv": 5, "start": "/../x"}'),
    )
    for token in tokens:
        status = server.send("GET", sample.path(namespace), **{"continue": token}).refused(400, "BadRequest")
        assert status["message"].startswith("invalid continue token: continue key is not valid: ")


def test_a_list_at_version_zero_has_no_pages(server: Server, namespace: str, sample: Sample) -> None:
    fill(server, namespace, sample, "abc")
    path = sample.path(namespace)
    eventually("the cache has them", lambda: len(server.get(path, resourceVersion="0")["items"]) == 3)
    found = server.get(path, resourceVersion="0", limit=1)
    assert names(found) == ["a", "b", "c"]
    assert not found["metadata"].get("continue")
    assert names(server.get(path, resourceVersion=found["metadata"]["resourceVersion"], limit=1)) == ["a"]


def test_options_that_are_not_numbers_are_refused(server: Server, namespace: str, sample: Sample) -> None:
    for option in ("limit", "timeoutSeconds"):
        status = server.send("GET", sample.path(namespace), **{option: "x"}).refused(400, "BadRequest")
        assert status["message"] == 'strconv.ParseInt: parsing "x": invalid syntax'


def test_label_selectors_filter_lists(server: Server, namespace: str, sample: Sample) -> None:
    fill(server, namespace, sample, "abcd")
    found = {
        selector: "".join(names(server.get(sample.path(namespace), labelSelector=selector)))
        for selector in (
            "n=1", "n==1", "n!=1", "n in (1, 2)", "n notin (1,2)", "a", "!a", "odd=1,n!=3", "n>1", "n<2", "x!=y",
            "x notin (y)", "a=", "n in (1),odd in (0,1)", "",
        )
    }  # fmt: skip
    assert found == {
        "n=1": "b",
        "n==1": "b",
        "n!=1": "acd",
        "n in (1, 2)": "bc",
        "n notin (1,2)": "ad",
        "a": "a",
        "!a": "bcd",
        "odd=1,n!=3": "b",
        "n>1": "cd",
        "n<2": "ab",
        "x!=y": "abcd",
        "x notin (y)": "abcd",
        "a=": "a",
        "n in (1),odd in (0,1)": "b",
        "": "abcd",
    }


def test_field_selectors_filter_lists(server: Server, namespace: str, sample: Sample) -> None:
    fill(server, namespace, sample, "abc")
    path = sample.path(namespace)
    assert names(server.get(path, fieldSelector="metadata.name=b")) == ["b"]
    assert names(server.get(path, fieldSelector="metadata.name!=b")) == ["a", "c"]
    assert names(server.get(path, fieldSelector=f"metadata.namespace={namespace},metadata.name==a")) == ["a"]
    assert names(server.get(path, fieldSelector="metadata.name=missing")) == []
    assert names(server.get(path, fieldSelector="metadata.name=b", labelSelector="n=0")) == []


def test_a_custom_resource_can_be_selected_by_its_selectable_fields(server: Server, namespace: str) -> None:
    fill(server, namespace, WIDGETS, "ab")
    server.merge(WIDGETS.path(namespace, "b"), {"spec": {"colour": "blue"}})
    assert names(server.get(WIDGETS.path(namespace), fieldSelector="spec.colour=blue")) == ["b"]


def test_builtin_kinds_have_their_selectable_fields(server: Server, namespace: str) -> None:
    def accepted(path: str, selector: str) -> bool:
        return server.send("GET", path, fieldSelector=selector).status == 200

    root = f"/api/v1/namespaces/{namespace}"
    selectors = {
        f"{root}/pods": ("spec.nodeName", "status.phase", "spec.restartPolicy", "status.podIP", "spec.schedulerName"),
        f"{root}/events": ("involvedObject.name", "involvedObject.uid", "reason", "type", "source"),
        f"{root}/secrets": ("type",),
        f"{root}/services": ("spec.clusterIP", "spec.type"),
        "/api/v1/namespaces": ("status.phase",),
        "/api/v1/nodes": ("spec.unschedulable",),
        f"/apis/batch/v1/namespaces/{namespace}/jobs": ("status.successful",),
        f"/apis/apps/v1/namespaces/{namespace}/replicasets": (),
    }
    for path, fields in selectors.items():
        for field in fields:
            assert accepted(path, f"{field}=x"), (path, field)
        assert not accepted(path, "spec.other=x"), path
    assert not accepted(f"{root}/configmaps", "status.phase=x")


# -- versions ----------------------------------------------------------------------------------------------------------


def test_a_list_can_be_read_at_a_resource_version(server: Server, namespace: str, sample: Sample) -> None:
    fill(server, namespace, sample, "ab")
    path = sample.path(namespace)
    found = server.get(path)
    version = found["metadata"]["resourceVersion"]
    server.delete(sample.path(namespace, "a"))
    assert names(server.get(path, resourceVersion=version, resourceVersionMatch="Exact")) == ["a", "b"]
    for query in ({"resourceVersionMatch": "NotOlderThan"}, {}):  # from a cache, which learns of the deletion
        latest: dict[str, Any] = {"resourceVersion": version, **query}
        eventually("the deletion", lambda latest=latest: names(server.get(path, **latest)) == ["b"])
    assert server.get(path, resourceVersion="0")["kind"] == f"{sample.kind}List"


def test_a_future_resource_version_is_a_timeout(server: Server, namespace: str, sample: Sample) -> None:
    path = sample.path(namespace)
    current = int(server.get(path)["metadata"]["resourceVersion"])
    reply = server.send("GET", path, resourceVersion=current + 1_000_000)
    status = reply.refused(504, "Timeout")
    assert status["message"].startswith(f"Timeout: Too large resource version: {current + 1_000_000}, current: ")
    assert status["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }


def test_an_object_cannot_be_read_at_a_future_version(server: Server, namespace: str, sample: Sample) -> None:
    made = server.create(sample.path(namespace), sample.obj())
    path, version = sample.path(namespace, "a"), int(made["metadata"]["resourceVersion"])
    assert server.get(path, resourceVersion=version) == made
    status = server.send("GET", path, resourceVersion=version + 1_000_000).refused(504, "Timeout")
    assert status["message"].startswith(f"Timeout: Too large resource version: {version + 1_000_000}, current: ")
    wrong = server.send("GET", path, resourceVersion="x")
    assert (wrong.status, wrong.body["message"]) == (
        500,
        'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
    )


def test_an_object_can_be_read_at_version_zero(server: Server, namespace: str, sample: Sample) -> None:
    server.create(sample.path(namespace), sample.obj())
    path = sample.path(namespace, "a")
    eventually("the cache has the object", lambda: server.exists(f"{path}?resourceVersion=0"))
    assert server.get(path, resourceVersion="0")["metadata"]["name"] == "a"


# -- forms -------------------------------------------------------------------------------------------------------------


def test_metadata_only_forms_contain_only_metadata(server: Server, namespace: str, sample: Sample) -> None:
    made = server.create(sample.path(namespace), sample.obj(labels={"a": "b"}))
    found = server.get(sample.path(namespace, "a"), accept=PARTIAL)
    assert found == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    listed = server.get(sample.path(namespace), accept=PARTIAL_LIST)
    version = listed["metadata"].pop("resourceVersion")
    assert int(version) >= int(made["metadata"]["resourceVersion"])
    assert listed == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "items": [found] if sample is WIDGETS or "kind" in listed["items"][0] else [{"metadata": made["metadata"]}],
    }
    changed = server.merge(sample.path(namespace, "a"), {"spec": sample.changed}, accept=PARTIAL)
    assert (changed["kind"], changed["metadata"]["generation"]) == ("PartialObjectMetadata", 2)


def test_the_first_supported_accept_type_is_used(server: Server, namespace: str) -> None:
    server.create(CONFIG_MAPS.path(namespace), config_map())
    path = CONFIG_MAPS.path(namespace, "a")
    assert server.get(path, accept=f"{PARTIAL},application/json")["kind"] == "PartialObjectMetadata"
    assert server.get(path, accept="application/vnd.example,application/json")["kind"] == "ConfigMap"
    assert server.get(path, accept="*/*")["kind"] == "ConfigMap"
