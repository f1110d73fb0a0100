"""Random objects of the kinds that rules use."""

from __future__ import annotations

from tests.contract.walk.making import NAME, SELECTOR, STRINGS, TRUTH, fields, items, one_of
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
        "accessModes": items(one_of("ReadWriteOnce", "ReadOnlyMany"), least=1),
        "resources": fields({"requests": fields({"storage": QUANTITY})}),
    },
    {"storageClassName": NAME, "volumeMode": "Filesystem"},
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
_BACKEND = fields({"service": fields({"name": NAME, "port": one_of({"number": 80}, {"name": "a"})})})
_SERVICE_PORT = fields(
    {"port": one_of(80, 81, 443), "name": NAME},
    {"protocol": one_of("TCP", "UDP"), "targetPort": one_of(80, "a"), "appProtocol": "http"},
)
_PEER = one_of(
    fields({"podSelector": SELECTOR}),
    fields({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}),
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
        fields({}, {"data": STRINGS, "binaryData": fields({"e": "YQ=="}), "immutable": one_of(True, False, False)}),
    ),
    "secrets": (
        "v1", "Secret",
        fields({}, {
            "data": fields({}, {"a": one_of("YQ==", "YWI="), "b": one_of("YQ==", "?")}),
            "stringData": STRINGS,
            "type": one_of("Opaque", "kubernetes.io/tls", "kubernetes.io/basic-auth"),
        }),
    ),
    "serviceaccounts": (
        "v1", "ServiceAccount",
        fields({}, {"secrets": _REFERENCES, "imagePullSecrets": _REFERENCES, "automountServiceAccountToken": TRUTH}),
    ),
    "pods": ("v1", "Pod", fields({"spec": lambda chance: {**POD(chance), **_ACCOUNT}})),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim", fields({"spec": _CLAIM})),
    "services": (
        "v1", "Service",
        fields({"spec": fields({"ports": items(_SERVICE_PORT, least=1, most=3, keys=("port", "protocol"))}, {
            "selector": STRINGS,
            "type": one_of("ClusterIP", "LoadBalancer", "ExternalName"),
            "externalIPs": items(one_of("1.2.3.4", "5.6.7.8")),
            "sessionAffinity": one_of("None", "ClientIP"),
            "clusterIP": one_of("None", ""),
            "loadBalancerSourceRanges": ["10.0.0.0/8"],
            "publishNotReadyAddresses": True,
            "externalName": "a.example.com",
            "externalTrafficPolicy": one_of("Local", "Cluster"),
            "internalTrafficPolicy": "Local",
        })}),
    ),
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
    "ingresses": (
        "networking.k8s.io/v1", "Ingress",
        fields({"spec": fields({}, {
            "rules": items(fields({}, {
                "host": one_of("a.b", "*.c.d"),
                "http": fields({"paths": items(fields(
                    {"pathType": one_of("Prefix", "Exact"), "backend": _BACKEND}, {"path": one_of("/", "/a", "x")},
                ), least=1)}),
            }), least=1),
            "tls": items(fields({}, {"hosts": ["a.b"], "secretName": NAME})),
            "ingressClassName": NAME,
            "defaultBackend": _BACKEND,
        })}),
    ),
    "networkpolicies": (
        "networking.k8s.io/v1", "NetworkPolicy",
        fields({"spec": fields({"podSelector": SELECTOR}, {
            "policyTypes": items(one_of("Ingress", "Egress"), least=1),
            "ingress": items(fields({}, {
                "from": items(_PEER, least=1),
                "ports": items(fields({}, {"port": one_of(80, "a"), "protocol": "TCP"})),
            })),
        })}),
    ),
    "poddisruptionbudgets": (
        "policy/v1", "PodDisruptionBudget",
        fields({"spec": fields({"selector": SELECTOR}, {
            "minAvailable": one_of(1, "50%"),
            "maxUnavailable": one_of(1, "10%"),
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        })}),
    ),
    "horizontalpodautoscalers": (
        "autoscaling/v2", "HorizontalPodAutoscaler",
        fields({"spec": fields(
            {
                "maxReplicas": one_of(1, 5),
                "scaleTargetRef": fields({"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME}),
            },
            {
                "minReplicas": one_of(1, 2),
                "metrics": items(fields({"type": "Resource", "resource": fields({
                    "name": one_of("cpu", "memory"),
                    "target": one_of(
                        {"type": "Utilization", "averageUtilization": 50},
                        fields({"type": "AverageValue", "averageValue": QUANTITY}),
                    ),
                })})),
                "behavior": fields({"scaleDown": fields({}, {
                    "stabilizationWindowSeconds": 5,
                    "policies": items({"type": "Pods", "value": 1, "periodSeconds": 5}),
                })}),
            },
        )}),
    ),
    "roles": (
        "rbac.authorization.k8s.io/v1", "Role",
        fields({}, {"rules": items(fields(
            {
                "apiGroups": items(one_of("", "apps"), least=1),
                "resources": items(one_of("pods", "secrets"), least=1),
                "verbs": items(one_of("get", "list"), least=1),
            },
            {"resourceNames": items(NAME)},
        ))}),
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
