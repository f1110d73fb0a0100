"""What `make demo` shows: the examples of this folder under `ruleop dev`, and what the operator does about changes.

The operator is the real one, and the API server speaks real HTTP; only its objects are in memory.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ruleop.authoring.dev.dev_session import DevSession, DevSettings, DevView
from ruleop.authoring.report.tree import tree_lines, view_row
from ruleop.authoring.report.views import is_ready
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder
from ruleop.cli.outputs.terminal import print_lines
from ruleop.operator.manager.parts import Options
from ruleop.operator.telemetry import logging as logs

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 20.0  # seconds for each step
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
NAMESPACED = "/namespaces/default/"
APPS = f"/apis/myapp.k8s.io/v1{NAMESPACED}apps/"
DEPLOYMENTS, SERVICES = f"/apis/apps/v1{NAMESPACED}deployments/", f"/api/v1{NAMESPACED}services/"


class Started(DevView):
    """Tells when the session runs. The demo prints the tree itself."""

    def __init__(self) -> None:
        self.running = asyncio.Event()

    def started(self, session: DevSession) -> None:  # noqa: ARG002 - of View
        self.running.set()


class Demo:
    def __init__(self, session: DevSession) -> None:
        self.session = session

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        return await asyncio.to_thread(self._call, method, path, body)

    def _call(self, method: str, path: str, body: Any) -> Any:
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = json.dumps(body).encode() if body is not None else None
        url = self.session.cluster.url + path
        request = urllib.request.Request(url, data, {"Content-Type": media}, method=method)  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    return None
                raise

    async def until(self, path: str, holds: Callable[[Any], bool]) -> Any:
        """The object as soon as this holds for it."""
        end = time.monotonic() + PATIENCE
        while True:
            found = await self.call("GET", path)
            if holds(found):
                return found
            if time.monotonic() > end:
                raise SystemExit(f"demo: {path} did not become what it should: {json.dumps(found)}")
            await asyncio.sleep(0.02)

    def tree(self) -> None:
        print_lines(tree_lines([view_row(each) for each in self.session.tree()]))

    async def run(self) -> None:
        app = await self.until(APPS + "app-sample", is_ready)
        await self.until("/apis/cache.example.com/v1alpha1" + NAMESPACED + "memcacheds/memcached-sample", is_ready)
        self.tree()

        say("The status of the App comes from its children:")
        show("kubectl get app app-sample -o jsonpath='{.status.availableReplicas}'")
        print(app["status"]["availableReplicas"])

        say("Edit the spec. The Deployment follows, and nothing else is written:")
        show("""kubectl patch app app-sample --type=merge -p '{"spec":{"deployment":{"replicas":3}}}'""")
        await self.call("PATCH", APPS + "app-sample", {"spec": {"deployment": {"replicas": 3}}})
        await self.until(APPS + "app-sample", lambda found: found["status"].get("availableReplicas") == 3)
        self.tree()

        say("Delete a child by hand. The operator makes it again:")
        show("kubectl delete service app-service")
        old = (await self.call("GET", SERVICES + "app-service"))["metadata"]["uid"]
        await self.call("DELETE", SERVICES + "app-service")
        made = await self.until(SERVICES + "app-service", lambda found: found and found["metadata"]["uid"] != old)
        print(f"Service app-service: uid {old} -> {made['metadata']['uid']}")

        say("Edit a field of a child by hand. The operator reverts just this field:")
        show("kubectl scale deployment app-deployment --replicas=9")
        await self.call("PATCH", DEPLOYMENTS + "app-deployment", {"spec": {"replicas": 9}})
        made = await self.until(DEPLOYMENTS + "app-deployment", lambda found: found["spec"]["replicas"] == 3)
        print(f"Deployment app-deployment: spec.replicas 9 -> {made['spec']['replicas']}")

        say("A second App wants the Service of the first. It does not get it, and its status says why:")
        other = yaml.safe_load((ROOT / "examples/app.yaml").read_text())
        other["metadata"]["name"] = "app-other"
        other["spec"]["deployment"]["name"] = "other-deployment"
        show("kubectl apply -f other.yaml   # spec.service.name: app-service")
        await self.call("POST", APPS.rstrip("/"), other)
        await self.until(APPS + "app-other", lambda found: "ErrResourceExists" in json.dumps(found.get("status") or {}))
        self.tree()

        say("Delete the App. Its children go with it:")
        show("kubectl delete app app-sample app-other")
        for name in ("app-sample", "app-other"):
            await self.call("DELETE", APPS + name)
        for path in (DEPLOYMENTS + "app-deployment", SERVICES + "app-service", DEPLOYMENTS + "other-deployment"):
            await self.until(path, lambda found: found is None)
        self.tree()


def say(text: str) -> None:
    print(f"\n\033[1m# {text}\033[0m" if COLOUR else f"\n# {text}", flush=True)


def show(command: str) -> None:
    print(f"\033[2m$ {command}\033[0m" if COLOUR else f"$ {command}", flush=True)


def documents(*folders: str) -> tuple[Any, ...]:
    files = [file for folder in folders for file in sorted((ROOT / folder).glob("*.yaml"))]
    return tuple(each for file in files for each in yaml.safe_load_all(file.read_text()) if each)


async def main() -> None:
    logs.set_up("error", None)
    settings = DevSettings(samples=documents("examples"), definitions=partial(documents, "crds"))
    options = Options(metrics_address="0", health_address="0", operator_namespace="default", reload=False)
    view = Started()
    session = DevSession(load_with_sources(Folder(str(ROOT)), ()).project, ROOT, options, settings, view)
    running = asyncio.create_task(session.run())
    await asyncio.wait_for(view.running.wait(), PATIENCE)
    demo = asyncio.create_task(Demo(session).run())
    await asyncio.wait({running, demo}, return_when=asyncio.FIRST_COMPLETED)
    session.stopping.set()
    await demo
    await running


if __name__ == "__main__":
    say("An App is a custom resource: two names, an image, a number of replicas.")
    show("cat examples/app.yaml")
    print((ROOT / "examples/app.yaml").read_text(), end="")
    say("Two templates describe its children. One of them:")
    show("cat templates/app/service.yaml.j2")
    print((ROOT / "templates/app/service.yaml.j2").read_text(), end="")
    say("Check the project for mistakes, and plan what the operator would do, without a cluster:")
    for command in ("check", "plan -f examples/app.yaml"):
        show(f"ruleop {command}")
        program = [sys.executable, "-c", "from ruleop.cli import main; main()", *command.split()]
        subprocess.run(program, cwd=ROOT, check=True)
    say("Run the operator, with an API server in memory:")
    show("ruleop dev --apply examples/")
    asyncio.run(main())
