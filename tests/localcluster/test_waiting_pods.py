"""Pods that cannot start yet wait as in a real cluster, in its words, and start as soon as they can."""

import pytest
import yaml

from ruleop.localcluster.object_store import Name, Resource
from tests.localcluster.play import CLAIMS, DAEMONS, DEPLOYMENTS, EVENTS, JOBS, PODS, SETS, STATEFUL, pod, workload

NODES = Resource("", "nodes")

CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {k: v}}"
SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {k: v}}"  # noqa: S105 - a manifest
OTHER_KEY = "{apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {other: v}}"


def single(**spec):
    """A pod of its own, which is named p."""
    body = yaml.safe_load(pod(**spec))
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **body, "metadata": {"name": "p"}})


def container(**more):
    return {"containers": [{"name": "c", "image": "nginx", **more}]}


def state(found, field="containerStatuses"):
    return [each["state"] for each in found["status"][field]]


def conditions(found):
    return {each["type"]: each["status"] for each in found["status"]["conditions"]}


def events(play, reason):
    return [each["message"] for each in play.all(EVENTS) if each["reason"] == reason]


# -- containers --------------------------------------------------------------------------------------------------------

MISSING = {
    "a ConfigMap": ({"envFrom": [{"configMapRef": {"name": "x"}}]}, 'configmap "x" not found', CONFIG_MAP),
    "a Secret": ({"envFrom": [{"secretRef": {"name": "x"}}]}, 'secret "x" not found', SECRET),
    "a ConfigMap of a key": (
        {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "k"}}}]},
        'configmap "x" not found',
        CONFIG_MAP,
    ),
    "a Secret of a key": (
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}]},
        'secret "x" not found',
        SECRET,
    ),
}


@pytest.mark.parametrize(("fields", "message", "made"), MISSING.values(), ids=MISSING)
def test_a_container_waits_for_what_its_environment_needs(play, fields, message, made):
    play.apply(single(**container(**fields)))
    found = play.get(PODS, "p")
    assert (found["status"]["phase"], found["spec"]["nodeName"]) == ("Pending", "local-node")
    assert state(found) == [{"waiting": {"reason": "CreateContainerConfigError", "message": message}}]
    assert conditions(found) | {"Ready": "False", "ContainersReady": "False", "Initialized": "True"} == conditions(
        found
    )
    assert events(play, "Failed") == [f"Error: {message}"]
    play.apply(made)
    found = play.get(PODS, "p")
    assert (found["status"]["phase"], conditions(found)["Ready"]) == ("Running", "True")


@pytest.mark.parametrize(
    ("kind", "reference"), [("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")], ids=["ConfigMap", "Secret"]
)
def test_a_container_waits_for_a_key(play, kind, reference):
    play.apply(f"{{apiVersion: v1, kind: {kind}, metadata: {{name: x}}}}")
    play.apply(single(**container(env=[{"name": "A", "valueFrom": {reference: {"name": "x", "key": "k"}}}])))
    assert state(play.get(PODS, "p"))[0]["waiting"]["message"] == f"couldn't find key k in {kind} default/x"
    play.apply(CONFIG_MAP if kind == "ConfigMap" else SECRET)
    assert play.get(PODS, "p")["status"]["phase"] == "Running"


def test_optional_references_may_be_missing(play):
    optional = {"name": "x", "optional": True}
    fields = {
        "envFrom": [{"configMapRef": optional}, {"secretRef": optional}],
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {**optional, "key": "k"}}}],
    }
    sources = [{"secret": {**optional, "items": [{"key": "k", "path": "p"}]}}]
    volumes = [
        {"name": "a", "configMap": optional},
        {"name": "b", "secret": {"secretName": "x", "optional": True}},
        {"name": "c", "projected": {"sources": sources}},
    ]
    play.apply(single(**container(**fields), volumes=volumes))
    assert play.get(PODS, "p")["status"]["phase"] == "Running"
    play.apply(single(**container(**fields), volumes=volumes).replace("name: p", "name: q") + "---\n" + OTHER_KEY)
    assert play.get(PODS, "q")["status"]["phase"] == "Running"


