"""`ruleop run` as a process of its own against the control plane, as a user who may do just what its rules need."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from controlplane.audit import BEGINNING, Event, Mark
from controlplane.cluster import ControlPlane, free_ports

from tests import waiting
from tests.cluster.server import Client, RefusedError
from tests.definitions import OPEN, definition
from tests.processes.operators import logged, probe

T = TypeVar("T")

TIMEOUT = 60.0  # seconds; what takes longer than this does not come, even if the machine has much else to do
GRACE = 10.0
RBAC = "/apis/rbac.authorization.k8s.io/v1"
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


def eventually(what: str, probe: Callable[[], T | None], timeout: float = TIMEOUT) -> T:
    """While a request is rejected, what it asks for is not there yet."""
    return waiting.eventually(what, probe, timeout, (RefusedError, *waiting.MISSING))


@dataclass(frozen=True)
class Permissions:
    """The resources that rules need, by their full names, such as deployments.apps."""

    watched: Sequence[str]
    children: Sequence[str]
    observed: Sequence[str] = ()
    definitions: bool = True  # may it read CRDs?

    def rules(self) -> list[dict[str, Any]]:
        return [
            *(_rule(each, "get", "list", "watch", "patch") for each in self.watched),
            *(_rule(_part(each, "status"), "patch") for each in self.watched),
            *(_rule(each, "get", "list", "watch", "create", "patch", "update", "delete") for each in self.children),
            *(_rule(each, "get", "list", "watch") for each in self.observed),
            *(
                [_rule("customresourcedefinitions.apiextensions.k8s.io", "get", "list", "watch")]
                if self.definitions
                else []
            ),
            _rule("events.events.k8s.io", "create", "patch"),
        ]


OWN_NAMESPACE = [
    {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "create", "update"]},
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["ruleop-rollouts"], "verbs": ["list", "watch"]},
]


def _copied(project: Path, folder: Path) -> Path:
    """A copy of the project's files for one operator, so that edits of the project do not affect it."""
    for part in ("templates", "crds"):
        if not (project / part).exists():
            continue
        shutil.copytree(project / part, folder / part)
    shutil.copy(project / "watches.yaml", folder)
    return folder


def _part(resource: str, part: str) -> str:
    name, _, group = resource.partition(".")
    return f"{name}/{part}.{group}"


def _rule(resource: str, *verbs: str) -> dict[str, Any]:
    name, _, group = resource.partition(".")
    return {"apiGroups": [group], "resources": [name], "verbs": list(verbs)}


