"""Objects and statuses that print differently: of pods that wait, fail, restart and end, of Jobs, volumes and
autoscalers."""

from __future__ import annotations

from typing import Any

from ruleop.kubernetes.kinds import Kind

LONG_AGO, LATER = "2020-01-01T00:00:00Z", "2020-01-01T00:05:30Z"
POD_SPEC: dict[str, Any] = {"containers": [{"name": "app", "image": "app:1"}, {"name": "log", "image": "log:2"}]}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "x", "tier": "web"}}, "spec": POD_SPEC}
SELECTOR: dict[str, Any] = {
    "matchLabels": {"app": "x"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["web", "api"]},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "app", "operator": "Exists"},
        {"key": "zone", "operator": "NotIn", "values": ["b", "a"]},
    ],
}
INIT = {"initContainers": [{"name": "first", "image": "i:1"}, {"name": "second", "image": "i:2"}]}
SIDECAR = {
    "initContainers": [
        {"name": "side", "image": "s:1", "restartPolicy": "Always"},
        {"name": "second", "image": "i:2"},
    ]
}


def container(name: str, *, ready: bool = False, restarts: int = 0, ended: str = "", **state: Any) -> dict[str, Any]:
    found = {
        "name": name,
        "image": "x",
        "imageID": "",
        "ready": ready,
        "restartCount": restarts,
        "state": {key: value for key, value in state.items() if key != "started"},
    }
    if ended:
        found["lastState"] = {"terminated": {"exitCode": 1, "finishedAt": ended}}
    return {**found, **({"started": state["started"]} if "started" in state else {})}


RUNNING: dict[str, Any] = {"running": {"startedAt": LONG_AGO}}


def is_true(*types: str) -> list[dict[str, Any]]:
    return [{"type": each, "status": "True"} for each in types]


def ended(**terminated: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": 0, **terminated}}


POD_STATUSES: list[dict[str, Any]] = [
    {},
    {"phase": "Pending"},
    {"phase": "Failed", "reason": "Evicted"},
    {"phase": "Succeeded"},
    {
        "phase": "Running",
        "podIPs": [{"ip": "10.0.0.7"}],
        "conditions": is_true("Ready", "Initialized", "example.com/up"),
        "containerStatuses": [
            container("app", ready=True, restarts=3, ended=LONG_AGO, **RUNNING),
            container("log", ready=True, restarts=1, ended=LATER, **RUNNING),
        ],
    },
    {"phase": "Running", "containerStatuses": [container("app", ready=True, restarts=2, **RUNNING)]},
    *(
        {"phase": "Running", "conditions": conditions, "containerStatuses": [container("app", **state), other]}
        for conditions in ([], is_true("Ready"))
        for other in (container("log", ready=True, **RUNNING), container("log", **ended(reason="Completed")))
        for state in (
            {"waiting": {"reason": "CrashLoopBackOff"}},
            ended(reason="Completed"),
            ended(reason="Error", exitCode=2),
            ended(exitCode=2),
        )
    ),
]
INIT_STATUSES: list[dict[str, Any]] = [
    {"phase": "Pending", "initContainerStatuses": [first, second], **others}
    for others in (
        {"nominatedNodeName": "n"},
        {"containerStatuses": [container("app", waiting={"reason": "PodInitializing"})]},
    )
    for first, second in (
        (container("first", restarts=2, ended=LONG_AGO, **RUNNING), container("second")),
        (container("first", **ended()), container("second", restarts=1, **RUNNING)),
        (container("first", **ended()), container("second", **ended())),
        (container("first", **ended(exitCode=1)), container("second", restarts=7)),
        (container("first", **ended(exitCode=1, reason="Error")), container("second")),
        (container("first", waiting={"reason": "ImagePullBackOff"}), container("second")),
        (container("first", waiting={"reason": "PodInitializing"}), container("second")),
    )
]
SIDECAR_STATUSES: list[dict[str, Any]] = [
    {
        "phase": "Running",
        "initContainerStatuses": [side, second],
        "containerStatuses": [container("app", ready=True, **RUNNING)],
    }
    for side in (
        container("side", ready=True, started=True, restarts=4, ended=LATER, **RUNNING),
        container("side", started=True, **RUNNING),
        container("side", started=False, **RUNNING),
        container("side", started=True, ready=True, **ended()),
    )
    for second in (container("second", **ended()), container("second", restarts=2, ended=LONG_AGO, **RUNNING))
]


def named(name: str, spec: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **others}, "spec": spec}


REPLICAS = {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "updatedReplicas": 3, "observedGeneration": 1}
SET_STATUS = {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "observedGeneration": 1}
PORTS = [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}]

