"""An operator under a service account of its own, so that the audit log tells several of them apart, and with the
permissions that a test gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from controlplane.cluster import ControlPlane

from tests.cluster.operator import OWN_NAMESPACE, RBAC, Operator, Permissions, eventually

LEASES = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "create", "update"]}


class Pod(Operator):
    """Its home, where inventory and lease are, is its own namespace, or that of another pod of the same operator."""

    def __init__(
        self,
        plane: ControlPlane,
        project: Path,
        permissions: Permissions | None,
        log: Path,
        *arguments: str,
        home: str = "",
        own: Sequence[dict[str, Any]] = (*OWN_NAMESPACE, LEASES),
    ) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(plane, project, permissions, log, *arguments)  # type: ignore[arg-type] - without any, it has none in the cluster
        self.home = home or self.name
        self.own = list(own)
        self.user = f"system:serviceaccount:{self.name}:{self.name}"
        self.subject = {"kind": "ServiceAccount", "name": self.name, "namespace": self.name}
        self.kubeconfig = log.parent / "kubeconfig"

    def _grant(self) -> None:
        self.admin.post(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}
        )
        accounts = f"/api/v1/namespaces/{self.name}/serviceaccounts"
        self.admin.post(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self.name}})
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.admin.post(f"{accounts}/{self.name}/token", asked)["status"]["token"]
        self.kubeconfig.write_text(yaml.safe_dump(self.config({"token": token})))
        if self.own:
            self.bind("Role", self.own, self.home)
            for rule in (each for each in self.own if "resourceNames" not in each):
                self.may(self.home, rule["verbs"][-1], rule["resources"][0], rule["apiGroups"][0])
        if self.permissions is not None:
            self.bind("ClusterRole", self.permissions.rules())
            name, _, group = self.permissions.watched[-1].partition(".")
            self.may("", "patch", name, group)

    def config(self, user: dict[str, Any], **cluster: Any) -> dict[str, Any]:
        """A kubeconfig that leads to the control plane."""
        authority = self.plane.layout.authority
        trusted = {"certificate-authority": str(authority)} if authority is not None else {}
        served = {"server": self.plane.server, **trusted, **cluster}
        return {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": served}],
            "users": [{"name": "it", "user": user}],
        }

    def bind(self, kind: str, rules: list[dict[str, Any]], namespace: str = "") -> None:
        """Permissions in the cluster, or in a namespace."""
        path = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        version, plural = "rbac.authorization.k8s.io/v1", kind.lower()
        body: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": {"name": self.name}, "rules": rules}
        self.admin.post(f"{path}/{plural}s", body)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": self.name}
        body = {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": {"name": self.name},
            "roleRef": reference,
            "subjects": [self.subject],
        }
        self.admin.post(f"{path}/{plural}bindings", body)

    def may(self, namespace: str, verb: str, resource: str, group: str, *, yes: bool = True) -> None:
        """Returns when the API server, which reads bindings with a watch of its own, permits it."""
        attributes = {"namespace": namespace, "verb": verb, "resource": resource, "group": group}
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.name}", "system:authenticated"]
        spec = {"user": self.user, "groups": groups, "resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        eventually(
            f"{verb} {resource}: {yes}", lambda: self.admin.post(path, review)["status"].get("allowed", False) is yes
        )

    def revoke(self, resource: str, namespace: str) -> None:
        """It may no longer do anything with a resource in a namespace."""
        role = f"{RBAC}/namespaces/{namespace}/roles/{self.name}"
        rules = [rule for rule in self.admin.get(role)["rules"] if resource not in rule["resources"]]
        gone = next(rule for rule in self.own if resource in rule["resources"] and "resourceNames" not in rule)
        self.admin.merge(role, {"rules": rules}, "somebody")
        self.may(namespace, gone["verbs"][-1], resource, gone["apiGroups"][0], yes=False)

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait_for_exit(self) -> int:
        """Its exit status, when it has ended by itself."""
        assert self._process is not None
        status = self._process.wait(60)
        self._process = None
        return status

    def wait_for_log(self, event: str) -> dict[str, Any]:
        """A line of its log, when it is there."""
        return eventually(
            f"{event!r} in the log", lambda: next((line for line in self.log() if line["event"] == event), None), 60
        )

    def lease(self) -> Any:
        return self.admin.get(self.lease_path)

    @property
    def lease_path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.home}/leases/ruleop"

    def is_standby(self) -> bool:
        return not any(line["event"] == "became leader" for line in self.log())
