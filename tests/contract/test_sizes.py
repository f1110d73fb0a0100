"""Objects that are too large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.kinds import CONFIG_MAPS, WIDGETS, config_map

if TYPE_CHECKING:
    from tests.contract.client import Server


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


def test_the_size_of_an_object_has_a_limit(server: Server, namespace: str) -> None:
    obj = WIDGETS.obj("a", annotations={"example.com/note": "x"})
    server.create(WIDGETS.path(namespace), obj)
    finalizers = [f"example.com/{number:060}" for number in range(22_000)]
    patch = {"metadata": {"finalizers": finalizers}}
    answer = server.send("PATCH", WIDGETS.path(namespace, "a"), patch, media="application/merge-patch+json")
    assert (answer.status, answer.body["message"]) == (500, "etcdserver: request is too large")
    assert "reason" not in answer.body
