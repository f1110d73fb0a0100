"""A value that is planted in a Secret is nowhere in what the operator emits: the log at level debug, conditions,
Events, metrics, recorded passes and the inventory, whatever children do with it and whatever happens to them."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace
from pathlib import Path

import aiohttp
import orjson
import prometheus_client
import pytest
import yaml
from structlog.testing import capture_logs

from ruleop.localcluster import LocalCluster
from ruleop.operator.controllers.inventory import entry_of_plan
from ruleop.operator.manager.manager import Manager
from ruleop.operator.manager.parts import Options
from ruleop.operator.passes.recorder import PassFiles
from tests.language.secrets.test_secret_messages import CONFIG, CONTENT, FAILING, MAPPING, MARK, SOURCE, VALUE
from tests.operator.manager.test_start import free_port
from tests.operator.passes.reconciler_harness import ReconcilerHarness
from tests.planning.harness import APP, project

WATCH = """
observe: {source: {version: v1, kind: Secret, name: source}}
let: {part: "{{ (source.data.v | b64decode)[:5] }}"}
children:
  own: {template: own.yaml}
  c: {template: c.yaml}
  last: {template: last.yaml}
conditions: [{type: There, status: source is defined, message: "{{ source.metadata.name }}"}]
"""
OWN = "apiVersion: v1\nkind: Secret\nmetadata: {name: own}\ndata: {v: '{{ source.data.v }}'}\n"
LAST = (
    CONFIG.replace("name: x", "name: last")
    + "data:\n  a: '{{ own.data.v | b64decode | b64encode }}'\n  {{ MAPPING }}\n"
)
WORKING = {
    "keys and values": CONFIG + "data:\n  a: '{{ VALUE }}'\n  'k{{ VALUE }}': '{{ part }}'\n  {{ MAPPING }}\n",
    "items": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n  - name: '{{ VALUE }}'\n"
    "    env:\n    - {name: '{{ VALUE }}', value: '{{ part }}'}\n",
    "a secret": OWN.replace("name: own", "name: x"),
}


def filled(text: str) -> str:
    return text.replace("VALUE", f"({VALUE})").replace("MAPPING", f"({MAPPING})").replace("PLANTED", MARK)


class Planted:
    def __init__(self, text: str, folder: Path) -> None:
        self.harness = ReconcilerHarness(WATCH, {"v": "1"}, own=OWN, c=filled(text), last=filled(LAST))
        self.key = self.harness.key("source", "Secret")
        catch_up = self.harness.stores.catch_up

        def with_source() -> None:
            catch_up()
            self.harness.stores.objects[self.key] = copy.deepcopy(SOURCE)

        self.harness.stores.catch_up = with_source
        with_source()
        self.folder = folder
        planning = self.harness.reconciler.planning
        planning.environment = replace(planning.environment, pass_files=PassFiles(folder))
        self.emitted: list[str] = []

    async def pass_(self) -> None:
        with capture_logs() as lines:
            for _ in range(3):
                await self.harness.reconcile()
        self.emitted.append(repr(lines))

    def searched(self) -> None:
        metrics = prometheus_client.generate_latest(self.harness.metrics.registry).decode()
        recorded = "".join(path.read_text() for path in self.folder.rglob("*") if path.is_file())
        status = orjson.dumps(self.harness.app).decode()
        inventory = repr([entry_of_plan(*each.args) for each in self.harness.before_writes.await_args_list])
        for text in (*self.emitted, repr(self.harness.events), metrics, recorded, status, inventory):
            assert MARK not in text
            for value in SOURCE["data"].values():  # type: ignore[attr-defined]
                assert value not in text


@pytest.mark.parametrize("what", [*FAILING, *WORKING])
async def test_nothing_that_the_operator_emits_has_a_value_of_a_secret(what, tmp_path):
    assert MARK in CONTENT
    planted = Planted({**FAILING, **WORKING}[what], tmp_path)
    harness = planted.harness
    await planted.pass_()
    for name in ("x", "last"):  # drift
        if harness.live(name) is not None:
            harness.edit(name, data={"a": "drifted", f"{MARK}_key": "drifted"})
    await planted.pass_()
    harness.edit_app(spec={"v": "2"})
    await planted.pass_()
    for key in harness.server.object_keys():  # deleted by somebody else, then created again
        if key.kind in ("ConfigMap", "Pod"):
            harness.server.remove(key)
    harness.stores.catch_up()
    await planted.pass_()
    planted.searched()
    if what in WORKING:  # the value did arrive
        assert "drift reverted" in repr(planted.emitted)
        assert MARK in repr(harness.live("last"))


@pytest.mark.slow
def test_readyz_and_metrics_have_no_value_of_a_secret(tmp_path):
    """Of an operator that observes the Secret, while all children that read it fail or are written."""
    texts = {**FAILING, **WORKING}
    files = {f"c{number}": filled(text) for number, text in enumerate(texts.values())}
    children = "".join(f"  {name}: {{template: {name}.yaml}}\n" for name in files)
    rules = project(WATCH.partition("children:")[0] + "children:\n" + children, **files)

    async def scenario(cluster):
        address = f"127.0.0.1:{free_port()}"
        options = Options(
            kubeconfig=str(tmp_path / "kubeconfig"),
            metrics_address=address,
            health_address=address,
            reload=False,
        )
        manager = Manager(rules, tmp_path, options)
        running = asyncio.create_task(manager.run())
        reason = ""
        while reason != "RenderFailed":
            await asyncio.sleep(0.05)
            (found,) = cluster.call(lambda: [each.obj for each in cluster.store.all(resource)])
            conditions = (found.get("status") or {}).get("conditions") or []
            reason = next((each["reason"] for each in conditions if each["type"] == "Ready"), "")
        async with aiohttp.ClientSession() as client:
            for path in ("/readyz?verbose", "/metrics"):
                async with client.get(f"http://{address}{path}") as answer:
                    assert answer.status == 200
                    text = await answer.text()
                    assert "App" in text
                    assert MARK not in text
                    assert all(value not in text for value in SOURCE["data"].values())
        manager.stopping.set()
        assert await running

    with capture_logs(), LocalCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        for each in (*yaml.safe_load_all(APP), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}):
            cluster.apply(each)
        cluster.apply({**SOURCE, "metadata": {"name": "source", "namespace": "shop"}})
        cluster.apply(
            {
                "apiVersion": "example.com/v1",
                "kind": "App",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"v": "1"},
            }
        )
        resource = cluster.registry.of_kind(rules.rules[0].kind).resource
        asyncio.run(scenario(cluster))
