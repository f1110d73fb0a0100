"""The operator of an installed Deployment, run as a kubelet would: the pod's arguments, variables, account and mounts.

No kubelet runs here; the pods are admitted by the API server, and kwok says that they are ready.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Self

import yaml
from controlplane.cluster import ControlPlane

from tests.cluster.mounts import publish
from tests.cluster.operator import eventually
from tests.cluster.pod import Pod

RULES = "/rules"


class Installed(Pod):
    """The operator of a Deployment that is there, with the rules as they were when the pod started or was synced."""

    def __init__(self, plane: ControlPlane, folder: Path, namespace: str, name: str) -> None:
        folder.mkdir()
        super().__init__(plane, _nothing(folder), None, folder / "log", own=())
        self.name = self.home = namespace
        self.deployment = name
        self.rules = folder / "rules"
        self.published = 0
        self.token = ""

    def __exit__(self, kind: object = None, *_: object) -> None:
        if kind is not None:
            self.show()
        self.kill()
        self.admin.close()

    def _grant(self) -> None:
        """Nothing: what is installed has its own permissions."""

    def start(self) -> None:
        template = self.pod_template()
        spec = template["spec"]
        account = spec["serviceAccountName"]
        self.user = f"system:serviceaccount:{self.home}:{account}"
        token = f"/api/v1/namespaces/{self.home}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = eventually("a token", lambda: self.admin.post(token, asked))
        self.token = answer["status"]["token"]
        self.kubeconfig.write_text(yaml.safe_dump(self.config({"token": self.token})))
        (container,) = spec["containers"]
        run, *arguments = container["args"]
        assert run == "run"
        self.arguments = tuple(arguments)
        self.environment = {each["name"]: _value(each, template) for each in container.get("env", ())}
        self.project = self.rules
        self.sync()
        super().start()

    def pod_template(self) -> dict[str, Any]:
        """Of pods that the API server has admitted and the scheduler has placed."""

        def ready() -> dict[str, Any]:
            path = f"/apis/apps/v1/namespaces/{self.home}/deployments/{self.deployment}"
            found = self.admin.get(path)
            status = found["status"]
            assert status["observedGeneration"] >= found["metadata"]["generation"]
            return found if status["updatedReplicas"] == status["readyReplicas"] == found["spec"]["replicas"] else {}

        return eventually("ready pods of the operator", ready)["spec"]["template"]  # type: ignore[no-any-return]

    def sync(self) -> None:
        """Mounts the ConfigMaps as they are now."""
        files: dict[str, str] = {}
        spec = self.pod_template()["spec"]
        mounted = {each["name"] for each in spec["containers"][0]["volumeMounts"] if each["mountPath"] == RULES}
        for volume in spec["volumes"]:
            if volume["name"] not in mounted:
                continue
            sources = [each["configMap"] for each in volume.get("projected", {}).get("sources", [volume])]
            for source in sources:
                stored = self.admin.get(f"/api/v1/namespaces/{self.home}/configmaps/{source['name']}")
                binary = {key: base64.b64decode(text).decode() for key, text in stored.get("binaryData", {}).items()}
                data = {**stored.get("data", {}), **binary}
                files |= {item["path"]: data[item["key"]] for item in source["items"]}
        self.published += 1
        self.rules.mkdir(exist_ok=True)
        publish(self.rules, f"..{self.published}", files)

    def restart(self) -> Self:
        """A new pod."""
        assert self.terminate() == 0
        self.start()
        return self


def _value(variable: dict[str, Any], template: dict[str, Any]) -> str:
    """Of an environment variable, which may be that of an annotation of the pod."""
    if "value" in variable:
        return str(variable["value"])
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    name = path.removeprefix("metadata.annotations['").removesuffix("']")
    return str(template["metadata"].get("annotations", {}).get(name, ""))


def _nothing(folder: Path) -> Path:
    """Operator copies a project; this one has its rules from ConfigMaps."""
    project = folder / "nothing"
    for part in ("templates", "crds"):
        (project / part).mkdir(parents=True)
    (project / "watches.yaml").write_text("watches: []\n")
    return project
