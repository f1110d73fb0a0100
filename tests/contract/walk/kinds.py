"""Random objects of the kinds that rules use."""

from __future__ import annotations

from tests.contract.walk.making import EXPRESSIONS, NAME, STRINGS, TRUTH, fields, items, one_of
from tests.contract.walk.network import INGRESS, POLICY, SERVICE
from tests.contract.walk.pods import POD, QUANTITY, TEMPLATE

METADATA = fields(
    {},
    {
        "labels": STRINGS,
        "annotations": STRINGS,
        "finalizers": items(one_of("x.y/a", "x.y/b")),
        "ownerReferences": items(
            fields({"apiVersion": "v1", "kind": "ConfigMap", "name": NAME, "uid": one_of("u1", "u2")}), keys=("uid",)
        ),
    },
)
_SELECTS_ITS_PODS = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
_CLAIM = fields(
    {
        "accessModes": items(one_of("ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod"), least=1),
        "resources": fields({"requests": fields({"storage": QUANTITY})}),
    },
    {
        "storageClassName": NAME,
        "volumeMode": one_of("Filesystem", "Block"),
        "selector": EXPRESSIONS,
        "volumeName": NAME,
        "dataSource": fields({"kind": one_of("PersistentVolumeClaim", "A"), "name": NAME}, {"apiGroup": "a.b"}),
    },
)
_JOB = fields(
    {
        "template": fields(
            {"spec": lambda chance: {**POD(chance), "restartPolicy": chance.value(one_of("Never", "OnFailure"))}},
            {"metadata": fields({"labels": STRINGS})},
        )
    },
    {
        "backoffLimit": 3,
        "completions": one_of(1, 2),
        "parallelism": one_of(1, 2),
        "suspend": TRUTH,
        "ttlSecondsAfterFinished": 5,
        "activeDeadlineSeconds": one_of(5, 9),
    },
)
_METRIC = one_of(
    fields({"type": "Resource", "resource": fields({"name": one_of("cpu", "memory"), "target": one_of(
        {"type": "Utilization", "averageUtilization": 50},
        {"type": "Utilization", "averageUtilization": 0},
        fields({"type": "AverageValue", "averageValue": QUANTITY}),
    )})}),
    fields({"type": "Pods", "pods": fields({
        "metric": fields({"name": NAME}, {"selector": EXPRESSIONS}),
        "target": fields({"type": "AverageValue", "averageValue": QUANTITY}),
    })}),
    fields({"type": "External", "external": fields({
        "metric": fields({"name": NAME}),
        "target": one_of(fields({"type": "Value", "value": QUANTITY}), {"type": "Value"}),
    })}),
    fields({"type": "ContainerResource", "containerResource": fields({
        "name": "cpu", "container": NAME, "target": {"type": "Utilization", "averageUtilization": 50},
    })}),
)  # fmt: skip
_SCALING = fields({}, {
    "stabilizationWindowSeconds": one_of(5, 4000),
    "selectPolicy": one_of("Max", "Min", "Disabled"),
    "policies": items(fields({"type": one_of("Pods", "Percent"), "value": one_of(1, 0), "periodSeconds": one_of(5, 2000)})),
})  # fmt: skip
AUTOSCALER = fields(
    {
        "maxReplicas": one_of(1, 5),
        "scaleTargetRef": fields({"apiVersion": one_of("apps/v1", "v1"), "kind": "Deployment", "name": NAME}),
    },
    {
        "minReplicas": one_of(0, 1, 2),
        "metrics": items(_METRIC, least=1),
        "behavior": fields({}, {"scaleDown": _SCALING, "scaleUp": _SCALING}),
    },
)
_SUBJECT = one_of(
    fields({"kind": "ServiceAccount", "name": NAME, "namespace": NAME}),
    fields({"kind": "User", "name": NAME, "apiGroup": "rbac.authorization.k8s.io"}),
)
_REFERENCES = items(fields({"name": NAME}), keys=("name",))

# What is added for the service account of a pod is added by the real server only if its controllers run.
_ACCOUNT = {"automountServiceAccountToken": False, "serviceAccountName": "a"}

