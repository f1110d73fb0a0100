"""`--metrics-auth` with a real API server: the permissions of docs/operations.md are enough, and needed."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from controlplane.cluster import ControlPlane
from structlog.testing import capture_logs

from ruleop.language.rules.checking import load_project
from ruleop.operator.manager.manager import Manager
from ruleop.operator.manager.parts import Options
from tests.cluster.operator import eventually
from tests.docs.manifests import METRICS
from tests.operator.wire.certificates import Certificates

pytestmark = pytest.mark.real_server("RBAC decides who may read the metrics")

OPERATOR, SCRAPER, OTHER = ("ruleop-system", "ruleop"), ("monitoring", "prometheus"), ("monitoring", "other")
ACCOUNTS = (OPERATOR, SCRAPER, OTHER)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tokens(control_plane: ControlPlane) -> Iterator[dict[tuple[str, str], str]]:
    """The tokens of the three service accounts of the page, or nearly."""
    namespaces = sorted({namespace for namespace, _ in ACCOUNTS})
    for namespace in namespaces:
        control_plane.kubectl("create", "namespace", namespace)
    for namespace, name in ACCOUNTS:
        control_plane.kubectl("create", "serviceaccount", name, f"--namespace={namespace}")
    yield {
        (namespace, name): eventually(
            "a token",
            lambda name=name, namespace=namespace: control_plane.kubectl(
                "create", "token", name, f"--namespace={namespace}"
            ).strip(),
        )
        for namespace, name in ACCOUNTS
    }
    control_plane.kubectl("delete", "namespace", *namespaces, "--wait=true")


def stream() -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": METRICS})


@pytest.fixture
def granted(control_plane: ControlPlane) -> Iterator[None]:
    control_plane.kubectl("apply", "--filename=-", stdin=stream())
    yield
    control_plane.kubectl("delete", "--filename=-", stdin=stream())


class Scraper:
    """An operator whose metrics are protected, and a client of them."""

    def __init__(self, folder: Path, plane: ControlPlane, certificates: Certificates, token: str) -> None:
        config = yaml.safe_load(plane.kubeconfig().read_text())
        config["users"][0]["user"] = {"token": token}
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        rules = folder / "rules"
        (rules / "templates").mkdir(parents=True)
        (rules / "watches.yaml").write_text(
            "- {group: '', version: v1, kind: ConfigMap, children: {a: {template: a.yaml}}}\n"
        )
        (rules / "templates" / "a.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
        self.certificates = certificates
        self.options = Options(
            kubeconfig=str(kubeconfig),
            operator_namespace="ruleop-system",
            metrics_address="127.0.0.1:0",
            health_address="0",
            metrics_certificate=(certificates.folder / "server.crt", certificates.folder / "server.key"),
            metrics_auth=True,
            dry_run=True,
        )
        self.root = rules

    def statuses(self, *headers: dict[str, str]) -> list[tuple[int, str]]:
        return asyncio.run(self._statuses(*headers))

    async def _statuses(self, *headers: dict[str, str]) -> list[tuple[int, str]]:
        manager = Manager(load_project(self.root, environ={}), self.root, self.options)
        addresses: list[tuple[str, int]] = []
        serve = manager._serve

        async def serving(probes: Any) -> None:
            await serve(probes)
            addresses.extend(probes.addresses)

        manager._serve = serving  # type: ignore[method-assign]
        running = asyncio.create_task(manager.run())
        tls = ssl.create_default_context(cafile=str(self.certificates.authority))
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        try:
            async with asyncio.timeout(60), aiohttp.ClientSession() as client:
                while not addresses:  # noqa: ASYNC110 - the operator starts, and sets no event
                    await asyncio.sleep(0.01)
                ((host, port),) = addresses
                answers = []
                for each in headers:
                    async with client.get(f"https://{host}:{port}/metrics", headers=each, ssl=tls) as response:
                        answers.append((response.status, await response.text()))
                return answers
        finally:
            manager.stopping.set()
            await running


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_only_users_with_the_permission_read_the_metrics(
    control_plane: ControlPlane,
    certificates: Certificates,
    tokens: dict[tuple[str, str], str],
    granted: None,
    tmp_path: Path,
) -> None:
    eventually(
        "the permission",
        lambda: control_plane.kubectl(
            "auth", "can-i", "get", "/metrics", "--as=system:serviceaccount:monitoring:prometheus"
        ),
    )
    scraper = Scraper(tmp_path, control_plane, certificates, tokens[OPERATOR])
    answers = scraper.statuses(
        bearer(tokens[SCRAPER]), bearer(tokens[OTHER]), bearer("wrong"), bearer(tokens[SCRAPER][:-3]), {}
    )
    assert [status for status, _ in answers] == [200, 403, 401, 401, 401]
    assert "rest_client_requests_total" in answers[0][1]


def test_without_the_permission_to_review_tokens_no_metrics_are_served_and_the_log_names_it(
    control_plane: ControlPlane, certificates: Certificates, tokens: dict[tuple[str, str], str], tmp_path: Path
) -> None:
    scraper = Scraper(tmp_path, control_plane, certificates, tokens[OPERATOR])
    with capture_logs() as lines:
        ((status, text),) = scraper.statuses(bearer(tokens[SCRAPER]))
    assert (status, text) == (500, "internal server error\n")
    (line,) = (line for line in lines if line["event"] == "metrics: TokenReview failed")
    assert line["grant"] == "create on tokenreviews.authentication.k8s.io"
    assert "cannot create resource" in line["error"]
    assert tokens[SCRAPER] not in str(lines)
