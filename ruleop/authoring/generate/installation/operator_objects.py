"""The objects that run the operator in a cluster, except its roles and its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules.operator_choices import Choices

METRICS: Final = 8080
HEALTH: Final = 8081
GRACE: Final = 40
"""Seconds. Longer than --graceful-shutdown-timeout of `ruleop run`."""
FOLDER: Final = "/rules"
CERTIFICATE: Final = "/metrics-tls"
_OF_THE_CLUSTER: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


def labels(choices: Choices) -> dict[str, JSON]:
    return {"app.kubernetes.io/name": choices.name, "app.kubernetes.io/version": choices.version}


def namespace(choices: Choices) -> Iterator[Object]:
    """It admits only pods without privileges, as the operator's are. One in which others have pods is left alone."""
    if choices.namespace in choices.namespaces or choices.namespace in _OF_THE_CLUSTER:
        return
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": choices.namespace, "labels": enforced}}


def operator(choices: Choices, rules: Object | None, variables: Mapping[str, str]) -> Iterator[Object]:
    """The Deployment, or the StatefulSet of shards, and what belongs to its pods. `rules`: the volume of the rules, if
    the image does not hold them."""
    yield _pods(choices, rules, variables)
    ports = [{"name": "metrics", "port": METRICS, "targetPort": "metrics"}]
    yield _object(
        "v1 Service", choices, {"selector": _selector(choices), "ports": ports}, name=f"{choices.name}-metrics"
    )
    if _is_several(choices):
        # Standbys take over for the pod that works; each shard has work of its own.
        least = {"maxUnavailable": 1} if choices.shards else {"minAvailable": 1}
        budget: Object = {**least, "selector": {"matchLabels": _selector(choices)}}
        yield _object("policy/v1 PodDisruptionBudget", choices, budget)
    # Nobody can say in a policy where the API server is, so what the pods send is not limited. The probes of the
    # kubelet need no rule: traffic of the pod's own node is always admitted. What kubectl compares as a whole, such as
    # the list of ports, has the defaults of the API server, or each `kubectl apply` would change it.
    limits: Object = {
        "podSelector": {"matchLabels": _selector(choices)},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": "metrics", "protocol": "TCP"}]}],
    }
    yield _object("networking.k8s.io/v1 NetworkPolicy", choices, limits)


def service_monitor(choices: Choices) -> Object:
    """For the Prometheus operator."""
    endpoint: dict[str, Any] = {"port": "metrics"}
    if choices.metrics_auth:
        endpoint |= {
            "scheme": "https",
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
            "tlsConfig": {
                "ca": {"secret": {"name": f"{choices.name}-metrics-tls", "key": "ca.crt"}},
                "serverName": f"{choices.name}-metrics.{choices.namespace}.svc",
            },
        }
    spec = {"selector": {"matchLabels": _selector(choices)}, "endpoints": [endpoint]}
    return _object("monitoring.coreos.com/v1 ServiceMonitor", choices, spec)


def arguments(choices: Choices) -> list[JSON]:
    """Of the container. What has its default is left out, but not the name: an image may hold another ruleop.yaml."""
    found = ["run", f"--name={choices.name}"]
    if choices.namespaces:
        found.append(f"--namespaces={','.join(choices.namespaces)}")
    if choices.shards:
        found.append("--shards=auto")
    elif choices.leader_elect:
        found.append("--leader-elect")
    if choices.selector:
        found.append(f"--selector={choices.selector}")
    if choices.metrics_auth:
        found += [
            "--metrics-auth",
            f"--metrics-cert={CERTIFICATE}/tls.crt",
            f"--metrics-key={CERTIFICATE}/tls.key",
        ]
    return [*found, *([] if choices.reloads else ["--no-reload"])]


def _is_several(choices: Choices) -> bool:
    return max(choices.replicas, choices.shards) > 1


def _pods(choices: Choices, rules: Object | None, variables: Mapping[str, str]) -> Object:
    volumes, mounts = [], []
    if rules is not None:
        volumes.append({"name": "rules", **rules})
        mounts.append({"name": "rules", "mountPath": FOLDER, "readOnly": True})
    if choices.metrics_auth:
        volumes.append({"name": "metrics-tls", "secret": {"secretName": f"{choices.name}-metrics-tls"}})
        mounts.append({"name": "metrics-tls", "mountPath": CERTIFICATE, "readOnly": True})
    env = [_variable(name, value) for name, value in variables.items()]
    if choices.shards:
        fields = {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}
        env += [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    container: dict[str, Any] = {
        "name": "operator",
        "image": image_of(choices),
        "args": arguments(choices),
        **({"env": env} if env else {}),
        "ports": [{"name": "metrics", "containerPort": METRICS}, {"name": "health", "containerPort": HEALTH}],
        "livenessProbe": _probe("/healthz"),
        "readinessProbe": _probe("/readyz"),
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **({"volumeMounts": mounts} if mounts else {}),
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": _selector(choices)},
    }
    pod: dict[str, Any] = {
        "serviceAccountName": choices.name,
        "terminationGracePeriodSeconds": GRACE,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        **({"topologySpreadConstraints": [spread]} if _is_several(choices) else {}),
        "containers": [container],
        **({"volumes": volumes} if volumes else {}),
    }
    spec: dict[str, Any] = {
        "selector": {"matchLabels": _selector(choices)},
        # Without the version, so that changed rules need not replace the pods.
        "template": {"metadata": {"labels": _selector(choices)}, "spec": pod},
    }
    if choices.shards:
        named = {"serviceName": f"{choices.name}-metrics", "podManagementPolicy": "Parallel"}
        return _object("apps/v1 StatefulSet", choices, {"replicas": choices.shards, **named, **spec})
    strategy = {} if choices.leader_elect else {"strategy": {"type": "Recreate"}}
    return _object("apps/v1 Deployment", choices, {"replicas": choices.replicas, **strategy, **spec})


def image_of(choices: Choices) -> str:
    repository, tag, digest = choices.image_parts
    return repository + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


def _variable(name: str, value: str) -> Object:
    """With each $ twice: the kubelet replaces $(NAME). The API server stores no empty value."""
    return {"name": name, "value": value.replace("$", "$$")} if value else {"name": name}


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": "health"}, "timeoutSeconds": 5}


def _selector(choices: Choices) -> dict[str, JSON]:
    return {"app.kubernetes.io/name": choices.name}


def _object(what: str, choices: Choices, spec: Object, *, name: str = "") -> Object:
    version, kind = what.split()
    metadata = {"name": name or choices.name, "namespace": choices.namespace, "labels": labels(choices)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