STATUSES: dict[Kind, list[tuple[dict[str, Any], list[dict[str, Any]]]]] = {
    Kind("", "v1", "Pod"): [
        (
            named(
                "plain",
                {
                    **POD_SPEC,
                    "nodeName": "n",
                    "readinessGates": [{"conditionType": "example.com/up"}, {"conditionType": "example.com/in"}],
                },
            ),
            POD_STATUSES,
        ),
        (named("init", {**POD_SPEC, **INIT}), INIT_STATUSES),
        (named("sidecar", {**POD_SPEC, **SIDECAR}), SIDECAR_STATUSES),
    ],
    Kind("apps", "v1", "Deployment"): [
        (named("d", {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}), [{}, REPLICAS]),
        (named("zero", {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE}), [{}]),
    ],
    Kind("apps", "v1", "ReplicaSet"): [
        (named("r", {"selector": SELECTOR, "template": TEMPLATE}), [{"replicas": 0}, SET_STATUS])
    ],
    Kind("apps", "v1", "StatefulSet"): [
        (named("s", {"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE}), [{"replicas": 0}, SET_STATUS])
    ],
    Kind("apps", "v1", "DaemonSet"): [
        (
            named(
                "d",
                {
                    "selector": SELECTOR,
                    "template": {**TEMPLATE, "spec": {**POD_SPEC, "nodeSelector": {"b": "1", "a": "2"}}},
                },
            ),
            [
                {"currentNumberScheduled": 1, "numberMisscheduled": 0, "desiredNumberScheduled": 5, "numberReady": 2},
                {
                    "currentNumberScheduled": 1,
                    "numberMisscheduled": 0,
                    "desiredNumberScheduled": 5,
                    "numberReady": 2,
                    "updatedNumberScheduled": 3,
                    "numberAvailable": 4,
                },
            ],
        )
    ],
    Kind("batch", "v1", "Job"): [
        (
            named("j", {**spec, "template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}),
            [
                {},
                {"startTime": LONG_AGO, "active": 1},
                {"startTime": LONG_AGO, "conditions": is_true("Suspended")},
                {"startTime": LONG_AGO, "conditions": is_true("FailureTarget")},
                {"startTime": LONG_AGO, "failed": 1, "conditions": [*is_true("FailureTarget"), *is_true("Failed")]},
                {"startTime": LONG_AGO, "succeeded": 2, "conditions": is_true("SuccessCriteriaMet")},
                {
                    "startTime": LONG_AGO,
                    "completionTime": LATER,
                    "succeeded": 2,
                    "conditions": [*is_true("SuccessCriteriaMet"), *is_true("Complete")],
                },
            ],
        )
        for spec in ({"completions": 2}, {"parallelism": 3})
    ],
    Kind("batch", "v1", "CronJob"): [
        (
            named(
                "c",
                {
                    "schedule": "*/5 * * * *",
                    "timeZone": "Europe/Rome",
                    "suspend": True,
                    "jobTemplate": {"spec": {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}},
                },
            ),
            [
                {},
                {"lastScheduleTime": LONG_AGO, "active": [{"kind": "Job", "name": "a"}, {"kind": "Job", "name": "b"}]},
            ],
        )
    ],
    Kind("", "v1", "Service"): [
        (named("one", {"ports": PORTS, "selector": {"b": "1", "a": "2"}, "externalIPs": ["1.2.3.4", "1.2.3.5"]}), [{}]),
        (named("headless", {"clusterIP": "None"}), [{}]),
        (named("external", {"type": "ExternalName", "externalName": "example.com"}), [{}]),
        *(
            (
                named("balanced", {"type": "LoadBalancer", "ports": PORTS, **more}),
                [
                    {},
                    {
                        "loadBalancer": {
                            "ingress": [{"ip": "9.9.9.9"}, {"hostname": "b.example.com"}, {"ip": "1.1.1.1"}]
                        }
                    },
                ],
            )
            for more in ({}, {"externalIPs": ["1.2.3.4"]})
        ),
        (named("nodes", {"type": "NodePort", "ports": PORTS}), [{}]),
    ],
    Kind("networking.k8s.io", "v1", "Ingress"): [
        (
            named("i", {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}, **more}),
            [{}, {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "a.example.com"}]}}],
        )
        for more in (
            {},
            {"rules": [{"host": f"{each}.example.com"} for each in "abcde"], "tls": [{"secretName": "s"}]},
            {"rules": [{"host": "a.example.com"}, {}], "ingressClassName": "c"},
        )
    ],
    Kind("", "v1", "PersistentVolumeClaim"): [
        (
            named("c", {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **more}),
            [
                {"phase": "Pending"},
                {
                    "phase": "Bound",
                    "capacity": {"storage": "2Gi"},
                    "accessModes": ["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"],
                },
            ],
        )
        for more in ({}, {"volumeName": "v", "storageClassName": "fast"})
    ],
    Kind("", "v1", "PersistentVolume"): [
        (
            named(
                "printed-volume",
                {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOncePod"],
                    "hostPath": {"path": "/x"},
                    "persistentVolumeReclaimPolicy": "Delete",
                },
            ),
            [{"phase": "Available"}, {"phase": "Failed", "reason": "Bad"}],
        )
    ],
    Kind("", "v1", "Node"): [
        (
            {"metadata": {"name": "printed-node", "labels": labels}, "spec": spec},
            [
                {},
                {
                    "addresses": [
                        {"type": "InternalIP", "address": "10.1.1.1"},
                        {"type": "ExternalIP", "address": "5.5.5.5"},
                    ],
                    "conditions": [{"type": "Ready", "status": ready}],
                    "nodeInfo": {
                        **dict.fromkeys(
                            ("machineID", "systemUUID", "bootID", "kubeProxyVersion", "operatingSystem"), ""
                        ),
                        "kernelVersion": "6.1",
                        "osImage": "Linux",
                        "containerRuntimeVersion": "c://1",
                        "kubeletVersion": "v1",
                        "architecture": "amd64",
                    },
                },
            ],
        )
        for labels, spec, ready in (
            ({}, {}, "True"),
            (
                {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/a": ""},
                {"unschedulable": True},
                "Unknown",
            ),
        )
    ],
}

INVOLVED = {"kind": "Pod", "name": "p", "namespace": "tables", "fieldPath": "spec.containers{app}"}


def event(**fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "rich"},
        "involvedObject": INVOLVED,
        "reason": "Started",
        "message": " started\n",
        "type": "Normal",
        **fields,
    }


MORE: list[dict[str, Any]] = [
    event(firstTimestamp=LONG_AGO, lastTimestamp=LATER, count=4, source={"component": "kubelet", "host": "n"}),
    event(firstTimestamp=LONG_AGO, source={"component": "kubelet"}),
    event(source={"component": "kubelet"}),
    {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "rich"},
        "regarding": INVOLVED,
        "eventTime": "2020-01-01T00:00:00.000000Z",
        "series": {"count": 3, "lastObservedTime": "2020-01-01T00:00:30.000000Z"},
        "reason": "Started",
        "action": "Start",
        "note": "started",
        "type": "Warning",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "rich"},
        "stringData": {"a": "b"},
        "data": {"c": "ZA=="},
    },
]


