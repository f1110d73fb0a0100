"""Charts as functions: what Helm would render for values, as charts of these sorts do it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from ruleop.authoring.offline.documents import Document, documents_in
from ruleop.authoring.scaffold.manifests.chart_values import merged
from ruleop.authoring.scaffold.manifests.compared_project import Rendering

Chart = Callable[[dict[str, Any]], list[dict[str, Any]]]

RELEASE = "web"


def rendering(chart: Chart, defaults: dict[str, Any], values: dict[str, Any], name: str) -> Rendering:
    """A rendering as `ruleop init` reads it; `values` are over the defaults."""
    objects = chart(copy.deepcopy(merged(defaults, values)))
    found: list[Document] = []
    for number, each in enumerate(objects):
        documents, mistakes = documents_in(json.dumps(without_nothing(each)), f"{name}-{number}.json")
        assert mistakes == []
        found += documents
    return Rendering(found, values or defaults, name)


def without_nothing(value: Any) -> Any:
    """The value without what a chart leaves out."""
    if isinstance(value, dict):
        return {key: without_nothing(each) for key, each in value.items() if each is not None}
    return [without_nothing(each) for each in value] if isinstance(value, list) else value


def labels(**more: str) -> dict[str, str]:
    own = {"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": RELEASE}
    return {"helm.sh/chart": "web-0.1.0", **own, "app.kubernetes.io/managed-by": "Helm", **more}


def selector() -> dict[str, str]:
    return {"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": RELEASE}


def obj(api_version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": labels()}, **rest}


# -- a web application, as `helm create` begins it ---------------------------------------------------------------------

WEB: dict[str, Any] = {
    "replicaCount": 1,
    "image": {"repository": "nginx", "tag": "", "pullPolicy": "IfNotPresent"},
    "serviceAccount": {"create": True, "name": ""},
    "service": {"type": "ClusterIP", "port": 80},
    "ingress": {"enabled": False, "className": "", "hosts": [{"host": "a.local", "paths": [{"path": "/"}]}], "tls": []},
    "resources": {},
    "autoscaling": {"enabled": False, "minReplicas": 1, "maxReplicas": 100, "targetCPU": 80},
    "podLabels": {},
    "nodeSelector": {},
    "tolerations": [],
    "extraEnv": [],
}


def web(values: dict[str, Any]) -> list[dict[str, Any]]:
    image, service, scaling, ingress = (values[name] for name in ("image", "service", "autoscaling", "ingress"))
    account = values["serviceAccount"]["name"] or (RELEASE if values["serviceAccount"]["create"] else "default")
    container = {
        "name": "web",
        "image": f"{image['repository']}:{image['tag'] or '1.16.0'}",
        "imagePullPolicy": image["pullPolicy"],
        "env": [{"name": "MODE", "value": "prod"}, *values["extraEnv"]],
        "ports": [{"name": "http", "containerPort": service["port"], "protocol": "TCP"}],
        "resources": values["resources"],
    }
    pod = {
        "metadata": {"labels": {**labels(), **values["podLabels"]}},
        "spec": {
            "serviceAccountName": account,
            "containers": [container],
            "nodeSelector": values["nodeSelector"] or None,
            "tolerations": values["tolerations"] or None,
        },
    }
    deployment = {
        "replicas": None if scaling["enabled"] else values["replicaCount"],
        "selector": {"matchLabels": selector()},
        "template": pod,
    }
    ports = [{"port": service["port"], "targetPort": "http", "protocol": "TCP", "name": "http"}]
    found = [
        obj("apps/v1", "Deployment", RELEASE, spec=deployment),
        obj("v1", "Service", RELEASE, spec={"type": service["type"], "ports": ports, "selector": selector()}),
    ]
    if values["serviceAccount"]["create"]:
        found.append(obj("v1", "ServiceAccount", account))
    if scaling["enabled"]:
        target = {"type": "Utilization", "averageUtilization": scaling["targetCPU"]}
        spec = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": RELEASE},
            "minReplicas": scaling["minReplicas"],
            "maxReplicas": scaling["maxReplicas"],
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        }
        found.append(obj("autoscaling/v2", "HorizontalPodAutoscaler", RELEASE, spec=spec))
    if ingress["enabled"]:
        backend = {"service": {"name": RELEASE, "port": {"number": service["port"]}}}
        rules = [
            {
                "host": host["host"],
                "http": {
                    "paths": [
                        {"path": each["path"], "pathType": "Prefix", "backend": copy.deepcopy(backend)}
                        for each in host["paths"]
                    ]
                },
            }
            for host in ingress["hosts"]
        ]
        spec = {"ingressClassName": ingress["className"] or None, "tls": ingress["tls"] or None, "rules": rules}
        found.append(obj("networking.k8s.io/v1", "Ingress", RELEASE, spec=spec))
    test = obj("v1", "Pod", f"{RELEASE}-test", spec={"containers": [{"name": "wget", "image": "busybox"}]})
    test["metadata"]["annotations"] = {"helm.sh/hook": "test"}
    return [*found, test]


# -- a cache -----------------------------------------------------------------------------------------------------------

MEMCACHED: dict[str, Any] = {
    "architecture": "standalone",
    "memory": 64,
    "verbose": False,
    "extraFlags": [],
    "replicas": 1,
    "persistence": {"enabled": False, "size": "8Gi", "storageClass": ""},
    "pdb": {"create": False, "minAvailable": 1},
    "metrics": {"enabled": False, "image": "exporter:0.14", "port": 9150},
}


def memcached(values: dict[str, Any]) -> list[dict[str, Any]]:
    metrics, persistence, pdb = values["metrics"], values["persistence"], values["pdb"]
    arguments = ["-m", str(values["memory"]), *(["-v"] if values["verbose"] else []), *values["extraFlags"]]
    containers: list[dict[str, Any]] = [
        {
            "name": "memcached",
            "image": "memcached:1.6",
            "args": arguments,
            "ports": [{"name": "memcache", "containerPort": 11211}],
        }
    ]
    if metrics["enabled"]:
        ports = [{"name": "metrics", "containerPort": metrics["port"]}]
        containers.append({"name": "metrics", "image": metrics["image"], "ports": ports})
    annotations = {"prometheus.io/port": str(metrics["port"])} if metrics["enabled"] else None
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": persistence["storageClass"] or None,
            "resources": {"requests": {"storage": persistence["size"]}},
        },
    }
    stateful = {
        "replicas": values["replicas"],
        "serviceName": RELEASE,
        "selector": {"matchLabels": selector()},
        "template": {"metadata": {"labels": labels(), "annotations": annotations}, "spec": {"containers": containers}},
        "volumeClaimTemplates": [claim] if persistence["enabled"] else None,
    }
    found = [
        obj("v1", "Service", RELEASE, spec={"clusterIP": "None", "selector": selector(), "ports": [{"port": 11211}]}),
        obj("apps/v1", "StatefulSet", RELEASE, spec=stateful),
    ]
    if pdb["create"]:
        spec = {"minAvailable": pdb["minAvailable"], "selector": {"matchLabels": selector()}}
        found.append(obj("policy/v1", "PodDisruptionBudget", RELEASE, spec=spec))
    return found


# -- a worker with a configuration file and a job ----------------------------------------------------------------------

WORKER: dict[str, Any] = {
    "replicas": 1,
    "logLevel": "info",
    "queue": {"host": "queue.local", "port": 5672, "tls": False},
    "features": {"beta": False},
    "cleanup": {"enabled": True, "schedule": "0 3 * * *"},
    "config": {},
    "podAnnotations": {},
}


def worker(values: dict[str, Any]) -> list[dict[str, Any]]:
    queue, cleanup = values["queue"], values["cleanup"]
    scheme = "amqps" if queue["tls"] else "amqp"
    lines = [
        f"log_level = {values['logLevel']}",
        f"queue = {scheme}://{queue['host']}:{queue['port']}/main",
        *(["[beta]", "enabled = true"] if values["features"]["beta"] else []),
        "[end]",
    ]
    data = {"worker.ini": "\n".join(lines) + "\n", **values["config"]}
    config = obj("v1", "ConfigMap", f"{RELEASE}-config", data=data)
    container = {
        "name": "worker",
        "image": "worker:1.0",
        "args": [f"--level={values['logLevel']}", "--queue", f"{queue['host']}:{queue['port']}"],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/worker"}],
    }
    volumes = [{"name": "config", "configMap": {"name": f"{RELEASE}-config"}}]
    pod = {
        "metadata": {"labels": labels(), "annotations": {"example.com/team": "a", **values["podAnnotations"]}},
        "spec": {"containers": [container], "volumes": volumes},
    }
    deployment = {"replicas": values["replicas"], "selector": {"matchLabels": selector()}, "template": pod}
    found = [config, obj("apps/v1", "Deployment", RELEASE, spec=deployment)]
    if cleanup["enabled"]:
        job_pod = {"restartPolicy": "Never", "containers": [{"name": "cleanup", "image": "worker:1.0"}]}
        spec = {"schedule": cleanup["schedule"], "jobTemplate": {"spec": {"template": {"spec": job_pod}}}}
        found.append(obj("batch/v1", "CronJob", f"{RELEASE}-cleanup", spec=spec))
    return found