def test_a_container_that_runs_stays_when_its_secret_is_deleted(play):
    play.apply(SECRET)
    play.apply(single(**container(envFrom=[{"secretRef": {"name": "x"}}])))
    play.delete(Resource("", "secrets"), "x")
    play.apply(single(**container(envFrom=[{"secretRef": {"name": "x"}}])).replace("{}", "{a: b}"))
    assert conditions(play.get(PODS, "p"))["Ready"] == "True"


def test_a_container_runs_beside_one_that_waits(play):
    waiting = {"name": "d", "image": "nginx", "envFrom": [{"secretRef": {"name": "x"}}]}
    play.apply(single(containers=[{"name": "c", "image": "nginx"}, waiting]))
    found = play.get(PODS, "p")
    assert [*map(list, state(found))] == [["running"], ["waiting"]]
    assert found["status"]["phase"] == "Pending"
    unready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
    assert unready["message"] == "containers with unready status: [c d]"


def test_containers_wait_for_init_containers(play):
    init = {"name": "i", "image": "nginx", "envFrom": [{"secretRef": {"name": "x"}}]}
    play.apply(single(**container(), initContainers=[init]))
    found = play.get(PODS, "p")
    assert state(found, "initContainerStatuses")[0]["waiting"]["reason"] == "CreateContainerConfigError"
    assert state(found) == [{"waiting": {"reason": "PodInitializing"}}]
    assert conditions(found)["Initialized"] == "False"
    play.apply(SECRET)
    found = play.get(PODS, "p")
    assert state(found, "initContainerStatuses")[0]["terminated"]["reason"] == "Completed"
    assert conditions(found)["Initialized"] == conditions(found)["Ready"] == "True"


# -- volumes -----------------------------------------------------------------------------------------------------------

PATHS = [{"key": "k", "path": "p"}]
VOLUMES = {
    "a ConfigMap": ({"configMap": {"name": "x"}}, 'configmap "x" not found', CONFIG_MAP),
    "a Secret": ({"secret": {"secretName": "x"}}, 'secret "x" not found', SECRET),
    "a projected Secret": ({"projected": {"sources": [{"secret": {"name": "x"}}]}}, 'secret "x" not found', SECRET),
    "a projected ConfigMap and Secret": (
        {"projected": {"sources": [{"configMap": {"name": "x"}}, {"secret": {"name": "x"}}]}},
        '[configmap "x" not found, secret "x" not found]',
        f"{CONFIG_MAP}\n---\n{SECRET}",
    ),
}


@pytest.mark.parametrize(("source", "problem", "made"), VOLUMES.values(), ids=VOLUMES)
def test_a_pod_waits_for_what_its_volumes_need(play, source, problem, made):
    play.apply(single(**container(), volumes=[{"name": "v", **source}]))
    found = play.get(PODS, "p")
    assert state(found) == [{"waiting": {"reason": "ContainerCreating"}}]
    assert found["status"]["phase"] == "Pending"
    assert "podIP" not in found["status"]
    assert events(play, "FailedMount") == [f'MountVolume.SetUp failed for volume "v" : {problem}']
    play.apply(made)
    assert play.get(PODS, "p")["status"]["phase"] == "Running"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"configMap": {"name": "x", "items": PATHS}}, "couldn't find key k in ConfigMap default/x"),
        ({"secret": {"secretName": "x", "items": PATHS}}, "couldn't find key k in Secret default/x"),
    ],
)
def test_a_pod_waits_for_the_keys_of_its_volumes(play, source, problem):
    play.apply(
        "\n---\n".join(f"{{apiVersion: v1, kind: {each}, metadata: {{name: x}}}}" for each in ("ConfigMap", "Secret"))
    )
    play.apply(single(**container(), volumes=[{"name": "v", **source}]))
    assert events(play, "FailedMount") == [f'MountVolume.SetUp failed for volume "v" : {problem}']
    play.apply(f"{CONFIG_MAP}\n---\n{SECRET}")
    assert play.get(PODS, "p")["status"]["phase"] == "Running"


