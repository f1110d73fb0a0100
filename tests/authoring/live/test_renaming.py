"""`ruleop rename`: what the cluster keeps of an operator becomes that of another name, as if it always had been."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.authoring.live.harness import Live
from tests.authoring.live.projects import SITES, site
from tests.authoring.live.test_rollout_status import lease

WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  reach: cluster
  children:
    config: {template: config.yaml.j2}
    away:
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ metadata.name }}-away", namespace: other}}
"""


@pytest.fixture
def renamed(sites: Live) -> Live:
    """Two sites of the operator `pv`, with a child in another namespace each. The project is `shop` now."""
    sites.write("watches.yaml", WATCHES)
    sites.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n")
    sites.apply(site("a"))
    sites.apply(site("b"))
    sites.operator = "pv"
    sites.converge(lambda: set(sites.reasons("Site")) == {"Ready"})
    sites.operator = ""
    sites.write("ruleop.yaml", "name: shop\n")
    return sites


def finalizers(live: Live) -> list[list[str]]:
    return [each["metadata"].get("finalizers") or [] for each in live.objects("Site")]


def own(live: Live, kind: str) -> dict[str, Any]:
    """The operator's objects by their names."""
    found = {each["metadata"]["name"]: each for each in live.objects(kind)}
    ends = ("-inventory", "-revisions", "-owner-key")
    return {name: each for name, each in found.items() if name.endswith(ends) or kind == "Lease"}


def test_the_new_operator_has_all_that_the_old_one_had(renamed: Live) -> None:
    before = {**own(renamed, "ConfigMap"), **own(renamed, "Secret")}
    assert sorted(before) == ["pv-inventory", "pv-owner-key", "pv-revisions"]
    versions = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in renamed.objects("ConfigMap")}
    status, out, err = renamed.run("rename", "pv")
    assert (status, err) == (0, "")
    assert out == (
        "written: shop-inventory\nwritten: shop-owner-key\nwritten: shop-revisions\nfinalizers replaced: 2\n"
        'The operator "pv" is "shop" in namespace default now. Start it.\n'
    )
    after = {**own(renamed, "ConfigMap"), **own(renamed, "Secret")}
    assert {name.replace("shop", "pv"): each.get("data") for name, each in after.items()} == {
        name: each.get("data") for name, each in before.items()
    }
    assert finalizers(renamed) == [["ruleop.dev/shop"]] * 2
    renamed.apply(site("a", page="new"))
    renamed.converge(lambda: any(each.get("data") == {"page": "new"} for each in renamed.objects("ConfigMap")))
    found = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in renamed.objects("ConfigMap")}
    for name in ("a-away", "b-away", "b-config"):
        assert found[name] == versions[name], "nothing is written"
    for name in ("a", "b"):
        renamed.delete("sites", name)
    renamed.converge(lambda: not renamed.objects("Site"))
    assert [each for each in renamed.objects("ConfigMap") if each["metadata"]["name"].endswith("away")] == []


@pytest.mark.slow
def test_the_old_one_of_two_finalizers_is_removed(renamed: Live) -> None:
    """The new operator ran already, under its name, and the deletion hung."""
    both = {"metadata": {"finalizers": ["ruleop.dev/pv", "ruleop.dev/shop"]}}
    renamed.merge("sites", "a", both)
    renamed.delete("sites", "a")
    assert renamed.run("rename", "pv")[0] == 0
    assert finalizers(renamed) == [["ruleop.dev/shop"]] * 2
    renamed.converge(lambda: len(renamed.objects("Site")) == 1)


@pytest.mark.slow
def test_a_deletion_ends_if_only_the_old_finalizer_is_left(sites: Live) -> None:
    """The new operator has removed its own, and has no key by which the children were its own."""
    web = "web: {template: web.yaml.j2"
    rules = SITES["watches.yaml"].replace(web, f"{web}, dependsOn: [config]")
    sites.write("watches.yaml", f"{rules}  deletionOrder: reverse\n")
    sites.apply(site("a"))
    sites.operator = "pv"
    sites.converge(lambda: set(sites.reasons("Site")) == {"Ready"})
    sites.operator = "shop"
    sites.converge(lambda: finalizers(sites) == [["ruleop.dev/pv", "ruleop.dev/shop"]])
    sites.delete("sites", "a")
    sites.converge(lambda: finalizers(sites) == [["ruleop.dev/pv"]])
    status, _, err = sites.run("rename", "pv", "--name", "shop")
    assert (status, "only pv can end that" in err) == (1, True), "it would leave the children behind"
    for each in sites.objects("ConfigMap"):
        if each["metadata"]["name"] == "a-config":
            sites.remove("configmaps", "a-config")
    for each in sites.objects("Deployment"):
        sites.remove("deployments", each["metadata"]["name"], api="apis/apps/v1")
    assert sites.run("rename", "pv", "--name", "shop")[0] == 0
    assert sites.objects("Site") == []


