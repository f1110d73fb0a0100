"""Whatever a client sends, the server answers it: with an object, or with what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from ruleop.localcluster import LocalCluster
from tests.contract.client import Server
from tests.contract.definitions import define_samples
from tests.contract.walk.making import Chance
from tests.exploration import others_slow
from tests.localcluster.rubbish import any_request


@pytest.fixture
def server() -> Iterator[Server]:
    with LocalCluster() as cluster:
        found = Server.of(cluster.kubeconfig())
        define_samples(found)
        yield found
        found.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", others_slow(range(4), 0))
def test_every_request_is_answered_without_an_error_of_the_server(server: Server, seed: int) -> None:
    chance, answers = Chance(Random(seed)), dict[int, int]()  # noqa: S311 - for reproducible requests
    for _ in range(700):
        request = any_request(chance)
        reply = request.send(server)
        assert "bug of the server" not in reply.text, request
        answers[reply.status] = answers.get(reply.status, 0) + 1
    assert {200, 201, 400, 404, 409, 422} <= answers.keys(), "the requests are of many kinds"
