"""The objects that a rule observes are those whose changes queue its CRs: both use the same targets of an `observe`."""

from __future__ import annotations

import pytest

from ruleop.operator.queue.work_queue import Request
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
BY_ITEMS = ("forEach: \"['missing', 'settings']\", name: '{{ item }}'", JOINED)
BY_SELECTOR = ("selector: {a: b}", JOINED)
BY_KIND = ("where: this.data.v is defined", JOINED)


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
    ("what", "value"),
    [BY_NAME, BY_ITEMS, BY_SELECTOR, BY_KIND],
    ids=["name", "items", "selector", "kind"],
)
@pytest.mark.parametrize(
    ("spec", "namespace"), [({}, "default"), ({"elsewhere": "default"}, "default"), ({"elsewhere": "shop"}, "shop")]
)
async def test_a_change_of_an_observed_object_queues_the_cr(server, what, value, spec, namespace):
    """Also if the template of the namespace is empty: then it is the namespace of the custom resource."""
    made = server(what, value, spec)
    made.cluster.add(settings(namespace, "one"))
    async with settled_operator(made) as harness:
        assert made.cluster["App/web"]["status"]["seen"] == "one"
        made.cluster.edit(
            f"ConfigMap/{'' if namespace == 'default' else f'{namespace}/'}settings", {"data": {"v": "two"}}
        )
        await harness.until_quiet()
        assert made.cluster["App/web"]["status"]["seen"] == "two"


async def test_only_changes_of_objects_that_a_list_has_queue_the_cr(server):
    """Also of objects that do not exist yet."""
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


async def test_a_selector_that_the_custom_resource_gives_is_followed_when_it_changes(server):
    made = server('selector: "{{ spec.selector }}"', JOINED, {"selector": {"matchLabels": {"a": "b"}}})
    made.cluster.add(settings("default", "one"))
    async with settled_operator(made) as harness:
        assert made.cluster["App/web"]["status"]["seen"] == "one"
        made.cluster.edit("App/web", {"spec": {"selector": {"matchLabels": None, "c": "d"}}})
        await harness.until_quiet()
        assert made.cluster["App/web"]["status"]["seen"] == ""
        made.cluster.edit("ConfigMap/settings", {"metadata": {"labels": {"c": "d"}}, "data": {"v": "two"}})
        await harness.until_quiet()
        assert made.cluster["App/web"]["status"]["seen"] == "two"
        made.cluster.edit("App/web", {"spec": {"selector": {"c": "d,a"}}})
        await harness.until_quiet()
        ready = next(each for each in made.cluster["App/web"]["status"]["conditions"] if each["type"] == "Ready")
        assert ready["reason"] == "RenderFailed"
        assert "'d,a', is not valid" in ready["message"]


async def test_an_object_of_another_namespace_is_none_of_all_objects_of_a_kind(server):
    made = server(*BY_KIND, {})
    async with settled_operator(made) as harness:
        before = made.cluster["App/web"]["metadata"]["resourceVersion"]
        made.cluster.add(settings("shop", "x"))
        await harness.until_quiet()
        assert made.cluster["App/web"]["metadata"]["resourceVersion"] == before
        made.cluster.add(settings("default", "new"))
        await harness.until_quiet()
        assert made.cluster["App/web"]["status"]["seen"] == "new"
        made.cluster.delete("ConfigMap/settings")
        await harness.until_quiet()
        assert made.cluster["App/web"]["status"]["seen"] == ""


async def test_a_selector_over_all_namespaces_finds_changes_in_each(server, monkeypatch):
    monkeypatch.setattr(
        "tests.operator.cache.test_observed.RULES",
        RULES.replace(", namespace: \"{{ spec.elsewhere | default('') }}\"", ", namespaces: all"),
    )
    made = server(*BY_SELECTOR, {})
    made.cluster.add(settings("default", "one"))
    async with settled_operator(made) as harness:
        made.cluster.add(settings("shop", "two"))
        await harness.until_quiet()
        assert made.cluster["App/web"]["status"]["seen"] == "one,two"


