"""The clients that may read the metrics, and the cost of those without a valid token."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import aiohttp
import orjson
import pytest
from structlog.testing import capture_logs

from ruleop.errors import RuleopError
from ruleop.operator.telemetry import authorization
from ruleop.operator.telemetry.authorization import MAX_KEPT, MAX_REVIEWS, Authorizer, review
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.operator.telemetry.probes import LoopWatchdog, Probes
from ruleop.operator.wire.client.client import Client, Session
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from tests.operator.wire.http_server import serving
from tests.operator.wire.test_client import Open
from tests.waiting import PATIENCE

OK, UNAUTHORIZED, FORBIDDEN = HTTPStatus.OK, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN
USERS = {"good": OK, "other": FORBIDDEN}


class Reviews:
    """The API server's answers, and how often it was asked."""

    def __init__(self):
        self.asked = []
        self.failure = None
        self.now = 1000.0
        self.authorizer = Authorizer(self.review, clock=lambda: self.now)

    def review(self, token):
        self.asked.append(token)
        if self.failure is not None:
            raise self.failure
        return USERS.get(token, UNAUTHORIZED)

    def status(self, token):
        return self.authorizer.status_of(f"Bearer {token}")


@pytest.fixture
def reviews():
    return Reviews()


def test_the_status_depends_on_the_user_of_the_token(reviews):
    assert reviews.status("good") is OK
    assert reviews.status("other") is FORBIDDEN
    assert reviews.status("unknown") is UNAUTHORIZED
    assert reviews.authorizer.status_of("bearer good") is OK


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic Z29vZA==", "good", "Bearer a b", "Bearer \xe4", "Bearer a\x7f"]
)
def test_a_request_without_a_valid_token_is_refused_without_a_review(reviews, header):
    assert reviews.authorizer.status_of(header) is UNAUTHORIZED
    assert reviews.asked == []


@pytest.mark.parametrize(("token", "kept"), [("good", 60), ("other", 10), ("unknown", 10)])
def test_a_result_is_kept_for_a_short_time(reviews, token, kept):
    for _ in range(3):
        reviews.status(token)
    reviews.now += kept - 1
    reviews.status(token)
    assert reviews.asked == [token]
    reviews.now += 1
    reviews.status(token)
    assert reviews.asked == [token, token]


def test_tokens_that_are_refused_take_bounded_memory_and_displace_no_other(reviews):
    assert reviews.status("good") is OK
    for number in range(3 * MAX_KEPT):
        reviews.now += 0.01 if number % MAX_REVIEWS else 1
        reviews.status(f"wrong-{number}")
    assert len(reviews.authorizer._refused._found) <= MAX_KEPT
    assert all(isinstance(key, bytes) and len(key) == 32 for key in reviews.authorizer._refused._found)
    reviews.authorizer._allowed._found.clear()
    for number in range(3 * MAX_KEPT):
        reviews.authorizer._allowed.add(b"%d" % number, OK, reviews.now)
    assert len(reviews.authorizer._allowed._found) == MAX_KEPT


def test_a_flood_of_new_tokens_is_reviewed_in_part_and_known_ones_are_served(reviews):
    assert reviews.status("good") is OK
    statuses = [reviews.status(f"wrong-{number}") for number in range(1000)]
    assert len(reviews.asked) == MAX_REVIEWS
    assert statuses.count(authorization.BUSY) == 1000 - (MAX_REVIEWS - 1)
    assert reviews.status("good") is OK
    reviews.now += 1
    assert reviews.status("wrong-999") is UNAUTHORIZED


def test_concurrent_reviews_are_limited_and_equal_ones_shared(monkeypatch):
    monkeypatch.setattr(authorization, "AT_ONCE", 1)
    release, asked = threading.Event(), []

    def slow(token):
        asked.append(token)
        assert release.wait(PATIENCE)
        return OK

    authorizer = Authorizer(slow)
    with ThreadPoolExecutor(8) as pool:
        results = [pool.submit(authorizer.status_of, "Bearer good") for _ in range(8)]
        release.set()
        assert {each.result() for each in results} == {OK}
    assert asked == ["good"]


