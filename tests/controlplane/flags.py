"""The command lines of the control plane's programs, and why each flag is there.

Everything listens on loopback only. Where a default is not changed, the programs do what they do in a real cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
NODE_SELECTOR = "kwok.x-k8s.io/node=fake"
SERVICE_RANGE = "10.96.0.0/16"


@dataclass(frozen=True)
class Layout:
    """Where one cluster keeps its files, and its ports."""

    built: Path
    work: Path
    etcd_data: Path
    ports: Sequence[int]

    @property
    def etcd_url(self) -> str:
        """etcd's address for the API server."""
        return f"http://{LOOPBACK}:{self.ports[0]}"

    @property
    def etcd_peer_url(self) -> str:
        """etcd listens for peers even when it has none."""
        return f"http://{LOOPBACK}:{self.ports[1]}"

    @property
    def server(self) -> str:
        """The API server's address for its clients."""
        return f"https://{LOOPBACK}:{self.ports[2]}"

    @property
    def authority(self) -> Path:
        """The API server's own certificate with its authority, which its clients check it against."""
        return self.work / "certs" / "apiserver.crt"

    @property
    def private_key(self) -> Path:
        """The key that belongs to it, which also signs the service accounts' tokens."""
        return self.work / "certs" / "apiserver.key"

    @property
    def token_file(self) -> Path:
        """The users and their tokens."""
        return self.work / "tokens.csv"

    @property
    def audit_policy(self) -> Path:
        """What the API server writes to its audit log."""
        return self.work / "audit-policy.yaml"

    @property
    def audit_log(self) -> Path:
        """The audit log."""
        return self.work / "audit.log"

    def kubeconfig(self, user: str) -> Path:
        """A user's kubeconfig."""
        return self.work / f"{user}.kubeconfig"

    def program(self, name: str) -> str:
        """A program's path."""
        return str(self.built / name)


def etcd(layout: Layout) -> list[str]:
    """One member, which does not wait for the disk: its data do not outlive the cluster."""
    return [
        layout.program("etcd"),
        "--name=ruleop",
        f"--data-dir={layout.etcd_data}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={layout.etcd_url}",
        f"--advertise-client-urls={layout.etcd_url}",
        f"--listen-peer-urls={layout.etcd_peer_url}",
        f"--initial-advertise-peer-urls={layout.etcd_peer_url}",
        f"--initial-cluster=ruleop={layout.etcd_peer_url}",
        "--log-level=warn",
    ]


def kube_apiserver(layout: Layout, *, controllers: bool, audit: bool, extra: Sequence[str]) -> list[str]:
    """The API server with RBAC, tokens and an audit log. Flags in extra come last, so they win."""
    flags = [
        layout.program("kube-apiserver"),
        f"--etcd-servers={layout.etcd_url}",
        f"--bind-address={LOOPBACK}",
        # Without this it looks for an address of the machine, and fails where there is no network.
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={layout.ports[2]}",
        # A loopback address is not allowed in an Endpoints object, so the API server must not list itself.
        "--endpoint-reconciler-type=none",
        # It makes its own certificate here, before it reads the keys below: no openssl is needed.
        f"--cert-dir={layout.authority.parent}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={layout.private_key}",
        f"--service-account-key-file={layout.private_key}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--token-auth-file={layout.token_file}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
    ]
    if audit:
        flags += [
            f"--audit-policy-file={layout.audit_policy}",
            f"--audit-log-path={layout.audit_log}",
            # In MiB; the default would start a new file at 100, behind the reader's back.
            "--audit-log-maxsize=4096",
        ]
    if not controllers:
        # It waits for each namespace's default service account, which a controller creates that does not run.
        flags.append("--disable-admission-plugins=ServiceAccount")
    return [*flags, *extra]


def kube_controller_manager(layout: Layout) -> list[str]:
    """All the controllers that run by default, as one user."""
    return [
        layout.program("kube-controller-manager"),
        f"--kubeconfig={layout.kubeconfig('controller-manager')}",
        "--leader-elect=false",
        "--use-service-account-credentials=false",
        f"--service-account-private-key-file={layout.private_key}",
        f"--root-ca-file={layout.authority}",
        # No HTTPS port: it serves no requests here.
        f"--bind-address={LOOPBACK}",
        "--secure-port=0",
        # With the limits of a real cluster, the tests would only wait longer.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        # A test that pauses the API server must not make the node look dead and its pods be evicted.
        "--node-monitor-grace-period=1h",
        # It would make a folder under /usr.
        f"--flex-volume-plugin-dir={layout.work / 'flexvolume'}",
    ]


def kube_scheduler(layout: Layout) -> list[str]:
    """The scheduler."""
    return [
        layout.program("kube-scheduler"),
        f"--kubeconfig={layout.kubeconfig('scheduler')}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        "--secure-port=0",
    ]


def kwok(layout: Layout, stages: Sequence[Path]) -> list[str]:
    """kwok plays the kubelet of the nodes with its annotation."""
    return [
        layout.program("kwok"),
        f"--kubeconfig={layout.kubeconfig('kwok')}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={NODE_SELECTOR}",
        "--node-lease-duration-seconds=40",
        "--node-ip=10.0.0.1",
        # The default, a /24, would give two pods the same address from the 255th on.
        "--cidr=10.244.0.1/16",
        # Without this it listens on every address of the machine.
        f"--server-address={LOOPBACK}:{layout.ports[3]}",
        f"--node-port={layout.ports[3]}",
        *(f"--config={stage}" for stage in stages),
    ]