def column(name: str, of_type: str, path: str, **others: Any) -> dict[str, Any]:
    return {"name": name, "type": of_type, "jsonPath": path, **others}


COLUMNS: list[dict[str, Any]] = [
    column("Size", "integer", ".spec.size", description="How large.", priority=1),
    column("Size as text", "string", ".spec.size"),
    column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
    column("Reason", "string", ".status.conditions[?(@.status=='False')].reason"),
    column("Since", "date", ".status.since", format="date-time"),
    column("Label", "string", r".metadata.labels.example\.com/a\.b"),
    column("First", "string", ".spec.items[0].name"),
    column("All", "string", ".spec.items[*].name"),
    column("Map", "string", ".spec.map"),
    column("List", "string", ".spec.items"),
    column("Flag", "boolean", ".spec.flag"),
    column("Flag as text", "string", ".spec.flag"),
    column("Fraction", "number", ".spec.fraction"),
    column("Fraction as text", "string", ".spec.fraction"),
    column("Fraction as integer", "integer", ".spec.fraction"),
    column("Nothing", "string", ".spec.nothing"),
    column("Age", "date", ".metadata.creationTimestamp"),
]
CUSTOM: list[dict[str, Any]] = [
    {"metadata": {"name": "a"}},
    {
        "metadata": {"name": "a", "labels": {"example.com/a.b": "c"}},
        "spec": {
            "size": 3,
            "flag": True,
            "fraction": 2.5,
            "map": {"b": 1, "a": [1, "x"]},
            "items": [{"name": "one", "size": 4}, {"name": "two", "size": 7}, {"name": "three"}],
            "nothing": None,
        },
        "status": {
            "since": LONG_AGO,
            "conditions": [
                {"type": "Other", "status": "False", "reason": "Why"},
                {"type": "Ready", "status": "True"},
                {"type": "Third", "status": "False"},
            ],
        },
    },
    {
        "metadata": {"name": "a"},
        "spec": {"size": "3", "flag": "yes", "fraction": 3, "map": [], "items": {}, "nothing": ""},
        "status": {"since": "soon", "conditions": []},
    },
    {"metadata": {"name": "a"}, "spec": {"size": True, "flag": False, "fraction": 0.5, "map": {}, "items": []}},
    {"metadata": {"name": "a"}, "spec": {"size": 2.0, "fraction": 0.25, "map": "text", "items": [1]}},
]
