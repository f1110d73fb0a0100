"""The operator as a process, against the server in memory, with custom resources of 200 bytes whose plans end only when
the guard ends them: a template loops over a number of theirs. They ask for another pass each second."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from pathlib import Path
from typing import Any, Self

import yaml

from ruleop.kubernetes.kinds import Kind
from ruleop.localcluster import LocalCluster
from ruleop.planning.model.conditions import find_condition
from tests.definitions import definition
from tests.folders import write_files
from tests.processes.fork_server import ForkServer, is_alive
from tests.processes.operators import logged, probe
from tests.waiting import eventually

KINDS = ("Apple", "Berry", "Cherry", "Damson")
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}"}
data:
  text: "{% for x in range(spec.n) %}{% for y in range(spec.n) %}{{ metadata.name | regex_search('x') }}{% endfor %}{% endfor %}"
"""
ENDLESS, SMALL = 1800, 1  # `spec.n`: some seconds, and nothing
Object = dict[str, Any]


class Hostile:
    """The operator runs from `start` until it is ended, or until the context ends."""

    def __init__(self, fork_server: ForkServer, folder: Path) -> None:
        self.fork_server, self.folder = fork_server, folder
        self.log_file = folder / "log"
        self.cluster = LocalCluster()
        self.cluster.audit.enabled = True
        self.pid = 0
        rules = "".join(
            f"- {{group: example.com, version: v1, kind: {kind}, children: {{config: {{template: config.yaml.j2}}}}}}\n"
            for kind in KINDS
        )
        crds = {f"crds/{kind.lower()}s.yaml": definition(kind) for kind in KINDS}
        write_files(folder / "project", {"watches.yaml": rules, "templates/config.yaml.j2": TEMPLATE, **crds})

    def __enter__(self) -> Self:
        self.cluster.start()
        self.cluster.write_kubeconfig(self.folder / "kubeconfig")
        for kind in KINDS:
            self.apply(yaml.safe_load(definition(kind)))
        return self

    def __exit__(self, *_: object) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.cluster.stop()

    def start(self, *arguments: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        address = f"127.0.0.1:{self.port}"
        command = ["run", "-C", str(self.folder / "project"), "--kubeconfig", str(self.folder / "kubeconfig")]
        command += ["--operator-namespace", "default", "--log-format", "json", "--no-reload"]
        command += ["--metrics-bind-address", address, "--health-probe-bind-address", address, *arguments]
        self.pid = self.fork_server.start(command, self.log_file, self.folder / "clock")
        eventually("the operator to be ready", lambda: self.probe("/readyz")[0] == 200)

    def probe(self, path: str) -> tuple[int, str]:
        return probe(self.port, path)

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    @property
    def is_alive(self) -> bool:
        return is_alive(self.pid)

    def log(self) -> list[Object]:
        return logged(self.log_file)

    # -- resources -----------------------------------------------------------------------------------------------------

    def create_hostile(self, number: int, kinds: tuple[str, ...] = KINDS) -> None:
        """As many in all, of each kind in turn."""
        for each in range(number):
            self.create(kinds[each % len(kinds)], f"hostile-{each}", ENDLESS)

    def create(self, kind: str, name: str, loops: int) -> None:
        metadata = {"name": name, "namespace": "default", "annotations": {"ruleop.dev/reconcile-period": "1s"}}
        self.apply({"apiVersion": "example.com/v1", "kind": kind, "metadata": metadata, "spec": {"n": loops}})

    def apply(self, obj: Object) -> None:
        self.cluster.call(lambda: self.cluster.apply(obj))

    def ready(self, kind: str, name: str) -> Object:
        """The condition Ready."""
        served = self.cluster.registry.of_kind(Kind("example.com", "v1", kind))
        assert served is not None
        found = self.cluster.call(lambda: self.cluster.machinery.get(served.resource, "default", name))
        return find_condition(found.obj, "Ready") if found is not None else {}

    def status_writes(self) -> list[str]:
        """The names of the custom resources whose status was written, in order."""
        return [
            each.name
            for each in self.cluster.call(lambda: list(self.cluster.audit.entries))
            if each.group == "example.com" and each.subresource == "status" and each.verb == "patch"
        ]
