"""The operator with exactly the roles that `check --rbac` calls sufficient, and without each rule of its start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner

from ruleop.cli.program import program
from ruleop.offline.cluster import OfflineKinds
from ruleop.planning.model.needed_permissions import Permission, Scope, Settings, needed_permissions
from ruleop.rules import load_project
from tests.cluster.operator import eventually
from tests.cluster.pod import Pod
from tests.cluster.server import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from controlplane.cluster import ControlPlane

pytestmark = pytest.mark.real_server("RBAC refuses")

GROUP, RBAC = "exact.example.com", "rbac.authorization.k8s.io"
FILES = {
    "watches.yaml": f"""
- group: {GROUP}
  version: v1
  kind: Team
  reach: cluster
  children:
    access: {{template: access.yaml}}
    web: {{template: web.yaml}}
""",
    "templates/access.yaml": f"""\
apiVersion: {RBAC}/v1
kind: RoleBinding
metadata: {{name: "{{{{ metadata.name }}}}"}}
roleRef: {{apiGroup: {RBAC}, kind: ClusterRole, name: view}}
subjects: [{{kind: User, name: nobody, apiGroup: {RBAC}}}]
""",
    "templates/web.yaml": """\
apiVersion: v1
kind: Service
metadata: {name: "{{ metadata.name }}"}
spec:
  ports:
  {%- for port in spec.ports %}
  - name: p{{ loop.index }}
    port: {{ port }}
  {%- endfor %}
""",
    "crds/team.yaml": f"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: teams.{GROUP}}}
spec:
  group: {GROUP}
  scope: Namespaced
  names: {{kind: Team, plural: teams, singular: team}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {{type: object, properties: {{ports: {{type: array, items: {{type: integer}}}}}}}}
          status: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
""",
}
SETTINGS = Settings(leader_elect=True)
BIND = {"apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": ["view"], "verbs": ["bind"]}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, control_plane: ControlPlane) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("exact")
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    crds, admin = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", control_plane.api()
    admin.post(crds, yaml.safe_load(FILES["crds/team.yaml"]))
    control_plane.until_served(f"crd/teams.{GROUP}")
    yield root
    admin.delete(f"{crds}/teams.{GROUP}")


def needed(project: Path) -> list[Permission]:
    loaded = load_project(project, environ={})
    return list(needed_permissions(loaded.rules, OfflineKinds(loaded), SETTINGS))


def rule(permission: Permission) -> dict[str, Any]:
    found = {
        "apiGroups": [permission.group],
        "resources": [permission.resource],
        "verbs": list(permission.verbs),
    }
    return {**found, "resourceNames": list(permission.names)} if permission.names else found


