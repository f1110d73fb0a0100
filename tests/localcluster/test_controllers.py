"""The controllers of the cluster in memory, without HTTP: the objects when nothing is left to do."""

import itertools

import pytest
import yaml

from ruleop.kubernetes.cron import next_time
from tests.localcluster.play import (
    CLAIMS,
    CRON_JOBS,
    DAEMONS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    SERVICES,
    SETS,
    SLICES,
    STATEFUL,
    VOLUMES,
    Play,
    pod,
    workload,
)

# -- Deployments -------------------------------------------------------------------------------------------------------


def test_a_deployment_rolls_out_a_new_template_and_keeps_the_old_replica_set(play):
    play.apply(workload("Deployment"))
    (first,) = play.names(SETS)
    assert play.get(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 3
    play.edit(DEPLOYMENTS, "web", template=yaml.safe_load(pod("nginx:2")))
    assert len(play.names(SETS)) == 2
    assert {each["spec"]["containers"][0]["image"] for each in play.all(PODS)} == {"nginx:2"}
    assert play.get(SETS, first)["spec"]["replicas"] == 0
    status = play.get(DEPLOYMENTS, "web")["status"]
    assert (status["updatedReplicas"], status["availableReplicas"], status["replicas"]) == (3, 3, 3)
    assert play.get(DEPLOYMENTS, "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


def test_a_rollout_that_never_becomes_ready_keeps_the_old_pods(play):
    play.apply(workload("Deployment"))
    play.edit(
        DEPLOYMENTS, "web", template=yaml.safe_load(pod("broken", annotations="{local.ruleop.dev/pod: not-ready}"))
    )
    status = play.get(DEPLOYMENTS, "web")["status"]
    assert status["availableReplicas"] == 3
    assert status["unavailableReplicas"] == 1
    assert {each["type"]: each["status"] for each in status["conditions"]}["Available"] == "True"


def test_a_rollback_reuses_the_old_replica_set(play):
    play.apply(workload("Deployment"))
    (first,) = play.names(SETS)
    play.edit(DEPLOYMENTS, "web", template=yaml.safe_load(pod("nginx:2")))
    play.edit(DEPLOYMENTS, "web", template=yaml.safe_load(pod()))
    assert play.get(SETS, first)["spec"]["replicas"] == 3
    assert play.get(DEPLOYMENTS, "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


def test_the_recreate_strategy_removes_all_pods_first(play):
    play.apply(workload("Deployment", strategy={"type": "Recreate"}))
    seen = []
    play.store.listen(PODS, lambda _: seen.append({each["spec"]["containers"][0]["image"] for each in play.all(PODS)}))
    play.edit(DEPLOYMENTS, "web", template=yaml.safe_load(pod("nginx:2")))
    assert {"nginx", "nginx:2"} not in seen
    assert seen[-1] == {"nginx:2"}


def test_a_paused_deployment_is_scaled_but_not_rolled_out(play):
    play.apply(workload("Deployment"))
    play.edit(DEPLOYMENTS, "web", paused=True, replicas=5, template=yaml.safe_load(pod("nginx:2")))
    assert {each["spec"]["containers"][0]["image"] for each in play.all(PODS)} == {"nginx"}
    play.edit(DEPLOYMENTS, "web", paused=False)
    assert [each["spec"]["containers"][0]["image"] for each in play.all(PODS)] == ["nginx:2"] * 5


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 2])
def test_old_replica_sets_beyond_the_limit_are_deleted(play, limit):
    play.apply(workload("Deployment", revisionHistoryLimit=limit))
    for number in range(4):
        play.edit(DEPLOYMENTS, "web", template=yaml.safe_load(pod(f"nginx:{number}")))
    assert len(play.names(SETS)) == limit + 1


# -- StatefulSets, DaemonSets ------------------------------------------------------------------------------------------


def test_a_stateful_set_starts_in_order_and_waits_for_each_pod(play):
    started = []
    play.store.listen(PODS, lambda event: event.old is None and started.append(event.new.name.name))
    play.apply(workload("StatefulSet", serviceName="web"))
    assert started == ["web-0", "web-1", "web-2"]
    assert play.get(STATEFUL, "web")["status"]["readyReplicas"] == 3


def test_a_stateful_set_does_not_start_the_second_pod_before_the_first_is_ready(play):
    template = pod(annotations="{local.ruleop.dev/pod: not-ready}")
    play.apply(workload("StatefulSet", serviceName="web", template=template))
    assert play.names(PODS) == ["web-0"]


def test_a_parallel_stateful_set_starts_all_pods_at_once(play):
    template = pod(annotations="{local.ruleop.dev/pod: not-ready}")
    play.apply(workload("StatefulSet", serviceName="web", template=template, podManagementPolicy="Parallel"))
    assert play.names(PODS) == ["web-0", "web-1", "web-2"]


def test_a_stateful_set_updates_from_the_last_pod_and_stops_at_the_partition(play):
    play.apply(workload("StatefulSet", serviceName="web"))
    update = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    play.edit(STATEFUL, "web", template=yaml.safe_load(pod("nginx:2")), updateStrategy=update)
    assert [each["spec"]["containers"][0]["image"] for each in play.all(PODS)] == ["nginx", "nginx:2", "nginx:2"]


def test_a_stateful_set_creates_a_claim_per_pod_and_keeps_it_when_scaled_down(play):
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    play.apply(workload("StatefulSet", serviceName="web", replicas=2, volumeClaimTemplates=[claim]))
    assert play.names(CLAIMS) == ["data-web-0", "data-web-1"]
    assert [each["status"]["phase"] for each in play.all(CLAIMS)] == ["Bound", "Bound"]
    play.edit(STATEFUL, "web", replicas=1)
    assert play.names(PODS) == ["web-0"]
    assert play.names(CLAIMS) == ["data-web-0", "data-web-1"]


def test_a_daemon_set_has_one_pod_and_replaces_it(play):
    play.apply(workload("DaemonSet"))
    (first,) = play.names(PODS)
    play.edit(DAEMONS, "web", template=yaml.safe_load(pod("nginx:2")))
    (second,) = play.names(PODS)
    assert first != second
    assert play.get(DAEMONS, "web")["status"]["numberReady"] == 1


# -- Jobs --------------------------------------------------------------------------------------------------------------


def conditions(obj):
    return {each["type"]: each["status"] for each in obj["status"].get("conditions", [])}


def test_a_job_completes(play):
    play.apply(workload("Job", "batch", template=pod(restartPolicy="Never"), completions=3, parallelism=2))
    job = play.get(JOBS, "web")
    assert job["status"]["succeeded"] == 3
    assert conditions(job)["Complete"] == "True"
    assert "Completed" in play.reasons()


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_job_whose_pods_fail_stops_at_its_backoff_limit(play, policy):
    template = pod(annotations="{local.ruleop.dev/pod: fail}", restartPolicy=policy)
    play.apply(workload("Job", "batch", template=template, backoffLimit=2 if policy == "Never" else 0))
    job = play.get(JOBS, "web")
    assert conditions(job)["Failed"] == "True"
    assert "BackoffLimitExceeded" in play.reasons()


def test_a_suspended_job_has_no_pods(play):
    play.apply(workload("Job", "batch", template=pod(restartPolicy="Never"), suspend=True))
    assert play.names(PODS) == []


CRON = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, annotations: {%s}}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}
"""


def test_a_cron_job_runs_on_schedule_or_at_once_with_an_annotation(play):
    play.apply(CRON % "")
    assert play.names(JOBS) == []
    again = Play()
    again.apply(CRON % '"local.ruleop.dev/run-now": ""')
    (job,) = again.all(JOBS)
    assert conditions(job)["Complete"] == "True"
    assert again.get(CRON_JOBS, "nightly")["status"]["lastSuccessfulTime"]


@pytest.mark.parametrize(
    ("schedule", "found"),
    [
        ("*/15 * * * *", "1970-01-01 00:15"),
        ("30 4 3,15 * 5", "1970-01-02 04:30"),
        ("0 0 29 2 *", "1972-02-29 00:00"),
        ("0 12 * * MON-WED", "1970-01-05 12:00"),
        ("@hourly", "1970-01-01 01:00"),
        ("0 0 31 feb *", None),
        ("nonsense", None),
        ("60 * * * *", None),
    ],
)
def test_the_next_time_of_a_cron_schedule_is_computed(schedule, found):
    import datetime as dt  # noqa: PLC0415 - for the expectation only

    expected = None if found is None else dt.datetime.fromisoformat(found + "+00:00").timestamp()
    assert next_time(schedule, 0.0) == expected


# -- pods, volumes, services, garbage ----------------------------------------------------------------------------------


def test_a_pod_annotated_as_pending_stays_pending(play):
    play.apply(workload("Deployment", replicas=1, template=pod(annotations="{local.ruleop.dev/pod: pending}")))
    (found,) = play.all(PODS)
    assert found["status"]["phase"] == "Pending"
    assert not found["spec"].get("nodeName")


def test_a_volume_grows_and_is_deleted_with_its_claim(play):
    play.apply(
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, "
        "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
    )
    play.edit(CLAIMS, "data", resources={"requests": {"storage": "2Gi"}})
    assert play.get(CLAIMS, "data")["status"]["capacity"] == {"storage": "2Gi"}
    play.delete(CLAIMS, "data")
    assert list(play.store.all(VOLUMES)) == []


SERVICE = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {%s}}"


def test_a_service_has_the_endpoints_of_its_ready_pods(play):
    play.apply(SERVICE % "selector: {app: web}, ports: [{port: 80, targetPort: 8080}]")
    play.apply(workload("Deployment", replicas=2))
    (found,) = play.all(SLICES)
    assert [each["conditions"]["ready"] for each in found["endpoints"]] == [True, True]
    assert found["ports"][0]["port"] == 8080
    play.edit(DEPLOYMENTS, "web", replicas=0)
    (found,) = play.all(SLICES)
    assert not found.get("endpoints")
    play.delete(SERVICES, "web")
    assert play.all(SLICES) == []


def test_a_changed_selector_changes_the_endpoints_of_a_service(play):
    play.apply(workload("Deployment", replicas=1))
    play.apply(SERVICE % "selector: {app: other}, ports: [{port: 80}]")
    assert not play.all(SLICES)[0].get("endpoints")
    play.edit(SERVICES, "web", selector={"app": "web"})
    assert len(play.all(SLICES)[0]["endpoints"]) == 1


def test_a_load_balancer_gets_an_address(play):
    play.apply(SERVICE % "type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]")
    assert play.get(SERVICES, "web")["status"]["loadBalancer"]["ingress"][0]["ip"]


@pytest.mark.parametrize(("propagation", "remains"), [("Background", False), ("Foreground", False), ("Orphan", True)])
def test_replica_sets_and_pods_of_a_deleted_deployment_are_deleted_or_orphaned(play, propagation, remains):
    play.apply(workload("Deployment", replicas=2))
    play.delete(DEPLOYMENTS, "web", propagation)
    assert bool(play.names(SETS)) == remains
    assert len(play.names(PODS)) == (2 if remains else 0)
    assert all("ownerReferences" not in each["metadata"] for each in play.all(SETS))


def test_resource_versions_increase_and_are_unique(play):
    play.apply(workload("Deployment", replicas=2))
    versions = [each.version for resource in play.store.resources() for each in play.store.all(resource)]
    assert len(versions) == len(set(versions))
    events = [event.version for event in play.store.since(PODS, 0)]
    assert all(a < b for a, b in itertools.pairwise(events))