class Operator:
    """An operator with a copy of the project's files beside its log. It runs while the context is open, or until a test
    ends it."""

    def __init__(
        self, plane: ControlPlane, project: Path, permissions: Permissions, log: Path, *arguments: str
    ) -> None:
        self.plane = plane
        self.project = _copied(project, log.parent / "project")
        self.permissions = permissions
        self.log_file = log
        self.arguments = arguments
        self.admin = Client(plane)
        self.name = self.home = f"operator-{uuid.uuid4().hex[:6]}"
        self.user = "operator"  # as the audit log has it
        self.kubeconfig = plane.kubeconfig("operator")
        self.environment: dict[str, str] = {}
        self.program = [sys.executable, "-m", "ruleop"]  # or one of the fork server, where its start is not the subject
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._grant()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, kind: object = None, *_: object) -> None:
        if kind is not None:
            self.show()
        self.kill()
        for path in (
            f"{RBAC}/clusterrolebindings/{self.name}",
            f"{RBAC}/clusterroles/{self.name}",
            f"/api/v1/namespaces/{self.name}",
        ):
            with contextlib.suppress(RefusedError):
                self.admin.delete(path)
        self.admin.close()

    def show(self) -> None:
        """Its state, which pytest shows beside what failed."""
        if self._process is not None:
            sys.stderr.write(f"ready: {self.probe('/readyz?verbose')}\n{self.log_file.read_text()[-20000:]}")

    # -- live_example --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when it says that it is ready."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        (self.port,) = free_ports(1)
        command = [*self.program, "run", "-C", str(self.project)]
        command += ["--kubeconfig", str(self.kubeconfig), "--operator-namespace", self.home, "--log-format", "json"]
        command += [
            "--health-probe-bind-address",
            f"127.0.0.1:{self.port}",
            "--metrics-bind-address",
            "0",
            *self.arguments,
        ]
        # Nothing of the user's: no proxy, no kubeconfig, no settings.
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.plane.layout.work), **self.environment}
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def wait_until_ready(self) -> None:
        eventually("the operator to be ready", lambda: self._alive() and self.probe("/readyz")[0] == 200)

    def probe(self, path: str) -> tuple[int, str]:
        return probe(self.port, path)

    def kill(self) -> None:
        """Kills it, as a crash of its node would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def terminate(self) -> int:
        """Asks it to end, and gives its exit status; fails if it takes longer than the grace period."""
        assert self._process is not None
        self._process.terminate()
        status = self._process.wait(GRACE)
        self._process = None
        return status

    @contextlib.contextmanager
    def killed_at_its_first_write(self, namespace: str) -> Iterator[None]:
        """It is killed as soon as it has written anything there after what happens in the block, and started again."""
        mark = self.mark()
        yield
        eventually("a write of the operator", lambda: self._alive() and self.has_written(mark, namespace))
        self.kill()
        self.start()

    def _alive(self) -> bool:
        assert self._process is not None, "the operator was not started"
        assert self._process.poll() is None, (
            f"the operator ended with {self._process.returncode}\n{self.log_file.read_text()[-4000:]}"
        )
        return True

    # -- what it did and said ------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        return self.plane.audit_log.mark()

    def requests(self, mark: Mark = BEGINNING, namespace: str | None = None) -> list[Event]:
        """Its requests since then, once each. The audit log is written after the answers, so this waits until a request
        of the test is in it."""
        here, token = self.mark(), uuid.uuid4().hex
        self.admin.get(f"/version?after={token}")
        eventually(
            "the audit log", lambda: any(each["requestURI"].endswith(token) for each in self.plane.audit(mark=here))
        )
        return self._audited(mark, namespace)

    def writes(self, mark: Mark, namespace: str | None = None) -> list[str]:
        """Verb, resource and name of each; without events and its inventory."""
        return [
            described(each)
            for each in self.requests(mark, namespace)
            if each["verb"] in WRITES and not is_bookkeeping(each)
        ]

    def has_written(self, mark: Mark, namespace: str) -> bool:
        """Its requests in the audit log so far, without waiting."""
        return any(each["verb"] in WRITES and not is_bookkeeping(each) for each in self._audited(mark, namespace))

    def _audited(self, mark: Mark, namespace: str | None) -> list[Event]:
        return [each for each in self.plane.audit(mark=mark, user=self.user, namespace=namespace) if counts(each)]

    def log(self) -> list[dict[str, Any]]:
        """Its log lines so far, of all its processes."""
        return logged(self.log_file)

    def warnings(self) -> list[dict[str, Any]]:
        """Its warnings and errors, but for a watched kind that the test has not defined: the repository's own project
        watches two."""
        lines = [line for line in self.log() if line.get("level") in {"warning", "error"}]
        return [line for line in lines if line["event"] != "watched kind is not served; install its CRD"]

    def check(self) -> None:
        """Fails if the output has a traceback, or anything that is not a log line."""
        surprises = [
            line.get("exception", line["event"]) for line in self.log() if "level" not in line or "exception" in line
        ]
        assert not surprises, "\n".join(surprises)

    # -- permissions ---------------------------------------------------------------------------------------------------

    def _grant(self) -> None:
        self.admin.post(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}
        )
        self._bind("ClusterRole", RBAC, self.permissions.rules())
        self._bind("Role", f"{RBAC}/namespaces/{self.name}", OWN_NAMESPACE)
        # The API server learns of a binding by a watch of its own.
        operator = self.plane.api("operator")
        own = {"namespace": self.name, "verb": "update", "resource": "configmaps"}
        name, _, group = self.permissions.watched[-1].partition(".")
        watched = {"verb": "patch", "resource": name, "group": group}
        for attributes in (own, watched):
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            }
            eventually(
                "its permissions",
                lambda review=review: operator.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)[
                    "status"
                ]["allowed"],
            )

    def _bind(self, kind: str, path: str, rules: list[dict[str, Any]]) -> None:
        metadata, version = {"name": self.name}, "rbac.authorization.k8s.io/v1"
        plural = kind.lower() + "s"
        self.admin.post(f"{path}/{plural}", {"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": self.name}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "operator"}
        body = {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [subject],
        }
        self.admin.post(f"{path}/{plural.removesuffix('s')}bindings", body)


def counts(event: Event) -> bool:
    """The audit log has a watch when it starts and when it ends: once is enough. The test's own requests as the
    operator do not count."""
    return event["userAgent"].startswith("ruleop/") and not (
        event["verb"] == "watch" and event["stage"] == "ResponseComplete"
    )


def is_bookkeeping(event: Event) -> bool:
    """Writes that report on the work: events, the inventory and the owner key."""
    target = event["objectRef"]
    own = target["resource"] == "secrets" and target.get("namespace", "").startswith("operator-")
    return own or target["resource"] in {"events", "configmaps"}  # no example has ConfigMaps for children


def described(event: Event) -> str:
    """Verb, resource and name; a create names the object that it made, if the server's log does."""
    target = event["objectRef"]
    part = f"/{target['subresource']}" if "subresource" in target else ""
    return f"{event['verb']} {target['resource']}{part} {target.get('name', '')}".rstrip()


@contextlib.contextmanager
def operator_of(
    plane: ControlPlane,
    folder: Path,
    kind: str,
    rules: str,
    *,
    children: Sequence[str] = (),
    observed: Sequence[str] = (),
    spec: str = OPEN,
) -> Iterator[Operator]:
    """An operator of a few rules for one kind of example.com, which the cluster has meanwhile. `children` and
    `observed`: the resources that it may write and read."""
    plural = f"{kind.lower()}s"
    crd = folder / "rules" / "crds" / f"{plural}.yaml"
    crd.parent.mkdir(parents=True)
    crd.write_text(definition(kind, spec=spec))
    (folder / "rules" / "watches.yaml").write_text(rules)
    plane.define(crd)
    permissions = Permissions([f"{plural}.example.com"], children, observed)
    with Operator(plane, folder / "rules", permissions, folder / "operator" / "log") as operator:
        yield operator
        operator.check()
        plane.kubectl("delete", f"--filename={crd}", "--wait=true", "--timeout=60s")
