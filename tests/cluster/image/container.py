"""A container as the kubelet and its runtime make one for a pod of an installed Deployment, with runc.

What a pod has: the image's own command and environment with the Deployment's arguments and variables, the image's user,
no capability, no new privileges, a root that cannot be written, processes, hostname and mounts of its own, the service
account's files, the mounted ConfigMap, and the API server's address in the environment. What differs: it shares the
network of this machine, for the API server listens on loopback, so its ports are given to it; there is no seccomp
profile, and no limit of memory.
"""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path
from typing import Any

from controlplane.cluster import ControlPlane, free_ports

from tests.cluster.image.built import Store, configuration
from tests.cluster.installed import Installed

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
NAMESPACES = ("pid", "ipc", "uts", "mount")
MASKED = [
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/sys/firmware",
]
UNWRITABLE = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]


class Contained(Installed):
    """The operator of a Deployment that is there, in a container of the image that the Deployment names."""

    def __init__(self, plane: ControlPlane, folder: Path, release: tuple[str, str], store: Store) -> None:
        """`release`: its namespace and name."""
        super().__init__(plane, folder, *release)
        self.store = store
        self.folder = folder
        self.container: dict[str, Any] = {}
        self.id = f"ruleop-test-{uuid.uuid4().hex[:6]}"
        self.working = ""

    def __exit__(self, kind: object = None, *_: object) -> None:
        super().__exit__(kind)
        if self.working:
            self.store.buildah("rm", self.working)

    def launch(self) -> None:
        (self.port,) = free_ports(1)
        (self.container,) = self.pod_template()["spec"]["containers"]
        if not self.working:
            self.working = self.store.buildah("from", "--pull-never", self.container["image"])
        self._service_account()
        command = self._bundle(*self.container["args"])
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """runc passes on every signal but this one."""
        if self._process is not None:
            subprocess.run([*self._runc(), "kill", self.id, "KILL"], check=False, capture_output=True)
            self._process.wait()
            self._process = None

    def offline(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another command of the image, in a container of its own."""
        return subprocess.run(self._bundle(*arguments), capture_output=True, text=True, timeout=100, check=False)

    def status(self) -> dict[str, str]:
        """The kernel's status of its process."""
        state = subprocess.run([*self._runc(), "state", self.id], check=True, capture_output=True, text=True)
        lines = Path(f"/proc/{json.loads(state.stdout)['pid']}/status").read_text(encoding="utf-8").splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def _runc(self, *run: str) -> list[str]:
        return ["runc", "--root", str(self.folder / "state"), *run]

    def _service_account(self) -> None:
        folder = self.folder / "serviceaccount"
        folder.mkdir(exist_ok=True)
        authority = self.plane.layout.authority.read_text(encoding="utf-8")
        for name, text in (("token", self.token), ("ca.crt", authority), ("namespace", self.home)):
            (folder / name).write_text(text, encoding="utf-8")

    def _bundle(self, *arguments: str) -> list[str]:
        """Writes the container's configuration, and returns the command that runs it."""
        image = configuration(self.store, self.container["image"])
        host, _, port = self.plane.server.removeprefix("https://").rpartition(":")
        environment = [
            *image["Env"],
            *(f"{name}={value}" for name, value in self.environment.items()),
            f"KUBERNETES_SERVICE_HOST={host}",
            f"KUBERNETES_SERVICE_PORT={port}",
            f"RULEOP_HEALTH_PROBE_BIND_ADDRESS=127.0.0.1:{self.port}",
            "RULEOP_METRICS_BIND_ADDRESS=0",
        ]
        security = self.container["securityContext"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        user, _, group = image["User"].partition(":")
        spec = {
            "ociVersion": "1.0.2",
            "hostname": "ruleop",
            "root": {
                "path": self.store.buildah("mount", self.working),
                "readonly": security["readOnlyRootFilesystem"],
            },
            "process": {
                "args": [*image["Entrypoint"], *arguments],
                "cwd": image["WorkingDir"],
                "env": environment,
                "user": {"uid": int(user), "gid": int(group)},
                "noNewPrivileges": not security["allowPrivilegeEscalation"],
                "capabilities": {},
            },
            "mounts": self._mounts(),
            "linux": {
                "namespaces": [{"type": name} for name in NAMESPACES],
                "maskedPaths": MASKED,
                "readonlyPaths": UNWRITABLE,
            },
        }
        (self.folder / "config.json").write_text(json.dumps(spec), encoding="utf-8")
        name = self.id if arguments[0] == "run" else f"{self.id}-{arguments[0]}"
        return self._runc("run", "--bundle", str(self.folder), name)

    def _mounts(self) -> list[dict[str, Any]]:
        (rules,) = self.container["volumeMounts"]
        bound = {rules["mountPath"]: self.rules, SERVICE_ACCOUNT: self.folder / "serviceaccount"}
        return [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {
                "destination": "/dev",
                "type": "tmpfs",
                "source": "tmpfs",
                "options": ["nosuid", "strictatime", "mode=755", "size=65536k"],
            },
            {"destination": "/sys", "type": "bind", "source": "/sys", "options": ["rbind", "ro"]},
            *(
                {"destination": destination, "type": "bind", "source": str(source), "options": ["bind", "ro"]}
                for destination, source in bound.items()
            ),
        ]
