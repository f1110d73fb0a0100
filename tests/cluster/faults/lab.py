"""An operator in a namespace of its own, behind a proxy, which a test may kill and start again, and what is left in
that namespace."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from controlplane.access import write_kubeconfig
from controlplane.cluster import ControlPlane, free_ports

from tests.cluster.faults.proxy import Proxy, Threads
from tests.cluster.operator import eventually
from tests.cluster.server import Client, RefusedError
from tests.processes.fork_server import ForkServer, is_alive
from tests.processes.operators import logged, probe

PROJECT = Path(__file__).resolve().parent / "project"
TIMEOUT = 60.0
COLLECTIONS = (
    "/api/v1/namespaces/{}/configmaps",
    "/api/v1/namespaces/{}/services",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/faults.example.com/v1/namespaces/{}/ledgers",
    "/apis/faults.example.com/v1/namespaces/{}/heaps",
    "/apis/faults.example.com/v1/namespaces/{}/stacks",
    "/apis/faults.example.com/v1/namespaces/{}/marks",
    "/apis/myapp.k8s.io/v1/namespaces/{}/apps",
)


class Lab:
    """The operator runs from `start` until it is killed, or until the context ends."""

    def __init__(
        self,
        plane: ControlPlane,
        threads: Threads,
        fork_server: ForkServer,
        folder: Path,
        namespace: str,
        project: Path = PROJECT,
    ) -> None:
        self.plane, self.fork_server = plane, fork_server
        self.folder, self.namespace, self.project = folder, namespace, project
        self.proxy = Proxy(threads, plane.server, plane.layout.authority)
        self.admin = Client(plane)
        self.log_file = folder / f"{namespace}.log"
        self.clock = folder / f"{namespace}.clock"
        self.arguments: list[str] = []
        self.pid = 0
        self._uids: set[str] = set()

    def __enter__(self) -> Self:
        self.admin.post(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        )
        self.proxy.__enter__()
        self.kubeconfig = self.folder / f"{self.namespace}.kubeconfig"
        write_kubeconfig(self.kubeconfig, self.proxy.address, self.plane.layout.authority, self.plane.users["admin"])
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.proxy.__exit__()
        with contextlib.suppress(RefusedError):
            # A resource whose finalizer is never removed would block its definition for ever.
            for resource in ("ledgers", "stacks", "marks"):
                for each in self.admin.get(self.path(resource))["items"]:
                    self.edit(resource, each["metadata"]["name"], {"metadata": {"finalizers": None}})
        with contextlib.suppress(RefusedError):
            self.admin.delete(f"/api/v1/namespaces/{self.namespace}")
        self.admin.close()

    # -- the operator --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        (self.port,) = free_ports(1)
        command = ["run", "-C", str(self.project), "--kubeconfig", str(self.kubeconfig), "--namespaces", self.namespace]
        command += [
            "--operator-namespace",
            self.namespace,
            "--log-format",
            "json",
            "--metrics-bind-address",
            f"127.0.0.1:{self.port}",
        ]
        command += ["--health-probe-bind-address", f"127.0.0.1:{self.port}", "--no-reload", *self.arguments]
        self.pid = self.fork_server.start(command, self.log_file, self.clock)

    def start_and_wait(self) -> None:
        self.start()
        self.eventually("the operator to be ready", lambda: self.probe("/readyz")[0] == 200)

    def shift_clock(self, seconds: float) -> None:
        """The operator may read the file at any moment, so it has the whole number or the one before."""
        new = self.clock.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self.clock)

    def kill(self) -> None:
        """Kills the operator at once, as a crash of its node does. Any thread may call it."""
        pid, self.pid = self.pid, 0
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            eventually("its end", lambda: not is_alive(pid))

    def restart_if_killed(self) -> None:
        if not self.pid:
            self.start()
        elif not is_alive(self.pid):
            raise AssertionError(f"the operator ended by itself\n{self.log_file.read_text()[-4000:]}")

    def eventually(self, what: str, probe: Callable[[], Any]) -> Any:
        """Waits until the probe succeeds. Starts the operator again if a fault has killed it."""

        def probe_with_restart() -> Any:
            self.restart_if_killed()
            return probe()

        try:
            return eventually(what, probe_with_restart, TIMEOUT)
        except AssertionError as error:
            log = self.log_file.read_text()[-6000:] if self.log_file.exists() else ""
            asked = [f"{call}: {call.status}" for call in self.proxy.calls if call.is_write][-60:]
            error.add_note(f"ready: {self.probe('/readyz?verbose')[1]}\nits last writes: {asked}\nits log: {log}")
            raise

    def probe(self, path: str) -> tuple[int, str]:
        return probe(getattr(self, "port", 0), path)

    def log(self) -> list[dict[str, Any]]:
        return logged(self.log_file)

    def check(self) -> None:
        """Fails if the output has a traceback, or a line that is not a log line, except one that a kill has cut in
        two."""
        surprises = [
            line.get("exception", line["event"]) for line in self.log() if "level" not in line or "exception" in line
        ]
        assert not surprises, "\n".join(surprises)

    # -- objects -------------------------------------------------------------------------------------------------------

    def path(self, resource: str, name: str = "") -> str:
        root = next(each.format(self.namespace) for each in COLLECTIONS if each.endswith("/" + resource))
        return f"{root}/{name}" if name else root

    def make(self, resource: str, name: str, kind: str, **parts: Any) -> Any:
        path = self.path(resource)
        version = "v1" if path.startswith("/api/") else "/".join(path.split("/")[2:4])
        made = self.admin.post(path, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **parts})
        self._uids.add(made["metadata"]["uid"])
        return made

    def edit(self, resource: str, name: str, patch: dict[str, Any]) -> Any:
        return self.admin.merge(self.path(resource, name), patch, "somebody")

    def get(self, resource: str, name: str) -> Any:
        return self.admin.get(self.path(resource, name))

    def is_observed(self, resource: str, name: str, reason: str = "") -> Any:
        """Waits until the status of the CR has its current generation (and Ready has the reason). Returns the CR."""
        found = self.get(resource, name)
        status = found.get("status") or {}
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return None
        return found if not reason or reason == self.condition(found)["reason"] else None

    @staticmethod
    def condition(resource: dict[str, Any], kind: str = "Ready") -> dict[str, Any]:
        conditions = (resource.get("status") or {}).get("conditions") or []
        return next((each for each in conditions if each["type"] == kind), {"reason": "", "message": "", "status": ""})

    def snapshot(self) -> dict[str, Any]:
        """All objects of the namespace, without the fields that differ from run to run."""
        found = {}
        for each in COLLECTIONS:
            with contextlib.suppress(RefusedError):  # a kind that is not defined in this run
                for obj in self.admin.get(each.format(self.namespace))["items"]:
                    key = f"{each.rpartition('/')[2]}/{obj['metadata']['name']}"
                    found[key] = self._plain(obj)
        return found

    def _plain(self, obj: dict[str, Any]) -> Any:
        obj = copy.deepcopy(obj)
        metadata = obj["metadata"]
        if metadata["name"] == "ruleop-revisions":  # the files have names of the namespace in them
            return {"revisions": len(json.loads(obj["data"]["index"])), "kept": len(obj["binaryData"])}
        for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp"):
            metadata.pop(name, None)
        if "ruleop.dev/part-of" in metadata.get("labels", {}):
            metadata["labels"]["ruleop.dev/part-of"] = "its CR"  # made of the namespace's name
        for name in ("clusterIP", "clusterIPs"):
            (obj.get("spec") or {}).pop(name, None)
        for condition in (obj.get("status") or {}).get("conditions") or ():
            condition.pop("lastTransitionTime", None)
        for runs in (obj.get("status") or {}).get("ruleop", {}).get("once", {}).values():
            for run in runs:
                run.pop("time")
        text = json.dumps(obj, sort_keys=True).replace(self.namespace, "here")
        for uid in self._uids:
            text = text.replace(uid, "its uid")
        text = re.sub(r'(proof[\\]*":[\\]*")[0-9a-f]{32}', r"\1its proof", text)
        return json.loads(text)


def differences(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """The entries that only one of them has, or that differ."""
    return {
        key: {"is": one.get(key), "should be": two.get(key)}
        for key in sorted({*one, *two})
        if one.get(key) != two.get(key)
    }


def is_quiet(proxy: Proxy, seconds: float = 1.0) -> bool:
    """Whether the operator writes nothing during these seconds. This is not a wait: nothing may happen in the whole
    time."""
    mark = len(proxy.writes())
    time.sleep(seconds)
    return len(proxy.writes()) == mark


Make = Callable[..., Lab]
"""Makes a lab; its arguments are those of Lab, without what all of a run share."""