# By the kind's plural: its apiVersion, kind, and everything but the metadata.
KINDS = {
    "configmaps": (
        "v1", "ConfigMap",
        fields({}, {"data": one_of(STRINGS, {"a b": "c"}, {"..": "c"}), "binaryData": fields({"e": "YQ=="}), "immutable": one_of(True, False, False)}),
    ),
    "secrets": (
        "v1", "Secret",
        fields({}, {
            "data": fields({}, {
                "a": one_of("YQ==", "?"),
                "username": "YQ==",
                "tls.crt": "YQ==",
                "tls.key": "YQ==",
                ".dockerconfigjson": one_of("YQ==", "e30="),
            }),
            "stringData": fields({}, {"a": NAME, "username": NAME, ".dockercfg": one_of("a", "{}")}),
            "immutable": one_of(True, False, False),
            "type": one_of(
                "Opaque", "kubernetes.io/tls", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth",
                "kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson", "a/b",
            ),
        }),
    ),
    "serviceaccounts": (
        "v1", "ServiceAccount",
        fields({}, {"secrets": _REFERENCES, "imagePullSecrets": _REFERENCES, "automountServiceAccountToken": TRUTH}),
    ),
    "pods": ("v1", "Pod", fields({"spec": lambda chance: {**POD(chance), **_ACCOUNT}})),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim", fields({"spec": _CLAIM})),
    "services": ("v1", "Service", fields({"spec": SERVICE})),
    "deployments": (
        "apps/v1", "Deployment",
        fields({"spec": fields(_SELECTS_ITS_PODS, {
            "replicas": one_of(0, 1, 2, 5),
            "strategy": one_of(
                {"type": "Recreate"}, {"type": "RollingUpdate"},
                fields({"rollingUpdate": fields({"maxSurge": one_of(1, "50%"), "maxUnavailable": 0})}),
            ),
            "revisionHistoryLimit": 2,
            "paused": True,
            "minReadySeconds": one_of(0, 3),
            "progressDeadlineSeconds": one_of(2, 600),
        })}),
    ),
    "statefulsets": (
        "apps/v1", "StatefulSet",
        fields({"spec": fields(_SELECTS_ITS_PODS, {
            "replicas": one_of(0, 1, 2),
            "serviceName": NAME,
            "podManagementPolicy": one_of("Parallel", "OrderedReady"),
            "updateStrategy": one_of(
                {"type": "OnDelete"}, {"type": "RollingUpdate"}, {"rollingUpdate": {"partition": 1}},
            ),
            "volumeClaimTemplates": items(fields({"metadata": fields({"name": NAME}), "spec": _CLAIM}), most=1),
        })}),
    ),
    "daemonsets": (
        "apps/v1", "DaemonSet",
        fields({"spec": fields(_SELECTS_ITS_PODS, {
            "minReadySeconds": 2,
            "updateStrategy": one_of(
                {"type": "OnDelete"}, fields({"rollingUpdate": fields({"maxUnavailable": one_of(1, "20%")})}),
            ),
        })}),
    ),
    "jobs": ("batch/v1", "Job", fields({"spec": _JOB})),
    "cronjobs": (
        "batch/v1", "CronJob",
        fields({"spec": fields(
            {"schedule": one_of("* * * * *", "@daily", "61 * * * *", "bad"), "jobTemplate": fields({"spec": _JOB})},
            {
                "suspend": True,
                "concurrencyPolicy": one_of("Forbid", "Allow"),
                "timeZone": one_of("Etc/UTC", "Bad/Zone"),
                "successfulJobsHistoryLimit": 1,
            },
        )}),
    ),
    "ingresses": ("networking.k8s.io/v1", "Ingress", fields({"spec": INGRESS})),
    "networkpolicies": ("networking.k8s.io/v1", "NetworkPolicy", fields({"spec": POLICY})),
    "poddisruptionbudgets": (
        "policy/v1", "PodDisruptionBudget",
        fields({"spec": fields({"selector": EXPRESSIONS}, {
            "minAvailable": one_of(1, "50%", "101%", -1),
            "maxUnavailable": one_of(1, "10%", "x"),
            "unhealthyPodEvictionPolicy": one_of("AlwaysAllow", "IfHealthyBudget"),
        })}),
    ),
    "horizontalpodautoscalers": ("autoscaling/v2", "HorizontalPodAutoscaler", fields({"spec": AUTOSCALER})),
    "roles": (
        "rbac.authorization.k8s.io/v1", "Role",
        fields({}, {"rules": items(fields({}, {
            "apiGroups": items(one_of("", "apps"), least=1),
            "resources": items(one_of("pods", "secrets"), least=1),
            "verbs": items(one_of("get", "list"), least=1),
            "resourceNames": items(NAME, least=1),
            "nonResourceURLs": ["/a"],
        }), least=1)}),
    ),
    "rolebindings": (
        "rbac.authorization.k8s.io/v1", "RoleBinding",
        fields(
            {"roleRef": fields(
                {"apiGroup": "rbac.authorization.k8s.io", "kind": one_of("Role", "ClusterRole"), "name": NAME}
            )},
            {"subjects": items(_SUBJECT)},
        ),
    ),
    "leases": (
        "coordination.k8s.io/v1", "Lease",
        fields({"spec": fields({}, {
            "holderIdentity": NAME, "leaseDurationSeconds": one_of(5, 0), "leaseTransitions": one_of(1, -1),
        })}),
    ),
    "widgets": (
        "contract.example.com/v1", "Widget",
        fields({"spec": fields({"size": one_of(1, 3, 11)}, {
            "colour": one_of("red", "blue", "green"),
            "replicas": 2,
            "tags": items(NAME),
            "parts": items(fields({"name": NAME}, {"count": 2}), keys=("name",)),
            "options": fields({}, {"a": {"b": [1, {"c": "d"}]}, "d": 1}),
            "port": one_of(80, "http"),
            "labels": STRINGS,
            "note": NAME,
        })}),
    ),
}  # fmt: skip
