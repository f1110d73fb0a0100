"""The bundle of `ruleop generate bundle`, installed by the Operator Lifecycle Manager itself.

Its operator takes a ClusterServiceVersion; the roles and the account are made by its other program, from an
InstallPlan, which needs a registry of images. So the test makes them, from the same permissions.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl
from controlplane.programs import program as built
from controlplane.programs import sources

from ruleop.cli.program import program
from tests.cluster.example_projects import ROOT, LiveExample
from tests.cluster.installed import Installed
from tests.cluster.operator import RBAC, described, eventually
from tests.cluster.server import Client, RefusedError
from tests.cluster.test_examples import APP

pytestmark = pytest.mark.real_server("the Operator Lifecycle Manager runs on it")

GROUP = "/apis/operators.coreos.com"


@pytest.fixture(scope="module")
def olm(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """OLM at work, and a client."""
    crds = sources("olm", "github.com/operator-framework/api") / "crds"
    folder = tmp_path_factory.mktemp("olm")
    files = [f"--filename={each}" for each in sorted(crds.glob("*.yaml"))]
    control_plane.kubectl("apply", "--server-side", *files)  # one is too large for kubectl's annotation
    control_plane.until_served(
        *(f"crd/{plural}.operators.coreos.com" for plural in ("clusterserviceversions", "operatorgroups"))
    )
    admin = Client(control_plane)
    metadata = {"name": f"olm-{uuid.uuid4().hex[:6]}"}
    admin.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(control_plane.kubeconfig())}
    command = [str(built("olm")), f"--namespace={metadata['name']}", "--writeStatusName=", "--interval=5s"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
    yield admin
    process.terminate()
    process.wait(20)
    control_plane.kubectl("delete", *files, "--wait=false")
    admin.close()


@pytest.fixture
def home(olm: Client) -> Iterator[str]:
    name = f"sites-{uuid.uuid4().hex[:6]}"
    olm.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    olm.delete(f"/api/v1/namespaces/{name}")


class Bundle:
    """A bundle of this repository's rules."""

    def __init__(self, folder: Path) -> None:
        ran = CliRunner().invoke(program, ["generate", "bundle", "-C", str(ROOT), "--out", str(folder)])
        assert ran.exit_code == 0, ran.output
        documents = [yaml.safe_load(each.read_text()) for each in sorted((folder / "manifests").iterdir())]
        self.crds = [each for each in documents if each["kind"] == "CustomResourceDefinition"]
        (self.version,) = (each for each in documents if each["kind"] == "ClusterServiceVersion")
        self.others = [each for each in documents if each not in (*self.crds, self.version)]

    def accounts(self, namespace: str, uid: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """What an InstallPlan makes: paths and bodies. `uid`: that of the ClusterServiceVersion."""
        owner, kind = self.version["metadata"]["name"], "ClusterServiceVersion"
        owners = [{"apiVersion": self.version["apiVersion"], "kind": kind, "name": owner, "uid": uid}]
        labels = {
            "olm.managed": "true",
            "olm.owner": owner,
            "olm.owner.kind": kind,
            "olm.owner.namespace": namespace,
        }
        install = self.version["spec"]["install"]["spec"]
        names = {each["serviceAccountName"] for key in ("permissions", "clusterPermissions") for each in install[key]}
        for name in names:
            metadata = {"name": name, "labels": labels, "ownerReferences": owners}
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            yield path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        for key, prefix in (("permissions", ""), ("clusterPermissions", "Cluster")):
            for number, each in enumerate(install[key]):
                path = RBAC if prefix else f"{RBAC}/namespaces/{namespace}"
                name = f"{namespace}-{owner}-{prefix.lower()}{number}"
                kind, version = f"{prefix}Role", "rbac.authorization.k8s.io/v1"
                metadata = {"name": name, "labels": labels} | ({} if prefix else {"ownerReferences": owners})
                role = {"apiVersion": version, "kind": kind, "metadata": metadata, "rules": each["rules"]}
                yield f"{path}/{kind.lower()}s", role
                reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
                account = {"kind": "ServiceAccount", "name": each["serviceAccountName"], "namespace": namespace}
                binding = {"apiVersion": version, "kind": f"{kind}Binding", "metadata": metadata}
                yield f"{path}/{kind.lower()}bindings", {**binding, "roleRef": reference, "subjects": [account]}


@pytest.fixture
def bundle(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Bundle]:
    found = Bundle(tmp_path / "bundle")
    files = [tmp_path / f"{number}.yaml" for number in range(len(found.crds))]
    for file, crd in zip(files, found.crds, strict=True):
        file.write_text(yaml.safe_dump(crd))
    control_plane.define(*files)
    yield found
    for file in files:
        control_plane.kubectl("delete", f"--filename={file}", "--wait=true")


@pytest.mark.parametrize("everywhere", [True, False], ids=["all namespaces", "one namespace"])
def test_olm_installs_an_operator_that_works(
    control_plane: ControlPlane,
    olm: Client,
    home: str,
    bundle: Bundle,
    namespace: str,
    kubectl: Kubectl,
    tmp_path: Path,
    *,
    everywhere: bool,
) -> None:
    spec: dict[str, Any] = {} if everywhere else {"targetNamespaces": [namespace]}
    group = {"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "it"}, "spec": spec}
    olm.post(f"{GROUP}/v1/namespaces/{home}/operatorgroups", group)
    versions = f"{GROUP}/v1alpha1/namespaces/{home}/clusterserviceversions"
    # OLM copies one that watches all namespaces into each of them, that of another test too.
    stored = eventually("no copy of another", lambda: olm.post(versions, bundle.version))
    made = [*bundle.accounts(home, stored["metadata"]["uid"])]
    for path, body in made:
        olm.post(path, body)
    for body in bundle.others:
        olm.post(f"/api/v1/namespaces/{home}/{body['kind'].lower()}s", body)
    version = f"{versions}/{bundle.version['metadata']['name']}"
    eventually("OLM to succeed", lambda: olm.get(version)["status"]["phase"] == "Succeeded")
    with Installed(control_plane, tmp_path / "operator", home, "ruleop") as operator:
        assert operator.environment["WATCH_NAMESPACE"] == ("" if everywhere else namespace)
        example = LiveExample(APP, operator, namespace, kubectl)
        example.apply()
        example.wait_until_settled()
        refused = [each for each in operator.requests() if each.get("responseStatus", {}).get("code") == 403]
        assert [described(each) for each in refused] == []
        olm.delete(example.path)
        assert operator.terminate() == 0
    olm.delete(version)
    deployment = f"/apis/apps/v1/namespaces/{home}/deployments"
    eventually("the Deployment to go", lambda: not olm.get(deployment)["items"])
    for path, body in made:
        with contextlib.suppress(RefusedError):  # OLM deletes what has its labels
            olm.delete(f"{path}/{body['metadata']['name']}")