def test_only_the_pods_that_wait_for_an_object_are_reconciled_when_it_appears(play):
    play.apply(single(**container(envFrom=[{"secretRef": {"name": "x"}}])))
    others = single(**container(envFrom=[{"secretRef": {"name": "y"}}]))
    for number in range(5):
        play.apply(others.replace("name: p", f"name: q{number}"))
    reconciled = []
    controller = next(each for each in play.machinery.controllers if each.resource == PODS)
    controller.sync = lambda name, sync=controller.sync: (reconciled.append(name.name), sync(name))
    play.apply(SECRET)
    assert set(reconciled) == {"p"}


# -- scheduling --------------------------------------------------------------------------------------------------------


def unscheduled(play, name="p"):
    """The message of a pod that has no node, which an Event has too."""
    found = play.get(PODS, name)
    (condition,) = (each for each in found["status"]["conditions"] if each["type"] == "PodScheduled")
    assert (condition["reason"], condition["status"]) == ("Unschedulable", "False")
    assert condition["message"] in events(play, "FailedScheduling")
    return condition["message"]


CLAIM = (
    "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: c, finalizers: [{}]}}, "
    "spec: {{storageClassName: {}, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}}}"
)
USER = single(**container(), volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
CLASS = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: a.b/c}"


def test_a_pod_waits_for_its_claim_and_the_claim_for_its_class(play):
    play.apply(USER)
    assert unscheduled(play) == '0/1 nodes are available: persistentvolumeclaim "c" not found. not found'
    play.apply(CLAIM.format("", "fast"))
    assert unscheduled(play) == "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    assert events(play, "ProvisioningFailed") == ['storageclass.storage.k8s.io "fast" not found']
    play.apply(CLASS)
    assert play.get(PODS, "p")["status"]["phase"] == "Running"


def test_a_pod_without_a_node_does_not_use_a_claim_that_is_being_deleted(play):
    play.apply(CLAIM.format("a.b/c", "standard"))
    play.delete(CLAIMS, "c")
    play.apply(USER)
    assert unscheduled(play) == '0/1 nodes are available: persistentvolumeclaim "c" is being deleted. not found'
    assert play.get(CLAIMS, "c")["metadata"]["finalizers"] == ["a.b/c"]


def test_a_claim_without_any_class_has_an_event(play):
    play.apply(CLAIM.format("", '""'))
    assert events(play, "FailedBinding") == [
        "no persistent volumes available for this claim and no storage class is set"
    ]


NO_MATCH = (
    "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


def affinity(*terms):
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


SELECTING = {"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"disk": "ssd"}},
        affinity({"matchExpressions": [SELECTING]}),
        affinity(
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]},
            {"matchExpressions": [SELECTING]},
        ),
    ],
)
def test_a_pod_waits_for_a_node_that_it_selects(play, spec):
    play.apply(single(**container(), **spec))
    assert unscheduled(play) == NO_MATCH
    play.apply("{apiVersion: v1, kind: Node, metadata: {name: local-node, labels: {disk: ssd}}}")
    assert play.get(PODS, "p")["status"]["phase"] == "Running"


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"kubernetes.io/os": "linux"}},
        affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["local-node"]}]}),
    ],
)
def test_a_pod_runs_on_the_node_that_it_selects(play, spec):
    play.apply(single(**container(), **spec))
    assert play.get(PODS, "p")["status"]["phase"] == "Running"


