"""The objects that a rule observes are those whose changes queue its CRs: both use the same targets of an `observe`."""

from __future__ import annotations

import pytest

from tests.definitions import definition
from tests.invariants.api_server import ApiServer
from tests.invariants.operator_harness import settled_operator
from tests.projects.cluster import Cluster

RULES = """
- group: example.com
  version: v1
  kind: App
  reach: cluster
  observe:
    seen: {version: v1, kind: ConfigMap, WHAT, namespace: "{{ spec.elsewhere | default('') }}"}
  status:
    seen: "{{ VALUE }}"
"""
BY_NAME = ("name: settings", "seen.data.v")
JOINED = "seen | map(attribute='data.v') | join(',')"
BY_NAMES = ("names: [missing, settings]", JOINED)
BY_ITEMS = ("forEach: \"['missing', 'settings']\", name: '{{ item }}'", JOINED)
BY_SELECTOR = ("selector: {a: b}", JOINED)


@pytest.fixture
def server(tmp_path):
    """Serves a rule that observes a ConfigMap, with a CR."""
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/App.yaml").write_text(definition("App"))

    def begin(what, value, spec):
        (tmp_path / "watches.yaml").write_text(RULES.replace("WHAT", what).replace("VALUE", value))
        made = ApiServer(Cluster(tmp_path, home="default", namespaces=["shop"]))
        made.cluster.add(
            {
                "apiVersion": "example.com/v1",
                "kind": "App",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": spec,
            }
        )
        return made

    return begin


def settings(namespace, v):
    metadata = {"name": "settings", "namespace": namespace, "labels": {"a": "b"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": v}}


@pytest.mark.parametrize(
    ("what", "value"), [BY_NAME, BY_NAMES, BY_ITEMS, BY_SELECTOR], ids=["name", "names", "items", "selector"]
)
@pytest.mark.parametrize(
    ("spec", "namespace"), [({}, "default"), ({"elsewhere": "default"}, "default"), ({"elsewhere": "shop"}, "shop")]
)
def test_a_change_of_an_observed_object_queues_the_cr(run, server, what, value, spec, namespace):
    """Also if the template of the namespace is empty: then it is the namespace of the custom resource."""

    async def scenario():
        made = server(what, value, spec)
        made.cluster.add(settings(namespace, "one"))
        async with settled_operator(made) as harness:
            assert made.cluster["App/web"]["status"]["seen"] == "one"
            made.cluster.edit(
                f"ConfigMap/{'' if namespace == 'default' else f'{namespace}/'}settings", {"data": {"v": "two"}}
            )
            await harness.until_quiet()
            assert made.cluster["App/web"]["status"]["seen"] == "two"

    run(scenario())


def test_only_changes_of_objects_that_a_list_has_queue_the_cr(run, server):
    """Also of objects that do not exist yet."""

    async def scenario():
        made = server(*BY_ITEMS, {})
        async with settled_operator(made) as harness:
            before = made.cluster["App/web"]["metadata"]["resourceVersion"]
            made.cluster.add({**settings("default", "x"), "metadata": {"name": "unrelated", "namespace": "default"}})
            made.cluster.add(settings("shop", "x"))
            await harness.until_quiet()
            assert made.cluster["App/web"]["metadata"]["resourceVersion"] == before
            made.cluster.add(settings("default", "new"))
            await harness.until_quiet()
            assert made.cluster["App/web"]["status"]["seen"] == "new"

    run(scenario())


def test_a_selector_over_all_namespaces_finds_changes_in_each(run, server, monkeypatch):
    monkeypatch.setattr(
        "tests.engine.test_observed.RULES",
        RULES.replace(", namespace: \"{{ spec.elsewhere | default('') }}\"", ", namespaces: all"),
    )

    async def scenario():
        made = server(*BY_SELECTOR, {})
        made.cluster.add(settings("default", "one"))
        async with settled_operator(made) as harness:
            made.cluster.add(settings("shop", "two"))
            await harness.until_quiet()
            assert made.cluster["App/web"]["status"]["seen"] == "one,two"

    run(scenario())