class Exact(Pod):
    """An operator with these permissions, and `bind` unless it is left out."""

    def __init__(self, plane: ControlPlane, project: Path, log: Path, permissions: list[Permission], *, binds: bool):
        super().__init__(plane, project, None, log, "--leader-elect", own=())
        self.of_operator = [rule(each) for each in permissions if each.scope is Scope.OPERATOR]
        self.of_cluster = [rule(each) for each in permissions if each.scope is not Scope.OPERATOR]
        self.of_cluster += [BIND] if binds else []

    def _grant(self) -> None:
        super()._grant()
        self.bind("Role", self.of_operator, self.home)
        self.bind("ClusterRole", self.of_cluster)
        self.may("", "patch", "teams", GROUP)

    def findings(self, tmp_path: Path) -> list[str]:
        """What `check --rbac` says of its roles."""
        version = f"{RBAC}/v1"
        roles = [
            {"apiVersion": version, "kind": "Role", "metadata": {"name": "a", "namespace": self.home}},
            {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": "a"}},
        ]
        rules = (self.of_operator, self.of_cluster)
        file = tmp_path / "roles.yaml"
        file.write_text(yaml.safe_dump_all([{**role, "rules": each} for role, each in zip(roles, rules, strict=True)]))
        flags = ["--leader-elect", "--operator-namespace", self.home]
        ran = CliRunner().invoke(program, ["check", "-C", str(self.project), "--rbac", str(file), *flags])
        return [line for line in ran.output.splitlines() if "RO704" in line]


@pytest.fixture
def operator(control_plane: ControlPlane, project: Path, tmp_path: Path) -> Callable[..., Exact]:
    def make(permissions: list[Permission], *, binds: bool = True) -> Exact:
        return Exact(control_plane, project, tmp_path / "operator" / "log", permissions, binds=binds)

    return make


def team(ports: list[int]) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Team", "metadata": {"name": "a"}, "spec": {"ports": ports}}


def test_an_operator_with_exactly_these_permissions_does_all_its_work(
    operator: Callable[..., Exact], project: Path, tmp_path: Path, namespace: str
) -> None:
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/teams"
    with operator(needed(project)) as exact:
        assert exact.findings(tmp_path) == []

        def ready() -> dict[str, Any]:
            conditions = exact.admin.get(f"{path}/a")["status"]["conditions"]
            return next(each for each in conditions if each["type"] == "Ready")

        exact.admin.post(path, team([80]))
        eventually("the Team to be ready", lambda: ready()["status"] == "True")
        exact.admin.merge(f"{path}/a", {"spec": {"ports": [80, 70000]}}, "somebody")
        rejected = eventually("a rejection", lambda: (found := ready())["reason"] == "ApplyFailed" and found)
        assert rejected["message"].startswith("web: templates/web.yaml:8: patch services ")
        exact.admin.delete(f"{path}/a")
        eventually("the Team to be gone", lambda: is_gone(exact, f"{path}/a"))
        assert not [line for line in exact.log() if "orbidden" in str(line) or "grant" in line]
        exact.check()


def is_gone(exact: Exact, path: str) -> bool:
    try:
        exact.admin.get(path)
    except RefusedError:
        return True
    return False


def test_a_binding_without_bind_is_reported_with_the_permission(
    operator: Callable[..., Exact], project: Path, tmp_path: Path, namespace: str
) -> None:
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/teams"
    remedy = (
        f"grant the operator `bind` on clusterroles.{RBAC} (resourceNames: [view]), or all permissions of that role"
    )
    with operator(needed(project), binds=False) as exact:
        (finding,) = exact.findings(tmp_path)
        assert finding.endswith(f"does not permit the operator to write this RoleBinding: {remedy}")
        exact.admin.post(path, team([80]))

        def message() -> str:
            (found,) = (
                each for each in exact.admin.get(f"{path}/a")["status"]["conditions"] if each["type"] == "Ready"
            )
            return str(found["message"]) if found["reason"] == "Forbidden" else ""

        said = eventually("a report", message)
        assert said == f"access: templates/access.yaml:1: cannot write RoleBinding/a: {remedy}"
        exact.admin.delete(f"{path}/a")


AT_START = {
    "configmaps get": "not permitted; will retry",
    "secrets create": "not permitted; will retry",
    "secrets get": "not permitted; will retry",
    "leases create": "cannot acquire or renew the lease; will retry",
    "leases get": "cannot acquire or renew the lease; will retry",
}
AT_WORK = {"configmaps create": "reconcile failed; will retry", "events create": "event dropped"}


@pytest.mark.parametrize("left_out", {**AT_START, **AT_WORK})
def test_each_missing_rule_of_the_operator_itself_is_reported_by_the_operator_and_by_check(
    operator: Callable[..., Exact], project: Path, tmp_path: Path, namespace: str, left_out: str
) -> None:
    resource, verb = left_out.split()
    fewer = [each for each in needed(project) if (each.resource, each.verbs[0]) != (resource, verb)]
    exact = operator(fewer)
    try:
        exact._grant()
        (finding,) = exact.findings(tmp_path)
        assert resource in finding
        exact.launch()
        if left_out in AT_START:
            assert resource in exact.wait_for_log(AT_START[left_out])["grant"]
            return
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/teams"
        exact.admin.post(path, team([80]))
        said = exact.wait_for_log(AT_WORK[left_out])
        assert (
            resource != "events" or said["grant"] == f"create, patch on events.events.k8s.io in namespace {namespace}"
        )
        assert f'cannot create resource "{resource}"' in said["error"]
        exact.admin.merge(f"{path}/a", {"metadata": {"finalizers": None}}, "somebody")
        exact.admin.delete(f"{path}/a")
    finally:
        exact.__exit__()
