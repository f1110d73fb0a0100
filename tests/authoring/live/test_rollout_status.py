"""`ruleop rollout`: which operator it finds, and for which processes a rollout waits."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from ruleop.planning.rollout.rollout_record import RolloutRecord, RolloutRevision, decode, encode
from tests.authoring.live.harness import Live
from tests.authoring.live.projects import SITES, site

OLD, NEW = RolloutRevision("a" * 64, "c" * 64), RolloutRevision("b" * 64, "d" * 64)


def config_map(name: str, namespace: str = "default", **data: str) -> str:
    labels = {"app.kubernetes.io/managed-by": "ruleop"}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def lease(name: str, holder: str, *, age: int = 0, epoch: str = "") -> str:
    """The Lease of a process of the operator `pv`, renewed some seconds ago."""
    renewed = (dt.datetime.now(dt.UTC) - dt.timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "labels": {"ruleop.dev/operator": "pv"}}
    metadata["annotations"] = {"ruleop.dev/epoch": epoch} if epoch else {}
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return json.dumps({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


@pytest.fixture
def progressing(sites: Live) -> Live:
    """The operator `pv`, which rolls out an edit."""
    sites.write("ruleop.yaml", "name: pv\n")
    sites.apply(
        config_map("pv-rollouts", **{"Site.example.com": encode(RolloutRecord(NEW, OLD, "Progressing", total=2))})
    )
    return sites


def waits(live: Live) -> list[str]:
    status, out, _ = live.run("rollout", "status")
    assert status == 0
    (found,) = json.loads(live.run("rollout", "status", "-o", "json")[1])
    assert [line.removeprefix("  waits: ") for line in out.splitlines() if "waits" in line] == found["waits"]
    return found["waits"]


@pytest.mark.parametrize("arguments", [("status",), ("undo",)])
def test_an_operator_of_another_name_is_named(sites: Live, arguments: tuple[str, ...]) -> None:
    sites.write("ruleop.yaml", "name: shop\n")
    status, _, err = sites.run("rollout", *arguments)
    remedy = "name its namespace with --operator-namespace, or itself with --name"
    assert (status, err) == (1, f'ruleop: no operator "shop" found: {remedy}\n')
    sites.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: y}\n")
    sites.apply(config_map("app-revisions", "y"))
    sites.apply(config_map("web-rollouts").replace('"labels": {', '"labels": {"ruleop.dev/part-of": "a", '))
    status, _, err = sites.run("rollout", *arguments)
    assert (status, err) == (1, 'ruleop: no operator "shop" found; found: "app" in namespace y: use --name app\n')
    sites.apply(config_map("shop-rollouts", "y"))
    _, _, err = sites.run("rollout", *arguments, "--operator-namespace", "default")
    assert err == 'ruleop: no operator "shop" found in namespace default; found in y: use --operator-namespace\n'
    sites.apply(config_map("shop-rollouts"))
    _, _, err = sites.run("rollout", *arguments)
    assert err == 'ruleop: several operators "shop" found, in the namespaces default, y: use --operator-namespace\n'


@pytest.mark.slow
def test_one_edit_has_one_number_in_all_commands(sites: Live) -> None:
    """Also after an edit that does not concern the watch."""
    sites.write("watches.yaml", SITES["watches.yaml"] + "  rollout: {maxUnavailable: 1}\n")
    sites.apply(site("a"))
    sites.converge(lambda: set(sites.reasons("Site")) == {"Ready"} and bool(records(sites)) and len(kept(sites)) == 1)
    sites.write("templates/config.yaml.j2", SITES["templates/config.yaml.j2"] + "immutable: false\n")
    sites.converge(lambda: len(kept(sites)) == 2 and is_rolled_out(sites))
    version = number_is_one(sites)
    history = json.loads(sites.run("history", "Site/a", "-o", "json")[1])["changes"]
    assert [each["revision"] for each in history if each["what"] == "rules"][-1] == kept(sites)[1]["digest"]
    sites.write("templates/unused.yaml.j2", "{# of nobody #}\n")
    sites.converge(lambda: len(kept(sites)) == 3)
    assert number_is_one(sites) == version, "the status is not written"


def number_is_one(live: Live) -> str:
    """Compares the numbers that commands and the status show. Returns the version of the custom resource."""
    (status,) = json.loads(live.run("rollout", "status", "-o", "json")[1])
    assert [each["digest"] for each in kept(live)][:2] == [status["from"], status["revision"]]
    (found,) = live.objects("Site")
    (condition,) = (each for each in found["status"]["conditions"] if each["type"] == "Rollout")
    assert condition["message"] == f"revision {status['revision'][:12]}"
    return str(found["metadata"]["resourceVersion"])


def is_rolled_out(live: Live) -> bool:
    """Whether an edit has reached all custom resources."""
    return [(each.phase, each.previous is not None) for each in records(live)] == [("Complete", True)]


def records(live: Live) -> list[RolloutRecord]:
    found = [each for each in live.objects("ConfigMap") if each["metadata"]["name"] == "ruleop-rollouts"]
    return [decode(text) for each in found for text in each["data"].values()]


def kept(live: Live) -> list[Any]:
    found = [each for each in live.objects("ConfigMap") if each["metadata"]["name"] == "ruleop-revisions"]
    return [entry for each in found for entry in json.loads(each["data"]["index"])]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("explain", "Site/a"), ("plan", "--live", "Site/a")])
def test_other_commands_name_it_too(ready_sites: Live, arguments: tuple[str, ...]) -> None:
    """Without the operator's inventory and its finalizer, they show less, or something else."""
    ready_sites.write("ruleop.yaml", "name: shop\n")
    status, out, err = ready_sites.run(*arguments)
    assert status == 0
    assert 'no operator "shop" found; found: "ruleop" in namespace default: use --name ruleop' in out + err


@pytest.mark.slow
def test_a_rollout_waits_for_a_shard_that_does_not_run(progressing: Live) -> None:
    progressing.apply(lease("pv.0", "pv-0_a", epoch="7/2"))
    progressing.apply(lease("pv.1", "pv-1_b", epoch="7/2", age=3600))
    assert waits(progressing) == ["32 buckets have no process: is pv-1 running?"]
    progressing.apply(lease("pv.1", "", epoch="7/2"))
    assert waits(progressing) == ["32 buckets have no process: is pv-1 running?"]
    progressing.apply(lease("pv.1", "pv-1_c", epoch="7/2"))
    assert waits(progressing) == []


@pytest.mark.slow
def test_a_rollout_waits_for_a_leader(progressing: Live) -> None:
    assert waits(progressing) == [], "without a Lease, nobody knows whether the operator runs"
    progressing.apply(lease("pv", ""))
    assert waits(progressing) == ["no operator holds the Lease default/pv: is it running?"]
    progressing.apply(lease("pv", "pv-x_a", age=3600))
    (text,) = waits(progressing)
    assert text.startswith("pv-x_a holds the Lease default/pv, renewed at ")
    assert text.endswith("Z: is it running?")
    progressing.apply(lease("pv", "pv-x_a"))
    assert waits(progressing) == []
