"""The page of an operator with exactly the generated roles, on a real API server: who reads it, and what it shows with
the permissions of docs/page.md and without them."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from click.testing import CliRunner
from controlplane.cluster import ControlPlane

from ruleop.cli.program import program
from ruleop.language.rules.checking import load_project
from ruleop.operator.manager.manager import Manager
from ruleop.operator.manager.parts import Options
from ruleop.page.serving import operator_page
from tests.cluster.operator import eventually
from tests.docs.manifests import METRICS
from tests.folders import write_files
from tests.operator.wire.certificates import Certificates
from tests.page.projects import NOTES, note, url_of

pytestmark = pytest.mark.real_server("RBAC decides who may read the page, and what it may read")

ROOT = Path(__file__).parents[2]
NAMESPACE = "ruleop-system"
PAGE = [
    document
    for block in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/page.md").read_text(), re.DOTALL)
    for document in yaml.safe_load_all(block)
]


def text_of(documents: list[Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})


@pytest.fixture
def project(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Path]:
    """The project of notes, its CRD, and the roles that are generated for it."""
    root = tmp_path / "project"
    write_files(root, NOTES)
    roles = CliRunner().invoke(program, ["generate", "rbac", "-C", str(root)], catch_exceptions=False).stdout
    for namespace in (NAMESPACE, "monitoring"):
        control_plane.kubectl("create", "namespace", namespace)
    for text in (NOTES["crds/notes.yaml"], roles, text_of([each for each in METRICS if "auth" in str(each)])):
        control_plane.kubectl("apply", "--filename=-", stdin=text)
    control_plane.kubectl("create", "serviceaccount", "reader", f"--namespace={NAMESPACE}")
    control_plane.kubectl("wait", "--for=condition=Established", "crd/notes.example.com")
    eventually("a note", lambda: control_plane.kubectl("apply", "--filename=-", stdin=json.dumps(note("a"))))
    yield root
    control_plane.kubectl("delete", "--filename=-", stdin=json.dumps(note("a")))
    # The garbage collector may not know the kind yet, and when the kind has gone, it never will.
    control_plane.kubectl("delete", "configmap", "a", "--ignore-not-found")
    for text in (roles, NOTES["crds/notes.yaml"], text_of(METRICS)):
        control_plane.kubectl("delete", "--ignore-not-found", "--filename=-", stdin=text)
    control_plane.kubectl("delete", "namespace", NAMESPACE, "monitoring", "--ignore-not-found", "--wait=true")


def token(plane: ControlPlane, account: str) -> str:
    return plane.kubectl("create", "token", account, f"--namespace={NAMESPACE}").strip()


def answers(root: Path, plane: ControlPlane, certificates: Certificates, *tokens: str) -> list[tuple[int, str]]:
    """Of the page of the note, once it waits."""
    config = yaml.safe_load(plane.kubeconfig().read_text())
    config["users"][0]["user"] = {"token": token(plane, "ruleop")}
    (root / "kubeconfig").write_text(yaml.safe_dump(config))
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    options = Options(
        kubeconfig=str(root / "kubeconfig"),
        operator_namespace=NAMESPACE,
        metrics_address="0",
        health_address="0",
        metrics_certificate=(certificates.folder / "server.crt", certificates.folder / "server.key"),
        metrics_auth=True,
        reload=False,
    )

    async def run() -> list[tuple[int, str]]:
        manager = Manager(load_project(root, environ={}), root, options, page=partial(operator_page, address))
        running = asyncio.create_task(manager.run())
        tls = ssl.create_default_context(cafile=str(certificates.authority))
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        try:
            async with asyncio.timeout(90), aiohttp.ClientSession() as client:
                while not waits(manager):  # noqa: ASYNC110 - the operator starts, and sets no event
                    await asyncio.sleep(0.05)
                found = []
                for each in tokens:
                    headers = {"Authorization": f"Bearer {each}"} if each else {}
                    url = f"https://{address}{url_of('a', node='config')}"
                    async with client.get(url, headers=headers, ssl=tls) as answer:
                        found.append((answer.status, await answer.text()))
                return found
        finally:
            manager.stopping.set()
            await running

    return asyncio.run(run())


def waits(manager: Manager) -> bool:
    controllers = manager.work.controllers if hasattr(manager, "work") else ()
    return any(each.reason == "Waiting" for of in controllers for each in of.reconciler.pass_log.reported.values())


def test_users_with_the_permission_read_the_page_of_an_operator_with_the_generated_roles(
    control_plane: ControlPlane, project: Path, tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path)
    other = token(control_plane, "reader")
    assert [status for status, _ in answers(project, control_plane, certificates, other, "wrong", "")] == [
        403,
        401,
        401,
    ]
    control_plane.kubectl("apply", "--filename=-", stdin=text_of(PAGE))
    role = ["--clusterrole=ruleop-page-reader", f"--serviceaccount={NAMESPACE}:reader"]
    control_plane.kubectl("create", "clusterrolebinding", "readers", *role)
    account = f"system:serviceaccount:{NAMESPACE}:reader"
    try:
        eventually("the permission", lambda: control_plane.kubectl("auth", "can-i", "get", "/page", f"--as={account}"))
        ((status, text),) = answers(project, control_plane, certificates, other)
        control_plane.kubectl("delete", "--filename=-", stdin=text_of(PAGE[:2]))
        ((_, without),) = answers(project, control_plane, certificates, other)
    finally:
        control_plane.kubectl("delete", "clusterrolebinding", "readers")
        control_plane.kubectl("delete", "--ignore-not-found", "--filename=-", stdin=text_of(PAGE))
    assert status == 200
    for word in ("templates/config.yaml.j2:5", "spec.go | default(false)", "Nothing to do"):
        assert word in text
        assert word in without
    assert "not permitted" not in text
    assert "not permitted to list: events" in without