@pytest.mark.slow
def test_a_deletion_that_only_the_old_operator_can_end_is_an_error(renamed: Live) -> None:
    renamed.delete("sites", "a")
    status, _, err = renamed.run("rename", "pv")
    remedy = "let it, with `ruleop run --name pv`, then repeat the command"
    assert (status, err) == (1, f"ruleop: Site/default/a: being deleted, and only pv can end that: {remedy}\n")
    assert sorted({**own(renamed, "ConfigMap")}) == ["pv-inventory", "pv-revisions"], "nothing is written"


@pytest.mark.slow
def test_the_two_keys_are_both_valid_afterwards(renamed: Live) -> None:
    key = base64.b64encode(b"k" * 32).decode()
    old = own(renamed, "Secret")["pv-owner-key"]["data"]["key"]
    metadata = {"name": "shop-owner-key", "namespace": "default"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": key}}
    renamed.apply(json.dumps(secret))
    assert renamed.run("rename", "pv")[0] == 0
    assert own(renamed, "Secret")["shop-owner-key"]["data"] == {"key": key, "previous-key": old}


@pytest.mark.slow
def test_an_operator_that_runs_is_not_renamed(renamed: Live) -> None:
    renamed.apply(lease("pv", "pv-x_a"))
    status, _, err = renamed.run("rename", "pv")
    assert status == 1
    assert err.startswith('ruleop: stop the operator "pv" first: pv-x_a holds the Lease default/pv, renewed at ')
    renamed.apply(lease("pv", "pv-x_a", age=3600))
    assert renamed.run("rename", "pv")[0] == 0
    assert own(renamed, "Lease") == {}


@pytest.mark.slow
def test_an_operator_moves_to_another_namespace(renamed: Live) -> None:
    status, out, _ = renamed.run("rename", "pv", "--name", "pv", "--operator-namespace", "other")
    assert (status, "finalizers replaced: 0" in out) == (0, True)
    assert {each["metadata"]["namespace"] for each in own(renamed, "ConfigMap").values()} == {"other"}


@pytest.mark.slow
def test_without_its_objects_the_finalizers_are_replaced(renamed: Live) -> None:
    """The namespace of the operator was deleted."""
    for name in ("pv-inventory", "pv-revisions"):
        renamed.remove("configmaps", name)
    status, _, err = renamed.run("rename", "pv")
    assert (status, 'no operator "shop" found' in err, "--operator-namespace" in err) == (1, True, True)
    assert renamed.run("rename", "pv", "--operator-namespace", "default")[0] == 0
    assert finalizers(renamed) == [["ruleop.dev/shop"]] * 2


@pytest.mark.slow
def test_a_misspelt_name_is_an_error(renamed: Live) -> None:
    status, _, err = renamed.run("rename", "vp")
    assert (status, err) == (
        1,
        'ruleop: no operator "vp" found; found: "pv" in namespace default: use --name pv\n',
    )
    status, _, err = renamed.run("rename", "pv", "--name", "pv")
    assert (status, err) == (1, 'ruleop: the operator "pv" in namespace default has this name already\n')


@pytest.mark.slow
def test_two_operators_of_one_resource_are_named_in_an_event(renamed: Live) -> None:
    renamed.converge(lambda: any(each.get("reason") == "OtherOperator" for each in renamed.objects("Event")))
    messages = {each["message"] for each in renamed.objects("Event") if each.get("reason") == "OtherOperator"}
    assert len(messages) == 1
    assert next(iter(messages)).startswith(
        "the operators shop and pv both reconcile it: let only one of them select it"
    )


@pytest.mark.slow
def test_a_deletion_that_waits_for_another_operator_names_it(renamed: Live) -> None:
    renamed.delete("sites", "a")
    renamed.converge(lambda: any("pv" in each for each in deletion_messages(renamed)))
    (message,) = deletion_messages(renamed)
    assert message == (
        "held by the finalizer ruleop.dev/pv of the operator pv: is it running? If this is the same operator with another "
        "name: `ruleop rename pv`"
    )


def deletion_messages(live: Live) -> list[str]:
    conditions = [
        each["status"]["conditions"] for each in live.objects("Site") if "deletionTimestamp" in each["metadata"]
    ]
    return [one["message"] for each in conditions for one in each if one["type"] == "Ready" and one["message"]]
