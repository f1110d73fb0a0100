"""`ruleop check` finds literals of templates that the API server refuses, whatever the custom resource says."""

import textwrap

import pytest

from tests.authoring.checking.projects import said_of

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ metadata.name }}"}
spec:
  replicas: {{ spec.replicas }}
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: "{{ spec.image }}"
          ports:
            - containerPort: 8080
          volumeMounts:
            - {name: data, mountPath: /data}
      volumes:
        - {name: data, emptyDir: {}}
"""
CRON_JOB = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: "{{ metadata.name }}"}
spec:
  schedule: 0 2 * * *
  suspend: {{ spec.paused }}
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - {name: backup, image: "{{ spec.image }}"}
"""
PORTS = "  ports:\n    - {name: http, port: 80, targetPort: {{ spec.port }}}\n"
SERVICE = f"""\
apiVersion: v1
kind: Service
metadata: {{name: "{{{{ metadata.name }}}}"}}
spec:
  selector: {{app: "{{{{ metadata.name }}}}"}}
{PORTS}"""
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "{{ metadata.name }}"}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: "{{ spec.size }}"}}
  storageClassName: fast
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: "{{ metadata.name }}"}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: "{{ metadata.name }}"}}
"""


def refused(template: str, body: str = "children: {a: {template: a.yaml}}") -> list[str]:
    return [each for each in said_of(body, a=template) if each.startswith("RO406")]


def changed(template: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in template
        template = template.replace(old, new)
    return template


REFUSED = {
    "a selector that does not match its labels": (
        changed(DEPLOYMENT, ("labels: {app: web}", "labels: {app: shop}")), 10, "spec.template.metadata.labels"),
    "an unknown volume": (changed(DEPLOYMENT, ("- {name: data, m", "- {name: date, m")), 18, "volumeMounts[0].name"),
    "a port out of range": (changed(DEPLOYMENT, ("8080", "156720")), 16, "ports[0].containerPort"),
    "a volume of no ConfigMap": (changed(DEPLOYMENT, ("emptyDir: {}", "configMap: {}")), 20, "spec.volumes[0].configMap.name"),
    "two ports of one name": (
        changed(DEPLOYMENT, ("- containerPort: 8080", "- {name: a, containerPort: 80}\n            - {name: a, containerPort: 81}")), 17, "ports[1].name"),
    "a schedule in words": (changed(CRON_JOB, ("0 2 * * *", "every night")), 5, "spec.schedule"),
    "a schedule of the wrong range": (changed(CRON_JOB, ("0 2 * * *", "0 25 * * *")), 5, "spec.schedule"),
    "a Job that restarts its pods always": (changed(CRON_JOB, ("Never", "Always")), 11, "template.spec.restartPolicy"),
    "a Service without ports": (changed(SERVICE, (PORTS, "")), 4, "spec.ports"),
    "a name of a port in capitals": (changed(SERVICE, ("name: http,", "name: HTTP,")), 7, "spec.ports[0].name"),
    "a claim of an impossible class": (changed(CLAIM, ("fast", "Fast_1")), 7, "spec.storageClassName"),
    "a budget of more than all": (changed(BUDGET, ("minAvailable: 1", "minAvailable: 150%")), 5, "spec.minAvailable"),
    "a quantity below zero": (
        changed(DEPLOYMENT, ("          ports:", "          resources: {limits: {cpu: -1}}\n          ports:")), 15, "resources.limits[cpu]"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_literal_is_an_error_at_its_line(case):
    template, line, field = REFUSED[case]
    assert [each for each in refused(template) if f"templates/a.yaml:{line}:" in each and f"{field}: " in each]


MOUNTED = changed(DEPLOYMENT, ("- {name: data, m", "- {name: date, m"))
ACCEPTED = {
    "a Deployment": DEPLOYMENT,
    "a CronJob": CRON_JOB,
    "a Service": SERVICE,
    "a claim": CLAIM,
    "a budget": BUDGET,
    "labels that the CR may complete": changed(
        DEPLOYMENT, ("matchLabels: {app: web}", 'matchLabels: {app: "{{ spec.app }}"}')
    ),
    "a volume that the CR may name": changed(MOUNTED, ("- {name: data, e", '- {name: "{{ spec.volume }}", e')),
    "volumes that the CR may add": changed(
        MOUNTED, ("        - {name: data, emptyDir: {}}\n", "        {{ spec.volumes | indent(8) }}\n")
    ),
    "a port that the CR may repeat": changed(
        DEPLOYMENT,
        ("    spec:\n", "    spec:\n      hostNetwork: true\n"),
        ("- containerPort: 8080", "- {containerPort: {{ spec.port }}, hostPort: 8080}"),
    ),
    "a limit that the CR decides": changed(
        DEPLOYMENT,
        (
            "          ports:",
            '          resources: {requests: {cpu: 2}, limits: {cpu: "{{ spec.cpu }}"}}\n          ports:',
        ),
    ),
    "a Service that may have no address": changed(SERVICE, (PORTS, "  clusterIP: {{ spec.address }}\n")),
    "a policy for another branch": changed(
        CRON_JOB, ("          restartPolicy: Never\n", "{% if spec.x %}          restartPolicy: Never\n{% endif %}")
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_literal_that_a_custom_resource_may_make_right_is_not_reported(case):
    assert refused(ACCEPTED[case]) == []


def test_a_field_that_another_manager_may_set_is_not_required():
    template = changed(CRON_JOB, ("          restartPolicy: Never\n", ""))
    assert refused(template)
    assert refused(template, "children: {a: {template: a.yaml, apply: {strategy: server-side}}}") == []


def test_an_object_of_watches_yaml_is_checked_too():
    body = textwrap.dedent("""\
        children:
          a:
            object:
              apiVersion: batch/v1
              kind: CronJob
              metadata: {name: "{{ metadata.name }}"}
              spec:
                schedule: "@nightly"
                jobTemplate:
                  spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}
        """)
    (found,) = [each for each in said_of(body) if each.startswith("RO406")]
    assert 'spec.schedule: Invalid value: "@nightly": unrecognized descriptor: @nightly' in found