def test_a_daemon_set_has_no_pod_on_a_node_that_it_does_not_select(play):
    play.apply(workload("DaemonSet", template=pod(nodeSelector={"disk": "ssd"})))
    assert (play.names(PODS), play.get(DAEMONS, "web")["status"]["desiredNumberScheduled"]) == ([], 0)
    play.apply("{apiVersion: v1, kind: Node, metadata: {name: local-node, labels: {disk: ssd}}}")
    assert play.get(DAEMONS, "web")["status"]["numberReady"] == 1


# -- pods that are refused ---------------------------------------------------------------------------------------------

LATE = pod(serviceAccountName="late")
ACCOUNT = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: late}}"
NO_ACCOUNT = 'pods "{}" is forbidden: error looking up service account default/late: serviceaccount "late" not found'


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "Job"])
def test_a_pod_that_is_refused_is_reported_and_created_as_soon_as_it_can(play, kind):
    job = {"restartPolicy": "Never"} if kind == "Job" else {}
    template = pod(serviceAccountName="late", **job)
    play.apply(workload(kind, "batch" if kind == "Job" else "apps", template=template))
    owner = play.names(SETS)[0] if kind == "Deployment" else "web"
    assert play.names(PODS) == []
    assert events(play, "FailedCreate") == [f"Error creating: {NO_ACCOUNT.format(owner + '-')}"]
    play.apply(ACCOUNT)
    assert len(play.names(PODS)) == (3 if kind == "Deployment" else 1)


def test_a_stateful_set_reports_the_pod_that_is_refused(play):
    play.apply(workload("StatefulSet", serviceName="web", template=LATE))
    message = f"Create Pod web-0 in StatefulSet web failed error: {NO_ACCOUNT.format('web-0')}"
    assert events(play, "FailedCreate") == [message]
    play.apply(ACCOUNT)
    assert play.get(STATEFUL, "web")["status"]["readyReplicas"] == 3


def test_a_replica_set_and_its_deployment_have_the_condition_replica_failure(play):
    play.apply(workload("Deployment", template=LATE))
    (name,) = play.names(SETS)
    for found in (play.get(SETS, name), play.get(DEPLOYMENTS, "web")):
        (condition,) = (each for each in found["status"]["conditions"] if each["type"] == "ReplicaFailure")
        assert (condition["status"], condition["reason"]) == ("True", "FailedCreate")
        assert condition["message"] == NO_ACCOUNT.format(f"{name}-")
    play.apply(ACCOUNT)
    for found in (play.get(SETS, name), play.get(DEPLOYMENTS, "web")):
        assert "ReplicaFailure" not in {each["type"] for each in found["status"].get("conditions") or ()}


def test_a_refused_pod_is_retried_with_a_backoff(play, monkeypatch):
    delays = []

    def later(seconds, key):
        if len(delays) < 20:
            delays.append(seconds)
            play.machinery.enqueue(play.machinery.controllers[key[0]], key[1])

    monkeypatch.setattr(play.machinery, "_after", later)
    taken = "{apiVersion: v1, kind: Pod, metadata: {name: web-0}, spec: {containers: [{name: c, image: nginx}]}}"
    play.apply(f"{taken}\n---\n{workload('StatefulSet', serviceName='web', replicas=1)}")
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[-1] == 10


def test_a_stateful_set_waits_for_a_claim_that_is_being_deleted_and_makes_a_new_one(play):
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    play.apply(workload("StatefulSet", replicas=1, serviceName="web", volumeClaimTemplates=[claim]))
    before = play.get(CLAIMS, "data-web-0")["metadata"]["uid"]
    play.apply(
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-web-0, finalizers: [a.b/c, kubernetes.io/pvc-protection]}}"
    )
    play.delete(CLAIMS, "data-web-0")
    play.delete(PODS, "web-0")
    assert play.names(PODS) == []
    assert events(play, "FailedCreate") == [
        "Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted"
    ]
    found = play.store.get(CLAIMS, next(iter(play.store.all(CLAIMS))).name)
    play.machinery.update(CLAIMS, found, {**found.obj, "metadata": {**found.obj["metadata"], "finalizers": []}})
    play.machinery.settle()
    assert play.get(CLAIMS, "data-web-0")["metadata"]["uid"] != before
    assert play.get(STATEFUL, "web")["status"]["readyReplicas"] == 1


