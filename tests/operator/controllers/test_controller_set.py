"""Rules change while the operator runs: kinds that an edit does not affect are not touched, and deletions wait for the
pause."""

from __future__ import annotations

from functools import partial

from structlog.testing import capture_logs

from ruleop.authoring.dev import read_here
from ruleop.kubernetes.kinds import GroupKind, Kind
from ruleop.language.rules.checking import load_project
from ruleop.operator.cache.informers import WatchSpec, child_need
from ruleop.operator.controllers.inventory import InventoryEntry
from ruleop.operator.rules.process import RuleChecks
from ruleop.operator.rules.reload import Reloader
from ruleop.operator.telemetry.metrics import Metrics
from ruleop.operator.wire.watch.store import StoreState
from tests.operator.controllers.controller_set_harness import APP, OTHER, ControllerSetHarness, project_of, watch


def queued(operator, kind):
    return operator.controllers.get(kind).workers.queue.statistics(now=0.0)["ready"]


async def test_only_the_kinds_that_an_edit_affects_are_reconciled():
    async with ControllerSetHarness(pause=60.0) as operator:
        operator.start(watch(), watch("Other"))
        operator.resource()
        controllers = dict(operator.controllers.by_kind)
        operator.controller_set.reloaded(project_of(watch(), watch("Other", "Secret")))
        assert operator.controllers.by_kind == controllers
        assert [operator.controllers.get(kind).reconciler.held_until != "" for kind in (APP, OTHER)] == [
            False,
            True,
        ]
        assert queued(operator, APP) == 0
        operator.controller_set.reloaded(project_of(watch(children="Secret"), watch("Other", "Secret")))
        assert queued(operator, APP) == 1


async def test_rules_that_only_moved_in_their_file_are_in_force_without_a_reconcile():
    async with ControllerSetHarness() as operator:
        operator.start(watch())
        moved = project_of("# a comment\n" + watch())
        operator.controller_set.reloaded(moved)
        controller = operator.controllers.get(APP)
        assert controller.rules == controller.reconciler.rules == moved.rules, "messages name the lines of the new file"
        assert not controller.reconciler.held_until


async def test_a_changed_version_or_limit_takes_effect():
    async with ControllerSetHarness() as operator:
        operator.start(watch())
        controller = operator.controllers.get(APP)
        assert controller.workers.limit == 16
        operator.controller_set.reloaded(project_of(watch(version="v2", more="maxConcurrentReconciles: 3")))
        assert operator.controllers.get(APP) is controller
        assert (controller.kind, controller.reconciler.kind) == (Kind("example.com", "v2", "App"),) * 2
        assert operator.cache.primary[APP].need == WatchSpec(Kind("example.com", "v2", "App"))
        assert WatchSpec(Kind("example.com", "v1", "App")) not in operator.informers.informers
        assert controller.workers.limit == 3


async def test_several_watches_of_a_kind_have_one_controller():
    async with ControllerSetHarness() as operator:
        operator.start(watch())
        one, two = (
            "name: one, selector: {size: a}, maxConcurrentReconciles: 2",
            "name: two, maxConcurrentReconciles: 5",
        )
        operator.controller_set.reloaded(project_of(watch(more=one), watch(more=two)))
        assert len(operator.controllers.get(APP).rules) == 2
        assert operator.controllers.get(APP).workers.limit == 5
        operator.controller_set.reloaded(project_of(watch(more=two)))
        assert len(operator.controllers.get(APP).reconciler.rules) == 1


async def test_a_controller_is_synced_when_no_watch_is_pending():
    async with ControllerSetHarness() as operator:
        operator.start(watch())
        assert operator.cache.is_synced(APP)
        children = operator.informers.informers[child_need(Kind("", "v1", "ConfigMap"))]
        for state, knows in ((StoreState.PENDING, False), (StoreState.UNSERVED, True), (StoreState.FORBIDDEN, True)):
            children.state = state
            assert operator.cache.is_synced(APP) is knows
        assert not operator.cache.is_synced(GroupKind("example.com", "Nobodys"))


# -- the pause ---------------------------------------------------------------------------------------------------------


async def test_each_edit_during_the_pause_extends_it():
    """Even an edit of another kind, or an invalid one: the user has not finished."""
    async with ControllerSetHarness() as operator:
        operator.start(watch(), watch("Other"))
        await operator.until_settled()
        operator.controller_set.pause = 60.0
        operator.controller_set.reloaded(project_of(watch(children="Secret"), watch("Other")))
        first = operator.controller_set._pause_end
        operator.controller_set.reloaded(project_of(watch(children="Secret"), watch("Other", "Secret")))
        second = operator.controller_set._pause_end
        assert (first.cancelled(), second.cancelled()) == (True, False)
        operator.time += 7.0
        operator.controller_set.reject("a mistake")
        assert second.cancelled()
        deadlines = {kind: operator.controllers.get(kind).reconciler.held_until for kind in (APP, OTHER)}
        assert deadlines == dict.fromkeys((APP, OTHER), "1970-01-01T00:01:07Z"), "one end for all controllers"
        assert not operator.controller_set.is_settled
        assert operator.controllers.get(APP).reconciler.held_until


