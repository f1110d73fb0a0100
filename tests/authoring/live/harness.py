"""A cluster in memory over HTTP, a project, and the operator that runs until its custom resources are settled."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from click.testing import CliRunner
from structlog.testing import capture_logs

from ruleop.cli.program import program
from ruleop.kubernetes.kinds import Object
from ruleop.language.rules.checking import load_project
from ruleop.language.rules.operator_choices import read_choices
from ruleop.localcluster import LocalCluster
from ruleop.localcluster.http import Request
from ruleop.operator.manager.manager import Manager
from ruleop.operator.manager.parts import Options
from ruleop.operator.passes import status
from tests import waiting
from tests.folders import Folder, write_files
from tests.waiting import PATIENCE


class RecordedApi:
    """The API of a cluster, and the requests that it was sent."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.api = cluster.api
        self.requests: list[Request] = []

    def handle(self, request: Request) -> Any:
        self.requests.append(request)
        return self.api.handle(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.api, name)


class Live(Folder):
    """A project in a folder, and a cluster with its CRDs."""

    def __init__(self, root: Path, cluster: LocalCluster) -> None:
        super().__init__(root)
        self.cluster = cluster
        self.recorded = cluster.api = RecordedApi(cluster)  # type: ignore[assignment]
        self.kubeconfig = root / "kubeconfig"
        self.operator = ""  # its name; empty: that of ruleop.yaml
        cluster.write_kubeconfig(self.kubeconfig)

    # -- the cluster ---------------------------------------------------------------------------------------------------

    def apply(self, text: str) -> None:
        for each in yaml.load_all(text, yaml.CSafeLoader):
            self.cluster.call(lambda each=each: self.cluster.apply(each))

    def delete(self, plural: str, name: str) -> None:
        """As another client would."""
        self.send("DELETE", f"/apis/example.com/v1/namespaces/default/{plural}/{name}")

    def send(self, method: str, path: str, body: Object | None = None) -> None:
        """As another client would."""
        data, headers = (json.dumps(body).encode(), {"Content-Type": "application/json"}) if body else (None, {})
        request = urllib.request.Request(f"{self.cluster.url}{path}", data, headers, method=method)  # noqa: S310 - loopback
        urllib.request.urlopen(request, timeout=PATIENCE).close()  # noqa: S310 - loopback

    def remove(self, plural: str, name: str, api: str = "api/v1") -> None:
        """A built-in object, as another client would."""
        path = f"{self.cluster.url}/{api}/namespaces/default/{plural}/{name}"
        urllib.request.urlopen(urllib.request.Request(path, method="DELETE"), timeout=PATIENCE).close()  # noqa: S310 - loopback

    def merge(self, plural: str, name: str, patch: Any) -> None:
        """Patches a custom resource, as another client would."""
        path = f"{self.cluster.url}/apis/example.com/v1/namespaces/default/{plural}/{name}"
        headers = {"Content-Type": "application/merge-patch+json"}
        request = urllib.request.Request(path, json.dumps(patch).encode(), headers, method="PATCH")  # noqa: S310 - loopback
        urllib.request.urlopen(request, timeout=PATIENCE).close()  # noqa: S310 - loopback

    def objects(self, kind: str) -> list[Object]:
        store = self.cluster.store
        found = self.cluster.call(lambda: [each.obj for resource in store.resources() for each in store.all(resource)])
        return [each for each in found if each["kind"] == kind]

    @property
    def requests(self) -> list[Request]:
        """The requests since the operator stopped."""
        return self.recorded.requests

    def version(self) -> int:
        """Of the last write."""
        return self.cluster.call(lambda: self.cluster.store.version)

    def converge(self, until: Callable[[], bool]) -> None:
        """Runs the operator until this holds and it has nothing to do, and stops it."""
        # Of thousands of lines none matters here, and nothing is gained by waiting until a detail is written.
        with capture_logs(), mock.patch.object(status, "DETAILS_EVERY", 0.0):
            asyncio.run(self._converge(until))
        self.recorded.requests.clear()

    async def _converge(self, until: Callable[[], bool]) -> None:
        options = Options(
            kubeconfig=str(self.kubeconfig),
            name=self.operator or read_choices(self.root).name,
            metrics_address="0",
            health_address="0",
            operator_namespace="default",
            reload=False,
            prune_after_reload=0.1,
        )
        manager = Manager(load_project(self.root, environ={}), self.root, options)
        running = asyncio.create_task(manager.run())

        def is_quiet() -> bool:
            """It has no controllers before it is connected."""
            controllers = list(manager.work.controllers) if hasattr(manager, "work") else []
            return bool(controllers) and until() and all(each.is_quiet() for each in controllers)

        await waiting.until("the operator", is_quiet)
        manager.stopping.set()
        await running

    def reasons(self, kind: str) -> list[str]:
        """The reason of Ready of each custom resource of a kind."""
        found = []
        for each in self.objects(kind):
            conditions = (each.get("status") or {}).get("conditions") or []
            found.append(next((one["reason"] for one in conditions if one["type"] == "Ready"), ""))
        return found

    def message(self, kind: str) -> str:
        """The message of Ready of the only custom resource of a kind."""
        (found,) = self.objects(kind)
        conditions = (found.get("status") or {}).get("conditions") or []
        return next((str(one["message"]) for one in conditions if one["type"] == "Ready"), "")

    # -- the command ---------------------------------------------------------------------------------------------------

    def run(self, *arguments: str, rules: bool = True) -> tuple[int, str, str]:
        """The exit status, stdout and stderr of a command in the folder of the rules, or in the current one."""
        self.recorded.requests.clear()
        named = [*arguments, "--kubeconfig", str(self.kubeconfig)]
        with contextlib.chdir(self.root if rules else Path.cwd()):
            result = CliRunner().invoke(program, named, prog_name="ruleop")
        return result.exit_code, result.stdout, result.stderr


def new_live(root: Path, cluster: LocalCluster, files: dict[str, str]) -> Live:
    found = Live(root, cluster)
    write_files(root, files)
    for path in (root / "crds").glob("*.yaml"):
        found.apply(path.read_text("utf-8"))
    return found