def test_jobs_that_were_refused_complete(play):
    play.apply(workload("Job", "batch", template=pod(serviceAccountName="late", restartPolicy="Never")))
    play.apply(ACCOUNT)
    assert play.get(JOBS, "web")["status"]["succeeded"] == 1


# -- many --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "spec"),
    [("Deployment", {}), ("StatefulSet", {"serviceName": "web", "podManagementPolicy": "Parallel"})],
    ids=["Deployment", "StatefulSet"],
)
def test_many_pods_are_created_and_deleted_a_few_at_a_time(play, kind, spec):
    changed = []
    for controller in play.machinery.controllers:

        def counted(name, sync=controller.sync):
            before = len(play.names(PODS))
            sync(name)
            changed.append(len(play.names(PODS)) - before)

        controller.sync = counted
    play.apply(workload(kind, replicas=210, **spec))
    assert len(play.names(PODS)) == 210
    resource = DEPLOYMENTS if kind == "Deployment" else STATEFUL
    play.edit(resource, "web", replicas=1)
    assert play.get(resource, "web")["status"]["readyReplicas"] == len(play.names(PODS)) == 1
    assert max(changed) == 20
    assert min(changed) >= -20


def test_a_namespace_with_many_objects_ends(play):
    play.apply("{apiVersion: v1, kind: Namespace, metadata: {name: full}}")
    for number in range(100):
        play.apply(f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a{number}, namespace: full}}}}")
    namespaces = Resource("", "namespaces")
    found = play.store.get(namespaces, Name("", "full"))
    play.machinery.delete(namespaces, found)
    play.machinery.settle()
    assert play.store.get(namespaces, found.name) is None
    assert play.all(Resource("", "configmaps"), "full") == []


# -- the node ----------------------------------------------------------------------------------------------------------

NOT_AVAILABLE = (
    "0/1 nodes are available: 1 node(s) {}. no new claims to deallocate, preemption: 0/1 nodes are available: 1 "
    "Preemption is not helpful for scheduling."
)
CORDON = "node.kubernetes.io/unschedulable"


def taints(play):
    return [each["key"] for each in play.store.get(NODES, Name("", "local-node")).obj["spec"].get("taints", ())]


def change_node(play, **spec):
    found = play.store.get(NODES, Name("", "local-node"))
    play.machinery.update(NODES, found, {**found.obj, "spec": spec})
    play.machinery.settle()


def test_a_cordoned_node_takes_no_more_pods(play):
    assert taints(play) == []
    change_node(play, unschedulable=True)
    assert taints(play) == [CORDON]
    play.apply(single(**container()))
    found = play.get(PODS, "p")
    assert "nodeName" not in found["spec"]
    assert events(play, "FailedScheduling") == [NOT_AVAILABLE.format("were unschedulable")]
    play.apply(workload("DaemonSet"))
    assert play.get(DAEMONS, "web")["status"]["numberReady"] == 1
    change_node(play)
    assert taints(play) == []
    assert play.get(PODS, "p")["spec"]["nodeName"] == "local-node"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("toleration", "runs"),
    [
        ({"key": "a", "value": "b", "effect": "NoSchedule"}, True),
        ({"key": "a", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "a", "value": "c"}, False),
        ({"key": "a", "value": "b", "effect": "NoExecute"}, False),
    ],
)
def test_a_tainted_node_takes_the_pods_that_tolerate_it(play, toleration, runs):
    change_node(play, taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
    play.apply(single(**container(), tolerations=[toleration]))
    assert ("nodeName" in play.get(PODS, "p")["spec"]) == runs
    expected = [] if runs else [NOT_AVAILABLE.format("had untolerated taint(s)")]
    assert events(play, "FailedScheduling") == expected
