"""A control plane for tests: etcd, the API server and, unless switched off, the controllers, the scheduler and kwok.

    with ControlPlane() as plane:
        plane.kubectl("get", "nodes")

The API server is the real one, so defaulting, field ownership, watches, RBAC and garbage collection are those of a
cluster. Only the kubelet is simulated: kwok makes pods ready at once, completes the pods of Jobs, and provisions
volumes, without running anything.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import flags
from .access import Users, write_kubeconfig
from .api import Api, ApiError
from .audit import POLICY, AuditLog, Event
from .build import build, stage_files
from .keeper import Keeper
from .process import ControlPlaneError, Process, wait_for

NODE_NAME = "node-1"
# Below where Linux takes the ports for outgoing connections from, so that nothing takes one between the choice and its
# use, or while the API server is down for a moment.
PORT_RANGE = (20000, 32000)
# etcd lays files of 64 MiB in advance; in a container, /dev/shm often has no more than that in all.
MEMORY_NEEDED = 2 * 2**30
START_TIMEOUT = 120.0


class ControlPlane:
    """One cluster, from start() to stop()."""

    def __init__(
        self,
        *,
        controllers: bool = True,
        audit: bool = True,
        work: Path | None = None,
        apiserver_flags: Sequence[str] = (),
    ) -> None:
        """Builds the programs where they are missing, and chooses folders and ports.

        controllers=False leaves only etcd and the API server, for measuring. work names the folder for logs,
        kubeconfigs and the audit log, and keeps it after stop(). apiserver_flags are added to the API server's own and
        win over them.
        """
        self._built = build()
        self._controllers = controllers
        self._audit = audit
        self._apiserver_flags = tuple(apiserver_flags)
        self._kept_work = work
        self.users = Users()
        self.timings: dict[str, float] = {}
        self._started = False
        self._layout: flags.Layout | None = None
        self._keeper: Keeper | None = None
        self._processes: dict[str, Process] = {}

    # Starting and stopping

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts everything and returns when the API server is ready and, with controllers, the node is."""
        if self._started:
            raise ControlPlaneError("the control plane was started before; make a new one")
        self._started = True
        begun = time.monotonic()
        try:
            self._prepare()
            self._start_apiserver_and_etcd()
            self.timings["apiserver"] = time.monotonic() - begun
            if self._controllers:
                self._start_controllers()
                self.timings["node"] = time.monotonic() - begun
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends every process and removes the files, whatever state the cluster is in."""
        # In the order in which no program logs that another one has gone.
        for process in reversed(self._processes.values()):
            process.kill()
        if self._layout is not None:
            shutil.rmtree(self._layout.etcd_data, ignore_errors=True)
            if self._kept_work is None:
                shutil.rmtree(self._layout.work, ignore_errors=True)
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def check(self) -> None:
        """Raises, with the end of its log, if a program ended by itself."""
        for process in self._processes.values():
            process.check()

    def _prepare(self) -> None:
        keeper = self._keeper = Keeper()
        if self._kept_work is None:
            work = Path(tempfile.mkdtemp(prefix="ruleop-cluster-"))
            keeper.watch_folder(work)
        else:
            work = self._kept_work.resolve()
            work.mkdir(mode=0o700, parents=True, exist_ok=True)
        etcd_data = Path(tempfile.mkdtemp(prefix="ruleop-etcd-", dir=_memory_folder()))
        keeper.watch_folder(etcd_data)
        layout = self._layout = flags.Layout(self._built, work, etcd_data, free_ports(4))
        layout.audit_policy.write_text(POLICY, encoding="utf-8")
        commands = {
            "etcd": flags.etcd(layout),
            "kube-apiserver": flags.kube_apiserver(
                layout, controllers=self._controllers, audit=self._audit, extra=self._apiserver_flags
            ),
        }
        if self._controllers:
            commands["kube-controller-manager"] = flags.kube_controller_manager(layout)
            commands["kube-scheduler"] = flags.kube_scheduler(layout)
            commands["kwok"] = flags.kwok(layout, stage_files(self._built))
        self._processes = {name: Process(name, command, work, keeper) for name, command in commands.items()}

    def _start_apiserver_and_etcd(self) -> None:
        self.process("etcd").start()
        # The API server retries until etcd answers, so there is nothing to wait for in between.
        self.start_apiserver()

    def _start_controllers(self) -> None:
        for name in ("kube-controller-manager", "kube-scheduler", "kwok"):
            self.process(name).start()
        admin = self.api()
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": NODE_NAME,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {
                    "kubernetes.io/hostname": NODE_NAME,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                },
            },
        }
        # kwok fills in the capacity: 1000 CPUs, 1 TiB of memory, a million pods.
        admin.post("/api/v1/nodes", node)
        # The class that kwok's volume stages look after; as the default, claims need not name it.
        storage_class = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "kwok-volume", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "kwok.x-k8s.io/volume",
        }
        admin.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
        wait_for("the node to be ready", lambda: _node_ready(admin), START_TIMEOUT, list(self._processes.values()))

    # What tests use

    @property
    def layout(self) -> flags.Layout:
        """The folders, ports and addresses."""
        if self._layout is None:
            raise ControlPlaneError("the control plane was not started")
        return self._layout

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self.layout.server

    def process(self, name: str) -> Process:
        """One of the programs, such as kube-apiserver: its pid, its log."""
        return self._processes[name]

    def kubeconfig(self, user: str = "admin") -> Path:
        """The kubeconfig of a user."""
        return self.layout.kubeconfig(user)

    def token_for(self, user: str, groups: Sequence[str] = ()) -> str:
        """The token of a user, who is added where there is none of that name.

        The API server reads its users when it starts. So add them before start(), or call restart_apiserver()
        afterwards.
        """
        if user not in self.users:
            added = self.users.add(user, groups)
            if self._layout is not None:
                self.users.write_token_file(self.layout.token_file)
                if self.layout.authority.exists():
                    write_kubeconfig(self.kubeconfig(user), self.server, self.layout.authority, added)
        return self.users[user].token

    def api(self, user: str = "admin") -> Api:
        """A small client for the API server as this user."""
        return Api(self.server, self.layout.authority, self.users[user].token)

    def kubectl(self, *arguments: str, user: str = "admin", stdin: str | None = None, timeout: float = 60.0) -> str:
        """Runs the kubectl of the same version and returns what it prints; raises with its error."""
        command = [self.layout.program("kubectl"), f"--kubeconfig={self.kubeconfig(user)}", *arguments]
        # A HOME of its own: kubectl keeps what it discovers there, and reads the user's preferences.
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.layout.work)}
        run = subprocess.run(
            command, input=stdin or "", capture_output=True, text=True, timeout=timeout, env=environment, check=False
        )
        if run.returncode != 0:
            raise ControlPlaneError(
                f"kubectl {' '.join(arguments)}: exit status {run.returncode}\n{run.stderr.strip()}"
            )
        return run.stdout

    def define(self, *files: Path) -> None:
        """Applies definitions of kinds, from files or folders, and waits until they are served."""
        flags = [f"--filename={file}" for file in files]
        self.kubectl("apply", *flags)
        self.until_served(*flags)

    def until_served(self, *definitions: str) -> None:
        """Waits for kinds that were defined a moment ago. `definitions` are the arguments of kubectl that select
        them."""

        def established() -> bool:
            # kubectl's own `wait` fails where there are no conditions yet.
            found = json.loads(self.kubectl("get", *definitions, "--output=json"))
            return all(map(_is_established, found["items"] if found["kind"] == "List" else [found]))

        wait_for("the definitions to be served", established, START_TIMEOUT, [self.process("kube-apiserver")])

    @property
    def audit_log(self) -> AuditLog:
        """The audit log's reader."""
        return AuditLog(self.layout.audit_log)

    def audit(self, **wanted: Any) -> list[Event]:
        """Events of the audit log: see AuditLog.events()."""
        return self.audit_log.events(**wanted)

    # Faults of the API server

    def pause_apiserver(self) -> None:
        """The API server stops answering, with all its connections open."""
        self.process("kube-apiserver").pause()

    def resume_apiserver(self) -> None:
        """The API server continues, with the requests that arrived in between."""
        self.process("kube-apiserver").resume()

    def stop_apiserver(self) -> None:
        """Kills it; connections are refused from now on."""
        self.process("kube-apiserver").kill()

    def start_apiserver(self) -> None:
        """Starts it at the same address on the same data, and waits until it is ready."""
        layout = self.layout
        self.users.write_token_file(layout.token_file)
        server = self.process("kube-apiserver")
        server.start()
        wait_for("the API server to be ready", self._apiserver_ready, START_TIMEOUT, [self.process("etcd"), server])
        for name in self.users.names():
            write_kubeconfig(self.kubeconfig(name), self.server, layout.authority, self.users[name])

    def start_second_apiserver(self, *more: str) -> tuple[int, AuditLog]:
        """Starts another one on the same etcd, with these flags too, and waits until it is ready. Its port and its
        audit log."""
        layout, (port,) = self.layout, free_ports(1)
        log = AuditLog(layout.work / "second-audit.log")
        extra = [*self._apiserver_flags, f"--secure-port={port}", f"--audit-log-path={log.path}", *more]
        command = flags.kube_apiserver(layout, controllers=self._controllers, audit=self._audit, extra=extra)
        assert self._keeper is not None, "it has started"
        server = Process("second-kube-apiserver", command, layout.work, self._keeper)
        self._processes[server.name] = server
        server.start()
        api = Api(f"https://{flags.LOOPBACK}:{port}", layout.authority, self.users["admin"].token)

        def is_ready() -> bool:
            with contextlib.suppress(ApiError, OSError):
                return api.text("GET", "/readyz", timeout=2.0) == "ok"
            return False

        wait_for("the second API server to be ready", is_ready, START_TIMEOUT, [server])
        return port, log

    def restart_apiserver(self) -> None:
        """Kills it as a crash would and starts it again."""
        self.stop_apiserver()
        self.start_apiserver()

    # The controllers

    def restart_controllers(self, watching: Sequence[str] = ()) -> None:
        """Kills the controller manager and starts it again, and waits until it watches these kinds (such as
        apps.example.com).

        The garbage collector looks for new kinds only every 30 seconds, and until it has found a CRD made just now,
        deleting an object of that kind collects nothing. After a restart, it finds them at once.
        """
        manager = self.process("kube-controller-manager")
        manager.kill()
        mark = self.audit_log.mark()
        manager.start()

        def all_watched() -> bool:
            found = self.audit(
                mark=mark, user=self.users["controller-manager"].name, verb="watch", stage="ResponseStarted"
            )
            return set(watching) <= {
                ".".join(filter(None, (each["objectRef"]["resource"], each["objectRef"].get("apiGroup"))))
                for each in found
            }

        wait_for(f"the controllers to watch {', '.join(watching)}", all_watched, START_TIMEOUT, [manager])

    def _apiserver_ready(self) -> bool:
        if not self.layout.authority.exists():
            return False
        # ValueError and ssl.SSLError (an OSError): the certificate is being written.
        with contextlib.suppress(ApiError, OSError, ValueError):
            return self.api().text("GET", "/readyz", timeout=2.0) == "ok"
        return False


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _node_ready(admin: Api) -> bool:
    """The node is ready, nothing keeps pods off it, and pods can be made: the default service account is there."""
    node = admin.get(f"/api/v1/nodes/{NODE_NAME}")
    ready = any(
        each["type"] == "Ready" and each["status"] == "True" for each in node.get("status", {}).get("conditions", [])
    )
    if not ready or node["spec"].get("taints"):
        return False
    with contextlib.suppress(ApiError):
        return bool(admin.get("/api/v1/namespaces/default/serviceaccounts/default"))
    return False


