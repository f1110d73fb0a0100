"""Why templates of pods are invalid, and what their authors are warned of. Word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.creation import answer_to_creation, create
from tests.contract.workloads import (
    LABELS,
    container,
    cron_job,
    daemon_set,
    deployment,
    job,
    pod,
    stateful_set,
    template,
)

if TYPE_CHECKING:
    from tests.contract.client import Server
    from tests.contract.recording import Recording

MISTAKES = {
    "a volume without a source": deployment(template(volumes=[{"name": "x"}])),
    "a volume of two types": deployment(template(volumes=[{"name": "x", "emptyDir": {}, "configMap": {"name": "a"}}])),
    "volumes without what they need": deployment(
        template(volumes=[{"name": "a", "secret": {}}, {"name": "b", "configMap": {}}, {"name": "c", "hostPath": {}}])
    ),
    "files of a volume at bad paths": deployment(
        template(
            volumes=[
                {
                    "name": "a",
                    "configMap": {
                        "name": "a",
                        "defaultMode": 999,
                        "items": [{"key": "a", "path": "../b"}, {"key": "", "path": "/b"}, {"key": "a", "path": "..b"}],
                    },
                }
            ]
        )
    ),
    "a name of a port in capitals": deployment(template(container(ports=[{"containerPort": 80, "name": "HTTP"}]))),
    "two ports of one name": deployment(
        template(container(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]))
    ),
    "a variable from nowhere": deployment(template(container(env=[{"name": "a", "valueFrom": {}}]))),
    "a variable from an unknown field": deployment(
        template(container(env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}}]))
    ),
    "a variable from a ConfigMap without a key": deployment(
        template(container(env=[{"name": "a", "valueFrom": {"configMapKeyRef": {"name": "a"}}}]))
    ),
    "variables from an unnamed Secret": deployment(template(container(envFrom=[{"secretRef": {}}, {}]))),
    "a probe that does nothing": deployment(template(container(livenessProbe={"periodSeconds": 5}))),
    "a probe that does two things": deployment(
        template(container(livenessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 80}}))
    ),
    "a probe of a port out of range": deployment(template(container(readinessProbe={"httpGet": {"port": 70000}}))),
    "a probe with negative numbers": deployment(
        template(container(livenessProbe={"tcpSocket": {"port": 80}, "periodSeconds": -1, "successThreshold": 2}))
    ),
    "a probe of a container that starts the pod": deployment(
        template(initContainers=[container(name="b", livenessProbe={"tcpSocket": {"port": 80}})])
    ),
    "an unknown resource": deployment(template(container(resources={"limits": {"gpu": "1"}}))),
    "a negative resource": deployment(template(container(resources={"limits": {"cpu": "-1"}}))),
    "a user out of range": deployment(template(container(securityContext={"runAsUser": -1}))),
    "a privileged container without escalation": deployment(
        template(container(terminationMessagePolicy="Sometimes", imagePullPolicy="Sometimes"))
    ),
    "tolerations that do not fit together": deployment(
        template(
            tolerations=[
                {"operator": "Equal"},
                {"key": "a", "operator": "Exists", "value": "b"},
                {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5},
                {"key": "a", "operator": "Sometimes", "effect": "Never"},
                {"key": "a b", "value": "a b"},
            ]
        )
    ),
    "invalid spread constraints": deployment(
        template(
            topologySpreadConstraints=[
                {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Sometimes"},
                *[{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}] * 2,
            ]
        )
    ),
    "invalid aliases of hosts": deployment(
        template(hostAliases=[{"ip": "1.2.3", "hostnames": ["A_b"]}, {"ip": "1.2.3.4"}])
    ),
    "invalid names in a pod": deployment(
        template(serviceAccountName="A_b", hostname="a.b", subdomain="A", priorityClassName="A", nodeName="A_b")
    ),
    "invalid labels to choose nodes by": deployment(template(nodeSelector={"a b": "a b"})),
    "an unknown DNS policy": deployment(template(dnsPolicy="Sometimes")),
    "a host's port that is not the container's": deployment(
        template(container(ports=[{"containerPort": 80, "hostPort": 81}]), hostNetwork=True)
    ),
    "invalid labels of pods": deployment(
        {"metadata": {"labels": {**LABELS, "a b": "a b"}, "annotations": {"a b": "x"}}, "spec": template()["spec"]}
    ),
    "a deadline for pods that run on": deployment(template(activeDeadlineSeconds=5)),
    "a share above all": deployment(
        template(), strategy={"rollingUpdate": {"maxSurge": "x", "maxUnavailable": "120%"}}
    ),
    "a selector with an invalid requirement": deployment(
        template(),
        selector={"matchLabels": LABELS, "matchExpressions": [{"key": "app", "operator": "In", "values": []}]},
    ),
    "a stateful set without a selector": stateful_set(selector=None),
    "a stateful set with an empty selector": stateful_set(selector={}),
    "a stateful set with unknown policies": stateful_set(
        podManagementPolicy="Sometimes", updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}
    ),
    "a stateful set with negative numbers": stateful_set(
        replicas=-1, minReadySeconds=-1, updateStrategy={"rollingUpdate": {"partition": -1}}
    ),
    "a stateful set of an invalid service": stateful_set(serviceName="A_b"),
    "a daemon set with an empty selector": daemon_set(selector={}),
    "a daemon set that may not surge": daemon_set(
        updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    ),
    "a daemon set that may not change": daemon_set(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
    "a daemon set with an unknown strategy": daemon_set(updateStrategy={"type": "Sometimes"}),
    "a job with an unknown completion mode": job(template(restartPolicy="Never"), completionMode="Sometimes"),
    "an indexed job without completions": job(template(restartPolicy="Never"), completionMode="Indexed", parallelism=2),
    "a job with a limit of indexed jobs": job(template(restartPolicy="Never"), backoffLimitPerIndex=1),
    "a cron job whose pods restart always": cron_job(
        "* * * * *", jobTemplate={"spec": {"template": template(restartPolicy="Always"), "parallelism": -1}}
    ),
    "a cron job with negative limits": cron_job(
        "* * * * *", successfulJobsHistoryLimit=-1, failedJobsHistoryLimit=-1, startingDeadlineSeconds=-1
    ),
}
WARNED = {
    "two containers with one port": deployment(
        template(
            container(ports=[{"containerPort": 80, "name": "a"}]),
            container(name="b", ports=[{"containerPort": 80, "name": "a"}]),
        )
    ),
    "ports of hosts that overlap": deployment(
        template(container(ports=[{"containerPort": 80}, {"containerPort": 80, "hostPort": 80}]))
    ),
    "fractions of bytes": deployment(
        template(container(resources={"limits": {"memory": "0.5"}, "requests": {"ephemeral-storage": "100m"}}))
    ),
    "a variable that hides another": deployment(
        template(container(env=[{"name": "a", "value": "b"}, {"name": "a", "value": "c"}]))
    ),
    "constraints without a selector": deployment(
        template(
            topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}],
            affinity={
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": {"topologyKey": "a"}}
                    ],
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}],
                }
            },
        )
    ),
    "names that repeat": deployment(
        template(
            imagePullSecrets=[{"name": "a"}, {"name": "a"}, {}],
            hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]}, {"ip": "1.2.3.4", "hostnames": ["b"]}],
        )
    ),
    "a negative grace period": deployment(template(terminationGracePeriodSeconds=-1)),
    "a job's template": job(template(container(resources={"limits": {"memory": "0.5"}}), restartPolicy="Never")),
    "a cron job's template": cron_job(
        "* * * * *",
        jobTemplate={
            "spec": {"template": template(container(resources={"limits": {"memory": "0.5"}}), restartPolicy="Never")}
        },
    ),
    "a stateful set's template": stateful_set(template=template(container(resources={"limits": {"memory": "0.5"}}))),
    "a stateful set's claims": stateful_set(
        volumeClaimTemplates=[
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100m"}}},
            }
        ]
    ),
    "a daemon set's template": daemon_set(template=template(container(resources={"limits": {"memory": "0.5"}}))),
    "a pod": pod(container(resources={"limits": {"memory": "0.5"}}), automountServiceAccountToken=False),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_invalid_pod_is_answered_with_its_causes(
    server: Server, namespace: str, name: str, recording: Recording
) -> None:
    about, spec = MISTAKES[name]
    recording.check(name, answer_to_creation(server, namespace, about, {"spec": spec}), namespace)


@pytest.mark.parametrize("name", WARNED)
def test_a_doubtful_pod_is_accepted_with_warnings(
    server: Server, namespace: str, name: str, recording: Recording
) -> None:
    about, spec = WARNED[name]
    reply = create(server, namespace, about, {"spec": spec}, name="a" if "StatefulSet" in about else "a.b")
    reply.ok()
    assert reply.warnings
    recording.check(f"warnings of {name}", sorted(reply.warnings), namespace)