def test_a_request_waits_for_a_review_for_a_limited_time(monkeypatch):
    monkeypatch.setattr(authorization, "AT_ONCE", 1)
    monkeypatch.setattr(authorization, "PATIENCE", 0.01)
    release, started = threading.Event(), threading.Event()

    def slow(_token):
        started.set()
        assert release.wait(PATIENCE)
        return OK

    authorizer = Authorizer(slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(authorizer.status_of, "Bearer a")
        assert started.wait(PATIENCE)
        assert authorizer.status_of("Bearer b") is authorization.BUSY
        release.set()
        assert first.result() is OK


def test_a_failed_review_denies_access_is_not_kept_and_is_logged_without_the_token(reviews):
    reviews.failure = ApiError(
        Problem.SERVER,
        verb="create",
        resource="tokenreviews.authentication.k8s.io",
        text="cannot parse s3cret",
        redacted="rejected by the API server (500)",
    )
    with capture_logs() as lines:
        for _ in range(3):
            assert reviews.status("s3cret") is HTTPStatus.INTERNAL_SERVER_ERROR
    assert [line["event"] for line in lines] == ["metrics: TokenReview failed"]
    assert "s3cret" not in str(lines)
    assert lines[0]["grant"] == "create on tokenreviews.authentication.k8s.io"
    reviews.failure = TimeoutError()
    assert reviews.status("good") is authorization.BUSY
    reviews.failure = None
    assert reviews.status("good") is OK


# With a server of the API


USER = {"username": "prometheus", "uid": "7", "groups": ["monitoring"], "extra": {"scopes": ["a"]}}


@pytest.mark.parametrize(
    ("token_review", "access_review", "status"),
    [
        ({"authenticated": True, "user": USER}, {"allowed": True}, OK),
        ({"authenticated": True, "user": USER}, {"allowed": False}, FORBIDDEN),
        ({"authenticated": True, "user": USER}, {"allowed": True, "denied": True}, FORBIDDEN),
        ({"authenticated": True, "user": USER}, {}, FORBIDDEN),
        ({"authenticated": True, "user": USER}, {"allowed": "yes"}, FORBIDDEN),
        ({"authenticated": False, "user": USER}, None, UNAUTHORIZED),
        ({"authenticated": "true", "user": USER}, None, UNAUTHORIZED),
        ({"authenticated": True, "user": {}}, None, UNAUTHORIZED),
        ({"authenticated": True}, None, UNAUTHORIZED),
        ({"user": USER}, None, UNAUTHORIZED),
        (None, None, UNAUTHORIZED),
    ],
)
def test_a_token_review_and_a_subject_access_review_decide_the_status(token_review, access_review, status):
    async def handler(exchange):
        await exchange.answer(
            {"status": token_review if exchange.path.endswith("/tokenreviews") else access_review}, 201
        )

    async def main():
        async with serving(handler) as server:
            session = await Session.open(Open(server.address))
            try:
                return await review(Client(session), "/metrics", "t0ken"), server.seen
            finally:
                await session.close()

    found, seen = asyncio.run(main())
    assert found is status
    first, *others = [orjson.loads(each.body) for each in seen]
    assert (first["kind"], first["spec"]) == ("TokenReview", {"token": "t0ken"})
    if access_review is None:
        assert others == []
    else:
        (second,) = others
        assert second["spec"] == {
            "user": "prometheus",
            "uid": "7",
            "groups": ["monitoring"],
            "extra": {"scopes": ["a"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }


# With the metrics server


def served(reviews, test, **addresses):
    async def main():
        probes = Probes(list, Metrics(), LoopWatchdog(lambda _lag: None))
        try:
            await probes.serve(
                **{"health": "127.0.0.1:0", "metrics": "localhost:0"} | addresses, review=reviews.authorizer.status_of
            )
            async with aiohttp.ClientSession() as client:
                await test(probes, client)
        finally:
            await probes.stop()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer other"}, 403),
        ({"Authorization": "Bearer good"}, 200),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_metrics_need_a_token_and_probes_do_not(reviews, headers, status, method):
    async def test(probes, client):
        (host, health), (_, metrics) = probes.addresses
        async with client.request(method, f"http://{host}:{metrics}/metrics", headers=headers) as response:
            assert response.status == status
            assert ("WWW-Authenticate" in response.headers) == (status == 401)
            assert ("python_" in await response.text() or "ruleop_" in await response.text()) == (
                status == 200 and method == "GET"
            )
        for path in ("/healthz", "/readyz"):
            async with client.get(f"http://{host}:{health}{path}") as response:
                assert response.status == 200

    served(reviews, test)


def test_metrics_with_authorization_need_an_address_of_their_own(reviews):
    async def test(_probes, _client):
        raise AssertionError

    with pytest.raises(RuleopError, match="metrics with TLS or authorization need an address of their own"):
        served(reviews, test, metrics="127.0.0.1:0")