def _memory_folder() -> str | None:
    """The folder in memory, if it is large enough, else None for the usual temporary folder."""
    memory = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a private folder in it
    with contextlib.suppress(OSError):
        if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= MEMORY_NEEDED:
            return str(memory)
    return None


class _Ports:
    """Ports that this process has chosen. They stay its own as long as it lives, also while nobody listens on them yet,
    or for a moment: each is a byte of a file that this process has locked, and that all test runs of a user share."""

    def __init__(self) -> None:
        self._choosing = threading.Lock()
        self._ours: set[int] = set()
        self._file: int | None = None

    def choose(self) -> int:
        with self._choosing:
            if self._file is None:
                path = Path(tempfile.gettempdir()) / f"ruleop-ports-{os.getuid()}"
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            for port in random.sample(range(*PORT_RANGE), 1000):
                if port not in self._ours and self._is_free(port):
                    self._ours.add(port)
                    return port
        raise ControlPlaneError("no free ports on loopback")

    def _is_free(self, port: int) -> bool:
        assert self._file is not None
        with contextlib.suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.bind((flags.LOOPBACK, port))
            return True
        return False


_ports = _Ports()


def free_ports(count: int) -> list[int]:
    """Different ports on loopback that are free, and that no other test run chooses."""
    return [_ports.choose() for _ in range(count)]
