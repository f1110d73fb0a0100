"""The operator as docs/operations.md deploys it: with the service account, the permissions and the mounted ConfigMap of
that page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster.example_projects import ROOT, LiveExample
from tests.cluster.mounts import publish
from tests.cluster.operator import described, eventually
from tests.cluster.pod import Pod
from tests.cluster.test_example_app import APP
from tests.cluster.test_example_memcached import V1ALPHA1 as MEMCACHED
from tests.docs.manifests import DEPLOYMENT, PERMISSIONS, mounted

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane.cluster import ControlPlane
    from controlplane.fixtures import Kubectl

METADATA = DEPLOYMENT["metadata"]


class Deployed(Pod):
    """Its rules are a copy of this repository's, mounted as the page mounts them."""

    def __init__(self, plane: ControlPlane, log: Path) -> None:
        super().__init__(plane, ROOT, None, log, *DEPLOYMENT["spec"]["template"]["spec"]["containers"][0]["args"][1:])
        self.name = self.home = METADATA["namespace"]
        self.account = DEPLOYMENT["spec"]["template"]["spec"]["serviceAccountName"]
        self.user = f"system:serviceaccount:{self.name}:{self.account}"
        self.token = ""
        self.project = log.parent / "rules"
        self.project.mkdir()
        self.published = 0
        self.publish({})

    def publish(self, changed: dict[str, str]) -> None:
        """The ConfigMap as the repository has it, but for some files."""
        self.published += 1
        publish(self.project, f"..{self.published}", {**mounted(), **changed})

    def __exit__(self, kind: object = None, *_: object) -> None:
        super().__exit__(kind)
        self.plane.kubectl("delete", "--ignore-not-found", "--wait=true", "--filename=-", stdin=_stream())

    def _grant(self) -> None:
        self.plane.kubectl("apply", "--filename=-", stdin=_stream())
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        accounts = f"/api/v1/namespaces/{self.name}/serviceaccounts"
        # The token controller and the API server's own caches learn of an account after it was made.
        answer = eventually("a token", lambda: self.admin.post(f"{accounts}/{self.account}/token", asked))
        self.token = answer["status"]["token"]
        self.kubeconfig.write_text(yaml.safe_dump(self.config({"token": self.token})))
        for document in PERMISSIONS:
            for rule in document.get("rules", ()):
                namespace = document["metadata"].get("namespace", "")
                self.may(namespace, rule["verbs"][0], rule["resources"][0].partition("/")[0], rule["apiGroups"][0])


GRANTED = frozenset(
    (verb, f"{resource}.{group}".rstrip("."))
    for document in PERMISSIONS
    for rule in document.get("rules", ())
    for group in rule["apiGroups"]
    for resource in rule["resources"]
    for verb in rule["verbs"]
)


class DeploymentTests:
    """What holds for the operator of the page, however its process is started. A subclass has the fixture `operator`,
    which lives through its tests."""

    def test_app_and_memcached_become_ready(self, operator: Deployed, namespace: str, kubectl: Kubectl) -> None:
        for example in (APP, MEMCACHED):
            live_example = LiveExample(example, operator, namespace, kubectl)
            live_example.apply()
            live_example.wait_until_settled()
        assert operator.probe("/healthz")[0] == operator.probe("/readyz")[0] == 200

    def test_an_edit_of_the_mounted_configmap_updates_the_children(
        self, operator: Deployed, namespace: str, kubectl: Kubectl
    ) -> None:
        """Of a file in a folder, and a second time: the first change has removed what was watched before."""
        live_example = LiveExample(APP, operator, namespace, kubectl)
        live_example.apply()
        live_example.wait_until_settled()
        path = "templates/app/service.yaml.j2"
        for port in (8080, 8081):
            operator.publish({path: mounted()[path].replace("targetPort: 80", f"targetPort: {port}")})
            eventually(
                f"port {port}",
                lambda port=port: live_example.get(APP.children[1])["spec"]["ports"][0]["targetPort"] == port,
                60,
            )
        operator.publish({})
        eventually(
            "the port of before", lambda: live_example.get(APP.children[1])["spec"]["ports"][0]["targetPort"] == 80, 60
        )

    def test_the_documented_permissions_suffice_and_are_used(
        self, operator: Deployed, namespace: str, kubectl: Kubectl
    ) -> None:
        """Through a live_example: two CRs are created, edited, one loses a child, and both are deleted."""
        for example in (APP, MEMCACHED):
            live_example = LiveExample(example, operator, namespace, kubectl)
            live_example.apply()
            live_example.wait_until_settled()
            live_example.admin.merge(live_example.path, {"spec": example.edit}, "somebody")
            live_example.wait_until_settled(example.edited, example.edited_status)
            child = example.edited[0]
            live_example.admin.delete(live_example.path_of(child.resource, child.name))
            live_example.wait_until_settled(example.edited, example.edited_status)
            names = {"deployment": {"name": "another"}, "service": {"name": "another"}} if example is APP else {}
            live_example.admin.merge(live_example.path, {"spec": names}, "somebody")
        app = LiveExample(APP, operator, namespace, kubectl)
        for child in APP.children:
            eventually(f"{child.name} to be pruned", lambda child=child: not app.exists(child), 60)
        asked = [event for event in operator.requests() if "objectRef" in event]
        # In the namespaces of the tests before, which are being deleted, nothing may be created.
        refused = [event for event in asked if event["responseStatus"]["code"] == 403]
        places = {namespace, operator.home, ""}
        assert [described(event) for event in refused if event["objectRef"].get("namespace", "") in places] == []
        used = {(event["verb"], _resource(event["objectRef"])) for event in asked}
        assert used <= GRANTED, "nothing is allowed to every service account anyway"
        assert {(verb, resource) for verb, resource in GRANTED - used if verb not in {"get", "list"}} <= UNUSED_HERE


def stops_in_order(operator: Deployed) -> None:
    """It has logged nothing unexpected, and exits with 0 at SIGTERM."""
    operator.check()
    warnings = [line for line in operator.log() if line["level"] in {"warning", "error"}]
    # Of the namespaces of the tests before, as above.
    assert [line for line in warnings if "is being terminated" not in line.get("error", "")] == []
    assert operator.terminate() == 0
    assert operator.lease()["spec"]["holderIdentity"] == "", "the next one need not wait"


# Only rules with `finalize`, or with children that no ownerReference can bind, write to a CR itself; and only an Event
# that repeats is patched. As to reading: an API server that streams lists is asked for none, and an object is read live
# where the watch may be late.
UNUSED_HERE = frozenset(
    {("patch", "apps.myapp.k8s.io"), ("patch", "memcacheds.cache.example.com"), ("patch", "events.events.k8s.io")}
)


def _resource(target: dict[str, Any]) -> str:
    part = f"/{target['subresource']}" if "subresource" in target else ""
    return f"{target['resource']}{part}.{target.get('apiGroup', '')}".rstrip(".")


def _stream() -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": PERMISSIONS})
