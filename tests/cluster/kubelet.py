"""The operator of each Deployment that is installed, run as a kubelet would run its pods."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from controlplane.cluster import ControlPlane

from tests.cluster.installed import Installed
from tests.cluster.server import Client

OPERATOR = "operator"
"""The name of its container."""


class Kubelet:
    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.folder = plane, folder
        self.admin = Client(plane)
        self.started = 0
        self.pods: dict[tuple[str, str], tuple[Installed, dict[str, Any]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object = None, *_: object) -> None:
        for pod, _template in self.pods.values():
            pod.__exit__(kind)
        self.admin.close()

    def sync(self) -> None:
        """Starts pods of new Deployments, replaces those whose template changed, ends those that are gone, and mounts
        ConfigMaps as they are now."""
        wanted = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in self._operators()}
        for key in self.pods.keys() - wanted.keys():
            pod, _template = self.pods.pop(key)
            pod.__exit__()
        for key, found in wanted.items():
            template = found["spec"]["template"]
            pod, before = self.pods.get(key, (None, None))
            if pod is None:
                self.started += 1
                folder = self.folder / f"{'-'.join(key)}-{self.started}"
                pod = Installed(self.plane, folder, *key).__enter__()
            elif template != before:
                pod.restart()
            else:
                pod.sync()
            self.pods[key] = pod, template

    def _operators(self) -> list[dict[str, Any]]:
        return [
            each
            for each in self.admin.get("/apis/apps/v1/deployments")["items"]
            if "deletionTimestamp" not in each["metadata"]
            and each["spec"]["template"]["spec"]["containers"][0]["name"] == OPERATOR
        ]


@contextlib.contextmanager
def replacing_crd(plane: ControlPlane, collection: str) -> Iterator[None]:
    """The block changes the CRD of a collection that has an object. Returns when the API server has replaced it, a
    second later: until then, a watch shows objects in the old schema. A kubelet shows changed rules later than that."""
    command = [str(plane.layout.built / "kubectl"), "get", "--raw", f"{collection}?watch=true"]
    environment = {"PATH": os.environ["PATH"], "KUBECONFIG": str(plane.kubeconfig())}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline(), "the object that is there"
        try:
            yield
            watch.wait(60)
        finally:
            watch.kill()
