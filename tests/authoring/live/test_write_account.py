"""`writeAs` and `expire` from the operator to the commands, in a cluster in memory, which only notes the accounts."""

from __future__ import annotations

import json

import pytest

from tests.authoring.live.harness import Live
from tests.authoring.live.projects import SITES, site

ACCOUNT = "system:serviceaccount:default:deployer"
KEYS = '  writeAs: "{{ metadata.namespace }}/deployer"\n  expire: {after: 87600h}\n'


@pytest.fixture
def accounted(sites: Live) -> Live:
    """A site that was written by its account."""
    sites.write("watches.yaml", SITES["watches.yaml"] + KEYS)
    sites.apply(site("a"))
    sites.cluster.audit.enabled = True
    sites.converge(lambda: set(sites.reasons("Site")) == {"Ready"})
    return sites


@pytest.mark.slow
def test_the_operator_writes_only_children_as_the_account(accounted: Live) -> None:
    entries = [each for each in accounted.cluster.audit.entries if each.verb in {"create", "patch", "update"}]
    assert {each.resource for each in entries if each.user == ACCOUNT} == {"configmaps", "deployments"}
    others = {each.resource for each in entries if each.user != ACCOUNT}
    assert "sites" in others
    assert "deployments" not in others
    assert not [each for each in accounted.cluster.audit.entries if each.user == ACCOUNT and each not in entries]


@pytest.mark.slow
def test_a_dry_run_on_the_server_asks_as_the_account(accounted: Live) -> None:
    accounted.write("templates/web.yaml.j2", SITES["templates/web.yaml.j2"].replace("nginx:1.28", "nginx:1.29"))
    accounted.cluster.audit.entries.clear()
    status, out, _ = accounted.run("plan", "--live", "--server-dry-run", "Site/a")
    assert status == 0
    assert out.startswith(
        "Site default/a  by the rule Site.example.com, written as the ServiceAccount default/deployer"
    )
    asked = [each for each in accounted.cluster.audit.entries if each.verb == "patch"]
    assert [(each.resource, each.user) for each in asked] == [("deployments", ACCOUNT)]


@pytest.mark.slow
def test_commands_show_the_account_and_the_end(accounted: Live) -> None:
    (found,) = accounted.objects("Site")
    year = int(found["metadata"]["creationTimestamp"][:4])
    out = accounted.run("explain", "Site/a")[1]
    assert f"It expires at {year + 9}-" in out or f"It expires at {year + 10}-" in out
    following = json.loads(accounted.run("explain", "Site/a", "-o", "json")[1])["next"]
    assert following["account"] == "default/deployer"
    assert following["expires"]
