"""Sample CRs of the example projects, objects of other owners, and expected states of Ready."""

from __future__ import annotations

from typing import Any, NamedTuple

from ruleop.kubernetes.kinds import Object
from tests.docs.messages import ROOT
from tests.projects.rendering import document
from tests.projects.simulation import Simulation

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


def labelled(name: str, group: str) -> dict[str, Any]:
    found = foreign("ConfigMap", name, data={"theirs": "x"})
    return {**found, "metadata": {**found["metadata"], "labels": {"group": group}}}


class Example(NamedTuple):
    """A sample CR, the namespace that it is in, and the objects of others that it reads."""

    folder: str
    cr: str
    home: str = "default"
    existing: tuple[Object, ...] = ()


EXAMPLES = {
    "App": Example("", "app"),
    "Memcached": Example("", "memcached"),
    "memcached-v1": Example("examples/memcached-v1", "memcached"),
    "myapp": Example("examples/myapp", "myapp"),
    "crontab": Example("examples/crontab", "crontab"),
    "wordpress": Example(
        WORDPRESS, "blog", existing=(foreign("Secret", "mine", data={"password": "cA==", "root-password": "cg=="}),)
    ),
    "postgres": Example(
        "examples/postgres", "orders", existing=(foreign("Secret", "mine", data={"password": "cA=="}),)
    ),
    "chart": Example(
        "examples/memcached-chart",
        "replicated",
        existing=(foreign("Secret", "mine", data={"memcached-password": "cA=="}),),
    ),
    "console": Example(
        "examples/console",
        "console",
        existing=(
            foreign("Secret", "mine", data=dict.fromkeys(("host", "port", "name", "username", "password"), "cA==")),
        ),
    ),
    "kafka": Example(KAFKA, "events"),
    "tenant": Example("tests/projects/tenant", "acme", "none"),
    "shop": Example("tests/projects/shop", "shop", "web", (PLATFORM, CREDENTIALS, TLS)),
    "backup": Example(BACKUP, "pg", "db"),
    "bundle": Example(
        "tests/projects/bundle",
        "all",
        existing=(
            *(foreign("ConfigMap", name, data={"theirs": "x"}) for name in ("one", "two")),
            *(labelled(name, group) for name, group in {"three": "x", "four": "x", "five": "y"}.items()),
        ),
    ),
}


def begun(example: str, spec: Any = None) -> tuple[Simulation, str]:
    """A cluster with a CR that no pass has seen yet, and the name of the CR."""
    folder, cr, home, existing = EXAMPLES[example]
    cluster = Simulation(ROOT / folder, home=home, namespaces=["platform", "tools", "monitoring"])
    obj = sample(folder, cr)
    if spec is not None:
        obj["spec"] = spec
    cluster.add(*existing, obj)
    return cluster, f"{obj['kind']}/{obj['metadata']['name']}"


def become_ready(example: str) -> tuple[Simulation, str]:
    """As `begun`, and the CR has become ready."""
    cluster, resource = begun(example)
    cluster.converge(4)
    return cluster, resource


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
