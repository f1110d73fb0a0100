"""A small project with most parts of a rule, and the results of a test file in it."""

from __future__ import annotations

import textwrap
from pathlib import Path

from ruleop.authoring.report.spans import text_of
from ruleop.authoring.ruletests.cases import parse_file
from ruleop.authoring.ruletests.results import CaseResult, failure_lines
from ruleop.authoring.ruletests.runner import Projects, Runner, Snapshots
from tests.definitions import definition
from tests.folders import write_files

WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  vars: {image: "${IMAGE:-nginx}"}
  validate:
    - rule: spec.page != 'forbidden'
      message: "spec.page must not be {{ spec.page }}"
  children:
    config:
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "{{ metadata.name }}-config"}
        data:
          page: "{{ spec.page }}"
    web:
      template: web.yaml.j2
    service:
      when: spec.public
      dependsOn: [web]
      template: service.yaml.j2
    jobs:
      forEach: spec.jobs
      as: job
      template: job.yaml.j2
    certificate:
      optional: true
      template: certificate.yaml.j2
  finalize:
    backup:
      object:
        apiVersion: batch/v1
        kind: Job
        metadata: {name: "{{ metadata.name }}-backup"}
        spec: {template: {spec: {restartPolicy: Never, containers: [{name: backup, image: "{{ vars.image }}"}]}}}
  status:
    replicas: "{{ web.status.readyReplicas | default(0) }}"
"""

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ metadata.name }}
spec:
  replicas: {{ spec.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: {{ vars.image }}
          ports:
            - containerPort: 80
        {% if spec.public %}
        - name: proxy
          image: proxy
        {% endif %}
"""

SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: {{ metadata.name }}
spec:
  selector: {app: web}
  ports:
    - port: 53
      name: tcp
    - port: 53
      name: udp
      protocol: UDP
"""

JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ metadata.name }}-{{ job }}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: job, image: {{ vars.image }}}
"""

CERTIFICATE = """\
apiVersion: certificates.example.com/v1
kind: Certificate
metadata:
  name: {{ metadata.name }}
spec: {page: {{ spec.page }}}
"""

SPEC = (
    "{type: object, required: [page], properties: {page: {type: string}, replicas: {type: integer, default: 1, minimum: 0}, "
    "public: {type: boolean, default: false}, jobs: {type: array, default: [], items: {type: string}}}}"
)

SITE = """\
apiVersion: example.com/v1
kind: Site
metadata:
  name: blog
spec:
  page: hello
"""

FILES = {
    "watches.yaml": WATCHES,
    "templates/web.yaml.j2": WEB,
    "templates/service.yaml.j2": SERVICE,
    "templates/job.yaml.j2": JOB,
    "templates/certificate.yaml.j2": CERTIFICATE,
    "crds/sites.yaml": definition("Site", spec=SPEC),
    "site.yaml": SITE,
}


def results(root: Path, text: str, *, snapshots: Snapshots | None = None) -> list[CaseResult]:
    """The results of the cases of a file, which has no mistakes."""
    if not (root / "watches.yaml").exists():
        write_files(root, FILES)
    file = root / "site.test.yaml"
    file.write_text(textwrap.dedent(text), "utf-8")
    found = parse_file(file, "site.test.yaml", textwrap.dedent(text))
    assert found.findings == ()
    runner = Runner(Projects(root, {}), snapshots or Snapshots())
    return [runner.run(case) for case in found.cases]


def failure_text(result: CaseResult) -> str:
    return text_of(failure_lines(result, place=str))


def shown(root: Path, text: str, *, snapshots: Snapshots | None = None) -> str:
    """The failures of the cases as people see them; empty if all have passed."""
    return "".join(failure_text(each) for each in results(root, text, snapshots=snapshots) if not each.passed)


def expected(root: Path, expect: str, more: str = "") -> str:
    """The failures of one case with this expectation, in braces."""
    return shown(root, f"- {{name: a, resource: site.yaml, {more}expect: {expect}}}\n")
