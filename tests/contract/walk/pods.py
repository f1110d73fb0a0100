"""Random pods and templates of pods."""

from __future__ import annotations

from tests.contract.walk.making import NAME, SELECTOR, STRINGS, TRUTH, fields, items, one_of

QUANTITY = one_of("100m", "1", "0.5", "1Gi", "1024Mi", "1500m", "2k", 1)
_AMOUNTS = fields({}, {"cpu": QUANTITY, "memory": QUANTITY})
_PROBE = one_of(
    fields({"httpGet": {"path": "/", "port": 80}}, {"periodSeconds": one_of(1, 5)}),
    fields({"httpGet": {"port": "a"}}, {"timeoutSeconds": 2}),
    fields({"exec": {"command": ["a"]}}, {"initialDelaySeconds": 3}),
    fields({"tcpSocket": {"port": 80}}),
)
_VARIABLE = one_of(
    fields({"name": NAME}, {"value": NAME}),
    fields({"name": NAME, "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}),
    fields({"name": NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
)
_PORT = fields({"containerPort": one_of(80, 81, 443)}, {"name": NAME, "protocol": one_of("TCP", "UDP")})
CONTAINER = fields(
    {"name": NAME, "image": one_of("i:1", "i:2")},
    {
        "ports": items(_PORT, keys=("containerPort", "protocol")),
        "env": items(_VARIABLE, keys=("name",)),
        "resources": fields({}, {"requests": _AMOUNTS, "limits": _AMOUNTS}),
        "command": items(NAME),
        "args": items(NAME),
        "volumeMounts": [],
        "livenessProbe": _PROBE,
        "readinessProbe": _PROBE,
        "imagePullPolicy": one_of("Always", "IfNotPresent"),
        "securityContext": fields({}, {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}}),
        "workingDir": NAME,
        "terminationMessagePolicy": "File",
    },
)
_VOLUME = one_of(
    fields({"name": NAME, "emptyDir": {}}),
    fields({"name": NAME}),
    fields(
        {"name": NAME, "configMap": fields({"name": NAME}, {"items": [{"key": "a", "path": "b"}], "defaultMode": 420})}
    ),
    fields({"name": NAME, "secret": fields({"secretName": NAME})}),
    fields({"name": NAME, "persistentVolumeClaim": fields({"claimName": NAME})}),
)
_TOLERATION = fields(
    {},
    {
        "key": NAME,
        "operator": one_of("Exists", "Equal"),
        "value": NAME,
        "effect": one_of("NoSchedule", "NoExecute"),
        "tolerationSeconds": 5,
    },
)
_SPREAD = fields(
    {
        "maxSkew": one_of(1, 2),
        "topologyKey": NAME,
        "whenUnsatisfiable": one_of("DoNotSchedule", "ScheduleAnyway"),
    },
    {"labelSelector": SELECTOR},
)
POD = fields(
    {"containers": items(CONTAINER, least=1, keys=("name",))},
    {
        "initContainers": items(CONTAINER, most=1),
        "volumes": items(_VOLUME, keys=("name",)),
        "tolerations": items(_TOLERATION),
        "imagePullSecrets": items(fields({"name": NAME}), keys=("name",)),
        "hostAliases": items(fields({"ip": one_of("1.2.3.4", "1.2.3.5"), "hostnames": items(NAME)}), keys=("ip",)),
        "topologySpreadConstraints": items(_SPREAD, keys=("topologyKey", "whenUnsatisfiable")),
        "nodeSelector": STRINGS,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": one_of(0, 5, 30),
        "serviceAccountName": NAME,
        "securityContext": fields({}, {"fsGroup": 1, "runAsNonRoot": True}),
        "hostNetwork": TRUTH,
        "priority": 0,
        "dnsPolicy": one_of("Default", "ClusterFirst"),
    },
)
TEMPLATE = fields(
    {"metadata": fields({"labels": lambda chance: {"app": "a", **(STRINGS(chance) if chance.happens(0.4) else {})}}),
     "spec": POD}
)  # fmt: skip
