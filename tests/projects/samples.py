"""Sample CRs of the example projects, objects of other owners, and expected states of Ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.projects.rendering import document
from tests.projects.simulation import Simulation
from tests.projects.snapshots import ROOT

if TYPE_CHECKING:
    from ruleop.core.kinds import Object

READY, PROGRESSING, WAITING = ("True", "Ready"), ("False", "Progressing"), ("False", "Waiting")
EXISTS = ("False", "ErrResourceExists")
POD, CONTAINERS = "spec.template.metadata.annotations", "spec.template.spec.containers"


def sample(project: str, name: str) -> dict[str, Any]:
    return document(ROOT / project / "examples" / f"{name}.yaml")


def foreign(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """An object of another owner."""
    api_version = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "CronJob": "batch/v1"}.get(kind, "v1")
    pod = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always"},
    }
    spec: dict[str, Any] = {"ConfigMap": {}, "Secret": {}, "Service": {"spec": {"ports": [{"port": 1}]}}}.get(
        kind, {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod}}
    )
    if kind == "CronJob":
        spec = {
            "spec": {
                "schedule": "@daily",
                "jobTemplate": {"spec": {"template": {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}}},
            }
        }
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **spec, **more}


def started(project: str, cr: str | Object, *existing: Object, **options: Any) -> Simulation:
    """A cluster with a CR that has become ready."""
    found = Simulation(ROOT / project, **options)
    found.add(*existing, sample(project, cr) if isinstance(cr, str) else cr)
    found.converge(4)
    return found


def containers(obj: Any) -> list[dict[str, Any]]:
    spec = obj["spec"]["jobTemplate"]["spec"] if obj["kind"] == "CronJob" else obj["spec"]
    found: list[dict[str, Any]] = spec["template"]["spec"]["containers"]
    return found


PLATFORM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "platform-defaults", "namespace": "platform"},
    "data": {"domain": "example.com", "issuer": "letsencrypt", "region": "eu"},
}
CREDENTIALS = foreign("Secret", "shop-db", data={"username": "c2hvcA==", "password": "c2VjcmV0"})
TLS = foreign("Secret", "shop-tls", type="kubernetes.io/tls", data={"tls.crt": "Y2VydA==", "tls.key": "a2V5"})
WORDPRESS, BLOG = "examples/wordpress", "WordPress/blog"
KAFKA, EVENTS = "tests/projects/kafka", "Kafka/events"
BACKUP, PG = "tests/projects/backup", "DatabaseBackup/pg"


def blog(**spec: Any) -> Simulation:
    cr = sample(WORDPRESS, "blog")
    cr["spec"] |= spec
    return started(WORDPRESS, cr)


def kafka(replicas: int = 3) -> Simulation:
    cr = sample(KAFKA, "events")
    cr["spec"]["replicas"] = replicas
    return started(KAFKA, cr)


def backup(**spec: Any) -> Simulation:
    cr = sample(BACKUP, "pg")
    cr["spec"] |= spec
    return started(BACKUP, cr, home="db")
