"""The user that a real API server sees for each form of credentials in a kubeconfig; and certificates that expire."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane.cluster import ControlPlane

from ruleop.kubernetes.builtin.table import ResourceInfo
from ruleop.kubernetes.kinds import Kind
from ruleop.operator.wire.auth.credentials import find_credentials
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import Client, Session
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from tests.operator.wire.certificates import Certificates

pytestmark = pytest.mark.real_server("client certificates and impersonation")

REVIEWS = ResourceInfo(
    "selfsubjectreviews",
    namespaced=False,
    status_subresource=False,
    kind=Kind("authentication.k8s.io", "v1", "SelfSubjectReview"),
)
JOE = {"username": "joe", "groups": ["dev", "system:authenticated"]}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("certificates"))
    made.sign("joe", group="dev")
    return made


@pytest.fixture(scope="module")
def plane(certificates: Certificates) -> Iterator[ControlPlane]:
    """An API server that knows people by certificates, too."""
    with ControlPlane(
        controllers=False, audit=False, apiserver_flags=[f"--client-ca-file={certificates.authority}"]
    ) as plane:
        yield plane
        plane.check()


def kubeconfig(folder: Path, plane: ControlPlane, user: dict[str, Any]) -> str:
    """The admin's, with another user."""
    config = yaml.safe_load(plane.kubeconfig().read_text())
    config["users"][0]["user"] = user
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def asked(session: Session) -> dict[str, Any]:
    answer = await Client(session).send(
        requests.create(REVIEWS, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    )
    info = answer["status"]["userInfo"]
    return {name: info[name] for name in ("username", "groups")}


def who(folder: Path, plane: ControlPlane, user: dict[str, Any]) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        session = await Session.open(find_credentials(kubeconfig(folder, plane, user)))
        try:
            return await asked(session)
        finally:
            await session.close()

    return asyncio.run(run())


def in_itself(certificates: Certificates) -> dict[str, str]:
    return {
        f"client-{what}-data": base64.b64encode(Path(certificates.path(f"joe.{ending}")).read_bytes()).decode()
        for what, ending in (("certificate", "crt"), ("key", "key"))
    }


def test_client_certificates_are_read_from_files_and_from_the_kubeconfig(
    plane: ControlPlane, certificates: Certificates, tmp_path: Path
) -> None:
    files = {"client-certificate": certificates.path("joe.crt"), "client-key": certificates.path("joe.key")}
    assert who(tmp_path, plane, files) == JOE
    assert who(tmp_path, plane, in_itself(certificates)) == JOE


def test_an_exec_plugin_may_return_a_client_certificate(
    plane: ControlPlane, certificates: Certificates, tmp_path: Path
) -> None:
    crt, key = (Path(certificates.path(f"joe.{ending}")).read_text() for ending in ("crt", "key"))
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"clientCertificateData": crt, "clientKeyData": key},
    }
    (tmp_path / "answer").write_text(json.dumps(answer))
    plugin = {
        "apiVersion": answer["apiVersion"],
        "command": "cat",
        "args": [str(tmp_path / "answer")],
        "interactiveMode": "Never",
    }
    assert who(tmp_path, plane, {"exec": plugin}) == JOE


def test_impersonation_of_the_kubeconfig_is_used(plane: ControlPlane, tmp_path: Path) -> None:
    token = {"token": plane.token_for("admin")}
    assert "system:masters" in who(tmp_path, plane, token)["groups"]
    assert who(tmp_path, plane, {**token, "as": "joe", "as-groups": ["dev"]}) == JOE


def test_an_expired_certificate_is_rejected_and_a_new_one_is_used(
    plane: ControlPlane, certificates: Certificates, tmp_path: Path
) -> None:
    certificates.sign("late", group="dev", days=-1)
    crt, key = tmp_path / "crt", tmp_path / "key"

    def use(name: str) -> None:
        crt.write_bytes(Path(certificates.path(f"{name}.crt")).read_bytes())
        key.write_bytes(Path(certificates.path(f"{name}.key")).read_bytes())

    async def run() -> dict[str, Any]:
        session = await Session.open(
            find_credentials(kubeconfig(tmp_path, plane, {"client-certificate": str(crt), "client-key": str(key)}))
        )
        try:
            with pytest.raises(ApiError) as caught:
                await asked(session)
            assert caught.value.problem is Problem.UNAUTHORIZED
            use("joe")
            return await asked(session)
        finally:
            await session.close()

    use("late")
    assert asyncio.run(run()) == JOE
