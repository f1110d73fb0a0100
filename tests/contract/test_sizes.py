"""Objects that are too large."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.client import JSON_PATCH, MERGE, Server
from tests.contract.kinds import CONFIG_MAPS, WIDGETS, config_map


def with_data(size: int) -> dict[str, Any]:
    return {**config_map("a"), "data": {"text": "x" * size}}


def test_the_size_of_the_data_of_a_config_map_has_a_limit(server: Server, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace)
    status = server.send("POST", path, with_data(1_048_577)).refused(422, "Invalid")
    assert status["details"]["causes"] == [
        {"reason": "FieldValueTooLong", "message": "Too long: may not be more than 1048576 bytes", "field": "[]"}
    ]
    server.create(path, with_data(1_048_576))


def test_the_size_of_a_request_has_a_limit(server: Server, namespace: str) -> None:
    server.send("POST", CONFIG_MAPS.path(namespace), with_data(3_200_000)).refused(413, "RequestEntityTooLarge")


@pytest.mark.slow
def test_the_size_of_an_object_has_a_limit(server: Server, namespace: str) -> None:
    obj = WIDGETS.obj("a", annotations={"example.com/note": "x"})
    server.create(WIDGETS.path(namespace), obj)
    finalizers = [f"example.com/{number:060}" for number in range(22_000)]
    patch = {"metadata": {"finalizers": finalizers}}
    answer = server.send("PATCH", WIDGETS.path(namespace, "a"), patch, media="application/merge-patch+json")
    assert (answer.status, answer.body["message"]) == (500, "etcdserver: request is too large")
    assert "reason" not in answer.body


@pytest.mark.parametrize("media", [MERGE, JSON_PATCH])
def test_the_depth_of_a_patch_has_a_limit(server: Server, namespace: str, media: str) -> None:
    server.create(CONFIG_MAPS.path(namespace), config_map("a"))
    deep = '{"a":' * 10_001 + "1" + "}" * 10_001
    body = f'[{{"op":"add","path":"/x","value":{deep}}}]' if media == JSON_PATCH else deep
    answer = server.send("PATCH", CONFIG_MAPS.path(namespace, "a"), body.encode(), media=media)
    answer.refused(400, "BadRequest")


def test_the_copies_of_a_patch_have_a_limit(server: Server, namespace: str) -> None:
    server.create(CONFIG_MAPS.path(namespace), config_map("a"))
    operations: list[Any] = [{"op": "add", "path": "/data", "value": {"k": "x" * 64}}]
    operations += [{"op": "copy", "from": "/data", "path": f"/data/k{number}"} for number in range(24)]
    status = server.send("PATCH", CONFIG_MAPS.path(namespace, "a"), operations, media=JSON_PATCH).refused(
        422, "Invalid"
    )
    assert status["message"] == "the server rejected our request due to an error in our request"
