"""`patch` with a selector: fields of all objects that match, beside others who label, edit and delete them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from controlplane.cluster import ControlPlane

from ruleop.planning.model.managers import managers_on
from tests.cluster.custom_resource import CustomResource
from tests.cluster.operator import Operator, eventually, operator_of

RULES = """\
- group: example.com
  version: v1
  kind: Guide
  reach: cluster
  children:
    maps:
      patch:
        version: v1
        kind: ConfigMap
        selector:
          matchLabels: "{{ spec.labels | default({'tier': spec.tier}) }}"
          matchExpressions:
            - {key: tier, operator: Exists}
            - {key: tier, operator: NotIn, values: [protected]}
        fields: {data: {team: "{{ spec.team }}"}}
    spaces:
      patch:
        version: v1
        kind: Namespace
        selector: {example.com/guide: "{{ metadata.namespace }}"}
        fields: {metadata: {labels: {example.com/team: "{{ spec.team }}"}}}
"""


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operator_of(
        control_plane, tmp_path_factory.mktemp("guides"), "Guide", RULES, children=["configmaps", "namespaces"]
    ) as operator:
        yield operator


class Guide(CustomResource):
    def __init__(self, operator: Operator, namespace: str) -> None:
        for name, tier in {"a": "web", "b": "web", "c": "db"}.items():
            metadata = {"name": name, "labels": {"tier": tier}}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"theirs": "x"}}
            operator.admin.post(f"/api/v1/namespaces/{namespace}/configmaps", body)
        super().__init__(operator, namespace, "p", {"tier": "web", "team": "red"})

    def teams(self) -> dict[str, str | None]:
        maps = self.admin.get(f"{self.home}/configmaps")["items"]
        return {
            each["metadata"]["name"]: each["data"].get("team") for each in maps if each.get("data", {}).get("theirs")
        }

    def await_teams(self, **expected: str | None) -> None:
        eventually(f"the fields {expected}", lambda: self.teams() == expected)

    def relabel(self, name: str, tier: str | None) -> None:
        self.admin.merge(f"{self.home}/configmaps/{name}", {"metadata": {"labels": {"tier": tier}}}, "kubectl-label")


@pytest.fixture
def guide(operator: Operator, namespace: str) -> Iterator[Guide]:
    found = Guide(operator, namespace)
    yield found
    if not found.is_gone():
        found.end()


def test_the_fields_follow_the_labels_and_go_with_the_custom_resource(guide: Guide) -> None:
    guide.await_teams(a="red", b="red", c=None)
    guide.relabel("c", "web")
    guide.relabel("a", None)
    guide.await_teams(a=None, b="red", c="red")
    guide.admin.merge(guide.home, {"metadata": {"labels": {"example.com/guide": guide.namespace}}}, "kubectl-label")
    eventually("the label", lambda: guide.admin.get(guide.home)["metadata"]["labels"].get("example.com/team") == "red")
    guide.admin.merge(guide.path, {"spec": {"team": "blue", "tier": "db"}}, "somebody")
    guide.await_teams(a=None, b=None, c=None)
    guide.relabel("a", "db")
    guide.await_teams(a="blue", b=None, c=None)
    guide.end()
    guide.await_teams(a=None, b=None, c=None)
    assert "example.com/team" not in guide.admin.get(guide.home)["metadata"]["labels"]
    for name in ("a", "b", "c"):
        assert not list(managers_on(guide.admin.get(f"{guide.home}/configmaps/{name}")))


def test_a_custom_resource_chooses_labels_within_the_constant_part(guide: Guide) -> None:
    guide.await_teams(a="red", b="red", c=None)
    guide.edit(labels={})
    guide.await_teams(a="red", b="red", c="red")
    guide.relabel("c", "protected")
    guide.await_teams(a="red", b="red", c=None)
    guide.edit(labels={"tier": "web,protected"}, team="blue")
    eventually("the error", lambda: guide.ready()["reason"] == "RenderFailed")
    assert "'web,protected', is not valid" in guide.ready()["message"]
    guide.await_teams(a="red", b="red", c=None)
    guide.edit(labels={"tier": "web"})
    guide.await_teams(a="blue", b="blue", c=None)


def test_an_object_in_conflict_is_named_and_the_others_follow(guide: Guide) -> None:
    guide.admin.merge(f"{guide.home}/configmaps/a", {"data": {"team": "theirs"}}, "kubectl-edit")
    eventually("the conflict", lambda: guide.ready().get("reason") == "FieldConflict")
    assert f'ConfigMap/{guide.namespace}/a: data.team is held by "kubectl-edit"' in guide.ready()["message"]
    guide.admin.merge(guide.path, {"spec": {"team": "blue"}}, "somebody")
    guide.await_teams(a="theirs", b="blue", c=None)
    guide.relabel("c", "web")
    guide.await_teams(a="theirs", b="blue", c="blue")
    guide.relabel("a", "db")
    eventually("the guide to be ready", lambda: guide.ready()["status"] == "True")
    assert guide.teams()["a"] == "theirs"


def test_an_object_that_is_deleted_meanwhile_is_skipped(guide: Guide) -> None:
    mark = guide.operator.mark()
    guide.operator.kill()
    guide.admin.delete(f"{guide.home}/configmaps/a")
    guide.admin.merge(guide.path, {"spec": {"team": "blue"}}, "somebody")
    guide.operator.start()
    guide.await_teams(b="blue", c=None)
    for number in range(12):
        metadata = {"name": f"a{number}", "labels": {"tier": "web"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"theirs": "x"}}
        guide.admin.post(f"{guide.home}/configmaps", body)
        guide.admin.delete(f"{guide.home}/configmaps/a{number}")
    guide.relabel("c", "web")
    guide.await_teams(b="blue", c="blue")
    eventually("the guide to be ready", lambda: guide.ready()["status"] == "True")
    assert guide.ready()["reason"] == "Ready"
    assert not [each for each in guide.operator.writes(mark) if "create" in each.lower() and "configmaps" in each]


def test_nothing_is_written_when_nothing_differs_also_after_a_restart(guide: Guide) -> None:
    mark = guide.operator.mark()
    guide.operator.kill()
    guide.operator.start()
    guide.admin.merge(guide.path, {"spec": {"other": "x"}}, "somebody")
    eventually("the guide to be ready", lambda: guide.ready()["status"] == "True")
    writes = guide.operator.writes(mark)
    assert not [each for each in writes if "guides/status" not in each], writes