async def test_crs_that_report_the_end_of_the_pause_are_reconciled_when_it_is_extended():
    async with ControllerSetHarness(pause=60.0) as operator:
        operator.start(watch(), watch("Other"))
        operator.resource()
        operator.controller_set.reloaded(project_of(watch(children="Secret"), watch("Other")))
        request = operator.controllers.get(APP).workers.queue.take(now=0.0)
        operator.controllers.get(APP).workers.queue.done(request, now=0.0)
        assert queued(operator, APP) == 0
        operator.controller_set.reject("a mistake")
        assert (queued(operator, APP), queued(operator, OTHER)) == (1, 0)


async def test_a_new_watch_prunes_nothing_in_the_pause():
    async with ControllerSetHarness() as operator:
        operator.start(watch())
        operator.controller_set.reloaded(project_of(watch(), watch("Other")))
        assert operator.controllers.get(OTHER).reconciler.held_until
        await operator.until_settled()
        assert not operator.controllers.get(OTHER).reconciler.held_until


async def test_crs_whose_deletions_were_held_back_are_reconciled_after_the_pause():
    async with ControllerSetHarness() as operator:
        operator.start(watch())
        await operator.until_settled()
        operator.resource()
        controller = operator.controllers.get(APP)
        operator.controller_set.reloaded(project_of(watch(children="Secret")))
        operator.store(APP)
        controller.workers.queue.take(now=0.0)
        await operator.until_settled()
        assert not controller.reconciler.held_until
        controller.workers.queue.done(next(iter(controller.workers.queue._active)), now=0.0)
        assert queued(operator, APP) == 1


async def test_a_rejected_reload_sets_a_metric_until_the_next_valid_one():
    async with ControllerSetHarness() as operator:
        operator.start(watch())
        operator.controller_set.reject("watches.yaml:1:1: a mistake")
        assert operator.metrics.registry.get_sample_value("ruleop_reload_failed") == 1
        assert operator.controller_set.rejected == "watches.yaml:1:1: a mistake"
        operator.controller_set.reloaded(project_of(watch()))
        assert operator.metrics.registry.get_sample_value("ruleop_reload_failed") == 0
        assert operator.controller_set.rejected == ""


async def test_a_template_with_a_branch_that_is_not_yaml_keeps_the_previous_rules(tmp_path):
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n{% if spec.x %}\ndata:\n  a: b\n{% endif %}\n"

    checks = RuleChecks(Metrics())

    async def read(files):
        reading = await read_here(files, variables={})
        await checks.require_none(reading.errors)
        return reading.project

    (tmp_path / "templates").mkdir()
    file = tmp_path / "templates/a.yaml"
    async with ControllerSetHarness() as operator:
        (tmp_path / "watches.yaml").write_text(
            "- {group: example.com, version: v1, kind: App, children: {a: {template: a.yaml}}}\n"
        )
        file.write_text(template)
        project = load_project(tmp_path, environ={})
        operator.controller_set.apply(project)
        operator.controller_set.start_leading()
        reloader = Reloader(
            tmp_path,
            current=project,
            read=read,
            changed=operator.controller_set.reloaded,
            rejected=operator.controller_set.reject,
        )
        failed = partial(operator.metrics.registry.get_sample_value, "ruleop_reload_failed")
        file.write_text(template.replace("\ndata:", "\ndata"))
        with capture_logs() as log:
            await reloader.check()
        assert [line["event"] for line in log] == ["reload rejected; keeping the previous rules"]
        assert "templates/a.yaml:5:1: not YAML" in log[0]["errors"]
        assert failed() == 1
        assert operator.controllers.get(APP).rules == project.rules
        file.write_text(template.replace("a: b", "a: c"))
        await reloader.check()
        assert failed() == 0
        assert operator.controllers.get(APP).rules != project.rules


async def test_the_needed_verbs_of_a_kind_are_those_of_all_rules_and_of_the_inventory():
    async with ControllerSetHarness() as operator:
        operator.start(watch())
        full = {"get", "list", "watch", "create", "patch", "delete"}
        assert operator.controller_set.verbs(GroupKind("", "ConfigMap")) == full
        assert operator.controller_set.verbs(APP) == {"get", "list", "watch"}
        crds = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
        assert operator.controller_set.verbs(crds) == {"list", "watch"}
        operator.inventory.entries[APP] = InventoryEntry(finalizer=True)
        assert operator.controller_set.verbs(APP) == {"get", "list", "watch", "patch"}
        operator.inventory.entries[APP] = InventoryEntry(children=frozenset({GroupKind("", "Secret")}))
        assert operator.controller_set.verbs(GroupKind("", "Secret")) == full - {"create"}
