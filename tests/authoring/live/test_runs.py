"""The runs of a child with `once` and `forEach`: the operator makes them once for each item, and the commands that
explain a custom resource show those that are there, those that ended, and those that are about to go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ruleop.localcluster import LocalCluster
from tests.authoring.live.harness import Live, new_live
from tests.definitions import definition

TENANTS = {
    "watches.yaml": """\
- group: example.com
  version: v1
  kind: Tenant
  children:
    init:
      forEach: spec.tenants
      once: "{{ item.version }}"
      readyWhen: this.metadata.annotations.done is defined
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "init-{{ item.name }}"}
        data: {version: "{{ item.version }}"}
""",
    "crds/tenants.yaml": definition("Tenant"),
}


def tenancy(**versions: str) -> str:
    tenants = ", ".join(f"{{name: {name}, version: {version}}}" for name, version in versions.items())
    return (
        "apiVersion: example.com/v1\nkind: Tenant\nmetadata: {name: a, namespace: default}\n"
        f"spec: {{tenants: [{tenants}]}}\n"
    )


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[Live]:
    with LocalCluster() as cluster:
        yield new_live(tmp_path, cluster, TENANTS)


def names(live: Live) -> list[str]:
    found = (each["metadata"]["name"] for each in live.objects("ConfigMap"))
    return sorted(each for each in found if each.startswith("init-"))


def begun(live: Live, number: int) -> list[str]:
    live.converge(lambda: len(names(live)) == number)
    return names(live)


def end(live: Live, name: str) -> None:
    (found,) = (each for each in live.objects("ConfigMap") if each["metadata"]["name"] == name)
    annotations = {**(found["metadata"].get("annotations") or {}), "done": "true"}
    done = {**found, "metadata": {**found["metadata"], "annotations": annotations}}
    live.send("PUT", f"/api/v1/namespaces/default/configmaps/{name}", done)


def results(live: Live) -> dict[tuple[str, str], str]:
    (found,) = live.objects("Tenant")
    return {(each["item"], each["id"]): each["result"] for each in found["status"]["ruleop"]["once"]["init"]}


@pytest.mark.slow
def test_the_operator_runs_each_item_once_and_explain_shows_the_runs(tenants: Live) -> None:
    tenants.apply(tenancy(red="one", blue="one"))
    blue, red = begun(tenants, 2)
    assert (blue[:10], red[:9]) == ("init-blue-", "init-red-")
    end(tenants, blue)
    tenants.converge(lambda: results(tenants).get(("blue", "one")) == "Succeeded")
    assert results(tenants) == {("blue", "one"): "Succeeded", ("red", "one"): "Running"}
    status, out, _ = tenants.run("explain", "Tenant/a")
    assert status == 0
    assert f"ConfigMap/{red}" in out
    assert f"ConfigMap/{blue}" in out
    assert "Nothing to do." in out
    end(tenants, red)
    tenants.converge(lambda: tenants.reasons("Tenant") == ["Ready"])
    tenants.remove("configmaps", red)
    tenants.converge(lambda: tenants.reasons("Tenant") == ["Ready"])
    assert names(tenants) == [blue], "a run that has ended is not repeated"

    tenants.apply(tenancy(red="one"))
    _, out, _ = tenants.run("explain", "Tenant/a")
    assert re.search(r"init +not desired +ConfigMap/init-\S+: will be deleted", out), out
    tenants.converge(lambda: names(tenants) == [])
    tenants.apply(tenancy(red="two", blue="one"))
    _, out, _ = tenants.run("plan", "--live", "Tenant/a")
    assert "1 to create" in out
    assert "init[red]" in out or "init-red-" in out
    (red,) = begun(tenants, 1)
    assert red.startswith("init-red-")