PATCH = """
- group: example.com
  version: v1
  kind: App
  children:
    mark: {patch: {version: v1, kind: ConfigMap, selector: {tier: "{{ spec.tier }}"}, fields: {data: {set: "1"}}}}
"""


async def test_an_object_queues_the_crs_whose_selector_of_a_patch_matches_it_or_matched_it(server, monkeypatch):
    """It stays in the store when it loses the label."""
    monkeypatch.setattr("tests.operator.cache.test_observed.RULES", PATCH)

    def labelled(tier):
        return {**settings("default", "x"), "metadata": {"name": "a", "namespace": "default", "labels": {"tier": tier}}}

    made = server("", "", {"tier": "one"})
    made.cluster.add({**made.cluster["App/web"], "metadata": {"name": "two", "namespace": "default"}})
    made.cluster.edit("App/two", {"spec": {"tier": "two"}})
    made.cluster.add(labelled("one"))
    async with settled_operator(made) as harness:
        assert made.cluster["ConfigMap/a"]["data"] == {"v": "x", "set": "1"}
        index = harness.controllers[0].reconciler.index
        for tier, expected in {"one": {"web"}, "two": {"two"}, "three": set()}.items():
            object_ = {**labelled(tier), "metadata": {**labelled(tier)["metadata"], "name": "b"}}
            assert {each.name for each in index.observers_of(object_)} == expected
        made.cluster.edit("ConfigMap/a", {"metadata": {"labels": {"tier": "three"}}})
        await harness.until_quiet()
        assert made.cluster["ConfigMap/a"]["data"] == {"v": "x"}
        made.cluster.edit("ConfigMap/a", {"metadata": {"labels": {"tier": "two"}}})
        await harness.until_quiet()
        assert made.cluster["ConfigMap/a"]["data"] == {"v": "x", "set": "1"}
        assert index.observers_of(made.cluster["ConfigMap/a"]) == {Request("default", "two")}


OWNED = """
- group: example.com
  version: v1
  kind: App
  children:
    own: {object: {apiVersion: v1, kind: ServiceAccount, metadata: {name: "{{ metadata.name }}"}}}
  observe:
    seen: {version: v1, kind: ConfigMap, ownedBy: own, through: [v1/Endpoints]}
  status:
    seen: "{{ seen | map(attribute='metadata.name') | join(',') }}"
"""


async def test_an_object_queues_the_cr_whose_child_owns_it_also_if_the_child_was_just_created(server, monkeypatch):
    monkeypatch.setattr("tests.operator.cache.test_observed.RULES", OWNED)
    made = server("", "", {})
    made.cluster.add({**made.cluster["App/web"], "metadata": {"name": "two", "namespace": "default"}})
    async with settled_operator(made) as harness:

        def add(kind, name, owner):
            owner_kind, _, owner_name = owner.partition("/")
            uid = made.cluster[owner]["metadata"]["uid"]
            references = [{"apiVersion": "v1", "kind": owner_kind, "name": owner_name, "uid": uid}]
            metadata = {"name": name, "namespace": "default", "ownerReferences": references}
            made.cluster.add({"apiVersion": "v1", "kind": kind, "metadata": metadata})
            return made.cluster[f"{kind}/{name}"]

        index = harness.controllers[0].reconciler.index
        between = add("Endpoints", "between", "ServiceAccount/web")
        assert index.observers_of(between) == {Request("default", "web")}
        await harness.until_quiet()
        seen = add("ConfigMap", "a", "Endpoints/between")
        assert index.observers_of(seen) == {Request("default", "web")}
        await harness.until_quiet()
        assert made.cluster["App/web"]["status"]["seen"] == "a"
        assert made.cluster["App/two"]["status"]["seen"] == ""
        made.cluster.delete("Endpoints/between")
        await harness.until_quiet()
        assert made.cluster["App/web"]["status"]["seen"] == ""
